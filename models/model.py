"""What the four models share: their place in the program, and what the bids of a window are worth.

A model is a class: what it can express, its caps, its presets and how much it prefers each bid are
the class's. An object of it is the integer program over one window's bids, stated in PuLP:
variables, objective, one method for each family of constraints, and how the values of a solution
become an award.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import inf
from typing import Any, NamedTuple

import numpy as np

from ..bidgen.candidates import ALL
from ..bidgen.table import BidTable
from ..cluster.errors import OptionError
from ..cluster.jobs import Job, Request
from ..cluster.resources.capacity import FloatArray, IntArray
from ..cluster.resources.columns import Columns
from ..cluster.resources.demand import Demand
from ..cluster.resources.job_reservations import Guard
from ..topology.tree import Topology
from .search.packing import Packing, packing_of
from .solve.decomposition import AmountFlow
from .solve.program import IntegerProgram
from .solve.solver import LpAffineExpression, LpConstraint, LpMaximize, LpVariable, read_pulp
from .solve.variables import Problem

Weight = int | Fraction
#: What a row counts: each variable once, or in pairs.
Terms = Mapping[LpVariable, int] | list[tuple[LpVariable, int]]

#: Option values of the thesis's text, and of the published plugins' code. Nothing is reserved in
#: either, and the clock ends a step after 3 s where no other time is printed.
PAPER: Mapping[str, Any] = {
    "weights": "paper",
    "on_timeout": "discard",
    "reserve": 0,
    "time_limit_s": 3.0,
}
PLUGIN: Mapping[str, Any] = {
    "weights": "paper",
    "on_timeout": "incumbent",
    "bid_order": "figure-4.5",
    "reserve": 0,
    "time_limit_s": 3.0,
}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ModelInput:
    """What a model states a window's program from.

    Attributes:
        table: the bids.
        columns, topology, guards: the cluster and the reservations on it.
        objective: one of OBJECTIVES.
        preference_table: name in PREFERENCE_TABLES, for the models that read table 5.2.
        keeps_whole: what is wholly free is to stay so, where bids are alike in what they are worth.
    """

    table: BidTable
    columns: Columns
    topology: Topology
    guards: tuple[Guard, ...] = ()
    objective: str = "priority"
    preference_table: str = "corrected"
    keeps_whole: bool = False

    def broken(self) -> FloatArray:
        """Return what each bid breaks of what is wholly free, 0 to 1; all 0 unless ``keeps_whole``.

        The share of all switches, or blocks and groups of them, that are wholly free and lose a
        node to the bid (``Topology.whole_shares``).
        """
        if not self.keeps_whole or not len(self.table):
            return np.zeros(len(self.table))
        return self.topology.broken_shares(
            self.table.indptr, self.table.node, self.columns.is_empty & self.columns.takes_jobs
        )

    @property
    def nodes(self) -> int:
        """Nodes of the cluster, |N|."""
        return len(self.columns.names)


@dataclass(frozen=True, eq=False, kw_only=True)
class Answer:
    """An award: winners among the bids of a table, and what they count.

    Attributes:
        table, chosen: the bids, and the winners, ascending.
        objective: one of OBJECTIVES.
        preference: of each bid, as schedules show it; None where the model has none.
    """

    table: BidTable
    chosen: IntArray
    objective: str
    preference: FloatArray | None

    @property
    def preferred(self) -> float:
        """The preference of the whole award, 0 where the model has none for each bid."""
        return 0.0 if self.preference is None else float(self.preference[self.chosen].sum())

    @cached_property
    def priority(self) -> Fraction:
        """The exact sum of the winners' weights by priority."""
        return Fraction(sum(priority_weights(self.table, self.objective, self.chosen)))

    @cached_property
    def value(self) -> tuple[Fraction, float]:
        """The exact sum of what the winners count, then preference: what awards are compared by."""
        return Fraction(sum(bid_weights(self.table, self.objective, self.chosen))), self.preferred


class RelaxedBids(NamedTuple):
    """Bids without what a program deals to them: a relaxation of one binary variable a bid.

    Attributes:
        packing: each bid with the least that it takes of its nodes.
        cores: of every entry, before the rest is dealt, shape (entries,).
        dealing: deals the rest, an amount for every entry; None: there is none.
    """

    packing: Packing
    cores: IntArray
    dealing: AmountFlow | None


