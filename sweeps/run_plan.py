"""A sweep's plan: an input, a grid of options, the runs in the grid's order, each with its row."""

import hashlib
import platform
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from .. import __version__
from ..cluster.errors import AucschedError, OptionError, errors_in
from ..cluster.option_fields import flag_of
from ..cluster.text import one_line, plural
from ..formats import file_kinds
from ..formats.reading import read_bytes, unpacked
from .axes import AXES, Row, Value
from .run_kinds import SNAPSHOT, TRACE, WORKLOAD, RunKind

#: Kind by name.
KINDS: Mapping[str, RunKind] = {kind.name: kind for kind in (SNAPSHOT, TRACE, WORKLOAD)}

#: The most runs of a sweep; more are taken for a typing error.
_MOST_RUNS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is swept over: a file's content and what kind it is of.

    Attributes:
        name: the file's, without its folders; ``-`` for standard input.
        content: the file's bytes, which travel to the workers.
    """

    name: str
    kind: str
    content: bytes

    @property
    def digest(self) -> str:
        """The content's SHA-256 in hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A point of the grid: its place in the order, from 0, and columns with all its options."""

    number: int
    options: Row


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """Every run of a sweep, in the grid's order.

    Attributes:
        axes: name and values of each option that was given, in the order of nesting.
        repeat: how many runs at each point, each with a seed of its own where there is one.
        notes: what of the input no run looks at, and which points of the grid cannot run.
    """

    subject: Subject
    axes: tuple[tuple[str, tuple[Value, ...]], ...]
    repeat: int
    seed: int
    runs: tuple[Run, ...]
    notes: tuple[str, ...] = ()

    def identity(self) -> dict[str, str]:
        """Return what another sweep must share to go on from these results, in plain words."""
        return {
            "input": f"{self.subject.kind} {self.subject.digest}",
            **{flag_of(name): ",".join(map(str, values)) for name, values in self.axes},
            "--repeat": str(self.repeat),
            "--seed": str(self.seed),
        }


def _kind_of(content: bytes) -> str:
    """Return the kind: what is not JSON is taken for an SWF log."""
    if not file_kinds.is_json(content):
        return TRACE.name
    found = file_kinds.kind_of(content)
    # A file of no kind is taken for a snapshot, whose reader says what is wrong.
    return WORKLOAD.name if found is not None and found.name == file_kinds.WORKLOAD else SNAPSHOT.name


def make_plan(
    path: str, axes: Mapping[str, Sequence[Value]], *, repeat: int = 1, seed: int | None = None
) -> RunPlan:
    """Return the plan of a sweep over a file; every combination has been checked.

    The file's content tells what it is; ``-`` reads standard input. A combination of options that
    cannot go together is left out, with a note.

    Raises:
        InputError: the file cannot be read or is none of the kinds.
        OptionError: a value cannot be used, or no combination can run.
    """
    content = read_bytes(path)
    with errors_in(path):
        subject = Subject(name=one_line(Path(path).name), kind=_kind_of(unpacked(content)), content=content)
        return plan_over(subject, axes, repeat=repeat, seed=seed)


def plan_over(
    subject: Subject, axes: Mapping[str, Sequence[Value]], *, repeat: int = 1, seed: int | None = None
) -> RunPlan:
    """Return the plan of a sweep over what has been read; as ``make_plan``."""
    kind = KINDS[subject.kind]
    for name in axes:
        if name not in kind.axes:
            raise OptionError(f"{AXES[name].option}: {kind.title} has no use for it")
    ordered = tuple((name, tuple(axes[name])) for name in AXES if name in axes)
    size = repeat * prod(len(values) for _, values in ordered)
    if size > _MOST_RUNS:
        raise OptionError(f"the grid has {size} runs, more than {_MOST_RUNS}")
    loaded = kind.load(subject.content)
    runs, impossible = _runs(kind, loaded, ordered, repeat, seed)
    notes = (*kind.left_out(loaded, [run.options for run in runs]), *impossible)
    return RunPlan(subject=subject, axes=ordered, repeat=repeat, seed=seed or 0, runs=runs, notes=notes)


