"""The command line: one file for each command, a thin adapter of the room it drives."""
