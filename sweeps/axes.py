"""The options that a sweep varies: each a list of values separated by commas."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from ..cluster.errors import OptionError
from ..cluster.option_fields import Option, flag_of, options_in
from ..cluster.option_table import SWEEP, read_by
from ..simulation.negotiated.negotiation_options import SWEPT
from ..simulation.policy_names import split_policies
from ..simulation.simulate_options import LogRecord, PassOptions, PriceOptions, SimulateKeywords

#: What a cell of the results holds.
Value = int | float | str | None
#: One run's results by column.
Row = dict[str, Value]


def _name(text: str) -> str:
    if not text:
        raise ValueError
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An option whose values are swept.

    Attributes:
        name: the option in Python, and the column of the results.
        read: makes a value of its text; raises ValueError.
        what: what a value should be, for people.
        section: what of a run it varies, a heading of ``--help``.
        split: returns the texts of the values of a list.
        spelling: its name on the command line, where that is not ``name``.
    """

    name: str
    help: str
    metavar: str = "NAME,…"
    read: Callable[[str], Value] = _name
    what: str = "a name"
    is_whole: bool = False
    section: str = ""
    split: Callable[[str], list[str]] = lambda text: text.split(",")
    spelling: str = ""

    @property
    def option(self) -> str:
        """Its name on the command line."""
        return flag_of(self.spelling or self.name)

    def values(self, text: str) -> tuple[Value, ...]:
        """Return the values in a text such as ``25,50,100``.

        Raises:
            OptionError: a value is missing, is none of this option, or stands twice.
        """
        values: list[Value] = []
        for part in self.split(text):
            try:
                value = self.read(part.strip())
            except ValueError:
                raise OptionError(f"{self.option} {text}: {part.strip()!r} is not {self.what}") from None
            if value in values:
                raise OptionError(f"{self.option} {text}: {part.strip()} stands twice")
            values.append(value)
        return tuple(values)


def _switch(text: str) -> str:
    if text not in ("on", "off"):
        raise ValueError
    return text


def _number(kind: type, low: float | None, high: float = inf) -> dict[str, Any]:
    """Return what reads a number in a range, and what it should be."""

    def read(text: str) -> Value:
        number: int | float = kind(text)
        if number == inf or not (low is None or low <= number <= high):
            raise ValueError
        return number

    what = "an integer" if kind is int else "a number"
    if low is not None:
        what += f" of at least {low:g}" if high == inf else f" from {low:g} to {high:g}"
    return {"read": read, "what": what}


def _network(text: str) -> str:
    from ..slurm.answers.topology_any import LINEAR, is_sizes  # noqa: PLC0415 - costs more than --help may

    if text != LINEAR and not is_sizes(text):
        raise ValueError  # a file would be another one on another machine's workers
    return text


def axis_of(option: Option[Any]) -> Axis:
    """Return an option as an axis; the range of a step's option the step checks."""
    is_of_a_step = SWEEP in option.readers
    given: dict[str, Any] = {"name": option.name, "spelling": option.spelling, "help": option.said()}
    if option.is_switch:
        given |= {"metavar": "on,off", "read": _switch, "what": "on or off"}
    elif option.is_whole:
        given |= {"metavar": "N,…", "is_whole": True}
        given |= _number(int, None if is_of_a_step else option.low)
    elif option.is_number:
        high = inf if option.high is None else option.high
        given |= {"metavar": f"{option.unit or 'X'},…", **_number(float, option.low or 0.0, high)}
        given["help"] += " Rows then depend on the machine's speed." if is_of_a_step else ""
    elif option.choices:
        given["help"] += f" One of {', '.join(option.choices)}."
    return Axis(**given)


def _swept(record: type, section: str) -> tuple[Axis, ...]:
    options = options_in(record).values()
    return tuple(replace(axis_of(option), section=section) for option in options if option.is_swept)


#: The heading of axes of nodes, and options that logs have, too.
_NODES, _OF_BOTH = "Workloads of nodes", options_in(SimulateKeywords)
#: In the order in which the grid is nested: the last varies fastest.
_AXES = (
    Axis(
        name="policy",
        help="Policies of the simulation (WORKLOAD only); slack:factor=0.5 gives one a parameter.",
        split=split_policies,
    ),
    axis_of(_OF_BOTH["order"]),
    *_swept(PassOptions, _NODES),
    axis_of(_OF_BOTH["processors"]),
    *_swept(LogRecord, LogRecord.heading),
    *(replace(axis_of(option), section="The auction") for option in read_by(SWEEP) if option.name != "seed"),
    Axis(
        name="topology",
        metavar="NETWORK,…",
        read=_network,
        what="linear, or a network's sizes such as torus:16x8x8",
        help="The input's nodes on other networks: linear, torus:16x8x8, dragonfly:9x4x2x2, fat-tree:3x16, "
        "blocks:8x18.",
    ),
    *_swept(PriceOptions, _NODES),
    *(replace(axis_of(option), section="Policy negotiate") for option in SWEPT.values()),
)
AXES: Mapping[str, Axis] = {axis.name: axis for axis in _AXES}
