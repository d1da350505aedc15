"""iBSched: the batch scheduler, its state, and its answer to an offer: greedy or an auction."""
