"""Why a job starts or waits: bids, prices, what each lacks, who holds that; what would start it.

The auction is run as ``aucsched schedule`` runs it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...bidgen.candidates import usable_in_any
from ...bidgen.families.registry import words_of
from ...cluster.errors import AwardError, InputError
from ...cluster.jobs import Job
from ...cluster.resources.capacity import BoolArray, Resource
from ...cluster.resources.columns import Columns
from ...cluster.resources.demand import DemandReader
from ...cluster.resources.job_reservations import capped_by
from ...cluster.resources.pools import use_of_nodes
from ...cluster.schedule import Award, BidClass, Reason, Refusal, Schedule, document_of
from ...cluster.snapshot import Snapshot
from ...cluster.tabular import Tabular, report
from ...formats.hostlist import join
from ..check import check_schedule
from ..forecast import ShadowStart, shadow_time
from ..ledger import ResidualCapacity, Short
from ..options import MODELS_BY_NAME, StepOptions
from ..queue import pending_job
from ..step import Step, take_step
from ..strategies import preferences
from .job_changes import Change, ChangeSearch, FreeRoom
from .unit_prices import Market, Quote, market_of, quote_document
from .words import dealt, request_words

EXPLANATION = "aucsched-explanation/1"
#: What nodes are to a job that would delay a reservation on them.
KEPT = "kept for jobs that --reserve protects"

#: A change that gives up a larger share of a request is not advised: 1 core for 256 is no help.
MOST_GIVEN_UP = 0.5
#: Such jobs wait whatever they ask for.
_WHATEVER = (Reason.HELD, Reason.NOT_ELIGIBLE, Reason.NOT_EXPRESSIBLE)
_CLASSES = tuple(BidClass)
#: Members of a bid that its document has as they are.
_AS_THEY_ARE = ("cores", "cores_by_node", "gres", "level", "preference", "worth", "price", "won")


@dataclass(frozen=True, slots=True, kw_only=True)
class BidLack:
    """What a bid lacks once the winners start: a resource or licence, where, and who takes it."""

    what: str
    nodes: tuple[str, ...]
    held_by: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BidView:
    """One bid of the job: its nodes, total amounts, preference, and what it lacks beside the award.

    ``level``: None in the linear topology. ``worth``, ``price``: in units of what is maximised.
    """

    bid_class: BidClass
    nodes: tuple[str, ...]
    cores: int
    cores_by_node: tuple[int, ...]
    gres: Mapping[str, int]
    level: int | None
    preference: float
    worth: float
    price: float
    won: bool
    lacks: tuple[BidLack, ...]


def job_bids(job: Job, step: Step, market: Market, room: FreeRoom, others: list[Award]) -> Iterator[BidView]:
    """Yield a job's bids beside the award, in the order they were made; IPSCHED has none."""
    table, columns = market.table, room.left.columns
    place = table.place_of(job.id)
    if place is None or not MODELS_BY_NAME[step.schedule.model].has_bids:
        return
    state, preference = (
        ResidualCapacity(table, room.left),
        preferences(table, step.cluster, market.options)[1],
    )
    award = next((one for one in step.schedule.started if one.job == job.id), None)
    won = None if award is None else {name: use.cores for name, use in award.nodes.items()}
    for bid in table.bids_of(place):
        entries = table.entries(bid)
        nodes, cores = columns.named(table.node[entries]), table.cores[entries]
        gres = {kind: int(counts[entries].sum()) for kind, counts in table.gres.items()}
        yield BidView(
            bid_class=_CLASSES[int(table.bid_class[bid])],
            nodes=nodes,
            cores=int(cores.sum()),
            cores_by_node=tuple(cores.tolist()),
            gres={kind: count for kind, count in gres.items() if count},
            level=None if step.cluster.topology.is_linear else int(table.level[bid]),
            preference=float(preference[bid]),
            worth=float(market.worth[bid]),
            price=float(market.cost[bid]),
            won=won == dict(zip(nodes, cores.tolist(), strict=True)),
            lacks=tuple(_lacks(state.short(bid), room, others)),
        )


