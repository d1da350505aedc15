"""Time-limited search over packed bids: prices, ruin and recreate, neighbourhoods, bounds."""
