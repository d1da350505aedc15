"""EASY and conservative backfilling on counted processors: one source, plain and compiled."""