def _lacks(lacking: Iterator[Short], room: FreeRoom, others: list[Award]) -> Iterator[BidLack]:
    """Yield what each family's cells lack once the other jobs of the award have started."""
    columns, delayed = room.left.columns, dict[str, list[Short]]()
    for short in lacking:
        if short.claim.guard is not None:
            delayed.setdefault(short.claim.guard.job.id, []).append(short)
            continue
        names = () if short.claim.by_bid else columns.named(short.cells)
        holders = tuple(one.job for one in others if any(name in one.nodes for name in names))
        if not names:
            holders = _of_pool(short.claim.resource, room, others)
        yield BidLack(what=words_of(short.claim), nodes=names, held_by=holders)
    for job, found in delayed.items():
        nodes = [one.claim.guard.nodes[one.cells] for one in found if one.claim.guard is not None]
        names = columns.named(np.unique(np.concatenate(nodes)))
        yield BidLack(what=words_of(found[0].claim), nodes=names, held_by=(job,))


def _of_pool(resource: Resource, room: FreeRoom, others: list[Award]) -> tuple[str, ...]:
    """Return the jobs that start and take of what stands on no node."""
    pools, jobs = room.left.columns.pools, {job.id: job for job in room.snapshot.jobs}
    winners = tuple(
        one.job
        for one in others
        if resource in dict(pools.asked(jobs[one.job], use_of_nodes(one.nodes.values())))
    )
    return (*pools.running(resource), *winners)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """Nodes alike in what they are to the job, and the jobs or the reservation that hold them."""

    what: str
    nodes: tuple[str, ...]
    held_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Explanation(Tabular):
    """Why one job of a snapshot's queue starts or waits.

    Attributes:
        place: in the queue, 1 for the highest priority; of ``queued`` jobs.
        award, refusal: exactly one is None.
        bids: in the order they were made; empty for a job without any, and always under IPSCHED.
        quote: what the job pays at the market's prices, or its best bid's cost; None without a bid.
        award_worth, bound: what the award is worth, and what the prices prove that none can exceed;
            None where no job takes part. Of a schedule made before under a balance only the sum of
            priorities is known, and no bound on it.
        changes: of its request that would start it with the award, the smallest first; None for one
            that starts, is held, or that no award could express.
        reserved: when and where ``--reserve`` keeps nodes for the job.
        groups: the nodes, grouped by why the job can or cannot use them; empty for one that starts.
        alone: when it could start at the latest if nothing else started before it.
        after_award: the same after the jobs that start now, each for its time limit.
        now: the snapshot's time.
        never: why it could not even start on the empty cluster; empty: it could, or that is not known.

    Examples:
        >>> import aucsched
        >>> job = aucsched.Job(id="7", priority=5, request=aucsched.Request(cores=6))
        >>> snapshot = aucsched.Snapshot(nodes=[aucsched.Node(name="n", cores=4)], jobs=[job])
        >>> found = aucsched.explain(snapshot, "7")
        >>> found.changes[0].words
        ('4 cores instead of 6',)
    """

    job: Job
    model: str
    place: int
    queued: int
    award: Award | None
    refusal: Refusal | None
    bids: tuple[BidView, ...]
    quote: Quote | None
    award_worth: float | None
    bound: float | None
    changes: tuple[Change, ...] | None
    reserved: ShadowStart | None
    groups: tuple[NodeGroup, ...]
    alone: ShadowStart | None
    after_award: ShadowStart | None
    now: float | None
    never: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation file's content (``aucsched-explanation/1``)."""
        award, refusal = self.award, self.refusal
        return {
            "format": EXPLANATION,
            "model": self.model,
            "job": self.job.id,
            "priority": float(self.job.priority),
            "place": self.place,
            "queued": self.queued,
            "asked": request_words(self.job),
            "starts": None if award is None else {"nodes": join(award.nodes), "bid": document_of(award.bid)},
            "waits": None if refusal is None else {"reason": refusal.reason.value, "detail": refusal.detail},
            "latest_start": {"alone": _when(self.alone), "after_award": _when(self.after_award)},
            "reserved": _when(self.reserved),
            "expected_start_time": self.job.expected_start_time,
            "award": {"worth": self.award_worth, "bound": self.bound},
            "price": None if self.quote is None else quote_document(self.quote),
            "changes": None
            if self.changes is None
            else [
                {
                    "instead": list(change.words),
                    "given_up": round(change.given_up, 6),
                    "asks": request_words(change.job),
                    "nodes": join(change.nodes),
                    "count": len(change.nodes),
                }
                for change in self.changes
            ],
            "bids": [_bid_document(bid) for bid in self.bids],
            "nodes": [
                {
                    "what": group.what,
                    "count": len(group.nodes),
                    "nodes": join(group.nodes),
                    "held_by": list(group.held_by),
                }
                for group in self.groups
            ],
        }

    @property
    def columns(self) -> dict[str, list[Any]]:
        """A row for each of the job's bids, in the order they were made."""
        return {
            "class": [bid.bid_class.value for bid in self.bids],
            "nodes": [",".join(bid.nodes) for bid in self.bids],
            "cores": [bid.cores for bid in self.bids],
            "cores_by_node": [dealt(bid.cores_by_node) for bid in self.bids],
            "level": [bid.level for bid in self.bids],
            "preference": [bid.preference for bid in self.bids],
            "worth": [bid.worth for bid in self.bids],
            "price": [bid.price for bid in self.bids],
            "won": [bid.won for bid in self.bids],
            "lacks": ["; ".join(lack.what for lack in bid.lacks) for bid in self.bids],
        }

    def title(self) -> str:
        """Return what becomes of the job in one line."""
        if self.refusal is None:
            return f"job {self.job.id} starts"
        return f"job {self.job.id} waits: {self.refusal.reason.value}, {self.refusal.detail}"

    def __str__(self) -> str:
        text: str = report("explanation_text").facts_text(self)
        return text


