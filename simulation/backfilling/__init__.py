"""EASY and conservative backfilling on counted processors: each rule once, in plain Python and compiled."""
