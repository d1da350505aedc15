"""Why a job did not start."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import islice

import numpy as np

from ..bidgen.candidates import GuardedViews, usable_in_any
from ..bidgen.families.registry import words_of
from ..bidgen.first_fit import Cluster, FirstFitPlacer
from ..bidgen.generate import BidOptions, generate_bids, place_alone
from ..cluster.resources.allocation import StartingJob
from ..cluster.resources.capacity import Capacity, IntArray, Resource, sums_before
from ..cluster.resources.columns import Columns
from ..cluster.resources.demand import Demand
from ..cluster.resources.job_reservations import Guard
from ..cluster.resources.pools import Pools, Shortage, Use, fewest
from ..cluster.schedule import Reason, Refusal
from ..cluster.text import LISTED, listed, plural, utc
from ..formats.hostlist import fold
from .impossible import ImpossibleRequests, of_nodes, short_of_units
from .ledger import ResidualCapacity, Short, what_is_left
from .queue import Queue
from .state import SnapshotState
from .step_pass import StepPass


def refusals(
    state: SnapshotState, queue: Queue, decision: StepPass, is_over: Callable[[], bool]
) -> Iterator[Refusal]:
    """Yield every job that does not start, in queue order, with the reason.

    Once ``is_over`` says that the step's time is up, only first-fit looks for a job's nodesets.
    """
    winners = {start.demand.job.id: start for start in decision.starts}
    size = len(decision.window) if decision.best is None else decision.best.size
    explainer = _Explainer(state, decision, winners, is_over)
    found = dict(queue.refused)
    for promise in decision.waiting.promised:
        explainer.take_ahead(promise.demand.job.id)
    for place, demand in enumerate(decision.window):
        if demand.job.id in winners:
            explainer.take_ahead(demand.job.id)
            continue
        if place >= size:
            reason, detail = Reason.WINDOW, f"the time limit halved the window to {plural(size, 'job')}"
        else:
            reason, detail = explainer.why(demand)
        found[demand.job.id] = Refusal(job=demand.job.id, reason=reason, detail=detail)
    window = {demand.job.id for demand in decision.window} | winners.keys()
    for demand in queue.waiting if len(window) < len(queue.waiting) else ():
        job = demand.job.id
        if job not in window and not (decision.discarded and job in found):
            reason, detail = explainer.behind(demand, queue.refused.get(job))
            found[job] = Refusal(job=job, reason=reason, detail=detail)
    yield from (found[job.id] for job in queue.jobs if job.id in found and job.id not in winners)


class _Explainer:
    """Finds what keeps a losing job from starting."""

    def __init__(
        self,
        state: SnapshotState,
        decision: StepPass,
        winners: Mapping[str, StartingJob],
        is_over: Callable[[], bool],
    ) -> None:
        self._is_over, self._late, self._winners = is_over, False, winners
        #: Winners behind the job that is asked about; what those ahead leave, the last for it.
        self._behind, self._ahead = dict(winners), [decision.cluster]
        self._seen = state
        self.impossible = ImpossibleRequests(state)
        self._decision = decision
        self._not_asked = decision.left_out
        self._cluster = decision.cluster
        unlimited = replace(decision.cluster.columns, pools=Pools())
        self._unlimited = state.reader.at(unlimited, state.snapshot.time)
        self._known: dict[object, tuple[Reason, str]] = {}
        self._views: dict[int, GuardedViews] = {}
        self._reserved = {guard.job.id for guard in decision.cluster.guards}
        best = decision.best
        self._left = decision.cluster
        if best is None:
            return
        self._best = best
        self._table, self._chosen = best.answer.table, best.answer.chosen
        self._left = what_is_left(self._table, self._chosen, decision.cluster)
        self._ahead = [
            replace(self._left, columns=replace(self._left.columns, pools=self._cluster.columns.pools))
        ]
        self._place = {demand.job.id: demand.index for demand in self._table.demands}
        self._state = ResidualCapacity(self._table, decision.cluster)
        for bid in self._chosen.tolist():
            self._state.take(bid)

    @cached_property
    def _holders(self) -> dict[tuple[Resource, int], list[str]]:
        """The winners that hold some of a resource's cell, in order."""
        found: dict[tuple[Resource, int], list[str]] = {}
        for bid in self._chosen.tolist():
            job = self._table.demand_of(bid).job.id
            for claim, cells in self._state.cells(bid):
                for cell in cells.tolist() if claim.guard is None else ():
                    found.setdefault((claim.resource, cell), []).append(job)
        return found

    def why(self, demand: Demand) -> tuple[Reason, str]:
        """Return the reason and the particulars for one job of the window."""
        if demand.job.id in self._not_asked:
            return self._left_out(demand)
        if demand.job.id in self._decision.passed:
            # Plain backfilling passes it over, though it could have started alone.
            key = ("passed", demand.kind, demand.job.user, len(self._ahead), demand.job.id in self._reserved)
            return self._once(key, self._why_passed, demand)
        place = -1 if self._decision.best is None else self._place.get(demand.job.id, -1)
        if place >= 0 and (bids := self._table.bids_of(place)):
            return self._outbid(bids, self._state)
        if self._is_late():
            late = Refusal(job=demand.job.id, reason=Reason.WINDOW, detail="it did not win")
            return self.behind(demand, late)
        return self._why_none(demand) if place < 0 else self._without_bids(demand, place)

    def _is_late(self) -> bool:
        """Return whether there is no more time, of which no clock is asked again."""
        self._late = self._late or self._is_over()
        return self._late

    def behind(self, demand: Demand, refused: Refusal | None) -> tuple[Reason, str]:
        """Return the same for one behind the window; ``refused``: None if it was passed over."""
        why = "" if refused is None else refused.detail
        is_late = refused is not None and self._is_late()
        known = self._seen.reader.impossible
        if impossible := known.get(demand.form, "") if is_late else self.impossible.why(demand):
            return Reason.INELIGIBLE, impossible
        if not self._seen.columns.pools.hold(demand.job):
            key = ("lacks", demand.kind, demand.job.user)
            return self._once(key, lambda one: self._no_fit(one, self._seen.columns), demand)
        if is_late:
            late = "no time was left to look whether it fits beside the award"
            return Reason.WINDOW, f"{why}, and {late}"
        if self._decision.completed:
            why += f", and it does not fit on what the award leaves free: {self.why_not_on_rest(demand)[1]}"
        return Reason.WINDOW, why

    def _why_passed(self, demand: Demand) -> tuple[Reason, str]:
        reason, why = self._why_not_beside(demand, self._ahead[-1])
        if reason is not Reason.NO_FIT:
            return reason, why
        # Counts said that it could start: whether it fits alone is for a placement to say.
        if not self._can_bid(demand, self._cluster.columns):
            return self._without_bid(demand)
        return Reason.OUTBID, f"jobs ahead of it start first, as in backfilling: {why}"

    def take_ahead(self, job: str) -> None:
        """Let jobs asked about from now on lack what a winner takes of licences and limits."""
        start, columns = self._behind.pop(job, None), self._ahead[-1].columns
        if start is not None and not columns.pools.are_empty:
            pools = columns.pools.copy()
            pools.take(start.demand.job, start.allocation.held)
            self._ahead.append(replace(self._left, columns=replace(columns, pools=pools)))

    def why_not_on_rest(self, demand: Demand) -> tuple[Reason, str]:
        """Return why a job cannot start on what the award leaves: the same for all of a kind."""
        key = ("beside", demand.kind, demand.job.user, demand.job.id in self._reserved)
        return self._once(key, lambda one: self._why_not_beside(one, self._left), demand)

    def _once(
        self, key: object, why: Callable[[Demand], tuple[Reason, str]], demand: Demand
    ) -> tuple[Reason, str]:
        if key not in self._known:
            self._known[key] = why(demand)
        return self._known[key]

    def _why_not_beside(self, demand: Demand, left: Cluster) -> tuple[Reason, str]:
        lack = next(left.columns.pools.lacks(demand.job), None)
        if lack is None and self._can_bid(demand, left.columns):
            if self._cluster.placer is not None:
                return Reason.SHARE, "the balanced mix has no share for jobs outside the window"
            guards = [guard for guard in left.guards if guard.outlasts(demand.job)]
            if guards:
                return self._would_delay(guards[0])
            left = self._left  # only jobs behind it took what it lacks
        return self._no_fit(demand, left.columns)

    def _without_bids(self, demand: Demand, place: int) -> tuple[Reason, str]:
        columns, could_bid = self._cluster.columns, self._best.bids.could_bid[place]
        if self._cluster.placer is not None or not could_bid:
            # In a balanced mix it may have no bid, or bid in part: the same for all of a kind.
            limits = tuple(guard.limits(demand.job) for guard in self._cluster.guards)
            key = ("first bid", demand.kind, demand.job.user, limits)
            return self._once(key, self._why_no_first_bid, demand)
        if self._lack(demand, columns) is not None:
            return self._why_none(demand)
        lack = self._lack_placed(demand, columns)
        if lack:
            return columns.pools.reason(lack.resource), columns.pools.words(lack)
        return Reason.BID_CAP, "the bids of jobs with higher priority reach the cap max_bids"

    def _why_no_first_bid(self, demand: Demand) -> tuple[Reason, str]:
        cluster, few = self._cluster, BidOptions(max_bids=LISTED, max_bids_per_job=LISTED)
        if cluster.placer is None and not self._can_bid(demand, cluster.columns):
            return self._why_none(demand)
        table = generate_bids((replace(demand, index=0),), replace(cluster, placer=None), few).table
        state = ResidualCapacity(table, replace(cluster, columns=self._left.columns))
        if not len(table):
            return self._why_none(demand)
        if cluster.placer is not None and any(map(state.fits, range(len(table)))):
            return Reason.NO_FIT, "too few nodes have enough free for an equal part of it each"
        return self._outbid(range(len(table)), state)

    def _left_out(self, demand: Demand) -> tuple[Reason, str]:
        """Say which jobs bid in place of one that asks for the same."""
        alike = self._alike[self._decision.alike(demand)]
        why = "they ask for the same, and no more of them fit at once"
        first = listed(list(islice(alike, LISTED)), alike[demand.job.id])
        return Reason.OUTBID, f"outbid by {first}: {why}"

    @cached_property
    def _alike(self) -> dict[int, dict[str, int]]:
        """How many jobs that ask for the same are ahead of each of the window, by id."""
        found: dict[int, dict[str, int]] = {}
        for demand in self._decision.window:
            alike = found.setdefault(self._decision.alike(demand), {})
            alike[demand.job.id] = len(alike)
        return found

    def _why_none(self, demand: Demand) -> tuple[Reason, str]:
        """Return why a job has no bid: the same for all that ask for the same."""
        limits = tuple(guard.limits(demand.job) for guard in self._cluster.guards)
        return self._once((demand.kind, demand.job.user, limits), self._without_bid, demand)

    def _without_bid(self, demand: Demand) -> tuple[Reason, str]:
        guards = [guard for guard in self._cluster.guards if guard.outlasts(demand.job)]
        if guards and self._can_bid(demand, self._cluster.columns):
            alone = (guard for guard in guards if not self._can_bid(demand, self._cluster.columns, guard))
            return self._would_delay(next(alone, guards[0]))
        if self._fits_without_reservations(demand):
            return Reason.RESERVATION, "it fits only on nodes with an advance reservation"
        return self._no_fit(demand, self._cluster.columns)

    def _fits_without_reservations(self, demand: Demand) -> bool:
        if not self._seen.changes:
            return False
        again = self._seen.reader.at(self._cluster.columns, None, honour_reservations=False).demand(
            demand.job
        )
        # It was read for itself: what is counted for it is not looked up again.
        columns, topology = self._cluster.columns, self._cluster.topology
        return again is not None and place_alone(again, columns, topology, (), self._is_over) is not None

    def _can_bid(self, demand: Demand, columns: Columns, *guards: Guard) -> bool:
        """Return whether a job alone would have a bid if the given jobs keep their reservations."""
        if not guards:
            # Those that ask alike count nodes once.
            views = self._views.setdefault(id(columns), GuardedViews(columns, columns.free))
            if not views.of(demand).could_hold(demand):
                return False
        return place_alone(demand, columns, self._cluster.topology, guards, self._is_over) is not None

    def _would_delay(self, guard: Guard) -> tuple[Reason, str]:
        job, names = guard.job.id, listed(fold(self._cluster.columns.named(guard.nodes)))
        if job in self._winners:
            return Reason.OUTBID, f"outbid by {job} on {names}"
        when = utc(guard.time)
        return Reason.RESERVATION, f"it would delay job {job}, reserved to start by {when} on {names}"

    def _no_fit(self, demand: Demand, columns: Columns) -> tuple[Reason, str]:
        impossible = self.impossible.why(demand)
        if impossible:
            return Reason.INELIGIBLE, impossible
        lack = self._lack(demand, columns)
        if lack is not None:
            return columns.pools.reason(lack.resource), columns.pools.words(lack)
        eligible = columns.free.cores[demand.eligible]
        cores, count = int(eligible.sum()), int(np.count_nonzero(eligible > 0))
        if self._cluster.topology.units is not None:
            usable = np.flatnonzero(usable_in_any(demand, columns.free, columns))
            short = short_of_units(demand, self._cluster.topology, usable)
            if short:
                return Reason.NO_FIT, short
        found = "no nodeset found within the time limit" if self._is_over() else "no nodeset"
        free = f"{plural(cores, 'core', 'is')} free on {plural(count, 'node')}"
        # Limits take node counts from a request, or nodes, of which others are only in use now.
        wider = tuple(replace(one, max_nodes=len(columns.names)) for one in demand.variants)
        asked = self._unlimited.demand(demand.job) or demand
        for reason, variants in ((Reason.LIMIT, wider), (Reason.NO_FIT, asked.variants)):
            lack = self._lack_placed(replace(demand, variants=variants), columns)
            if lack and columns.pools.reason(lack.resource) is Reason.LIMIT:
                within = f"within the limit {lack.resource.name} holds {of_nodes(demand.job)}"
                return reason, f"{found} {within}; {free} it may use"
        return Reason.NO_FIT, f"{found} holds {of_nodes(demand.job)}; {free} it may use"

    def _lack(self, demand: Demand, columns: Columns) -> Shortage | None:
        """Return what a job lacks of licences, limits and shares, anywhere or on what is free."""
        pools, total = columns.pools, columns.total
        if pools.are_empty:
            return None
        able = self.impossible.able(demand)
        for mask in (able, able & usable_in_any(demand, columns.free, columns)):
            held = _least_use(demand, np.flatnonzero(mask), total)
            lack = None if held is None else next(pools.lacks(demand.job, held), None)
            # Of more than a limit allows other nodes than those that are free may take less.
            if lack and (
                mask is able or lack.asked <= pools.of(lack.resource.family).capacity(lack.resource)
            ):
                return lack
        return next(pools.lacks(demand.job), None)

    def _lack_placed(self, demand: Demand, columns: Columns) -> Shortage | None:
        """Return the same where first-fit would put it if only nodes counted."""
        if columns.pools.are_empty:
            return None
        free = replace(columns, pools=Pools())
        cluster = replace(self._cluster, columns=free, guards=(), placer=None)
        found = FirstFitPlacer(cluster).place(demand)
        return None if found is None else next(columns.pools.lacks(demand.job, found.held), None)

    def _outbid(self, bids: range, state: ResidualCapacity) -> tuple[Reason, str]:
        """Name who took, or is to get, what the least contested of a job's bids wanted."""
        if self._decision.discarded:
            return Reason.WINDOW, "the time limit came before a proof; on_timeout=discard then starts no job"
        least: tuple[list[str], list[Short]] | None = None
        found = {bid: list(state.short(bid)) for bid in bids}
        everywhere = self._lacking_everywhere(list(found.values()))
        if everywhere is not None:
            return everywhere
        for short in found.values():
            now = [one for one in short if one.claim.guard is None]
            if not now:
                guard = next((one.claim.guard for one in short if one.claim.guard is not None), None)
                if guard is not None:
                    return self._would_delay(guard)
                if not self._best.proved:
                    return Reason.OUTBID, "it would still fit; the award is not proved optimal"
                return Reason.OUTBID, "its bids have a negative value under these weights"
            holders = self._holders_of(now, None if least is None else len(least[0]))
            if holders is not None:
                least = holders, now
        jobs, short = least or ([], [])
        nodes = sorted({node for claim, cells in short if not claim.by_bid for node in cells.tolist()})
        where = f" on {listed([self._cluster.columns.names[node] for node in nodes])}" if nodes else ""
        return Reason.OUTBID, f"outbid by {listed(jobs)}{where}"

    def _holders_of(self, short: list[Short], fewer_than: int | None) -> list[str] | None:
        """Return the winners that hold what a bid lacks, in order; None if they are not fewer."""
        holders: dict[str, None] = {}
        for claim, cells in short:
            for cell in cells.tolist():
                holders.update(dict.fromkeys(self._holders.get((claim.resource, cell), ())))
                if fewer_than is not None and len(holders) >= fewer_than:
                    return None
        return list(holders)

    def _lacking_everywhere(self, found: list[list[Short]]) -> tuple[Reason, str] | None:
        """Name what has a reason of its own and is short for every bid, and who uses it up."""
        pools = self._cluster.columns.pools
        for claim, _ in found[0]:
            if not claim.by_bid or pools.reason(claim.resource) is Reason.NO_FIT:
                continue
            if all(any(one.claim is claim for one in short) for short in found):
                winners = dict.fromkeys(self._holders.get((claim.resource, 0), ()))
                users = [*(f"running {name}" for name in pools.running(claim.resource)), *winners]
                return pools.reason(claim.resource), f"{words_of(claim)} is used up by {listed(users)}"
        return None


def _least_use(demand: Demand, nodes: IntArray, total: Capacity) -> Use | None:
    """Return the least that a job could hold on some of these nodes; None: they are too few."""
    units = sums_before(np.sort(total.cores[nodes] // demand.unit)[::-1])
    count = max(demand.fewest_nodes, int(np.searchsorted(units, demand.units or 0)))
    if count > len(nodes):
        return None
    use = fewest(demand.job)
    if not demand.exclusive:
        return replace(use, nodes=count)
    least = total.at(nodes).each(lambda amounts: np.sort(amounts)[:count])
    gres = {kind: int(counts.sum()) for kind, counts in least.gres.items()}
    return Use(nodes=count, cores=max(use.cores, int(least.cores.sum())), gres=gres)
