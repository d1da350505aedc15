"""Compile every kernel, so that no later run has to: ``python -m aucsched.cluster.kernels.warm_up``.

Without numba there is nothing to do. The modules below are loaded by name: they stand in rooms above.
"""

from importlib import import_module

from .harness import entries

#: Modules whose entries a first run would wait for.
MODULES = (
    "models.search.compiled_search",
    "simulation.logs.counts",
    "simulation.promised.log_auction",
    "simulation.malleable_run",
    "simulation.forecast.futures",
)


def main() -> int:
    """Compile what is not in numba's cache."""
    package = (__package__ or "").partition(".")[0]  # run as a program, it is named __main__
    for module in MODULES:
        import_module(f"{package}.{module}")
    for entry in entries():
        entry.compiled()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
