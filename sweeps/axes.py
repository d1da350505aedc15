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
from ..simulation.simulate_options import LogRecord, PassOptions, PriceOptions

#: What a cell of the results holds.
Value = int | float | str | None
#: One run's results by column.
Row = dict[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An option whose values are swept.

    Attributes:
        name: the option in Python, and the column of the results.
        read: makes a value of its text; raises ValueError.
        what: what a value should be, for people.
        section: what of a run it varies, a heading of ``--help``.
        split: returns the texts of the values of a list.
    """

    name: str
    metavar: str
    read: Callable[[str], Value]
    what: str
    help: str
    is_whole: bool = False
    section: str = ""
    split: Callable[[str], list[str]] = lambda text: text.split(",")

    @property
    def option(self) -> str:
        """Its name on the command line."""
        return flag_of(self.name)

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


def _name(text: str) -> str:
    if not text:
        raise ValueError
    return text


def _switch(text: str) -> str:
    if text not in ("on", "off"):
        raise ValueError
    return text


def _number(kind: type, low: float | None, high: float = inf) -> tuple[Callable[[str], Value], str]:
    """Return what reads a number in a range, and what it should be."""

    def read(text: str) -> Value:
        number: int | float = kind(text)
        if number == inf or not (low is None or low <= number <= high):
            raise ValueError
        return number

    what = "an integer" if kind is int else "a number"
    if low is None:
        return read, what
    return read, f"{what} of at least {low:g}" if high == inf else f"{what} from {low:g} to {high:g}"


def _network(text: str) -> str:
    from ..slurm.answers.topology_any import LINEAR, is_sizes  # noqa: PLC0415 - costs more than --help may

    if text != LINEAR and not is_sizes(text):
        raise ValueError  # a file would be another one on another machine's workers
    return text


def _names(name: str, text: str) -> Axis:
    return Axis(name=name, metavar="NAME,…", read=_name, what="a name", help=text)


def axis_of(option: Option[Any]) -> Axis:
    """Return an option as an axis; the range of a step's option the step checks."""
    is_of_a_step = SWEEP in option.readers
    text, metavar, what = option.help, "NAME,…", "a name"
    read: Callable[[str], Value] = _name
    if option.is_switch:
        metavar, read, what = "on,off", _switch, "on or off"
    elif option.is_whole:
        metavar = "N,…"
        read, what = _number(int, None if is_of_a_step else option.low)
    elif option.is_number:
        metavar = f"{option.unit or 'X'},…"
        read, what = _number(float, option.low or 0.0, inf if option.high is None else option.high)
        text += " Rows then depend on the machine's speed." if is_of_a_step else ""
    elif option.choices:
        text += f" One of {', '.join(option.choices)}."
    return Axis(name=option.name, metavar=metavar, read=read, what=what, help=text, is_whole=option.is_whole)


def _swept(record: type, section: str) -> tuple[Axis, ...]:
    options = options_in(record).values()
    return tuple(replace(axis_of(option), section=section) for option in options if option.is_swept)


#: Headings of axes.
LOGS, NODES = "Logs", "Workloads of nodes"

#: In the order in which the grid is nested: the last varies fastest.
_AXES = (
    replace(
        _names(
            "policy", "Policies of the simulation (WORKLOAD only); slack:factor=0.5 gives one a parameter."
        ),
        split=split_policies,
    ),
    _names("order", "Orders of the waiting queue (WORKLOAD only)."),
    *_swept(PassOptions, NODES),
    Axis(
        name="processors",
        metavar="N,…",
        read=_number(int, 1)[0],
        what=_number(int, 1)[1],
        help="Size of the machine (SWF logs only); default: from the log's header.",
        is_whole=True,
    ),
    *_swept(LogRecord, LOGS),
    *(replace(axis_of(option), section="The auction") for option in read_by(SWEEP) if option.name != "seed"),
    Axis(
        name="topology",
        metavar="NETWORK,…",
        read=_network,
        what="linear, or a network's sizes such as torus:16x8x8",
        help="The input's nodes on other networks: linear, torus:16x8x8, dragonfly:9x4x2x2, fat-tree:3x16, "
        "blocks:8x18.",
    ),
    *_swept(PriceOptions, NODES),
    *(replace(axis_of(option), section="Policy negotiate") for option in SWEPT.values()),
)
AXES: Mapping[str, Axis] = {axis.name: axis for axis in _AXES}


def shown(values: tuple[Value, ...]) -> str:
    """Return an axis's values as they are given on the command line."""
    return ",".join(str(value) for value in values)
