"""Files of bids: CATS's text, and JSON."""
