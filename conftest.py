"""Pytest collects tests/ only: the rooms are imported as ``aucsched.…`` through the installed package."""

from hypothesis import settings

# No test may fail because the machine is busy: examples are bounded by number, not by time.
settings.register_profile("house", deadline=None)
settings.load_profile("house")

collect_ignore = [
    "src",
    "commands",
    "slurm",
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
