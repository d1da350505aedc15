"""Auctions of a large cluster in parts, and who holds them."""
