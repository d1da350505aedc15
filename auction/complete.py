"""Complete steps: after the award no waiting job could start on what is left.

Bids are made under caps, for a window of the queue, and not on every set of nodes: what no bid asked for may
still hold a job. After the award every job that waits, in the window and behind it, is tried on what is left
beside the reservations and the rows of a balance, in the order of the queue.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from ..bidgen.first_fit import Cluster, FirstFitPlacer
from ..bidgen.generate import BidOptions, first_fit_bids, generate_bids
from ..bidgen.table import BidTable, joined_tables
from ..cluster.resources.capacity import BoolArray
from ..cluster.resources.demand import Demand
from ..models.model import Weight
from ..models.solve.solver import SolverStatus
from .attempt import counted_award, other_award
from .ledger import FreeState, what_is_left
from .options import StepOptions
from .strategies import AttemptResult, answer_of, keeps_whole

#: A job that starts on what is left, and its bid: a table of this one.
_Found = tuple[Demand, BidTable]


def completed(
    best: AttemptResult | None,
    waiting: Callable[[frozenset[str]], Iterable[Demand]],
    cluster: Cluster,
    options: StepOptions,
    window: frozenset[str],
    is_over: Callable[[], bool],
) -> tuple[AttemptResult | None, tuple[Demand, ...]]:
    """Return the award with every waiting job that could start on what it leaves, and these jobs.

    Args:
        best: the award; None where no job could bid.
        waiting: the jobs that wait beside some winners (ids), highest priority first; read as far as there is
            time.
        cluster: what the award was made on.
        options: of the step.
        window: ids of the jobs of which an optimum is said.
        is_over: whether the step's time is up: then no more jobs are looked at.
    """
    is_alone = best is None or (not best.earlier and best.first is None)
    if is_alone and not any(True for _ in waiting(frozenset() if best is None else _winners(best))):
        return best, ()
    base = counted_award((), cluster, options, len(window)) if best is None else best
    tried: list[tuple[AttemptResult, list[_Found], float]] = []
    for award in _awards(base, cluster, options):
        leftover = _Leftover(what_is_left(award.answer.table, award.answer.chosen, cluster), options)
        found = leftover.start(waiting(_winners(award)), is_over)
        tried.append((award, found, leftover.whole()))
        if is_over():
            break
    award, found, _ = max(tried, key=lambda one: _worth(one[0], one[1], one[2], cluster, options))
    if not found:
        return best if award is base else award, ()
    joined = _joined(award, found, cluster, options)
    if options.weights == "paper" and any(demand.job.id in window for demand, _ in found):
        # What a bid prints may lie below 0: with it the sum need not be the best.
        joined = replace(joined, status=SolverStatus.FEASIBLE_AT_LIMIT)
    return joined, tuple(demand for demand, _ in found)


def _winners(award: AttemptResult) -> frozenset[str]:
    table = award.answer.table
    return frozenset(table.demands[int(table.job[bid])].job.id for bid in award.answer.chosen.tolist())


def _awards(base: AttemptResult, cluster: Cluster, options: StepOptions) -> Iterable[AttemptResult]:
    """Yield the award, those that were found with less work, and first-fit's."""
    yield base
    for chosen in base.earlier:
        yield other_award(base, base.answer.table, chosen, cluster, options)
    if base.first is None:
        return
    table, chosen = base.first
    known = (base.answer.chosen, *base.earlier)
    if table is not base.answer.table or not any(np.array_equal(chosen, one) for one in known):
        yield other_award(base, table, chosen, cluster, options)


def _worth(
    award: AttemptResult, found: list[_Found], whole: float, cluster: Cluster, options: StepOptions
) -> tuple[Weight, float, float]:
    """Return what an award counts with the jobs that start beside it, what stays whole, its preference."""
    first = np.zeros(1, np.int64)
    values = [award.answer.value, *(answer_of(bid, first, cluster, options).value for _, bid in found)]
    # Sums in different orders differ in their last digits.
    return sum(worth for worth, _ in values), whole, round(sum(liked for _, liked in values), 9)


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
        """Return the jobs that start, in order; once nothing is kept for one of them, all are tried again."""
        tried: list[Demand] = []
        found: list[_Found] = []
        reserved = len(self._reserved)
        for demand in self._ordered(waiting):
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
        """Return what is wholly free of blocks, switches and their groups; 0 where that does not count."""
        if not self._keeps_whole:
            return 0.0
        columns = self._cluster.columns
        shares = self._cluster.topology.whole_shares(columns.is_empty & columns.takes_jobs)
        return round(float(shares.sum()), 9)

    def _ordered(self, waiting: Iterable[Demand]) -> Iterable[Demand]:
        placer = self._cluster.placer
        if placer is None:
            return waiting
        demands = tuple(waiting)
        return [demands[place] for place in placer.order(demands)]

    def _bid(self, demand: Demand, is_over: Callable[[], bool]) -> BidTable | None:
        """Return a bid of one job that could start beside what has started, None where it fits nowhere."""
        cluster, fit = self._cluster, self._fit
        # First-fit looks at fewer nodes: it comes first where nobody has counted yet.
        if fit.has_counted and not fit.could_hold(demand):
            return None
        alone = (replace(demand, index=0),)
        placement, table = fit.find(alone[0]), None
        if placement is not None:
            table = first_fit_bids(alone, cluster, self._made, [placement])
        if not table and cluster.placer is None and fit.could_hold(demand):
            # Bids are made on nodes that first-fit does not look at together.
            few = BidOptions(max_bids=1, max_bids_per_job=1, use_switches=self._made.use_switches)
            table = generate_bids(alone, cluster, few, is_over).table
        return table if table and FreeState(table, cluster, takes=False).fits(0) else None

    def _take(self, bid: BidTable) -> None:
        self._fit.take(bid.demands[0].job, bid.allocation(0))
        if self._cluster.guards:
            self._fit.release()
            self._cluster = replace(self._cluster, guards=self._fit.guards)
            self._reserved = {guard.job.id for guard in self._cluster.guards}


def _joined(
    base: AttemptResult, found: Sequence[_Found], cluster: Cluster, options: StepOptions
) -> AttemptResult:
    """Return an award and the jobs that start beside it as one.

    What is proved stays proved over all these bids, by weights and by preference: of the old bids no award
    has more than this one, and of the new ones none has more than all.
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
    joined = other_award(base, whole, np.flatnonzero(won), cluster, options)
    return replace(
        joined,
        status=base.status,
        proved=base.proved,
        bids=replace(
            base.bids,
            table=bids,
            first_fit=_padded(base.bids.first_fit, len(demands), value=False),
            could_bid=_padded(base.bids.could_bid, len(demands), value=True),
        ),
        bound=None if base.bound is None else base.bound + joined.answer.priority - base.answer.priority,
    )


def _padded(flags: BoolArray, count: int, *, value: bool) -> BoolArray:
    padded: BoolArray = np.concatenate([flags, np.full(count - len(flags), value)])
    return padded
