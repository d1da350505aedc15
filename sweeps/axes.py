"""The options that a sweep varies: each a list of values separated by commas."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf, isinf
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
        metavar: for --help.
        read: makes a value of its text; raises ValueError.
        what: what a value should be, for people.
        help: for --help.
        is_whole: values are integers.
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


def _integer(least: float | None) -> tuple[Callable[[str], Value], str]:
    """Return what reads an integer, and what it should be."""

    def read(text: str) -> int:
        number = int(text)
        if least is not None and number < least:
            raise ValueError
        return number

    return read, "an integer" if least is None else f"an integer of at least {least:g}"


def _number(option: Option[Any]) -> tuple[Callable[[str], Value], str]:
    """Return what reads a number in an option's range, and what it should be."""
    low, high = option.low or 0.0, inf if option.high is None else option.high

    def read(text: str) -> float:
        number = float(text)
        if not low <= number <= high or isinf(number):
            raise ValueError
        return number

    return read, f"a number of at least {low:g}" if high == inf else f"a number from {low:g} to {high:g}"


def _network(text: str) -> str:
    from ..slurm.answers.topology_any import LINEAR, is_sizes  # noqa: PLC0415 - costs more than --help may

    if text != LINEAR and not is_sizes(text):
        raise ValueError  # a file would be another one on another machine's workers
    return text


def axis_of(option: Option[Any]) -> Axis:
    """Return an option as an axis; the range of a step's option the step checks."""
    is_of_a_step = SWEEP in option.readers
    text = option.sweep_help or option.help
    if option.is_switch:
        return Axis(name=option.name, metavar="on,off", read=_switch, what="on or off", help=text)
    if option.is_whole:
        read, what = _integer(None if is_of_a_step else option.low)
        return Axis(name=option.name, metavar="N,…", read=read, what=what, help=text, is_whole=True)
    if option.is_number:
        read, what = _number(option)
        text += " Rows then depend on the machine's speed." if is_of_a_step else ""
        return Axis(name=option.name, metavar=f"{option.unit or 'X'},…", read=read, what=what, help=text)
    text += f" One of {', '.join(option.choices)}." if option.choices and not option.sweep_help else ""
    return Axis(name=option.name, metavar="NAME,…", read=_name, what="a name", help=text)


def _swept(record: type, section: str) -> tuple[Axis, ...]:
    options = options_in(record).values()
    return tuple(replace(axis_of(option), section=section) for option in options if option.is_swept)


#: Headings of axes.
LOGS, NODES = "Logs", "Workloads of nodes"

#: In the order in which the grid is nested: the last varies fastest.
_AXES = (
    Axis(
        name="policy",
        metavar="NAME,…",
        read=_name,
        what="a name",
        help="Policies of the simulation (WORKLOAD only); slack:factor=0.5 gives one a parameter.",
        split=split_policies,
    ),
    Axis(
        name="order",
        metavar="NAME,…",
        read=_name,
        what="a name",
        help="Orders of the waiting queue (WORKLOAD only).",
    ),
    *_swept(PassOptions, NODES),
    Axis(
        name="processors",
        metavar="N,…",
        read=_integer(1)[0],
        what=_integer(1)[1],
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
