"""The options that a sweep varies: each a list of values separated by commas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf, isinf

from ..cluster.errors import OptionError
from ..cluster.option_table import SWEEP, StepOption, read_by

#: What a cell of the results holds.
Value = int | float | str | None
#: One run's results by column.
Row = dict[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An option whose values are swept.

    Attributes:
        name: the option in Python, and the column of the results.
        metavar: for --help.
        read: makes a value of its text; raises ValueError.
        what: what a value should be, for people.
        help: for --help.
    """

    name: str
    metavar: str
    read: Callable[[str], Value]
    what: str
    help: str

    @property
    def option(self) -> str:
        """Its name on the command line."""
        return f"--{self.name.removesuffix('_s').replace('_', '-')}"

    def values(self, text: str) -> tuple[Value, ...]:
        """Return the values in a text such as ``25,50,100``.

        Raises:
            OptionError: a value is missing, is none of this option, or stands twice.
        """
        values: list[Value] = []
        for part in text.split(","):
            try:
                value = self.read(part.strip())
            except ValueError:
                raise OptionError(f"{self.option} {text}: {part.strip()!r} is not {self.what}") from None
            if value in values:
                raise OptionError(f"{self.option} {text}: {part.strip()} stands twice")
            values.append(value)
        return tuple(values)


def _name(text: str) -> str:
    if not text:
        raise ValueError
    return text


def _integer(name: str, text: str, least: int | None = None) -> Axis:
    def read(value: str) -> int:
        number = int(value)
        if least is not None and number < least:
            raise ValueError
        return number

    what = "an integer" if least is None else f"an integer of at least {least}"
    return Axis(name=name, metavar="N,…", read=read, what=what, help=text)


def _number(name: str, text: str, low: float, high: float = inf, metavar: str = "X,…") -> Axis:
    def read(value: str) -> float:
        number = float(value)
        if not low <= number <= high or isinf(number):
            raise ValueError
        return number

    what = f"a number of at least {low:g}" if high == inf else f"a number from {low:g} to {high:g}"
    return Axis(name=name, metavar=metavar, read=read, what=what, help=text)


def _named(name: str, text: str) -> Axis:
    return Axis(name=name, metavar="NAME,…", read=_name, what="a name", help=text)


def _switch(name: str, text: str) -> Axis:
    def read(value: str) -> str:
        if value not in ("on", "off"):
            raise ValueError
        return value

    return Axis(name=name, metavar="on,off", read=read, what="on or off", help=text)


def _network(text: str) -> str:
    from ..slurm.answers.topology_any import LINEAR, is_sizes  # noqa: PLC0415 - costs more than --help may

    if text != LINEAR and not is_sizes(text):
        raise ValueError  # a file would be another one on another machine's workers
    return text


def _of_table(option: StepOption) -> Axis:
    """Return an option of a step as an axis; its range the step checks."""
    if option.choices:
        return _named(option.name, f"{option.help} One of {', '.join(option.choices)}.")
    if option.is_switch:
        return _switch(option.name, option.help)
    if option.check_text is not None:
        return _named(option.name, option.help)
    if option.is_whole:
        return _integer(option.name, option.help)
    text = f"{option.help} Rows then depend on the machine's speed."
    return _number(option.name, text, 0, metavar=f"{option.unit},…")


#: What policy negotiate alone reads.
NEGOTIATED = (
    _named("mapper", "For policy negotiate: what maps the queue to an offer, greedy or auction."),
    _named("decision", "For policy negotiate: when the batch scheduler accepts, paper or objective."),
    _integer("max_attempts", "For policy negotiate: attempts of a transaction.", 1),
    _integer("depth", "For policy negotiate: unmapped jobs forwarded at most.", 1),
    _named("shrink", "For policy negotiate: who gives nodes first, priority or a harvest policy."),
    _named("dependencies", "For policy negotiate: which jobs a waiting one depends on, all or one."),
    _named("equipartition", "For policy negotiate: who shares idle nodes, all or running."),
    _named("reject_idle", "For policy negotiate: idle nodes that reject a Map, useful or any."),
    _integer("parts", "For policy negotiate: equal parts of a node that are given out.", 1),
)

#: In the order in which the grid is nested: the last varies fastest.
_AXES = (
    _named("policy", "Policies of the simulation (WORKLOAD only)."),
    _named("order", "Orders of the waiting queue (WORKLOAD only)."),
    _number(
        "interval_s",
        "Seconds between scheduling passes (workloads of nodes only).",
        1e-3,
        metavar="SECONDS,…",
    ),
    _named("selection", "How fcfs, easy and reservations choose nodes: first, best, next."),
    _integer("processors", "Size of the machine (SWF logs only); default: from the log's header.", 1),
    _integer("reservations", "For policy reservations: their number.", 1),
    _integer("lookahead_depth", "For policy lookahead: jobs after the head that it considers.", 1),
    _number("slack", "For policy slack: how far the head may be delayed, in multiples of its estimate.", 0),
    _number(
        "expansion_factor", "For policy selective: (wait + estimate) / estimate that gives a reservation.", 1
    ),
    _integer("adapt_every", "For policy adaptive: submissions between two comparisons.", 1),
    _integer("adapt_window", "For policy adaptive: number of the last submitted jobs that it simulates.", 1),
    _number(
        "speculation", "For policy speculative: share of its estimate in which a job is bet to end.", 0, 1
    ),
    _integer("stops", "For policy speculative: how often a job may be stopped after a lost bet.", 1),
    *(_of_table(option) for option in read_by(SWEEP) if option.name != "seed"),
    Axis(
        name="topology",
        metavar="NETWORK,…",
        read=_network,
        what="linear, or a network's sizes such as torus:16x8x8",
        help="The input's nodes on other networks: linear, torus:16x8x8, dragonfly:9x4x2x2, fat-tree:3x16.",
    ),
    _switch("preempt", "Whether blocked jobs may stop running ones that pay less (workloads of nodes only)."),
    _number("credits", "With preempt: each user's at first (workloads of nodes only).", 0),
    *NEGOTIATED,
)
AXES: Mapping[str, Axis] = {axis.name: axis for axis in _AXES}


def shown(values: tuple[Value, ...]) -> str:
    """Return an axis's values as they are given on the command line."""
    return ",".join(str(value) for value in values)
