"""Families of constraints: who takes how much of what there is, each stated once (registry.py lists them)."""
