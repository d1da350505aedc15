"""How iBSched answers an offer: greedy mapping or an auction."""
