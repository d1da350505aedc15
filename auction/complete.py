"""Complete steps: after the award no waiting job could start on what is left.

Bids are made under caps, for a window of the queue, on some node sets: what no bid asked for may
still hold a job. After the award each waiting job, in the window or behind it, is tried on what
award, reservations and a balance's rows leave, in the order of the queue.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

import numpy as np

from ..bidgen.first_fit import Cluster, FirstFitPlacer
from ..bidgen.generate import Bids, first_bid, placed_bids
from ..bidgen.table import BidTable, joined_tables
from ..cluster.resources.allocation import resources_of
from ..cluster.resources.demand import Demand
from ..models.model import Weight, bid_weights
from ..models.search.packing import Worth, packing_of
from ..models.search.proving import best_among
from ..models.search.search_parameters import PROOF_S
from ..models.solve.lexicographic import integer_weights
from ..models.solve.solver import SolverStatus
from .attempt import counted_award, other_award
from .ledger import ResidualCapacity, delays, what_is_left
from .options import StepOptions
from .step_pass import StepPass
from .strategies import AttemptResult, answer_of, keeps_whole

#: A job that starts on what is left, and its bid: a table of this one.
_Found = tuple[Demand, BidTable]


def complete(step: StepPass) -> None:
    """Start every job of the queue that could start on what the award leaves."""
    options, best = step.options, step.best
    has_ended = best is None or (best.ended and best.size == len(step.window))
    step.is_late = not has_ended and not options.is_greedy
    if not step.completed or step.counted is not None:
        return
    behind: list[Demand] = []
    unread = iter(step.waiting.behind)

    def waiting(won: frozenset[str]) -> Iterator[Demand]:
        """Yield the jobs that wait beside some winners; those behind the window are read once."""
        # Who cannot start on all that is free cannot on what is left of it.
        able = (demand for demand in step.window if demand.job.id in step.able)
        yield from map(step.balance.valued, (demand for demand in able if demand.job.id not in won))
        if not step.balance.keeps_shares:
            yield from behind
            in_time = takewhile(lambda _: not step.is_over(step.end), unread)
            for demand in filter(step.views.could_start, in_time):
                behind.append(demand)
                yield demand

    is_only = best is None or not (best.alternatives or best.alone)
    if is_only and next(waiting(frozenset() if best is None else _winners(best)), None) is None:
        return
    base = counted_award((), step.cluster, options, len(step.window)) if best is None else best
    award, found = _completed(base, waiting, step)
    if found:
        step.behind_started = {demand.job.id: demand for demand, _ in found}
        step.best = _joined(award, found, step.cluster, options)
        if award is not base and award.bound is not None and base.proved and options.is_anytime:
            step.best = _lowered(step.best, base, step)
        window = {demand.job.id for demand in step.window}
        if options.weights == "paper" and window & step.behind_started.keys():
            # What a bid prints may lie below 0: with it the sum need not be the best.
            step.best = replace(step.best, status=SolverStatus.FEASIBLE_AT_LIMIT)
    elif award is not base:
        step.best = award


def _completed(
    base: AttemptResult, waiting: Callable[[frozenset[str]], Iterable[Demand]], step: StepPass
) -> tuple[AttemptResult, list[_Found]]:
    """Return the award that is worth most with what starts on what it leaves, and what does.

    Args:
        base: the award; those found with less work, and first-fit's, are looked at too.
        waiting: the jobs that wait beside some winners (ids), highest priority first; read as far
            as there is time.
        step: the pass.
    """
    cluster, options = step.cluster, step.options
    tried: list[tuple[tuple[Weight, float, float], AttemptResult, list[_Found]]] = []
    for award in _awards(base, cluster, options):
        if award is not base and not _keeps_reservations(award, step):
            continue
        leftover = _Leftover(what_is_left(award.answer.table, award.answer.chosen, cluster), options)
        found = leftover.start(waiting(_winners(award)), lambda: step.is_over(step.end))
        tried.append((_worth(award, found, leftover.whole(), cluster, options), award, found))
        if step.is_over(step.end):
            break
    return max(tried, key=lambda one: one[0])[1:]


def _keeps_reservations(award: AttemptResult, step: StepPass) -> bool:
    """Return whether the first waiting jobs have reservations, and no award delays one of them.

    They were made for those that the auction's own award leaves waiting.
    """
    starts = _winners(award)
    if next(step.unreserved(starts), None) is not None:
        return False
    guards = tuple(guard for guard in step.guards if guard.job.id not in starts)
    return not delays(award.answer.table, award.answer.chosen, replace(step.cluster, guards=guards))


def _lowered(joined: AttemptResult, base: AttemptResult, step: StepPass) -> AttemptResult:
    """Return an award with the bound over the auction's bids and those that joined, if soon proved.

    An award without one of these is in the auction's bound; those with it are looked at beside it.

    Args:
        joined: another award than the auction's, and the jobs that start beside it.
        base: the auction's, proved.
        step: the pass.
    """
    table, cluster, chosen = joined.answer.table, step.cluster, joined.answer.chosen
    packing = packing_of(table, cluster.columns, cluster.guards)
    weights = bid_weights(table, step.options.objective)
    worth = Worth.scaled(integer_weights(weights)[0], np.zeros(len(table)))
    new = [bid for bid in chosen.tolist() if table.demand_of(bid).job.id in step.behind_started]
    bids, bound = np.setdiff1d(np.arange(len(table)), new), base.bound
    for bid in new:
        if bound is None or not step.has_left(PROOF_S):
            return joined
        others = bids[table.job[bids] != table.job[bid]]
        beside = replace(packing, capacity=packing.capacity - packing.use(np.array([bid])))
        best, proved = best_among(
            beside, worth, np.intersect1d(chosen, others), others, may_wait=step.end is None
        )
        if not proved:
            return joined
        bound = max(bound, weights[bid] + sum(weights[one] for one in best.tolist()))
        bids = np.sort(np.append(bids, bid))
    return replace(joined, bound=bound, proved=bound == joined.answer.priority)


def _winners(award: AttemptResult) -> frozenset[str]:
    table = award.answer.table
    return frozenset(table.demand_of(bid).job.id for bid in award.answer.chosen.tolist())


def _awards(base: AttemptResult, cluster: Cluster, options: StepOptions) -> Iterable[AttemptResult]:
    """Yield an award, that of the jobs that bid alone, and the others, each once."""
    yield base
    if base.alone is not None:
        # Over the same bids no award is worth more than the auction's bound.
        bound = base.bound if base.alone.bids is base.bids else None
        yield replace(base.alone, status=SolverStatus.FEASIBLE_AT_LIMIT, proved=False, bound=bound)
    known = [(base.answer.table, base.answer.chosen)]
    for table, chosen in base.alternatives:
        if not any(table is one and np.array_equal(chosen, award) for one, award in known):
            known.append((table, chosen))
            yield other_award(base, table, chosen, cluster, options)


def _worth(
    award: AttemptResult, found: list[_Found], whole: float, cluster: Cluster, options: StepOptions
) -> tuple[Weight, float, float]:
    """Return an award's worth with jobs started next to it, what stays whole, its preference."""
    first = np.zeros(1, np.int64)
    values = [award.answer.value, *(answer_of(bid, first, cluster, options).value for _, bid in found)]
    # Sums in different orders differ in their last digits.
    return sum(worth for worth, _ in values), whole, round(sum(one for _, one in values), 9)


