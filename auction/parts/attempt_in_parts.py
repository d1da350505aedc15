"""Windows over more nodes than a search can hold: the cluster in parts, each with its own auction.

Jobs are assigned to parts of the switch tree in order of priority, each to the part with most left
that can hold it; parts are auctioned at once where there are processes for it (workers.py). Losers
are assigned again over what the parts leave. Jobs that fit into no part bid on the whole cluster
before all others if first-fit by priority starts them; the award is never worse than first-fit's.
The bound holds over the bids that were made; what a job could have done in another part is the loss
(benchmarks/parts.py measures it).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...bidgen.candidates import fewest_gres, key_of, usable_nodes
from ...bidgen.first_fit import Cluster
from ...bidgen.generate import Bids, Others
from ...bidgen.table import BidTable, joined_tables
from ...cluster.resources.capacity import BoolArray, FloatArray, IntArray
from ...cluster.resources.demand import Demand, Variant
from ...cluster.resources.pools import fewest
from ...cluster.schedule import Seconds, Sizes, summed
from ...models.model import Answer, Weight, bid_weights
from ...models.solve.lexicographic import NO_LIMIT_S
from ...topology.tree import parts_of_nodes
from ..attempt import other_award
from ..ledger import allocations_of, first_fit_table, with_starts
from ..options import StepOptions
from ..strategies import AttemptResult
from .workers import Workers, WorkerTask, workers_of

#: How often losers are assigned again.
_ROUNDS = 2
#: Share of the time that is left which a round may use; later rounds need less.
_SHARE = 0.85


def attempt_in_parts(
    demands: tuple[Demand, ...],
    cluster: Cluster,
    options: StepOptions,
    *,
    size: int,
    deadline: float | None,
    others: Others | None = None,
) -> AttemptResult:
    """Auction jobs' bids part by part and return the joined award; arguments as in ``attempt``."""
    del others  # Each part has its own share of the caps.
    with workers_of(options) as workers:
        return _Parts(demands, cluster, options, size, deadline, workers).run()


