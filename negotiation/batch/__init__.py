"""iBSched: the batch scheduler, its state, and how it answers an offer: greedy mapping or an auction."""