def explain(
    snapshot: Snapshot, job_id: str, options: StepOptions, made: Schedule | None = None
) -> Explanation:
    """Run the auction and explain what became of one job.

    Args:
        snapshot: the cluster and its queue.
        job_id: of a pending job; of an array its first task that waits.
        options: of the auction.
        made: a schedule of the snapshot that was made before: its award is explained; bids and
            prices are those of the auction as it is run now.

    Raises:
        InputError: no pending job has that id, or ``made`` is of another snapshot or model.
    """
    job = pending_job(snapshot, job_id)
    job_id = job.id
    if made is not None:
        _check_made(made, snapshot, options.model)
    step = take_step(snapshot, options).with_bids()
    step = step if made is None else replace(step, schedule=made)
    schedule, jobs = step.schedule, step.queue.jobs
    award = next((one for one in schedule.started if one.job == job_id), None)
    refusal = next((one for one in schedule.pending if one.job == job_id), None)
    others = [one for one in schedule.started if one.job != job_id]
    market = market_of(step, options)
    room = FreeRoom(step.state, others, step.cluster.guards)
    takes_part = refusal is None or refusal.reason not in _WHATEVER
    worth = None if market is None else market.award
    return Explanation(
        job=job,
        model=options.model,
        place=next(place for place, one in enumerate(jobs, 1) if one.id == job_id),
        queued=len(jobs),
        award=award,
        refusal=refusal,
        bids=() if market is None else tuple(job_bids(job, step, market, room, others)),
        quote=_quote(step.state.reader, job, award, market) if takes_part else None,
        award_worth=worth if made is None else float(made.objective.priority),
        bound=None if market is None or (made and options.balance) else market.prices.bound,
        changes=None if award or not takes_part else ChangeSearch(room, job, MOST_GIVEN_UP).found(),
        reserved=_reserved(job, step),
        groups=() if award else tuple(_groups(job, step, room, others)),
        alone=shadow_time(step.state, job),
        after_award=shadow_time(step.state, job, others),
        now=snapshot.time,
    )


def _check_made(made: Schedule, snapshot: Snapshot, model: str) -> None:
    """Refuse an award of another snapshot or model; its classes, levels, objective stand as given.

    Raises:
        InputError: it is one.
    """
    try:
        check_schedule(snapshot, made)
    except (AwardError, KeyError) as error:
        raise InputError(f"the award is not for this snapshot: {error}") from error
    if made.model != model:
        raise InputError(f"the award is of model {made.model!r}, this is {model}", path="model")