class Model(ABC):
    """A model of the thesis over one window's bids; families of capacities are bidgen/families'.

    By default the program is solved in two stages: the first maximises the sum of priorities
    (``first_weights``); the second keeps this sum and maximises ``preference()``. With
    weights=paper HiGHS maximises ``printed()`` at once, the sum that the thesis prints.

    Attributes:
        name: as it is asked for.
        caps: MAXBIDS and MAXBIDSPERJOB by default (Soner, chapter 4).
        presets: option values of the thesis's text (``paper``) and of the published plugin's code
            (``plugin``), where there was one.
        lacks: why the model has no variable for what a job may ask for, by the request's member.
        largest_product: |J|·|N| above this is refused.
        has_bids: jobs bid, and awards are bids; otherwise the program places jobs node by node.
        is_searched: one binary variable a bid is the whole program, so that it can be searched.
        uses_switches: bids are made below every switch.
        spreads_jobs: its bids by figure 4.5 include fewer cores a node on more nodes (a choice of
            AUCSCHED2's: pages 84 and 85 of the thesis).
        reads_preference_table: table 5.2 is this model's.
    """

    name: str
    caps: tuple[int, int] = (6000, 60)
    presets: Mapping[str, Mapping[str, Any]]
    lacks: Mapping[str, str] = {}
    largest_product: float = inf
    has_bids = True
    is_searched = False
    uses_switches = False
    spreads_jobs = True
    reads_preference_table = False

    def __init__(self, given: ModelInput) -> None:
        self.given = given
        self.table = given.table
        self.columns = given.columns
        self.guards = given.guards
        self.problem = Problem(self.name, LpMaximize)
        self.create_variables()
        self.maximise()
        self.constrain()

    @abstractmethod
    def create_variables(self) -> None:
        """Create the variables that every window has."""

    @abstractmethod
    def constrain(self) -> None:
        """State every family of constraints."""

    @property
    @abstractmethod
    def variables(self) -> list[LpVariable]:
        """All variables, those that carry weights first: the columns of ``program``."""

    @property
    @abstractmethod
    def first_weights(self) -> list[Weight]:
        """The exact worth of the first columns; the others carry amounts and are worth 0."""

    @abstractmethod
    def group(self) -> IntArray:
        """Return each column's job, ascending: those of one exclude each other; amounts: none."""

    @abstractmethod
    def preference(self) -> FloatArray:
        """Return what each column adds to the second stage; higher is better."""

    @abstractmethod
    def printed(self) -> FloatArray:
        """Return each column's coefficient in the objective that the thesis prints."""

    @abstractmethod
    def start(self, chosen: IntArray) -> FloatArray:
        """Return the columns' values that award the ``chosen`` bids; they satisfy all rows."""

    @abstractmethod
    def answer(self, values: FloatArray) -> Answer:
        """Return the award that the columns' values state."""

    @classmethod
    @abstractmethod
    def preferences(cls, given: ModelInput) -> tuple[FloatArray, FloatArray]:
        """Return each bid's part in the second stage, and its preference as schedules show it."""

    @classmethod
    @abstractmethod
    def nonzeros(cls, given: ModelInput) -> int:
        """Return about how many nonzeros the program has."""

    @classmethod
    def relaxed(cls, given: ModelInput) -> RelaxedBids | None:
        """Return the bids as a packing and what deals the rest; None: they are no packing."""
        if not cls.is_searched:
            return None
        packing = packing_of(given.table, given.columns, given.guards)
        return RelaxedBids(packing, given.table.cores, None)

    @classmethod
    def cannot_express(cls, job: Job) -> str:
        """Return what of a job the model has no variable for, empty if it can express all."""
        return next((why for asked, why in cls.lacks.items() if getattr(job.request, asked)), "")

    @classmethod
    def cannot_place(cls, demand: object) -> str:
        """Return which networks' rules the model lacks for a demand's nodes, empty if none."""
        del demand
        return ""

    @classmethod
    def check_size(cls, jobs: int, nodes: int) -> None:
        """Raise OptionError if |J|·|N| is above ``largest_product``, with a window that fits."""
        if jobs * nodes > cls.largest_product:
            raise OptionError(
                f"window: {cls.name} needs {jobs} jobs × {nodes} nodes of variables, above "
                f"{cls.largest_product}; --window {int(cls.largest_product) // nodes} would fit"
            )

    @cached_property
    def program(self) -> IntegerProgram:
        """The program as arrays, columns in the order of ``variables``."""
        return read_pulp(self.problem, self.variables)

    @cached_property
    def weights(self) -> list[Weight]:
        """The exact worth of each column, 0 for those that carry amounts."""
        first = self.first_weights
        return [*first, *([0] * (len(self.variables) - len(first)))]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns, for a file."""
        return tuple(variable.name for variable in self.variables)

    @abstractmethod
    def described_columns(self) -> Iterator[tuple[str, str, object, str]]:
        """Yield columns by name, with their jobs, cores (empty: the program deals them), nodes."""

    def maximise(self) -> None:
        """Σ w·x of the first variables, w by priorities alone: (3.1), (5.1), (6.1), first stage."""
        weights = map(float, self.first_weights)
        self.problem.setObjective(LpAffineExpression(list(zip(self.variables, weights, strict=False))))

    def _row(self, name: str, terms: Terms, sense: int, right: int) -> None:
        """Add the row Σ amount·variable ≤, = or ≥ ``right``."""
        self.problem.add_rows({name: LpConstraint(LpAffineExpression(terms), sense, name, right)})


def bid_weights(table: BidTable, objective: str, bids: IntArray | slice = ALL) -> list[Weight]:
    """Return P_j, or P_j·R_j^cpu, of some bids, exactly; a job's own worth where it has one."""
    own = [demand.worth for demand in table.demands]
    asked = priority_weights(table, objective, bids)
    return [
        weight if (worth := own[job]) is None else worth
        for job, weight in zip(table.job[bids].tolist(), asked, strict=True)
    ]


