"""Nodesets of free resources, and the bids jobs make on them (Soner, section 4.1)."""