class _Parts:
    """The parts, what is left of them, and the results of their auctions."""

    def __init__(
        self,
        window: tuple[Demand, ...],
        cluster: Cluster,
        options: StepOptions,
        size: int,
        deadline: float | None,
        workers: Workers,
    ) -> None:
        self._size = size
        self._deadline = deadline
        self._window = window
        pools = cluster.columns.pools
        # Parts that share what stands on no node, as licences, are auctioned one after another.
        self._is_shared = any(
            next(pools.asked(demand.job, fewest(demand.job)), None) is not None for demand in window
        )
        self._workers = Workers() if self._is_shared else workers
        self._left = cluster
        self._options = options
        self._part = parts_of_nodes(cluster.topology, options.nodes_of_a_part)
        self._count = int(self._part.max()) + 1
        self._restricted: dict[tuple[int, int], BoolArray] = {}
        #: Nodes and units that each part has for those that ask alike of each node.
        self._room: dict[object, tuple[IntArray, IntArray]] = {}
        #: The auction of each part: its jobs' places in the window, and its result.
        self._done: list[tuple[IntArray, AttemptResult]] = []
        self._won = np.zeros(len(window), np.bool_)

    def run(self) -> AttemptResult:
        """Hold the auctions, and others for those who lost, on what is left."""
        everyone = np.arange(len(self._window))
        wide = np.array([not self._parts_for(demand).any() for demand in self._window], np.bool_)
        cluster, made = self._left, self._options.bids
        first = first_fit_table(self._window, cluster, made)
        starting = np.intersect1d(np.flatnonzero(wide), first.job)
        if len(starting):
            self._run([starting], [None], self._until(self._deadline, self._count + 1))
        self._round(everyone[~wide])
        for _ in range(_ROUNDS):
            before = int(self._won.sum())
            losers = everyone[~self._won & ~wide]
            if not len(losers) or self._left_s() <= 0:
                break
            self._room.clear()
            self._round(losers)
            if int(self._won.sum()) == before:
                break
        joined = self._joined()
        placed = np.arange(len(first))
        if joined.answer.value[0] < sum(bid_weights(first, self._options.objective)):
            # How far others might be above it is not known.
            return replace(other_award(joined, first, placed, cluster, self._options), bound=None)
        return joined if self._options.is_greedy else replace(joined, alternatives=((first, placed),))

    def _left_s(self) -> float:
        return NO_LIMIT_S if self._deadline is None else self._deadline - self._options.clock()

    def _round(self, places: IntArray) -> None:
        """Deal jobs to the parts and hold an auction in each."""
        assigned = self._assigned(places)
        mine = [places[assigned == part] for part in range(self._count)]
        parts = [part for part, jobs in enumerate(mine) if len(jobs)]
        end = None if self._deadline is None else self._options.clock() + _SHARE * self._left_s()
        if self._is_shared:
            for number, part in enumerate(parts):
                self._run([mine[part]], [part], self._until(end, len(parts) - number))
        else:
            self._run([mine[part] for part in parts], parts, end)

    def _until(self, end: float | None, turns: int) -> float | None:
        """Return when the first of so many turns ends."""
        if end is None:
            return None
        now = self._options.clock()
        return now + (end - now) / turns

    def _run(self, places: Sequence[IntArray], parts: Sequence[int | None], end: float | None) -> None:
        """Hold an auction of some jobs in each of some parts (None: the whole cluster) at once."""
        auctions = [self._auction(mine, part) for mine, part in zip(places, parts, strict=True)]
        for mine, result in zip(places, self._workers.results(auctions, end), strict=True):
            table, chosen = result.answer.table, result.answer.chosen
            self._won[mine[table.job[chosen]]] = True
            self._left = with_starts(self._left, allocations_of(table, chosen))
            self._done.append((mine, result))

    def _auction(self, places: IntArray, part: int | None) -> WorkerTask:
        demands = [self._window[place] for place in places.tolist()]
        if part is not None:
            demands = [self._within(demand, part) for demand in demands]
        ranked = tuple(replace(demand, index=index) for index, demand in enumerate(demands))
        caps = max(1, self._options.bids_in_all * len(places) // len(self._window))
        options = replace(self._options, max_bids=max(caps, len(places)))
        return WorkerTask(ranked, self._left, options)

    def _within(self, demand: Demand, part: int) -> Demand:
        """Return the demand with the nodes of one part only."""
        variants: list[Variant] = []
        for variant in demand.variants:
            key = (id(variant.eligible), part)
            if key not in self._restricted:
                self._restricted[key] = variant.eligible & (self._part == part)
            variants.append(replace(variant, eligible=self._restricted[key]))
        return replace(demand, variants=tuple(variants))

    def _assigned(self, places: IntArray) -> IntArray:
        """Return each job's part: the one with most cores left that could hold it; −1: none."""
        left = np.bincount(self._part, weights=self._left.columns.free.cores, minlength=self._count)
        assigned = np.full(len(places), -1, np.int64)
        for number, place in enumerate(places.tolist()):
            demand = self._window[place]
            could = self._parts_for(demand)
            if could.any():
                part = int(np.argmax(np.where(could, left, -np.inf)))
                assigned[number] = part
                # About as many cores as it takes.
                left[part] -= demand.fewest_cores
        return assigned

    def _parts_for(self, demand: Demand) -> BoolArray:
        """Return which parts have enough nodes and cores for a job now, shape (parts,)."""
        found = np.zeros(self._count, np.bool_)
        for asked in fewest_gres(demand):
            key, columns = key_of(asked), self._left.columns
            if key not in self._room:
                mine, units = usable_nodes(asked, columns.free, columns)
                part = self._part[mine]
                summed = np.bincount(part, units, self._count).astype(np.int64)
                self._room[key] = np.bincount(part, minlength=self._count), summed
            nodes, units = self._room[key]
            found |= (units >= (demand.units or 0)) & (nodes >= demand.fewest_nodes)
        if len(demand.required):
            holds = np.unique(self._part[demand.required])
            found &= np.isin(np.arange(self._count), holds) & (len(holds) == 1)
        return found

    def _joined(self) -> AttemptResult:
        """Return all auctions as one: the bids of each job's first, and what won later."""
        seen = np.zeros(len(self._window), np.bool_)
        tables: list[BidTable] = []
        jobs: list[IntArray] = []
        wins: list[BoolArray] = []
        preferences: list[FloatArray] = []
        bound: Weight = 0
        for places, result in self._done:
            answer = result.answer
            job = places[answer.table.job]
            won = np.zeros(len(answer.table), np.bool_)
            won[answer.chosen] = True
            keep = ~seen[job] | won
            # Later winners come on top of what the first auctions could reach.
            again = bool(seen[places].any())
            bound += answer.priority if again or result.bound is None else result.bound
            seen[places] = True
            tables.append(answer.table.only(keep))
            jobs.append(job[keep])
            wins.append(won[keep])
            preferences.append(np.zeros(keep.sum()) if answer.preference is None else answer.preference[keep])
        table, order = joined_tables(self._window, tables, jobs)
        chosen = np.flatnonzero(np.concatenate([*wins, np.zeros(0, np.bool_)])[order])
        preference = np.concatenate([*preferences, np.zeros(0)])[order]
        objective = self._options.objective
        results = [result for _, result in self._done]
        sizes = [result.sizes for result in results]
        has_worth = any(demand.worth is not None for demand in self._window)
        return AttemptResult(
            size=self._size,
            bids=self._bids(table),
            answer=Answer(table=table, chosen=chosen, objective=objective, preference=preference),
            bound=None if has_worth else bound,
            sizes=replace(
                summed(Sizes, sizes),
                nodesets=max((one.nodesets for one in sizes), default=0),
                bids=len(table),
            ),
            seconds=summed(Seconds, (result.seconds for result in results)),
        )

    def _bids(self, table: BidTable) -> Bids:
        """Return a table as the bids of all auctions."""
        could_bid = np.zeros(len(self._window), np.bool_)
        first_fit = np.zeros(len(self._window), np.bool_)
        for places, result in self._done:
            could_bid[places] |= result.bids.could_bid
            first_fit[places] |= result.bids.first_fit
        return Bids(
            table=table,
            first_fit=first_fit,
            placed=int(first_fit.sum()),
            complete=all(result.bids.complete for _, result in self._done),
            could_bid=could_bid,
        )
