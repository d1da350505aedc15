"""The common part of all sections of the attack: cases by seed, run in children that may hang or crash.

A section is a function from a seed to an outcome, the same for the same seed. Cases run one after another in
a forked child whose memory is limited; a child that dies or does not answer is a failure of the case it was
at, and another child goes on with the next.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

#: What a child may map beyond what it has when it begins; resident memory is what a section judges.
_ADDRESS_SPACE = 3 << 30
#: A child ends after this many cases, so that what one leaves behind does not affect later ones.
_CASES_OF_A_CHILD = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What one case did wrong: the rule that it broke, and how."""

    rule: str
    detail: str


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What came of one case.

    Attributes:
        replay: what was run, a line.
        files: what it read, by name; kept when it failed.
        counts: what a section counts, by name.
        largest: the largest of each figure, by name.
    """

    replay: str = ""
    failures: list[Failure] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    largest: dict[str, float] = field(default_factory=dict)

    def fail(self, rule: str, detail: str) -> None:
        """Note a rule that was broken."""
        self.failures.append(Failure(rule=rule, detail=detail))


#: Runs the case of a seed in a folder of its own section; gives what came of it.
Case = Callable[[int, Path], Outcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the attack.

    Attributes:
        count: how many cases make it whole; quick: how many a few seconds are enough for.
        run: a case.
        describe: what a seed reads, by file, without running it: saved when the case took its child down.
        prepare: makes what all cases share, once, before any child is forked.
        hangs_after_s: wall time after which a case that has not ended is given up and its child killed.
    """

    name: str
    count: int
    quick: int
    run: Case
    describe: Case | None = None
    prepare: Callable[[], object] = int
    hangs_after_s: float = 60.0


@dataclass(slots=True, kw_only=True)
class Cost:
    """What a block took: wall and processor seconds, and the most resident memory (MiB)."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_mib: float = 0.0


@contextmanager
def measured() -> Iterator[Cost]:
    """Measure a block; the high-water mark of memory begins anew where the system lets it (Linux)."""
    cost = Cost()
    _reset_peak()
    wall, cpu = time.perf_counter(), _cpu_s()
    try:
        yield cost
    finally:
        cost.wall_s, cost.cpu_s = time.perf_counter() - wall, _cpu_s() - cpu
        cost.peak_mib = _peak_mib()


def _cpu_s() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _reset_peak() -> None:
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def _peak_mib() -> float:
    """Return the most resident memory since _reset_peak, or of the process where that is not to be had."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def guarded(run: Case, seed: int, folder: Path) -> Outcome:
    """Run a case; an exception of the section itself is a failure too, never the end of the attack."""
    try:
        return run(seed, folder)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported
        outcome = Outcome(replay=f"seed {seed}")
        outcome.fail("section", summary(error))
        return outcome


def summary(error: BaseException) -> str:
    """Return an exception in a line: its type, its message, the last places of our own it came through."""
    places = [
        f"{Path(frame.filename).name}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if "site-packages" not in frame.filename
    ]
    text = " ".join(str(error).split())[:200]
    return f"{type(error).__name__}: {text} ({' < '.join(reversed(places[-3:]))})"


class Child:
    """A forked process that runs cases of a section."""

    def __init__(self, section: Section, folder: Path) -> None:
        context = multiprocessing.get_context("fork")
        self._section, self._folder = section, folder
        self._ours, theirs = context.Pipe()
        self._process: BaseProcess = context.Process(
            target=_serve, args=(section.run, folder, theirs), daemon=False
        )
        self._process.start()
        theirs.close()
        self.cases = 0

    def run(self, seed: int) -> Outcome:
        """Run a case; a child that died or hangs gives an outcome that says so."""
        hangs_after_s = self._section.hangs_after_s
        self.cases += 1
        self._ours.send(seed)
        if not self._ours.poll(hangs_after_s):
            self._process.kill()
            self._process.join()
            return self._ended(seed, "hangs", f"no end after {hangs_after_s:g} s")
        try:
            found = self._ours.recv()
        except EOFError:
            self._process.join()
            return self._ended(seed, "crash", f"its process ended with {self._process.exitcode}")
        assert isinstance(found, Outcome)
        return found

    def stop(self) -> None:
        """End the child."""
        if self._process.is_alive():
            self._process.kill()
        self._process.join()
        self._ours.close()

    @property
    def is_spent(self) -> bool:
        """Whether another child should go on."""
        return self.cases >= _CASES_OF_A_CHILD or not self._process.is_alive()

    def _ended(self, seed: int, rule: str, detail: str) -> Outcome:
        describe = self._section.describe
        outcome = Outcome(replay=f"seed {seed}") if describe is None else describe(seed, self._folder)
        outcome.fail(rule, detail)
        return outcome


def _serve(run: Case, folder: Path, pipe: Connection[Any, Any]) -> None:
    limit_memory(_ADDRESS_SPACE)
    while True:
        try:
            seed = pipe.recv()
        except EOFError:
            os._exit(0)
        pipe.send(guarded(run, seed, folder))


def limit_memory(more: int) -> None:
    """Let this process map this many bytes more than it has, where the system reports its size."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except OSError:
        return
    limit = pages * os.sysconf("SC_PAGE_SIZE") + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


@dataclass(slots=True, kw_only=True)
class Tally:
    """What came of a section's cases together."""

    section: str
    first_seed: int
    cases: int = 0
    failed: list[tuple[int, Outcome]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    largest: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    def add(self, seed: int, outcome: Outcome) -> None:
        """Count one case."""
        self.cases += 1
        self.counts.update(outcome.counts)
        for name, value in outcome.largest.items():
            self.largest[name] = max(value, self.largest.get(name, value))
        if outcome.failures:
            self.failed.append((seed, outcome))


def attack(
    section: Section,
    seeds: range,
    folder: Path,
    *,
    seconds: float = float("inf"),
    tell: Callable[[Tally, int, Outcome], None],
) -> Tally:
    """Run a section's seeds, or as many as ``seconds`` allow; ``tell`` hears of each case."""
    tally = Tally(section=section.name, first_seed=seeds.start)
    section.prepare()
    began = time.perf_counter()
    child: Child | None = None
    try:
        for seed in seeds:
            if time.perf_counter() - began > seconds:
                break
            if child is not None and child.is_spent:
                child.stop()
                child = None
            child = child or Child(section, folder)
            outcome = child.run(seed)
            tally.add(seed, outcome)
            tell(tally, seed, outcome)
    finally:
        if child is not None:
            child.stop()
    tally.seconds = time.perf_counter() - began
    return tally


def progress(tally: Tally, wanted: int) -> None:
    """Show how far a section is, on a terminal."""
    if sys.stderr.isatty():
        failed = f", {len(tally.failed)} failed" if tally.failed else ""
        sys.stderr.write(f"\r\x1b[K{tally.section}: {tally.cases} of {wanted}{failed}")
        sys.stderr.flush()
