"""One scheduling step: window, bids, integer program, award."""