def _quote(reader: DemandReader, job: Job, award: Award | None, market: Market | None) -> Quote | None:
    if market is None:
        return None
    if award is not None and job.id in market.prices_paid:
        return market.paid(job, award)
    demand = reader.demand(job)
    if demand is None:
        return None
    return market.quote(demand) or market.quote_alone(demand)


def _reserved(job: Job, step: Step) -> ShadowStart | None:
    """Return the job's own reservation."""
    for guard in step.cluster.guards:
        if guard.job.id == job.id:
            nodes = step.cluster.columns.named(guard.nodes)
            return ShadowStart(time=guard.time, nodes=nodes, at_once=guard.is_now)
    return None


def _groups(job: Job, step: Step, room: FreeRoom, others: list[Award]) -> Iterator[NodeGroup]:
    """Sort the nodes by what they are to the job: free for it, taken, held, reserved, closed."""
    columns, left = step.cluster.columns, room.left
    reader, snapshot = step.state.reader, step.state.snapshot
    demand, open_to_all = reader.demand(job), reader.at(columns, None, honour_reservations=False).demand(job)
    if demand is None or open_to_all is None:
        return
    eligible, unreserved = demand.eligible, open_to_all.eligible
    before = usable_in_any(demand, columns.free, columns)
    after = usable_in_any(demand, left.columns.free, columns)
    kept = after & ~usable_in_any(demand, capped_by(left.guards, left.columns.free, job), columns)
    yield from _named("free for it", after & ~kept, columns)
    blocked = tuple(guard.job.id for guard in left.guards if guard.outlasts(job) and kept[guard.nodes].any())
    yield from _named(KEPT, kept, columns, blocked)
    taken = set(columns.named(np.flatnonzero(before & ~after)))
    holders = tuple(one.job for one in others if taken & one.nodes.keys())
    yield from _named("taken by jobs that start now", before & ~after, columns, holders)
    held = eligible & ~before
    yield from _named("too little is free", held, columns, _running_on(held, snapshot, columns))
    for entry in snapshot.reservations:
        mask = unreserved & ~eligible & np.isin(columns.names, entry.nodes)
        yield from _named("reserved", mask, columns, (entry.name,))
    states = np.array([node.state.value for node in snapshot.nodes])
    # Of nodes that take no jobs, by state: full ones with the jobs that run on them.
    for name in dict.fromkeys(states[~columns.takes_jobs].tolist()):
        mask = states == name
        yield from _named(str(name), mask, columns, _running_on(mask, snapshot, columns))
    others_nodes = columns.takes_jobs & ~unreserved
    yield from _named("not of its partition or features, or excluded", others_nodes, columns)


def _running_on(mask: BoolArray, snapshot: Snapshot, columns: Columns) -> tuple[str, ...]:
    """Return the jobs that run on some nodes, those on most of them first."""
    names = set(columns.named(np.flatnonzero(mask)))
    shared = {job.id: len(names & job.nodes.keys()) for job in snapshot.running}
    return tuple(sorted(filter(shared.get, shared), key=lambda job: -shared[job]))


def _named(
    what: str, mask: BoolArray, columns: Columns, held_by: tuple[str, ...] = ()
) -> Iterator[NodeGroup]:
    if mask.any():
        yield NodeGroup(what=what, nodes=columns.named(np.flatnonzero(mask)), held_by=held_by)


def _when(start: ShadowStart | None) -> dict[str, Any] | None:
    if start is None:
        return None
    return {"time": start.time, "at_once": start.at_once, "nodes": join(start.nodes)}


def _bid_document(bid: BidView) -> dict[str, Any]:
    return {
        "class": bid.bid_class.value,
        "nodes": join(bid.nodes),
        "count": len(bid.nodes),
        **{name: document_of(getattr(bid, name)) for name in _AS_THEY_ARE},
        "lacks": [
            {"what": lack.what, "nodes": join(lack.nodes), "held_by": list(lack.held_by)}
            for lack in bid.lacks
        ],
    }
