"""Winner determination over any bids: what is given, how it is decided, what comes out."""