class _Leftover:
    """Starts jobs one after another on what is left."""

    def __init__(self, cluster: Cluster, options: StepOptions) -> None:
        self._cluster = cluster
        #: Takes what starts of the cluster's own columns.
        self._fit = FirstFitPlacer(cluster, in_place=True)
        self._made = options.bids
        self._keeps_whole = keeps_whole(cluster, options)
        self._reserved = {guard.job.id for guard in cluster.guards}
        #: Kinds of jobs of which none could start: less is left with every job that does.
        self._hopeless: set[int] = set()
        columns = cluster.columns
        self._is_for_any_time = columns.pools.are_empty and not (cluster.guards or columns.kept)

    def start(self, waiting: Iterable[Demand], is_over: Callable[[], bool]) -> list[_Found]:
        """Return the jobs that start, in order; if a reserved one does, the others are retried."""
        tried: list[Demand] = []
        found: list[_Found] = []
        reserved = len(self._reserved)
        if (placer := self._cluster.placer) is not None:
            demands = tuple(waiting)
            waiting = [demands[place] for place in placer.order(demands)]
        for demand in waiting:
            tried.append(demand)
            if self._kind(demand) in self._hopeless and demand.job.id not in self._reserved:
                continue
            if is_over():
                break
            bid = self._bid(demand, is_over)
            if bid is None:
                if demand.job.id not in self._reserved:
                    self._hopeless.add(self._kind(demand))
            else:
                self._take(bid)
                found.append((demand, bid))
        if len(self._reserved) < reserved and not is_over():
            started = {demand.job.id for demand, _ in found}
            self._hopeless.clear()
            found += self.start((demand for demand in tried if demand.job.id not in started), is_over)
        return found

    def _kind(self, demand: Demand) -> int:
        """Return a number of what jobs have in common that can take each other's place."""
        return demand.form if self._is_for_any_time else demand.kind

    def whole(self) -> float:
        """Return the wholly free share of blocks, switches, groups; 0 if it does not count."""
        if not self._keeps_whole:
            return 0.0
        columns = self._cluster.columns
        shares = self._cluster.topology.whole_shares(columns.is_empty & columns.takes_jobs)
        return round(float(shares.sum()), 9)

    def _bid(self, demand: Demand, is_over: Callable[[], bool]) -> BidTable | None:
        """Return a bid of a job that could start with what has started; None if it fits nowhere."""
        cluster, fit = self._cluster, self._fit
        # First-fit looks at fewer nodes: it comes first where nobody has counted yet.
        if fit.has_counted and not fit.could_hold(demand):
            return None
        placement, table = fit.find(demand), None
        if placement is not None:
            table = placed_bids([placement], cluster, self._made)
        if not table and cluster.placer is None and fit.could_hold(demand):
            # Bids are made on nodes that first-fit does not look at together.
            table = first_bid(demand, cluster, is_over, use_switches=self._made.use_switches)
        return table if table and ResidualCapacity(table, cluster).fits(0) else None

    def _take(self, bid: BidTable) -> None:
        self._fit.take(bid.demands[0].job, bid.allocation(0))
        if self._cluster.guards:
            self._fit.release()
            self._cluster = replace(self._cluster, guards=self._fit.guards)
            self._reserved = {guard.job.id for guard in self._cluster.guards}


