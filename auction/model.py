"""The papers' models as objects: what each can express, its preference, and how it is stated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..bidgen.table import BidTable
from ..cluster.jobs import Job
from ..cluster.resources.capacity import FloatArray
from ..cluster.resources.columns import Columns
from ..cluster.resources.job_reservations import Guard
from ..models.aucsched1 import Aucsched1
from ..models.aucsched2 import Aucsched2
from ..models.aucsched3 import Aucsched3
from ..models.ipsched import Ipsched, cannot_express, check_size
from ..models.preference import PREFERENCE_TABLES, TABLE_4_4, Constants, cost_k, preference_f
from ..topology.tree import Topology
from .formulation import Formulation, Weight, bid_weights, state_auction, state_ipsched

#: Nothing is reserved in either, and the clock ends a step after 3 s where no other time is printed.
_PAPER: Mapping[str, Any] = {
    "weights": "paper",
    "on_timeout": "discard",
    "reserve": 0,
    "time_limit_s": 3.0,
}
_PLUGIN: Mapping[str, Any] = {
    "weights": "paper",
    "on_timeout": "incumbent",
    "bid_order": "figure-4.5",
    "reserve": 0,
    "time_limit_s": 3.0,
}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Program:
    """What a model states a window's program from.

    Attributes:
        table: the bids.
        columns, topology, guards: the cluster and the reservations on it.
        objective, preference_table: as in StepOptions.
    """

    table: BidTable
    columns: Columns
    topology: Topology
    guards: tuple[Guard, ...]
    objective: str
    preference_table: str

    def weights(self) -> tuple[list[Weight], FloatArray]:
        """Return what each bid counts, exactly and as floats, shape (bids,)."""
        weights = bid_weights(self.table, self.objective)
        return weights, np.array([float(weight) for weight in weights])


class Model(ABC):
    """A model of the thesis; its families of constraints are stated in bidgen/families.

    Attributes:
        name: as it is asked for.
        caps: MAXBIDS and MAXBIDSPERJOB by default (Soner, chapter 4).
        presets: option values of the thesis's text (``paper``) and of the published plugin's code
            (``plugin``), where there was one.
        has_bids: jobs bid, and awards are bids; otherwise the program places jobs node by node.
        is_searched: one binary variable a bid is the whole program, so that it can be searched.
        uses_switches: bids are made below every switch.
        reads_preference_table: table 5.2 is this model's.
        expresses_all: there is no job that it cannot express.
    """

    name: str
    caps: tuple[int, int] = (6000, 60)
    presets: Mapping[str, Mapping[str, Any]]
    has_bids = True
    is_searched = False
    uses_switches = False
    reads_preference_table = False
    expresses_all = True

    def cannot_express(self, job: Job) -> str:
        """Return what of a job the model has no variable for, empty when it can express all of it."""
        del job
        return ""

    def check_size(self, jobs: int, nodes: int) -> None:
        """Raise OptionError when the program would be too large; here no size is."""
        del jobs, nodes

    @abstractmethod
    def state(self, asked: Program) -> Formulation:
        """State a window's program in PuLP."""

    @abstractmethod
    def preferences(
        self, table: BidTable, nodes: int, max_level: int, preference_table: str
    ) -> tuple[FloatArray, FloatArray]:
        """Return what each bid adds to the second stage, and its preference as schedules show it.

        Args:
            table: the bids.
            nodes: of the cluster.
            max_level: of its switches.
            preference_table: name in PREFERENCE_TABLES.
        """

    def nonzeros(self, table: BidTable, nodes: int) -> int:
        """Return about how many nonzeros the program has over some bids and a cluster's nodes."""
        del nodes
        return (1 + len(table.gres)) * len(table.node)


