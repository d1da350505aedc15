"""The result of a step: awards, refusals and the report of the solve."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from .errors import InputError
from .nodes import Resources
from .snapshot import Snapshot
from .tabular import Copied, Deferred, Tabular, chart
from .text import plural, shown

FORMAT = "aucsched-schedule/1"
_ENCODER = msgspec.json.Encoder(decimal_format="number")


class Reason(StrEnum):
    """Why a job did not start.

    Examples:
        >>> Reason("outbid")
        <Reason.OUTBID: 'outbid'>
    """

    OUTBID = "outbid"
    NO_FIT = "no_fit"
    INELIGIBLE = "ineligible"
    BID_CAP = "bid_cap"
    WINDOW = "window"
    NOT_EXPRESSIBLE = "not_expressible"
    HELD = "held"
    NOT_ELIGIBLE = "not_eligible"
    RESERVATION = "reservation"
    SET_ASIDE = "set_aside"
    LIMIT = "limit"
    SHARE = "share"


class BidClass(StrEnum):
    """A bid's class (Soner, 4.1): A contiguous and aligned, B contiguous, C joined nodesets.

    Examples:
        >>> BidClass("A")
        <BidClass.A: 'A'>
    """

    A = "A"
    B = "B"
    C = "C"


class Status(StrEnum):
    """How far the solve came: proved, an award without proof, or no award.

    Examples:
        >>> Status.OPTIMAL.value
        'optimal'
    """

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    NO_SOLUTION = "no_solution"


@dataclass(frozen=True, slots=True, kw_only=True)
class BidSummary:
    """The winning bid.

    Attributes:
        bid_class: A, B or C.
        level: the level of its nodes' lowest common switch, 0 at a leaf; None: linear topology.
        preference: higher is better: F of (5.7), or minus K of (6.5); None if the model has none.
    """

    bid_class: BidClass
    level: int | None
    preference: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Award:
    """A job that starts, with what it holds on each node, in the snapshot's node order.

    Examples:
        >>> summary = BidSummary(bid_class=BidClass.A, level=0, preference=None)
        >>> Award(job="7", nodes={"n1": Resources(cores=4)}, bid=summary).nodes["n1"].cores
        4
    """

    job: str
    nodes: Mapping[str, Resources]
    bid: BidSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A job that does not start, the reason, and a sentence with the details.

    Examples:
        >>> Refusal(job="7", reason=Reason.NOT_ELIGIBLE, detail="Dependency").reason.value
        'not_eligible'
    """

    job: str
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One solve: its window, how it ended, the sum of priorities it found, its wall time."""

    size: int
    status: str
    priority: Fraction | int
    seconds: float = field(compare=False)


@dataclass(frozen=True, kw_only=True)
class Objective(Copied):
    """The award's value; ``bound`` and ``gap`` are about the priority sum over the bids made.

    ``preference`` is the sum over the started jobs, higher is better; ``bound_over_placements``
    holds for all placements, not only bids; bounds and ``gap`` are None when no bound is known.
    """

    priority: Fraction | int
    preference: float | None
    bound: float | None
    gap: float | None
    bound_over_placements: Deferred[float | None] = Deferred(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The size of the winning attempt and of its integer program. Nodesets are |S|, bids |B|.

    Where counts settled the award, the program has none. ``schedule`` then counts the bids that it
    makes for its reasons, ``Auction.award`` none.
    """

    nodesets: int = 0
    bids: int = 0
    variables: int = 0
    constraints: int = 0
    nonzeros: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seconds:
    """Wall time of the step's parts."""

    bids: float = 0.0
    build: float = 0.0
    solve: float = 0.0
    total: float = 0.0


_Figures = TypeVar("_Figures", Sizes, Seconds)


def summed(kind: type[_Figures], records: Iterable[_Figures]) -> _Figures:
    """Return the sums of all figures of some records."""
    known = list(records)
    return kind(**{one.name: sum(getattr(record, one.name) for record in known) for one in fields(kind)})


