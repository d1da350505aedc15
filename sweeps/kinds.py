"""Kinds of input of a sweep: a snapshot (each run is an auction), a log or a workload (a simulation).

The content of the file tells which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ..cluster.errors import OptionError
from ..cluster.snapshot import Snapshot
from ..cluster.workload import ClusterWorkload
from ..formats.notes import Notes
from ..slurm.answers.topology_any import laid_on
from .axes import AXES, Row, Value

T = TypeVar("T", Snapshot, ClusterWorkload)


def on_network(read: T, options: Mapping[str, Value]) -> T:
    """Return an input with its nodes on the network that a run names, if it names one.

    Raises:
        InputError: these are not its nodes.
    """
    source = options.get("topology")
    return read if source is None else laid_on(read, str(source), Notes())


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One sort of input, and what a run over it is.

    Attributes:
        name: ``snapshot``, …
        title: for people, with its article.
        axes: names of the options it reads; others are refused.
        uses_seed: whether runs with these options differ by their seed.
        load: makes the file's content what a run takes; raises InputError.
        resolve: from one combination of options, its seed among them, to the columns that hold all options of
            the run; raises OptionError where they cannot go together, InputError where the input lacks
            what they need.
        reads: whether a run with these options reads an axis; where several policies are swept, an axis is
            for those that do, and the others run once for all its values.
        run: one run over the loaded input with resolved options; returns the columns of its result.
    """

    name: str
    title: str
    axes: tuple[str, ...]
    uses_seed: Callable[[Mapping[str, Value]], bool]
    load: Callable[[bytes], Any]
    resolve: Callable[[Any, Mapping[str, Value]], Row]
    run: Callable[[Any, Row], Row]
    reads: Callable[[str, Mapping[str, Value]], bool] = lambda _, __: True

    def refuse_others(self, given: Mapping[str, Any]) -> None:
        """Raise OptionError when an axis is given that this kind would ignore."""
        for name in given:
            if name not in self.axes:
                raise OptionError(f"{AXES[name].option}: {self.title} has no use for it")
