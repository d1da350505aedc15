"""The command line: one file a command, each a thin adapter of the room it drives."""
