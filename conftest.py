"""Pytest collects tests/ only: the rooms are imported as ``aucsched.…`` through the installed package."""

collect_ignore = [
    "src",
    "cluster",
    "formats",
    "topology",
    "bidgen",
    "models",
    "auction",
    "simulation",
    "sweep",
    "negotiation",
    "runtime",
    "cli.py",
    "__init__.py",
]
