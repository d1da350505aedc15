"""Families of constraints: which bids take how much of what; each is stated once (registry.py)."""
