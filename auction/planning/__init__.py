"""A start time for every job of a snapshot."""
