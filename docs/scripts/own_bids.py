"""Winner determination over given bids: winners, their value, and prices of the items."""

import aucsched

bids = [
    ("ann", 10, {"gpu": 2, "cores": 4}),
    ("ann", 7, {"gpu": 1, "cores": 4}),
    ("bob", 5, {"gpu": 1, "cores": 16}),
    ("eve", 6, {"cores": 48}),
]
found = aucsched.winners(bids, {"gpu": 2, "cores": 64})
for place in found.chosen:
    bidder, value, items = bids[place]
    print(f"{bidder} wins {items} for {value}")
print(f"worth {found.value}, proved: {found.proved}, prices: {found.prices}")
