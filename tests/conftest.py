"""What all tests share; it stands here, as the root is a package named as the checkout is.

``times.txt`` holds the processor seconds of each test function that takes some, all its cases together, as
``make times`` measured them. Those of 0.3 s and more are marked ``costly``: ``make quick`` leaves them out.
While those of 2 s and more run, nobody counts lines: it would add half to their time.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

TIMES = Path(__file__).with_name("times.txt")
COSTLY_S, UNCOUNTED_S = 0.3, 2.0

# No test may fail because the machine is busy: examples are bounded by number, not by time. The same tests
# draw the same examples, so that a change is refused for what it changes; ``make soak`` draws others.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("soak", deadline=None)
settings.load_profile("same")

# Containers often set it: then each of the hundreds of processes that tests start compiles the package anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

_spent: defaultdict[str, float] = defaultdict(float)


def known_times() -> Mapping[str, float]:
    """Return the processor seconds of the test functions that are listed, by name."""
    rows = (line.split() for line in TIMES.read_text().splitlines())
    return {name: float(seconds) for seconds, name in rows}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--write-times``."""
    parser.addoption("--write-times", action="store_true", help=f"measure {TIMES.name} anew")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what takes long."""
    times = known_times()
    for item in items:
        seconds = times.get(_function(item), 0.0)
        if seconds >= COSTLY_S:
            item.add_marker(pytest.mark.costly)
        if seconds >= UNCOUNTED_S:
            item.add_marker(pytest.mark.no_cover)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Add up what a test takes, with the processes that it starts."""
    before = os.times()
    result = yield
    after = os.times()
    _spent[_function(item)] += sum(after[:4]) - sum(before[:4])
    return result


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add what a worker measured."""
    for name, spent in getattr(node, "workeroutput", {}).get("spent", {}).items():
        _spent[name] += spent


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the times down where that was asked for, in the process that has them all."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["spent"] = dict(_spent)
    elif session.config.getoption("--write-times"):
        rows = sorted((name, spent) for name, spent in _spent.items() if spent >= COSTLY_S)
        TIMES.write_text("".join(f"{spent:.1f} {name}\n" for name, spent in rows))


def _function(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]