class _Linear(Model):
    """An auction over nodes in a line, whose preference is F (4.11), (5.7)."""

    def constants(self, preference_table: str) -> Constants:
        """Return the constants of F."""
        return PREFERENCE_TABLES[preference_table]

    def preferences(
        self, table: BidTable, nodes: int, max_level: int, preference_table: str
    ) -> tuple[FloatArray, FloatArray]:
        """Return F twice."""
        del max_level
        f = preference_f(table, nodes, self.constants(preference_table))
        return f, f


class _Aucsched1(_Linear):
    name = "aucsched1"
    caps = (150, 15)
    presets: Mapping[str, Mapping[str, Any]] = {
        "paper": _PAPER,
        "plugin": {**_PLUGIN, "window": 100, "max_bids": 250, "max_bids_per_job": 15},
    }
    #: For each bid and node of it.
    _NONZEROS = 13

    def constants(self, preference_table: str) -> Constants:
        del preference_table
        return TABLE_4_4

    def state(self, asked: Program) -> Formulation:
        weights, floats = asked.weights()
        model = Aucsched1(asked.table, asked.columns, floats, asked.guards)
        return state_auction(model, weights, asked.objective)

    def nonzeros(self, table: BidTable, nodes: int) -> int:
        del nodes
        return self._NONZEROS * len(table.node)


class _Aucsched2(_Linear):
    name = "aucsched2"
    presets: Mapping[str, Mapping[str, Any]] = {"paper": {**_PAPER, "preference_table": "printed"}}
    is_searched = True
    reads_preference_table = True

    def state(self, asked: Program) -> Formulation:
        weights, floats = asked.weights()
        constants = self.constants(asked.preference_table)
        model = Aucsched2(asked.table, asked.columns, floats, asked.guards, constants=constants)
        return state_auction(model, weights, asked.objective)


class _Aucsched3(Model):
    name = "aucsched3"
    presets: Mapping[str, Mapping[str, Any]] = {
        "paper": _PAPER,
        "plugin": {
            **_PLUGIN,
            "window": 250,
            "time_limit_s": 5.0,
            "max_bids": 25_000,
            "max_bids_per_job": 500,
            "objective": "priority_cores",
        },
    }
    is_searched = True
    uses_switches = True

    def state(self, asked: Program) -> Formulation:
        weights, floats = asked.weights()
        level = asked.topology.max_level
        model = Aucsched3(asked.table, asked.columns, floats, asked.guards, max_level=level)
        return state_auction(model, weights, asked.objective)

    def preferences(
        self, table: BidTable, nodes: int, max_level: int, preference_table: str
    ) -> tuple[FloatArray, FloatArray]:
        """Return 3 − K and −K (6.5)."""
        del preference_table
        cost = cost_k(table, nodes, max_level)
        return 3.0 - cost, -cost


class _Ipsched(Model):
    name = "ipsched"
    presets: Mapping[str, Mapping[str, Any]] = {
        "paper": _PAPER,
        "plugin": {**_PLUGIN, "window": 200},
    }
    has_bids = False
    expresses_all = False
    #: For each node and variant of a job.
    _NONZEROS = 15

    def cannot_express(self, job: Job) -> str:
        return cannot_express(job)

    def check_size(self, jobs: int, nodes: int) -> None:
        check_size(jobs, nodes)

    def state(self, asked: Program) -> Formulation:
        model = Ipsched(asked.table, asked.columns, asked.topology, asked.guards)
        return state_ipsched(model, asked.objective)

    def preferences(
        self, table: BidTable, nodes: int, max_level: int, preference_table: str
    ) -> tuple[FloatArray, FloatArray]:
        """Return nothing for each bid of first-fit's: its placements have no preference."""
        del nodes, max_level, preference_table
        none = np.zeros(len(table))
        return none, none

    def nonzeros(self, table: BidTable, nodes: int) -> int:
        return self._NONZEROS * sum(len(demand.variants) for demand in table.demands) * nodes


#: In the order of the thesis.
MODELS_BY_NAME: Mapping[str, Model] = {
    model.name: model for model in (_Ipsched(), _Aucsched1(), _Aucsched2(), _Aucsched3())
}
