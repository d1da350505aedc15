"""Evolving jobs on the general loop of events: they arrive, start, ask, grow and end."""

import time
from bisect import insort
from collections.abc import Callable
from dataclasses import replace
from math import inf

from ...cluster.errors import AwardError
from ...cluster.limits import Owned
from ...negotiation.evolving.iteration import (
    CountGrant,
    CountJob,
    CountRequest,
    CountRunning,
    Held,
    RequestOutcome,
)
from ..events import Event, EventKind, EventQueue, run_events, turn_after, turn_at
from ..workloads.evolving import EvolvingJob, EvolvingWorkload, dynamic_esp, quadflow
from .evolving_options import EvolvingOptions
from .evolving_report import EvolvingRun, Playing
from .providers import Iteration, Merged, NodeCores, Preallocated, ProviderView, RequestAuction, Reserved

#: Workloads by name, of a seed.
WORKLOADS: dict[str, Callable[[int], EvolvingWorkload]] = {"dynamic-esp": dynamic_esp, "quadflow": quadflow}
#: Who serves requests, by name.
PROVIDERS: dict[str, type[Iteration]] = {
    "iteration": Iteration,
    "auction": RequestAuction,
    "partition": Reserved,
    "preallocation": Preallocated,
    "merge": Merged,
}


def simulate_evolving(workload: EvolvingWorkload, options: EvolvingOptions, *, seed: int = 0) -> EvolvingRun:
    """Play a workload to its end; ``seed`` is what it was drawn by.

    Raises:
        AwardError: a core would be held twice, or a job is lost.
        OptionError: the options do not fit the machine.
    """
    run, began = EvolvingRun(workload=workload, options=options, seed=seed), time.perf_counter()
    _System(run).play()
    run.seconds = time.perf_counter() - began
    return run


