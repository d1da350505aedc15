"""Compile every kernel, for all later runs: ``python -m aucsched.cluster.kernels.warm_up``.

Several are compiled at once. Without numba there is nothing to do. The modules below are loaded by
name: they stand in rooms above.
"""

import os
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module

from .harness import Entry, entries

#: Processes that compile at once: each takes 290 MB, and login nodes may leave users few.
_AT_ONCE = 4
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
    with ProcessPoolExecutor(min(os.cpu_count() or 1, _AT_ONCE)) as processes:
        for _ in processes.map(_compile, range(len(_loaded()))):
            pass
    return 0


def _loaded() -> tuple[Entry, ...]:
    package = (__package__ or "").partition(".")[0]  # run as a program, it is named __main__
    for module in MODULES:
        import_module(f"{package}.{module}")
    return entries()


def _compile(place: int) -> None:
    """Compile the entry at a place: every process loads them in the same order."""
    _loaded()[place].compiled()


if __name__ == "__main__":
    raise SystemExit(main())
