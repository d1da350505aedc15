"""What an auction adds to keep a balanced mix: shares, kept cores, worths, order of first bids.

Jobs are distinguished by *shape*: gres and cores on a node. docs/decisions/0038 says what rows,
first bids and worths are for, and what was measured.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from ..bidgen.families.pooled import SharePool
from ..bidgen.first_fit import Placer
from ..cluster.resources.capacity import Capacity, IntArray
from ..cluster.resources.columns import Columns
from ..cluster.resources.demand import Demand
from ..cluster.resources.job_reservations import KeptCores
from ..topology.tree import Topology
from .job_classes import Ask, ClassDemand, ClassMix, JobClass, mix_of
from .state import StepState

#: Long jobs start first if waiting jobs fill the machine for under this times the longest's time.
_NEAR_END = 3
#: A job is overdue when it has waited for this many times as long as the youngest job in sight
#: would wait if all other waiting jobs ran first.
_OVERDUE = 1.06
#: Factors of a job's dominant share of the machine, for each gres on a node and each doubling of
#: its cores there: the search must not trade jobs hard to place for ones that fit anywhere.
_GRES_WORTH = 3.0
_CORES_WORTH = 1.5
#: Jobs with a shape against those that fill gaps.
_SHAPED_WORTH = 3.0
#: Gres, and doublings of cores, above these numbers on a node add no worth: some gres are counted
#: in hundreds, and the window's sum must stay exact.
_MOST_GRES, _MOST_DOUBLINGS = 8, 8
#: Worths are integers: this number is the worth of the whole machine.
_UNIT = 2**20


class BalancePolicy:
    """In what proportions a pass's jobs are to run: what it asks before and after its auctions.

    As it is jobs start by their priorities alone.

    Attributes:
        keeps_shares: jobs wait for their shares, not for resources alone. Time limits say who comes
            first; nothing is reserved for a job that would fit now; the jobs behind the window get
            their shares in the next pass, which sees them.
    """

    keeps_shares: ClassVar = False

    @property
    def placer(self) -> Placer | None:
        """What makes first bids; None: they are made by priority."""
        return None

    def on(self, columns: Columns) -> Columns:
        """Return columns that have the rows."""
        return columns

    def valued(self, demand: Demand) -> Demand:
        """Return a demand that counts what it is worth."""
        return demand

    def reservations(self, asked: int) -> int:
        """Return how many blocked jobs get a reservation where so many are asked for."""
        return asked

    def reserves_for(self, demand: Demand, asked: int) -> bool:  # noqa: ARG002 - others look
        """Return whether a blocked job may get one of them."""
        return True


#: The policy of a pass that keeps no balance.
NO_BALANCE = BalancePolicy()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Balance(BalancePolicy):
    """The additions to one pass's auction: a ``BalancePolicy``, and a ``Placer`` of its first bids.

    Attributes:
        asks: of the window's jobs, by id.
        backlog: all that waits, the window among it.
        shares: rows of the shapes; none while the machine is drained.
        kept: rows of the nodes; none where no cores have to be kept.
        is_draining: what waits would not fill the machine for its longest job's time.
        long_first: the longest jobs of a shape come first.
        overdue: ids of jobs before all others, outside all rows; reservations are for them.
        topology: of equal nodes those below the lowest switch are taken.
    """

    asks: Mapping[str, Ask]
    backlog: ClassDemand
    shares: SharePool
    kept: tuple[KeptCores, ...]
    is_draining: bool
    long_first: bool
    overdue: frozenset[str]
    topology: Topology
    keeps_shares: ClassVar = True
    _place: dict[str, int] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._place.update((job, place) for place, job in enumerate(self.asks))

    @property
    def placer(self) -> Placer:
        """First bids are made shape by shape."""
        return self

    def reservations(self, asked: int) -> int:
        """Return as many as are asked for, and one for an overdue job."""
        return max(asked, int(bool(self.overdue)))

    def reserves_for(self, demand: Demand, asked: int) -> bool:
        """Return whether a job may get one: where none are asked for overdue jobs alone."""
        return asked > 0 or demand.job.id in self.overdue

    def on(self, columns: Columns) -> Columns:
        """Return columns that have the rows."""
        return replace(columns, pools=columns.pools.beside_others(self.shares), kept=self.kept)

    def valued(self, demand: Demand) -> Demand:
        """Return a demand that counts what it is worth."""
        return replace(demand, worth=self.worth(demand.job.id))

    def worth(self, job: str) -> int:
        """Return what a window's job counts in the objective in place of its priority, above 0.

        An integer, for exact sums: dominant share in 2⁻²⁰ parts, times how hard it is to place.
        """
        ask = self.asks[job]
        # Twice as much at the window's front as at its end: a search leaves no job behind for good.
        front = 2.0 - self._place[job] / len(self.asks)
        return max(1, round(_UNIT * self.backlog.dominant_share(ask) * _multiplier(ask.shape) * front))

    def order(self, demands: Sequence[Demand]) -> list[int]:
        """Order jobs: most gres a node, then most cores; in a shape as given or longest first."""
        asks = [self.asks[demand.job.id] for demand in demands]

        def key(place: int) -> tuple[object, ...]:
            ask = asks[place]
            limit = -ask.limit_s if self.long_first else 0.0
            in_time = demands[place].job.id not in self.overdue
            if self.is_draining:
                return (in_time, limit)
            if not in_time:
                return (in_time,)
            return (
                in_time,
                ask.shape.fills_gaps,
                -ask.shape.gres_count,
                -ask.shape.cores,
                ask.shape,
                limit,
            )

        return sorted(range(len(asks)), key=key)

    def takes_first(self, demand: Demand) -> bool:
        """Return that the mix decides which nodes come first."""
        del demand
        return False

    def nodes_for(
        self, demand: Demand, nodes: IntArray, units: IntArray, free: Capacity
    ) -> Iterator[IntArray]:
        """Yield the nodes that a job's first bid is tried on, those to be taken first in front."""
        ask = self.asks[demand.job.id]
        gres = free.gres_count[nodes]
        if _is_tied(demand):
            if ask.shape.gres:
                yield nodes[gres > 0]
            yield nodes
            return
        if ask.shape.fills_gaps:
            if demand.contiguous:
                # Those with ever more gres free.
                yield from (nodes[gres <= most] for most in np.unique(gres).tolist())
            else:
                yield _for_gaps(nodes, units, gres, demand.units or 0, self.topology)
            return
        each = -(-ask.each // demand.unit)
        holds = units >= each
        if demand.contiguous:
            yield from _runs(nodes[holds], gres[holds], ask.nodes)
        else:
            spare = (gres - ask.shape.gres_count) * (int(units.max(initial=0)) + 1) + units // max(each, 1)
            order = _least_first(nodes[holds], spare[holds], ask.nodes, self.topology)
            yield np.concatenate([order, nodes[~holds]]) if self.is_draining else order
        if self.is_draining and demand.contiguous:
            yield nodes


def balances_of(
    state: StepState, window: Sequence[Demand], behind: Iterable[Demand], mix: ClassMix | None
) -> Iterator[BalancePolicy]:
    """Yield the policies of a pass that keeps a balance: the next if the last one starts no job.

    Args:
        state: the cluster.
        window: jobs in sight, highest priority first.
        behind: the jobs behind it.
        mix: what waits and what runs; None: as the queue and the state say.
    """
    mix = mix_of(state, (*window, *behind)) if mix is None else mix
    balance = balance_of(state, window, mix)
    yield balance
    if not balance.is_draining:
        # What no share holds must not keep an empty machine idle.
        yield balance_of(state, window, mix._replace(since={}), drain=True)
    # Nor what no even part of a job fits: first bids are not all places.
    yield NO_BALANCE


def balance_of(state: StepState, window: Sequence[Demand], mix: ClassMix, *, drain: bool = False) -> Balance:
    """Return what the auction of one pass needs to keep the mix balanced.

    Args:
        state: the cluster.
        window: jobs in sight, highest priority first.
        mix: what waits and what runs; jobs of which it is not known since when are never overdue.
        drain: make no rows: for an empty machine on which no job could start beside them.
    """
    backlog, held = mix.waiting, mix.held
    asks = {demand.job.id: backlog.ask(demand) for demand in window}
    longest = max((ask.limit_s for ask in asks.values()), default=0.0)
    draining = drain or backlog.span_s() < longest
    # Those that have waited for longer than the youngest would if it came last. In the order of
    # arrival none has: all that waits starts within its span, the youngest last.
    waits = {one.job.id: state.now - mix.since.get(one.job.id, state.now) for one in window}
    limit_s = _OVERDUE * (backlog.span_s() + min(waits.values(), default=0.0))
    overdue = frozenset(job for job, wait_s in waits.items() if wait_s > limit_s)
    bound = [demand for demand in window if demand.job.id not in overdue]
    has_kept = not draining and backlog.is_gres_scarce()
    return Balance(
        asks=asks,
        backlog=backlog,
        shares=SharePool() if draining else _shares(bound, asks, backlog.rooms(held, longest), held),
        kept=_kept(bound, asks, state.columns.free) if has_kept else (),
        is_draining=draining,
        long_first=draining or backlog.span_s() < _NEAR_END * longest,
        overdue=overdue,
        topology=state.topology,
    )


def _multiplier(shape: JobClass) -> float:
    if shape.fills_gaps:
        return 1.0
    doublings = min(max(shape.cores, 1).bit_length() - 1, _MOST_DOUBLINGS)
    return float(_SHAPED_WORTH * _GRES_WORTH ** min(shape.gres_count, _MOST_GRES) * _CORES_WORTH**doublings)


def _shares(
    bound: Sequence[Demand],
    asks: Mapping[str, Ask],
    rooms: Mapping[JobClass, float],
    held: Mapping[JobClass, int],
) -> SharePool:
    """Return a row for each shape in sight that cannot fill gaps.

    No share is below its shape's widest job in sight: that would wait until none of its shape runs.
    """
    widest: dict[JobClass, int] = {}
    for ask in asks.values():
        if not ask.shape.fills_gaps:
            widest[ask.shape] = max(widest.get(ask.shape, 0), ask.nodes)
    names = {shape: str(shape) for shape in widest}
    return SharePool(
        rooms={
            names[shape]: max(int(rooms.get(shape, 0.0)), nodes - held.get(shape, 0), 0)
            for shape, nodes in widest.items()
        },
        shapes={
            job: names[asks[job].shape]
            for job in (demand.job.id for demand in bound)
            if asks[job].shape in names
        },
    )


def _kept(bound: Sequence[Demand], asks: Mapping[str, Ask], free: Capacity) -> tuple[KeptCores, ...]:
    """Keep on every node with free gres the cores of the largest waiting shape with gres.

    Contiguous jobs, which would find few runs of neighbours then, leave those of the smallest.
    """
    keep = {ask.shape.cores for ask in asks.values() if ask.shape.gres}
    gaps = [demand for demand in bound if asks[demand.job.id].shape.fills_gaps]
    if not keep or not gaps:
        return ()
    is_free = free.gres_count > 0
    rows = {
        "least": (min(keep), gaps),
        "most": (max(keep), [demand for demand in gaps if not demand.contiguous]),
    }
    return tuple(
        KeptCores(
            name=name,
            jobs=frozenset(demand.job.id for demand in jobs),
            left=np.where(is_free, np.maximum(free.cores - cores, 0), free.cores),
        )
        for name, (cores, jobs) in rows.items()
        if jobs
    )


def _is_tied(demand: Demand) -> bool:
    """Return whether more than the number of nodes and cores decides: they stay as they are."""
    has_total = any(variant.gres_total for variant in demand.variants)
    is_near = demand.max_switches is not None or demand.in_units
    return has_total or demand.exclusive or is_near or len(demand.required) > 0


def _closest(first: IntArray, last: IntArray, topology: Topology) -> IntArray:
    """Order stretches of nodes, given by their ends: by lowest common switch, then shortest."""
    level = topology.level[topology.common_switch(first, last)]
    order: IntArray = np.lexsort((last - first, level))
    return order


def _least_first(nodes: IntArray, spare: IntArray, count: int, topology: Topology) -> IntArray:
    """Order nodes by what they have to spare; of those equal to the last taken, the closest."""
    order = np.argsort(spare, kind="stable")
    nodes, spare = nodes[order], spare[order]
    if not 0 < count <= len(nodes):
        return nodes
    first = int(np.searchsorted(spare, spare[count - 1], side="left"))
    last = int(np.searchsorted(spare, spare[count - 1], side="right"))
    equal, need = nodes[first:last], count - first
    at = int(_closest(equal[: len(equal) - need + 1], equal[need - 1 :], topology)[0])
    taken = np.roll(equal, -at)
    return np.concatenate([nodes[:first], taken, nodes[last:]])


def _runs(nodes: IntArray, gres: IntArray, count: int) -> Iterator[IntArray]:
    """Yield ``count`` neighbours: the shortest run's first among nodes with fewest gres free."""
    for most in np.unique(gres).tolist():
        among = nodes[gres <= most]
        runs = np.split(among, np.flatnonzero(np.diff(among) != 1) + 1)
        long = [run for run in runs if len(run) >= count]
        if long:
            yield min(long, key=len)[:count]
            return


def _for_gaps(nodes: IntArray, units: IntArray, gres: IntArray, wanted: int, topology: Topology) -> IntArray:
    """Order nodes for a job that fills gaps: the narrowest stretch with the fewest gres free."""
    for most in range(int(gres.max(initial=0)) + 1):
        among = np.flatnonzero((gres <= most) & (units > 0))
        sums = np.concatenate([[0], np.cumsum(units[among])])
        if sums[-1] < wanted:
            continue
        ends = np.searchsorted(sums, sums[:-1] + wanted)
        starts = np.flatnonzero(ends < len(sums))
        ends = ends[starts]
        fewest = np.flatnonzero(ends - starts == (ends - starts).min())
        first, last = nodes[among[starts[fewest]]], nodes[among[ends[fewest] - 1]]
        best = int(fewest[_closest(first, last, topology)[0]])
        stretch = among[starts[best] : ends[best]]
        others = np.setdiff1d(among, stretch)
        ordered: IntArray = nodes[np.concatenate([stretch, others])]
        return ordered
    return nodes