@dataclass(frozen=True, kw_only=True, repr=False)
class Schedule(Copied, Tabular):
    """The result for a snapshot: each of its jobs is in exactly one of the two lists.

    ``window`` is that of the award; ``next_window`` how many jobs the next step should consider:
    half as many after a limit without a proof, twice as many after a proof, never more than asked
    for. Of an ``Auction``'s award the reasons in ``pending`` are found when they are first read.
    ``search_parameters`` are those that were changed, by name; the file has them only if there are.

    Examples:
        >>> import aucsched
        >>> job = aucsched.Job(id="7", priority=5, request=aucsched.Request(cores=6, nodes=2))
        >>> nodes = [aucsched.Node(name=name, cores=4) for name in ("a", "b")]
        >>> found = aucsched.schedule(aucsched.Snapshot(nodes=nodes, jobs=[job]))
        >>> found.columns["nodes"], found.columns["cores"]
        (['a,b'], [6])
    """

    model: str
    status: Status
    objective: Objective
    started: tuple[Award, ...]
    pending: Deferred[tuple[Refusal, ...]] = Deferred()
    window: int
    next_window: int
    attempts: tuple[Attempt, ...]
    sizes: Sizes
    seconds: Seconds = field(compare=False)
    search_parameters: Mapping[str, float] = field(default_factory=dict, hash=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the schedule file's content as plain dicts, lists, numbers and text."""
        return {
            "format": FORMAT,
            "model": self.model,
            "status": self.status.value,
            "objective": document_of(self.objective),
            "started": document_of(self.started),
            "pending": document_of(self.pending),
            "window": {
                "size": self.window,
                "next": self.next_window,
                "attempts": document_of(self.attempts),
            },
            "sizes": document_of(self.sizes),
            "seconds": document_of(self.seconds),
            **({"search_parameters": dict(self.search_parameters)} if self.search_parameters else {}),
        }

    @property
    def columns(self) -> dict[str, list[Any]]:
        """One row for each job, those that start first: what it holds where, or why it waits."""
        started, pending = self.started, self.pending
        none: list[Any] = [None] * len(pending)
        return {
            "job": [*(one.job for one in started), *(one.job for one in pending)],
            "starts": [True] * len(started) + [False] * len(pending),
            "cores": [*(sum(use.cores for use in one.nodes.values()) for one in started), *none],
            "node_count": [*(len(one.nodes) for one in started), *none],
            "nodes": [*(",".join(one.nodes) for one in started), *none],
            "bid_class": [*(one.bid.bid_class.value for one in started), *none],
            "level": [*(one.bid.level for one in started), *none],
            "reason": [None] * len(started) + [one.reason.value for one in pending],
            "detail": [None] * len(started) + [one.detail for one in pending],
        }

    def title(self) -> str:
        """Return the award in one line."""
        starts, waits = len(self.started), len(self.pending)
        return f"{self.model}: {starts} of {starts + waits} jobs start, {self.status.value}"

    def summary(self) -> dict[str, Any]:
        """Return what a summary says: the objective, the window, who waits for what."""
        reasons = Counter(one.reason.value for one in self.pending)
        gap = self.objective.gap
        return {
            "objective": float(self.objective.priority),
            "gap to the bound": None if gap is None else f"{100 * gap:.2f} %",
            "window": plural(self.window, "job"),
            "cores that start": sum(use.cores for one in self.started for use in one.nodes.values()),
            "seconds": self.seconds.total,
            **{f"wait: {reason}": count for reason, count in reasons.most_common(3)},
        }

    def plot(self, snapshot: Any, path: str | Path | None = None) -> Any:
        """Draw the machine with who starts where.

        Args:
            snapshot: that the schedule was made of.
            path: file to write, ``.png``, ``.pdf`` or ``.svg``; None: none.

        Returns:
            matplotlib's Figure.

        Raises:
            InputError: the snapshot is another one.
            OptionError: matplotlib is missing, or the file's name has another end.
        """
        draw = chart(path, "reports.machine_picture", "draw_machine")
        return draw(same_snapshot(snapshot, self.started, self.pending), self)

    def to_json(self) -> str:
        """Return the schedule file's text (format ``aucsched-schedule/1``)."""
        return document_text(self.to_dict())


def same_snapshot(snapshot: Any, starts: Collection[Any], others: Iterable[Refusal]) -> Snapshot:
    """Return a snapshot whose jobs are those of some starts (``job``, ``nodes``) and of refusals.

    Raises:
        InputError: it has other jobs or lacks a node, or is none.
    """
    if not isinstance(snapshot, Snapshot):
        raise InputError(f"{shown(snapshot)} is not a Snapshot", path="snapshot")
    nodes, jobs = {node.name for node in snapshot.nodes}, {job.id for job in snapshot.jobs}
    same = jobs == {one.job for one in (*starts, *others)}
    if not (same and nodes.issuperset(chain.from_iterable(one.nodes for one in starts))):
        raise InputError("another one: it has other jobs or nodes", path="snapshot")
    return snapshot


def document_text(document: Mapping[str, Any]) -> str:
    """Return a file's text: a line for each member, or for each entry of a member that lists."""
    members = (f'"{name}": {text_of_lines(value)}' for name, value in document.items())
    return "{" + ",\n ".join(members) + "}\n"


def text_of_lines(value: Any) -> str:
    """Encode a member of the file; each entry of a list stands on a line of its own."""
    if isinstance(value, list) and value:
        return "[\n  " + ",\n  ".join(_ENCODER.encode(entry).decode() for entry in value) + "]"
    return _ENCODER.encode(value).decode()


def document_of(value: Any) -> Any:
    """Return a part of a schedule or plan as a file has it; of a bid the class is ``class``."""
    if isinstance(value, Resources):
        gres = {name: count for name, count in value.gres.items() if count}
        memory = {} if value.memory_mib is None else {"memory_mib": value.memory_mib}
        return {"cores": value.cores, **({"gres": gres} if gres else {}), **memory}
    if isinstance(value, Mapping):
        return {name: document_of(one) for name, one in value.items()}
    if isinstance(value, (tuple, list)):
        return [document_of(one) for one in value]
    if isinstance(value, StrEnum):
        return value.value
    if not is_dataclass(value):
        return value
    found = {one.name.removeprefix("bid_"): document_of(getattr(value, one.name)) for one in fields(value)}
    if "priority" in found:
        found["priority"] = float(found["priority"])
    is_time = value.__class__ is Seconds
    return {n: round(one, 6) if is_time or n == "seconds" else one for n, one in found.items()}