def among(
    bids: Bids, award: AttemptResult | None, cluster: Cluster, options: StepOptions, size: int
) -> AttemptResult:
    """Return an award among bids that were made after it; None: nobody won.

    Args:
        bids: of the window's jobs.
        award: over other bids.
        cluster: free resources and reservations.
        options: of the step.
        size: jobs of the window.
    """
    base = award or counted_award((), cluster, options, size)
    table = base.answer.table
    found = [(table.demand_of(bid), table.only([bid])) for bid in base.answer.chosen.tolist()]
    names = cluster.columns.names
    places = [_place_among(bids.table, demand, bid, names) for demand, bid in found]
    chosen = np.array(sorted(place for place in places if place is not None), np.int64)
    answer = answer_of(bids.table, chosen, cluster, options)
    sizes = replace(base.sizes, nodesets=bids.table.general_nodesets, bids=len(bids.table))
    base = replace(base, bids=bids, answer=answer, sizes=sizes, bound=answer.priority, alternatives=())
    new = [one for one, place in zip(found, places, strict=True) if place is None]
    return _joined(base, new, cluster, options) if new else base


def _place_among(table: BidTable, demand: Demand, bid: BidTable, names: Sequence[str]) -> int | None:
    """Return where a table has a job's bid of the same nodes and amounts."""
    mine = bid.allocation(0)
    job = table.place_of(demand.job.id)
    for place in () if job is None else table.bids_of(job):
        one = table.allocation(place)
        is_there = np.array_equal(one.nodes, mine.nodes)
        if is_there and resources_of(demand, one, names) == resources_of(demand, mine, names):
            return place
    return None


def _joined(
    base: AttemptResult, found: Sequence[_Found], cluster: Cluster, options: StepOptions
) -> AttemptResult:
    """Return an award and the jobs that start beside it as one.

    What is proved stays proved over all these bids, by weights and by preference: of the old bids
    no award has more than this one, and of the new ones none has more than all.
    """
    table = base.answer.table
    demands = list(table.demands)
    places = {demand.job.id: demand.index for demand in demands}
    for demand, _ in found:
        if demand.job.id not in places:
            places[demand.job.id] = len(demands)
            demands.append(replace(demand, index=len(demands)))
    mine = [np.array([places[demand.job.id]]) for demand, _ in found]
    extra = [bid for _, bid in found]
    whole, order = joined_tables(tuple(demands), [table, *extra], [table.job, *mine])
    bids, _ = joined_tables(tuple(demands), [base.bids.table, *extra], [base.bids.table.job, *mine])
    won = np.isin(order, base.answer.chosen) | (order >= len(table))
    more = len(demands) - len(base.bids.could_bid)
    joined = other_award(base, whole, np.flatnonzero(won), cluster, options)
    return replace(
        joined,
        status=base.status,
        proved=base.proved,
        bids=replace(
            base.bids,
            table=bids,
            first_fit=np.pad(base.bids.first_fit, (0, more), constant_values=False),
            could_bid=np.pad(base.bids.could_bid, (0, more), constant_values=True),
        ),
        bound=None if base.bound is None else base.bound + joined.answer.priority - base.answer.priority,
    )