def priority_weights(table: BidTable, objective: str, bids: IntArray | slice = ALL) -> list[Weight]:
    """Return P_j times what the objective multiplies it by, of some bids, exactly as given."""
    priorities = [demand.job.priority for demand in table.demands]
    times = multipliers(table, objective)[bids].tolist()
    return [priorities[job] * count for job, count in zip(table.job[bids].tolist(), times, strict=True)]


def multipliers(table: BidTable, objective: str) -> IntArray:
    """Return what each bid's priority is multiplied by."""
    factors = [OBJECTIVES[objective].times(demand.job.request) for demand in table.demands]
    times: IntArray = np.array(factors, np.int64).reshape(-1, 2)[table.job]
    return times[:, 0] + times[:, 1] * table.lengths


def start_weight(job: Job, objective: str, nodes: int) -> Weight:
    """Return P_j times what the objective multiplies it by, where the job gets so many nodes."""
    once, per_node = OBJECTIVES[objective].times(job.request)
    return job.priority * (once + per_node * nodes)


def worth_of_start(demand: Demand, objective: str) -> Fraction | int:
    """Return what starting a job counts at least, whatever it holds."""
    if demand.worth is not None:
        return demand.worth
    return start_weight(demand.job, objective, demand.fewest_nodes)


def has_one_worth(demand: Demand, objective: str) -> bool:
    """Return whether starting a job counts the same on any number of nodes that it may get."""
    counts, (_, per_node) = demand.node_counts, OBJECTIVES[objective].times(demand.job.request)
    return per_node == 0 or counts is None or counts.is_exact


def _cores(request: Request) -> tuple[int, int]:
    return (request.cores, 0) if request.cores else (0, request.cores_per_node or 0)


@dataclass(frozen=True, slots=True)
class Valuation:
    """What a started job counts under an objective: its priority times ``times`` of its request.

    Attributes:
        words: the unit of an award's worth.
        times: the factor as a pair: once, and for each node that the job gets.
        is_bounded: a bound over all placements is known (auction/placement_bound.py).
        of_waits: a priority is the bounded slowdown that a start a second earlier saves: it follows
            from a job's wait and time limit (auction/queue.py, ``worth_of``).
    """

    words: str
    times: Callable[[Request], tuple[int, int]]
    is_bounded: bool = False
    of_waits: bool = False


#: The values of option ``objective``. A further one is an entry here.
OBJECTIVES: Mapping[str, Valuation] = {
    "priority": Valuation("priority", lambda _: (1, 0), is_bounded=True),
    "priority_cores": Valuation("priority × cores", _cores),
    "response": Valuation("saved slowdown × cores", _cores, of_waits=True),
}
