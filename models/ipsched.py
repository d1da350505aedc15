"""IPSCHED: placement by one integer program, no bids, no topology (Soner, chapter 3, mended)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..bidgen.candidates import GresChoice, fewest_gres, usable_nodes
from ..bidgen.families.claims import Claim
from ..bidgen.families.registry import claims_of
from ..bidgen.table import CLASS_A, CLASS_B, CLASS_C, BidTable, joined_tables
from ..cluster.jobs import Job
from ..cluster.resources.capacity import BoolArray, FloatArray, IntArray, Resource, sums_before
from ..cluster.resources.columns import Columns
from ..cluster.resources.demand import Demand, Variant
from ..cluster.resources.job_reservations import Guard
from ..cluster.value_types import copied
from .model import PAPER, PLUGIN, Answer, Model, ModelInput, Weight, start_weight
from .solve.solver import (
    LpBinary,
    LpConstraintEQ,
    LpConstraintGE,
    LpConstraintLE,
    LpInteger,
    LpVariable,
)

#: One capacity: of a reservation's room or None, the resource, and the row of its claims.
_Cell = tuple[Guard | None, Resource, int]


@dataclass(frozen=True, slots=True, eq=False)
class VariantChoice:
    """A job in one of its variants.

    Attributes:
        choice: the counts of its gres.
        nodes: those it may use, ascending.
        units: of cores that each of them could give.
    """

    demand: Demand
    variant: Variant
    choice: GresChoice
    nodes: IntArray
    units: IntArray

    @property
    def dealt(self) -> list[str]:
        """Each gres that the program deals over the nodes, none where the job gets all of them."""
        return [kind for kind, _, low, _ in self.choice.total if low and not self.demand.exclusive]

    def unit_bids(self, columns: Columns) -> BidTable:
        """Return bids from which follows what the job takes wherever the program puts it.

        Two are on any node, once and twice. The others are on each node that it may use: with
        what it holds whatever cores it gets there, then with a unit of cores more, then with one
        of each gres that is dealt.
        """
        nodes, dealt, demand = self.nodes, self.dealt, copied(self.demand, index=0)
        if demand.job.limits_by_nodes_s:
            # Bids of one node, but for as long as the job may run on any.
            demand = replace(demand, job=replace(demand.job, limits_by_nodes_s={}))
        total, any_node = columns.total, np.zeros(3, np.int64)
        cores = np.zeros((2 + len(dealt), len(nodes)), np.int64)
        if demand.exclusive:
            cores += total.cores[nodes]
            gres = {kind: 0 * cores + counts[nodes] for kind, counts in total.gres.items()}
        else:
            cores[1] += demand.unit
            asked = [(kind, count) for kind, _, count in self.choice.per_node if count]
            gres = {kind: np.zeros_like(cores) for kind in (*dict(asked), *dealt)}
            for kind, count in asked:
                gres[kind] += count
            for place, kind in enumerate(dealt):
                gres[kind][2 + place] += 1
        length = np.concatenate([[1, 2], np.ones(cores.size, np.int64)])
        entries = np.concatenate([any_node, cores.ravel()])
        none = np.zeros(len(length), np.int64)
        return BidTable(
            demands=(demand,),
            job=none,
            bid_class=none.astype(np.int8),
            level=none,
            nodesets=none,
            indptr=sums_before(length),
            node=np.concatenate([any_node, np.tile(nodes, len(cores))]),
            cores=entries,
            memory=demand.memory_on(entries) if demand.counts_memory else None,
            gres={kind: np.concatenate([any_node, counts.ravel()]) for kind, counts in gres.items()},
            gres_ratio=np.ones(len(length)),
            gres_share=np.zeros(len(length)),
            general_nodesets=0,
        )


class Ipsched(Model):
    """Maximise Σ P_j·(s_j − c_j), or with P_j·R_j^cpu: equations (3.1)-(3.7).

    Columns: s of each job (in each variant), t of each job and usable node, x (in the job's cores
    per task; cores as printed where that is 1), then those of gres over all nodes and switches.
    """

    name = "ipsched"
    presets: Mapping[str, Mapping[str, Any]] = {
        "paper": PAPER,
        "plugin": {**PLUGIN, "window": 200, "bid_order": "spec"},
    }
    lacks: Mapping[str, str] = {
        "cores_per_node": "ipsched has no cores per node",
        "contiguous": "ipsched has no contiguous nodes",
    }
    #: PuLP's variables alone would take gigabytes.
    largest_product = 2_000_000
    has_bids = False
    #: For each node and variant of a job.
    _NONZEROS = 15

    @classmethod
    def nonzeros(cls, given: ModelInput) -> int:
        """Return about how many nonzeros the program has."""
        return cls._NONZEROS * sum(len(demand.variants) for demand in given.table.demands) * given.nodes

    @classmethod
    def preferences(cls, given: ModelInput) -> tuple[FloatArray, FloatArray]:
        """Return nothing for each bid of first-fit's: its placements have no preference."""
        none = np.zeros(len(given.table))
        return none, none

    @classmethod
    def cannot_place(cls, demand: object) -> str:
        """Return which networks' rules it lacks for a demand's nodes, empty if none."""
        is_on_units = isinstance(demand, Demand) and (demand.in_units or demand.contiguous)
        return "ipsched has no blocks, rings or three-dimensional tori" if is_on_units else ""

    def create_variables(self) -> None:
        """Binaries s of each option, and t and x of each option and node."""
        self.topology = self.given.topology
        # A gres range counts as its minimum.
        self.options = [
            VariantChoice(*asked, *usable_nodes(asked, self.columns.free, self.columns))
            for demand in self.table.demands
            for asked in fewest_gres(demand)
        ]
        self.s = [
            self.problem.add_variable(f"s{number}", cat=LpBinary) for number in range(len(self.options))
        ]
        self.t = self._amounts("t", LpBinary)
        self.x = self._amounts("x", LpInteger)
        self._others: list[LpVariable] = []

    def described_columns(self) -> Iterator[tuple[str, str, object, str]]:
        """Yield s of each option, and its t and x with their nodes."""
        for s, option, t, x in zip(self.s, self.options, self.t, self.x, strict=True):
            job = option.demand.job.id
            yield s.name, job, "", ""
            for place, node in enumerate(self.columns.named(option.nodes)):
                yield t[place].name, job, "", node
                yield x[place].name, job, "", node

    def constrain(self) -> None:
        """State every family of constraints."""
        self.one_variant_per_job()
        self.cores_of_jobs()
        self.nodes_of_jobs()
        self.cores_where_allocated()
        self.required_nodes()
        self.gres_over_all_nodes()
        self.switches()
        self.capacities()

    def _amounts(self, name: str, category: str) -> list[list[LpVariable]]:
        return [
            [
                self.problem.add_variable(f"{name}{number}_{node}", 0, 1 if name == "t" else None, category)
                for node in option.nodes.tolist()
            ]
            for number, option in enumerate(self.options)
        ]

    @cached_property
    def first_weights(self) -> list[Weight]:
        """The exact worth of each s: P_j, or P_j·R_j^cpu."""
        return [start_weight(option.demand.job, self.given.objective, 1) for option in self.options]

    def one_variant_per_job(self) -> None:
        """At most one variant of a job has s = 1."""
        for job in range(len(self.table.demands)):
            mine = [s for s, option in zip(self.s, self.options, strict=True) if option.demand.index == job]
            if mine:
                self._row(f"job{job}", [(s, 1) for s in mine], LpConstraintLE, 1)

    def cores_of_jobs(self) -> None:
        """Σ_n x_nj = R_j^cpu·s_j: (3.3); at least so many on an exclusive job's whole nodes."""
        for number, option in enumerate(self.options):
            sense = LpConstraintGE if option.demand.exclusive else LpConstraintEQ
            terms = [(x, 1) for x in self.x[number]]
            self._row(f"cores{number}", [*terms, (self.s[number], -(option.demand.units or 0))], sense, 0)

    def nodes_of_jobs(self) -> None:
        """R_min·s_j ≤ Σ_n t_nj ≤ R_max·s_j: (3.6), which as printed forces nodes on every job."""
        for number, option in enumerate(self.options):
            counts = option.demand.node_counts
            high = len(self.columns.names) if counts is None else counts.maximum
            terms = [(t, 1) for t in self.t[number]]
            most = min(high, option.variant.max_nodes)
            self._row(f"most{number}", [*terms, (self.s[number], -most)], LpConstraintLE, 0)
            low = option.demand.fewest_nodes
            self._row(f"fewest{number}", [*terms, (self.s[number], -low)], LpConstraintGE, 0)

    def cores_where_allocated(self) -> None:
        """t_nj ≤ x_nj ≤ A_n^cpu·t_nj: (3.7); ``least`` units for t where more are asked for."""
        for number, option in enumerate(self.options):
            for place, units in enumerate(option.units.tolist()):
                x, t = self.x[number][place], self.t[number][place]
                least = units if option.demand.exclusive else option.demand.least
                self._row(f"above{number}_{place}", [(x, 1), (t, -units)], LpConstraintLE, 0)
                self._row(f"below{number}_{place}", [(x, 1), (t, -least)], LpConstraintGE, 0)

    def required_nodes(self) -> None:
        """t_nj = s_j on the nodes a job requires; it cannot start if one of them is not usable."""
        for number, option in enumerate(self.options):
            place_of = {node: place for place, node in enumerate(option.nodes.tolist())}
            for node in option.demand.required.tolist():
                terms = [(self.s[number], 1)]
                if node in place_of:
                    terms.append((self.t[number][place_of[node]], -1))
                self._row(f"required{number}_{node}", terms, LpConstraintLE, 0)

    def gres_over_all_nodes(self) -> None:
        """Σ_n y_nj = R_j·s_j for a gres asked for over all nodes, y_nj ≤ A_n·t_nj."""
        self._dealt: dict[tuple[int, str], list[LpVariable]] = {}
        for number, option in enumerate(self.options):
            for kind, _, low, _ in option.choice.total:
                if low:
                    self._deal(number, option, kind, low)

    def _deal(self, number: int, option: VariantChoice, kind: str, count: int) -> None:
        name = kind.replace(" ", "_")
        free = self.columns.free.gres[kind][option.nodes].tolist() if kind in self.columns.free.gres else []
        counts: list[LpVariable] = []
        for place, most in enumerate(free):
            y = self.problem.add_variable(f"y{number}_{place}_{len(self._others)}", 0, None, LpInteger)
            self._others.append(y)
            counts.append(y)
            terms = [(y, 1), (self.t[number][place], -most)]
            self._row(f"dealt{number}_{place}_{name}", terms, LpConstraintLE, 0)
        self._dealt[number, kind] = counts
        terms = [(y, 1) for y in counts]
        self._row(f"total{number}_{name}", [*terms, (self.s[number], -count)], LpConstraintEQ, 0)

    def switches(self) -> None:
        """At most ``max_switches`` leaf switches: z_lj ≥ t_nj, Σ_l z_lj ≤ the limit."""
        leaf = self.topology.leaf
        self._leaves: dict[int, dict[int, LpVariable]] = {}
        for number, option in enumerate(self.options):
            if option.demand.max_switches is None:
                continue
            z = {
                switch: self.problem.add_variable(f"z{number}_{switch}", cat=LpBinary)
                for switch in np.unique(leaf[option.nodes]).tolist()
            }
            self._leaves[number] = z
            self._others.extend(z.values())
            for place, switch in enumerate(leaf[option.nodes].tolist()):
                terms = [(self.t[number][place], 1), (z[switch], -1)]
                self._row(f"leaf{number}_{place}", terms, LpConstraintLE, 0)
            limit = option.demand.max_switches
            self._row(f"leaves{number}", [(one, 1) for one in z.values()], LpConstraintLE, limit)

    def capacities(self) -> None:
        """Σ_j x_nj ≤ A_n^cpu (3.2), Σ_j R_j^gres·t_nj ≤ A_n^gres (3.4), all other family rows."""
        terms: dict[_Cell, list[tuple[LpVariable, int]]] = {}
        limits: dict[_Cell, int] = {}
        # What a job has reserved it gives back as it starts, wherever that is.
        guards = {replace(guard, kept={}): guard for guard in self.guards}
        for number, option in enumerate(self.options):
            for claim in claims_of(option.unit_bids(self.columns), self.columns, tuple(guards)):
                for row, variable, amount in self._taken(number, claim):
                    cell = claim.guard, claim.resource, row
                    limits[cell] = int(claim.capacity[row])
                    terms.setdefault(cell, []).append((variable, amount))
            for guard, reserved in guards.items():
                for resource, place, held in _reserved_for(option.demand.job, reserved):
                    terms.setdefault((guard, resource, place), []).append((self.s[number], -held))
        for index, (cell, pairs) in enumerate(terms.items()):
            # What jobs only give back limits nobody.
            if any(amount > 0 for _, amount in pairs):
                _, resource, _ = cell
                self._row(f"{resource.family}_{index}", pairs, LpConstraintLE, limits[cell])

    def _taken(self, number: int, claim: Claim) -> Iterator[tuple[int, LpVariable, int]]:
        """Yield what an option takes by a claim of its unit bids: row, variable, amount a unit."""
        option = self.options[number]
        # The bids on any node, of one and of two nodes, come first: two amounts by bid, three by
        # entry. Twice the first's, less the second's, is taken once wherever the job starts.
        first, once = (2, 2 * claim.amount[0] - claim.amount[1]) if claim.by_bid else (3, 0)
        if once:
            yield int(claim.row[0]), self.s[number], int(once)
        dealt = [self._dealt[number, kind] for kind in option.dealt]
        amounts = claim.amount[first:].reshape(2 + len(dealt), len(option.nodes))
        amounts = np.vstack([amounts[:1] - once, amounts[1:] - amounts[0]])
        variables, rows = [self.t[number], self.x[number], *dealt], claim.row[first:].tolist()
        for place in np.flatnonzero(amounts.any(axis=0)).tolist():
            for mine, amount in zip(variables, amounts[:, place].tolist(), strict=True):
                if amount:
                    yield rows[place], mine[place], amount

    @property
    def variables(self) -> list[LpVariable]:
        """All variables, s first: the columns of ``program``."""
        flat_t = [t for row in self.t for t in row]
        flat_x = [x for row in self.x for x in row]
        return [*self.s, *flat_t, *flat_x, *self._others]

    def group(self) -> IntArray:
        """Return the job of each s, ascending; the other columns come after with none."""
        jobs = np.array([option.demand.index for option in self.options], np.int64)
        others = len(self.variables) - len(jobs)
        return np.concatenate([jobs, len(self.table.demands) + np.arange(others)])

    def preference(self) -> FloatArray:
        """−P_j·c_j by the largest P_j: only sign and order matter, near 1 for the tolerances."""
        jobs = (demand.job for demand in self.table.demands)
        return self.nodes_packed() / max(
            [1.0, *(float(start_weight(job, self.given.objective, 1)) for job in jobs)]
        )

    def printed(self) -> FloatArray:
        """Σ P_j·(s_j − c_j): equation (3.1)."""
        return self.program.objective + self.nodes_packed()

    def nodes_packed(self) -> FloatArray:
        """Return −P_j·c_j as values of all columns, c_j = Σ_n t_nj / (2|N|): equation (3.5)."""
        cost, values = [float(weight) for weight in self.first_weights], np.zeros(len(self.variables))
        lengths = [len(option.nodes) for option in self.options]
        first = len(self.s)
        values[first : first + sum(lengths)] = -np.repeat(cost, lengths) / (2 * self.given.nodes)
        return values

    def start(self, chosen: IntArray) -> FloatArray:
        """Return the columns' values that award the table's chosen bids: a solution of all rows.

        A bid with more gres than a range's least gives the least; one of no option is left out.
        """
        place_of = {id(variable): place for place, variable in enumerate(self.variables)}
        values = np.zeros(len(place_of))
        for bid in chosen.tolist():
            job = int(self.table.job[bid])
            for number, option in enumerate(self.options):
                given = self._values_of(bid, number) if option.demand.index == job else None
                if given is not None:
                    for variable, value in given:
                        values[place_of[id(variable)]] = value
                    break
        return values

    def _values_of(self, bid: int, number: int) -> list[tuple[LpVariable, int]] | None:
        """Return the values with which an option holds a bid's nodes, None where it does not."""
        option, entries = self.options[number], self.table.entries(bid)
        demand, nodes = option.demand, self.table.node[entries]
        place = np.minimum(np.searchsorted(option.nodes, nodes), len(option.nodes) - 1)
        is_wide = len(nodes) > option.variant.max_nodes
        if is_wide or not len(option.nodes) or (option.nodes[place] != nodes).any():
            return None
        left = {kind: counts[entries].copy() for kind, counts in self.table.gres.items()}
        for kind, _, count in option.choice.per_node:
            if count:
                left[kind] = left.get(kind, np.zeros_like(nodes)) - count
        units = option.units[place] if demand.exclusive else self.table.cores[entries] // demand.unit
        places = place.tolist()
        values = [(self.s[number], 1)]
        values += [(self.t[number][one], 1) for one in places]
        values += [(self.x[number][one], count) for one, count in zip(places, units.tolist(), strict=True)]
        for kind, _, low, _ in option.choice.total:
            if low:
                held = left.get(kind, np.zeros_like(nodes))
                dealt = np.diff(np.minimum(np.cumsum(np.maximum(held, 0)), low), prepend=0)
                if dealt.sum() < low:
                    return None
                left[kind] = held - dealt
                y = self._dealt[number, kind]
                values += [(y[one], count) for one, count in zip(places, dealt.tolist(), strict=True)]
        if any((counts < 0).any() for counts in left.values()):
            return None
        leaves = np.unique(self.topology.leaf[nodes]).tolist()
        return values + [(self._leaves[number][leaf], 1) for leaf in leaves if number in self._leaves]

    def answer(self, values: FloatArray) -> Answer:
        """Return the placements as bids: one a job that starts, beside the other jobs' bids."""
        value_of = dict(zip(map(id, self.variables), np.round(values).astype(int).tolist(), strict=True))
        starting = [number for number, s in enumerate(self.s) if value_of[id(s)]]
        jobs = np.array([self.options[number].demand.index for number in starting], np.int64)
        losers = self.table.only(~np.isin(self.table.job, jobs))
        tables = [*(self._placed(number, value_of) for number in starting), losers]
        table, origin = joined_tables(self.table.demands, tables, [*jobs[:, None], losers.job])
        won = np.flatnonzero(origin < len(jobs))
        return Answer(table=table, chosen=won, objective=self.given.objective, preference=None)

    def _placed(self, number: int, value_of: dict[int, int]) -> BidTable:
        """Return where an option starts as a bid."""
        option, total = self.options[number], self.columns.total
        mine = np.array([value_of[id(t)] > 0 for t in self.t[number]], np.bool_)
        units = np.array([value_of[id(x)] for x in self.x[number]], np.int64)
        nodes, demand = option.nodes[mine], option.demand
        cores = total.cores[nodes] if demand.exclusive else units[mine] * demand.unit
        gres, ends = self._gres(number, option, mine, value_of), np.array([0, len(nodes)])
        return replace(
            self.table,
            job=np.array([demand.index]),
            bid_class=np.array([_class_of(nodes, option)], np.int8),
            level=self.topology.level[self.topology.common_switch_of_sets(ends, nodes)],
            nodesets=np.array([1 + np.count_nonzero(np.diff(nodes) != 1)]),
            indptr=ends,
            node=nodes,
            cores=cores,
            memory=demand.memory_on(cores),
            gres={kind: gres.get(kind, 0 * nodes) for kind in total.gres},
            gres_ratio=np.ones(1),
            gres_share=np.zeros(1),
        )

    def _gres(
        self, number: int, option: VariantChoice, mine: BoolArray, value_of: dict[int, int]
    ) -> dict[str, IntArray]:
        nodes = option.nodes[mine]
        if option.demand.exclusive:
            return {kind: counts[nodes] for kind, counts in self.columns.total.gres.items()}
        gres = {kind: np.full(len(nodes), count) for kind, _, count in option.choice.per_node if count}
        for kind, _, low, _ in option.choice.total:
            if low:
                dealt = np.array([value_of[id(y)] for y in self._dealt[number, kind]], np.int64)[mine]
                gres[kind] = gres.get(kind, np.zeros(len(nodes), np.int64)) + dealt
        return gres


def _reserved_for(job: Job, guard: Guard) -> Iterator[tuple[Resource, int, int]]:
    """Yield what a job has reserved of a reservation's nodes: resource, place of node, amount."""
    own = guard.kept.get(job.id)
    if own is not None and guard.outlasts(job):
        for resource in own.resources():
            held = own.amounts(resource)
            for place in np.flatnonzero(held).tolist():
                yield resource, place, int(held[place])


def _class_of(nodes: IntArray, option: VariantChoice) -> int:
    """Return the class that a bid on some nodes would have."""
    first, last = int(nodes[0]), int(nodes[-1])
    if last - first + 1 != len(nodes):
        return CLASS_C
    usable_nodes = set(option.nodes.tolist())
    is_aligned = first - 1 not in usable_nodes or last + 1 not in usable_nodes
    return CLASS_A if is_aligned else CLASS_B