class _System:
    """The machine, and who serves on it.

    Raises:
        OptionError: the options do not fit the machine.
    """

    def __init__(self, run: EvolvingRun) -> None:
        workload, options = run.workload, run.options
        self._run, self._jobs, self._options = run, workload.jobs, options
        self._provider, self._events = PROVIDERS[options.serve_by](workload, options), EventQueue()
        self._overhead_s = float(options.job_overhead_s)
        #: Types of jobs that may be stopped for a request, and of those that may shrink for one.
        self._preemptible = (options.preemptible or "").split(",")
        self._shrinkable = (options.shrinkable or "").split(",")
        self._number = {job.id: number for number, job in enumerate(workload.jobs)}
        self._cores = NodeCores(workload.nodes, workload.cores_per_node)
        # Waiting jobs with what orders them: those that drain first, then by time.
        self._waiting: list[tuple[bool, int, CountJob]] = []
        self._running: dict[str, Playing] = {}
        self._places: dict[str, int] = {}
        self._asking: list[CountRequest] = []
        # Requests that wait as jobs, by the job's name.
        self._parents: dict[str, str] = {}
        self._is_pass = False

    # Events.

    def play(self) -> None:
        """Let every job arrive, and go on until nothing happens any more.

        Raises:
            AwardError: a core would be held twice, or a job is lost.
        """
        for number, job in enumerate(self._jobs):
            self._events.push(job.arrival_s, EventKind.ARRIVAL, number)
        run_events(self._events, self._handle, self._schedule)
        if self._running or self._waiting or len(self._run.played) != len(self._jobs):
            raise AwardError(f"jobs are lost: {', '.join(one[2].id for one in self._waiting[:5])}")

    def _handle(self, event: Event) -> None:
        """Take note of one event."""
        match event.kind:
            case EventKind.END:
                self._end(self._jobs[event.job].id, event.time)
            case EventKind.REQUEST:
                self._ask(self._jobs[event.job].id, event)
            case EventKind.ARRIVAL:
                self._arrive(self._jobs[event.job])
            case EventKind.PASS:
                self._is_pass = True

    def _arrive(self, job: EvolvingJob) -> None:
        self._enqueue(
            CountJob(
                id=job.id,
                cores=self._provider.cores_of(job),
                walltime_s=job.static_s + self._overhead_s,
                owner=Owned(user=job.user),
                drains=job.drains,
            )
        )

    def _enqueue(self, asked: CountJob) -> None:
        """Let a job wait: in order of arrival, also where it comes back."""
        place = self._places.setdefault(asked.id, len(self._places))
        insort(self._waiting, (not asked.drains, place, asked), key=lambda one: one[:2])

    def _end(self, name: str, now: float) -> None:
        played = self._running.pop(name)
        self._account(played, now)
        self._cores.give(played.held)
        self._waiting = [one for one in self._waiting if self._parents.get(one[2].id) != name]
        self._asking = [request for request in self._asking if request.job != name]

    def _ask(self, name: str, event: Event) -> None:
        played, now = self._running.get(name), event.time
        if played is None:
            return
        played.events.remove(event.sequence)
        if played.grown_s is not None:
            return
        played.asked += 1
        self._run.requests += 1
        if self._options.requests == "refuse":
            return
        owner, cores = Owned(user=played.job.user), played.job.more_cores
        if not self._provider.queues_requests:
            self._asking = [one for one in self._asking if one.job != name]
            self._asking.append(CountRequest(job=name, cores=cores, owner=owner))
        elif name not in self._parents.values():
            merged = CountJob(
                id=f"{name}+{cores}", cores=cores, walltime_s=played.walltime_end_s - now, owner=owner
            )
            self._parents[merged.id] = name
            self._enqueue(merged)

    # Passes.

    def _schedule(self, now: float) -> None:
        """Serve and start, or only serve between two polls."""
        interval = self._options.interval_s
        starts = interval is None or self._is_pass
        has_changed = (starts or bool(self._asking)) and self._pass(now, starts=starts)
        since = now
        if self._is_pass and not has_changed:
            # Until the next event a turn changes nothing, but where accounts of delays begin anew.
            since = max(now, self._provider.accounts_end_s) if self._asking else inf
        self._is_pass = False
        if interval is not None and self._waiting and since < inf:
            time = max(turn_at(since, interval), turn_after(now, interval) if starts else now)
            # Passes at one time are one.
            self._events.push(time, EventKind.PASS, -1)

    def _pass(self, now: float, *, starts: bool) -> bool:
        """Ask the provider and do what it says; return whether that is anything."""
        self._run.passes += 1
        # Requests that wait as jobs ask for what is left of their parents' walltime.
        for place, (order, number, job) in enumerate(self._waiting):
            if (parent := self._parents.get(job.id)) is not None:
                left = max(self._running[parent].walltime_end_s - now, 1.0)
                self._waiting[place] = (order, number, replace(job, walltime_s=left))
        view = ProviderView(
            now_s=now,
            queue=[one[2] for one in self._waiting],
            running=[self._seen(played) for played in self._running.values()],
            requests=tuple(self._asking),
            free=tuple(self._cores.free),
            held={name: played.held for name, played in self._running.items()},
            static={name: played.static_cores for name, played in self._running.items()},
        )
        grants, started = self._provider.step(view, starts=starts)
        granted = {one.request.job for one in grants}
        self._asking = [one for one in self._asking if one.job not in granted and self._stands(one, now)]
        for one in grants:
            self._grow(one, now)
        for starting, held in started:
            self._begin(starting, held, now)
        return bool(grants or started)

    def _stands(self, request: CountRequest, now: float) -> bool:
        """Return whether a request that was not granted is asked again in the next pass."""
        played, kept = self._running[request.job], self._options.keep_requests
        keeps = self._provider.keeps_requests if kept is None else kept
        return keeps and now < played.start_s + played.job.asks_s[-1]

    def _seen(self, played: Playing) -> CountRunning:
        return CountRunning(
            id=played.job.id,
            cores=played.cores,
            end_s=played.walltime_end_s,
            owner=Owned(user=played.job.user),
            rank=self._places[played.job.id],
            preemptible=played.job.kind in self._preemptible,
            least=-(-played.static_cores // 2) if played.job.kind in self._shrinkable else None,
        )

    def _begin(self, job: CountJob, held: Held | None, now: float) -> None:
        self._waiting = [one for one in self._waiting if one[2].id != job.id]
        parent = self._parents.pop(job.id, None)
        if parent is not None:
            request = CountRequest(job=parent, cores=job.cores, owner=job.owner)
            self._grow(RequestOutcome(request=request, grant=CountGrant(held=held)), now)
            return
        if job.id in self._run.played:
            raise AwardError(f"job {job.id} starts twice, again at {now:g}")
        number = self._number[job.id]
        evolving, overhead = self._jobs[number], self._overhead_s
        held = self._cores.take(job.cores, held=held)
        end = now + evolving.static_s + overhead
        played = Playing(
            job=evolving,
            start_s=now,
            end_s=end,
            walltime_end_s=end,
            held=held,
            static_cores=job.cores,
            since_s=now,
        )
        played.events = [self._events.push(end, EventKind.END, number)]
        played.events += [
            self._events.push(now + seconds, EventKind.REQUEST, number) for seconds in evolving.asks_s
        ]
        self._running[job.id] = self._run.played[job.id] = played

    def _grow(self, granted: RequestOutcome[CountRequest, CountGrant], now: float) -> None:
        """Take from others what a job is given, and let it end as early as its cores make it."""
        request, grant = granted.request, granted.grant or CountGrant()
        for other in grant.preempted:
            self._preempt(other, now)
        for other, cores in grant.shrunk:
            self._shrink(other, cores, now)
        name, played = request.job, self._running[request.job]
        if played.grown_s is not None:
            raise AwardError(f"job {name} grows twice, again at {now:g}")
        held = self._cores.take(request.cores, near=played.held, held=grant.held)
        self._account(played, now)
        played.grown_s = now
        for node, count in held.items():
            played.held[node] = played.held.get(node, 0) + count
        if played.is_shrunk:
            # The table is of its cores at the start; what is left of it takes longer now.
            left = max(0.0, played.end_s - self._overhead_s - now)
            end = now + left * played.job.rest + self._overhead_s
        else:
            run = played.job.run_s(now - played.start_s, by_table=self._options.det == "table")
            end = played.start_s + run + self._overhead_s
        self._ends_at(played, min(played.end_s, end))
        self._run.grants.append((now, granted))

    def _account(self, played: Playing, now: float) -> None:
        played.core_s += (now - played.since_s) * played.cores
        played.since_s = now

    def _ends_at(self, played: Playing, end_s: float) -> None:
        played.end_s = end_s
        self._events.cancel(played.events[0])
        played.events[0] = self._events.push(end_s, EventKind.END, self._number[played.job.id])

    def _preempt(self, name: str, now: float) -> None:
        """Stop a job: it waits again, where it stood, and what it did is lost."""
        played = self._running[name]
        for sequence in played.events:
            self._events.cancel(sequence)
        self._end(name, now)
        del self._run.played[name]
        self._run.preemptions += 1
        self._run.lost_core_s += played.core_s
        self._arrive(played.job)

    def _shrink(self, name: str, cores: int, now: float) -> None:
        """Take cores from a malleable job's last nodes; the rest of it takes longer, linearly."""
        played = self._running[name]
        self._account(played, now)
        before = played.cores
        given: Held = {}
        for node in sorted(played.held, reverse=True):
            given[node] = min(cores - sum(given.values()), played.held[node])
        self._cores.give(given)
        played.held = {
            node: count - given[node] for node, count in played.held.items() if count > given[node]
        }
        slower = before / played.cores
        played.walltime_end_s = now + (played.walltime_end_s - now) * slower
        self._ends_at(played, now + (played.end_s - now) * slower)
        played.is_shrunk = True
        self._run.shrinks += 1
