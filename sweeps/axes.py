"""The options that a sweep varies: each a list of values separated by commas."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
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


def _name(text: str, called: str) -> str:
    if not text:
        raise OptionError(f"{called}: '' is not a name")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An option whose values are swept.

    Attributes:
        name: the option in Python, and the column of the results.
        read: makes a value of its text; raises OptionError, which calls it as it was typed.
        kind: what its values are.
        section: what of a run it varies, a heading of ``--help``.
        split: returns the texts of the values of a list.
    """

    name: str
    help: str
    metavar: str = "NAME,…"
    read: Callable[[str, str], Value] = _name
    kind: type[int | float | str] = str
    section: str = ""
    split: Callable[[str], list[str]] = lambda text: text.split(",")

    @property
    def option(self) -> str:
        """Its name on the command line."""
        return flag_of(self.name)

    def values(self, text: str, called: str = "") -> tuple[Value, ...]:
        """Return the values in a text such as ``25,50,100``; errors call the option so.

        Raises:
            OptionError: a value is missing, is none of this option, or is listed twice.
        """
        values: list[Value] = []
        where = called or f"{self.option} {text}"
        for part in self.split(text):
            value = self.read(part.strip(), where)
            if value in values:
                raise OptionError(f"{where}: {part.strip()} is given twice")
            values.append(value)
        return tuple(values)


def _network(text: str, called: str) -> str:
    from ..slurm.answers.topology_any import LINEAR, is_sizes  # noqa: PLC0415 - slow for --help

    # A file would be another one on another machine's workers.
    if text != LINEAR and not is_sizes(text):
        raise OptionError(f"{called}: {text!r} is not linear, or a network's sizes such as torus:16x8x8")
    return text


def axis_of(option: Option[Any]) -> Axis:
    """Return an option as an axis."""
    given: dict[str, Any] = {"name": option.name, "help": option.said()}
    if option.unit.startswith("NAME=NUMBER"):
        given["metavar"] = f"{option.unit},…"
    if option.is_switch:
        given["metavar"] = "on,off"
        given["read"] = lambda text, called: "on" if option.read([text], called) else "off"
    elif option.is_number or option.choices:
        given["read"] = lambda text, called: option.read([text], called)
    if option.is_whole:
        given |= {"metavar": "N,…", "kind": int}
    elif option.is_number:
        given |= {"metavar": f"{option.unit or 'X'},…", "kind": float}
        given["help"] += " Rows then depend on the machine's speed." if SWEEP in option.readers else ""
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
        help="The input's nodes on other networks: linear, torus:16x8x8, dragonfly:9x4x2x2, fat-tree:3x16, "
        "blocks:8x18.",
    ),
    *_swept(PriceOptions, _NODES),
    *(replace(axis_of(option), section="Policy negotiate") for option in SWEPT.values()),
)
AXES: Mapping[str, Axis] = {axis.name: axis for axis in _AXES}