#: The axes whose values differ in what options they read.
_READERS = ("policy", "model", "strategy", "balance")


def _points(kind: RunKind, axes: tuple[tuple[str, tuple[Value, ...]], ...]) -> list[dict[str, Value]]:
    """Return the grid's points; each policy, model or strategy runs once for what it reads.

    Raises:
        OptionError: none of them reads an axis.
    """
    names = tuple(name for name, _ in axes)
    points = [dict(zip(names, values, strict=True)) for values in product(*(values for _, values in axes))]
    several = [str(one) for name, values in axes if name in _READERS and len(values) > 1 for one in values]
    if not several:  # one gets all options, and refuses what it ignores
        return points
    for name in names:
        if not any(kind.reads(name, point) for point in points):
            raise OptionError(f"{AXES[name].option}: none of {', '.join(several)} reads it")
    narrowed = ({name: point[name] for name in names if kind.reads(name, point)} for point in points)
    return [dict(point) for point in dict.fromkeys(tuple(one.items()) for one in narrowed)]


def _runs(
    kind: RunKind, loaded: Any, axes: tuple[tuple[str, tuple[Value, ...]], ...], repeat: int, seed: int | None
) -> tuple[tuple[Run, ...], list[str]]:
    """Return the runs of the points whose options can go together, and why the others cannot.

    Raises:
        OptionError: no point can run, or a value is in none that can and no other option is why.
    """
    runs: list[Run] = []
    impossible: list[tuple[dict[str, Value], OptionError]] = []
    used: dict[str, set[Value]] = defaultdict(set)
    points = _points(kind, axes)
    if seed is not None and not any(map(kind.uses_seed, points)):
        raise OptionError(f"--seed: policy {points[0].get('policy', 'easy')} draws nothing at random")
    for point in points:
        uses_seed = kind.uses_seed(point)
        for place in range(repeat):
            turn: Mapping[str, Value] = {"seed": (seed or 0) + place} if uses_seed else {}
            try:
                options = kind.resolve(loaded, {**point, **turn, "repeat": place})
            except OptionError as error:
                impossible.append((point, error))
                break
            runs.append(Run(number=len(runs), options=options))
            for name, value in point.items():
                used[name].add(value)
    for point, _ in impossible if runs else ():
        for unused in (name for name in point if point[name] not in used[name]):
            alone = {name: value for name, value in point.items() if name in (*_READERS, unused)}
            kind.resolve(loaded, {**alone, "repeat": 0})
    if not runs:
        raise impossible[0][1]
    several, counts = plural(len(points), "point"), Counter(str(error) for _, error in impossible)
    return tuple(runs), [f"{count} of {several} cannot run: {why}" for why, count in counts.items()]


FAILED = "failed"


def versions() -> Row:
    """Return the columns that say what computed a row."""
    return {"aucsched": __version__, "highspy": version("highspy"), "python": platform.python_version()}


def run_row(kind: str, loaded: Any, run: Run) -> Row:
    """Run one point of the grid and return its row: its options, its result, and versions.

    An error of any kind becomes the row's ``error``; the columns of the result are then missing.
    """
    began, cpu = time.perf_counter(), time.process_time()
    try:
        result = KINDS[kind].run(loaded, run.options)
    except Exception as error:  # noqa: BLE001 - whatever fails is a row, and the others go on
        kind = "" if isinstance(error, AucschedError) else f"{type(error).__name__}: "
        result = failure(f"{kind}{error}")
    seconds = {"seconds.run": time.perf_counter() - began, "seconds.cpu": time.process_time() - cpu}
    return {"run": run.number, **run.options, **result, **seconds, **versions()}


def failure(message: str) -> Row:
    """Return the columns of a run that failed."""
    return {"status": FAILED, "error": one_line(message)}


def lost_row(run: Run) -> Row:
    """Return the row of a run whose process died."""
    died = failure("its process died each time it was tried")
    return {"run": run.number, **run.options, **died, **versions()}
