"""The node-level simulation: a workload's jobs come, a policy starts them, each start is checked.

The loop is that of events.py. A policy is called after the events of each time stamp, or, as
Slurm's plugins are, at multiples of an interval when something has changed. No clock is read: the
same workload, policy and options give the same run.

Nodes may fail: the jobs on one that goes down are stopped, and wait again with the priority and the
submission they had, or are lost. What they ran for is lost in both cases.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from math import inf
from typing import NamedTuple

from ...auction.check import AwardChecker
from ...cluster.errors import AwardError
from ...cluster.resources.allocation import Allocation, StartingJob, resources_of
from ...cluster.resources.demand import Demand
from ...cluster.workload import ArrivingJob, ClusterWorkload
from ..events import Event, EventKind, EventQueue, run_events, turn_after, turn_at
from ..stepping import LEFT_WAITING
from .node_machine import Failures, Machine, Remaining, why_never
from .node_queue import NodePolicy, NodeQueue
from .preemption import Preemption, Preemptor

#: Ends between two reports of progress.
_REPORT_EVERY = 32
#: Failures on an idle machine after which its first waiting job is given up: it would wait without
#: end for nodes that are hardly ever up together.
_IN_VAIN = 1000


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PlayedJob:
    """What became of a job that started; ``run_s`` is its true run time, cut at its time limit."""

    demand: Demand
    allocation: Allocation
    start_s: float
    run_s: float
    killed: bool


class StoppedAttempt(NamedTuple):
    """A run that ended when one of its nodes went down: the job's number, where and when it ran."""

    job: int
    allocation: Allocation
    start_s: float
    end_s: float


class NodeOutage(NamedTuple):
    """A node that was down: its place, since when, and when it came back, infinite where never."""

    node: int
    down_s: float
    up_s: float


class Preempted(NamedTuple):
    """A run that a job which paid more ended: both numbers, time, lost core-seconds, credits."""

    job: int
    by: int
    time_s: float
    lost_core_s: float
    credits: float


@dataclass(slots=True, eq=False, kw_only=True)
class NodeRun:
    """A finished simulation.

    Attributes:
        played: the runs that came to their ends, by job number, ascending.
        never: why a job can never start, or never again, by job number.
        lost: why a job that a failure stopped is lost, by job number; every job stands in one of
            the three.
        preempted: runs that other jobs stopped, in that order; they stand in ``stopped`` too.
        stopped: runs that failures or other jobs stopped, in that order; a job may have several.
        outages: nodes that went down while there was something to do, in that order.
        requeues: how often a job that a failure stopped waited again.
        passes: how often the policy was asked.
    """

    played: dict[int, PlayedJob] = field(default_factory=dict)
    never: dict[int, str] = field(default_factory=dict)
    lost: dict[int, str] = field(default_factory=dict)
    stopped: list[StoppedAttempt] = field(default_factory=list)
    preempted: list[Preempted] = field(default_factory=list)
    outages: list[NodeOutage] = field(default_factory=list)
    requeues: int = 0
    passes: int = 0


@dataclass(eq=False)
class NodeKernel:
    """The machine, its policy and the record of what happened (see events.py).

    Args:
        workload: the machine and the jobs.
        machine: fresh, of the workload; the policy knows it.
        policy: fresh too.
        queue: empty; orders the waiting jobs.
        interval_s: the policy is asked at its multiples only; None: after each time stamp's events.
        progress: called now and then with the number of jobs that are done.
        failures: of the nodes; by default they never fail.
        preemptor: who may stop running jobs after each pass; None: nobody.
    """

    workload: ClusterWorkload
    machine: Machine
    policy: NodePolicy
    queue: NodeQueue
    _: KW_ONLY
    interval_s: float | None = None
    progress: Callable[[int], None] | None = None
    failures: Failures = field(default_factory=Failures)
    preemptor: Preemptor | None = None

    def __post_init__(self) -> None:
        self._jobs: tuple[ArrivingJob, ...] = self.workload.jobs
        self._never = why_never((one.job for one in self._jobs), self.machine, self.policy.refuses)
        self._checker = AwardChecker(self.machine.snapshot)
        self._to_come = len(self._jobs)
        self._is_due = self.interval_s is None
        #: When passes are planned to come.
        self._planned: set[float] = set()
        self._run = NodeRun()
        #: Sequence of the event that ends each running job, and the jobs that ended.
        self._ends: dict[int, int] = {}
        self._ended: set[int] = set()
        self._remaining = Remaining(self.machine)
        #: Nodes that are down, and when they come back.
        self._down: dict[int, float] = {}
        self._next_up: dict[int, float] = {}
        self._stops: Counter[int] = Counter()
        self._has_shrunk = False
        #: Failures since anything ran, while jobs wait.
        self._in_vain = 0
        self._events = EventQueue()

    def played(self) -> NodeRun:
        """Play the workload under the policy, once.

        Raises:
            AwardError: the policy broke a rule, or a job was lost or ran to its end twice.
            OptionError: more failures would have to be drawn than one simulation may have.
        """
        for number, arriving in enumerate(self._jobs):
            self._events.push(arriving.arrival_s, EventKind.ARRIVAL, number)
        for node in self.failures.times:
            self._fail_again(node)
        run_events(self._events, self._handle, self._schedule)
        self._close()
        self._run.played = dict(sorted(self._run.played.items()))
        return self._run

    def _handle(self, event: Event) -> None:
        if event.kind is EventKind.END:
            self._end(event.job, event.time)
        elif event.kind is EventKind.ARRIVAL:
            self._arrive(event.job)
        elif event.kind is EventKind.PASS:
            self._is_due = True
        elif not (self._to_come or self.machine.running or len(self.queue)):
            # Nobody is left to whom it matters: the next failure is not asked for.
            return
        elif event.kind is EventKind.NODE_DOWN:
            self._take_down(event.job, event.time)
        else:
            self.machine.bring_up(event.job)
            del self._down[event.job]
            self._fail_again(event.job)

    def _end(self, number: int, now: float) -> None:
        if number in self._ended:
            raise AwardError(f"job {self._jobs[number].job.id} runs to its end twice")
        self._ended.add(number)
        self.queue.ended(self.machine.running[number], now)
        self.machine.end(number, now)
        del self._ends[number]
        self._report()

    def _fail_again(self, node: int) -> None:
        """Ask when a node that is up goes down."""
        down, up = next(self.failures.times[node], (inf, inf))
        if down < inf:
            self._next_up[node] = up
            self._events.push(down, EventKind.NODE_DOWN, node)

    def _take_down(self, node: int, now: float) -> None:
        """Stop what runs on a node, and take it out."""
        up = self._next_up[node]
        for number in self.machine.holders(node):
            self._stop(number, node, now)
        self._in_vain = 0 if self.machine.running else self._in_vain + 1
        self.machine.take_down(node)
        self._run.outages.append(NodeOutage(node, now, up))
        self._down[node] = up
        if up < inf:
            self._events.push(up, EventKind.NODE_UP, node)
        else:
            self._remaining.without(node)
            self._has_shrunk = True

    def _stop(self, number: int, node: int, now: float) -> None:
        """Take a job off the machine; it waits again or is lost."""
        self._take_off(number, now)
        name, demand = self.machine.columns.names[node], self._never[number]
        self._stops[number] += 1
        if self.failures.requeues and self._stops[number] <= self.failures.max_requeues:
            assert isinstance(demand, Demand)  # noqa: S101 - it ran
            self._run.requeues += 1
            self.queue.add(demand)
            return
        after = f", after {self.failures.max_requeues} requeues" if self.failures.requeues else ""
        self._run.lost[number] = f"{name} went down at {now:g} s while it ran{after}"
        self._report()

    def _take_off(self, number: int, now: float) -> StoppedAttempt:
        """Stop a running job: what it did is lost."""
        self._events.cancel(self._ends.pop(number))
        holding = self.machine.running[number]
        self.machine.end(number, now)
        del self._run.played[number]
        stopped = StoppedAttempt(number, holding.allocation, holding.start_s, now)
        self._run.stopped.append(stopped)
        return stopped

    def _preempt(self, found: Preemption, now: float) -> None:
        """Let a job start in the place of others, which wait again."""
        for number in found.victims:
            demand = self.machine.running[number].demand
            stopped = self._take_off(number, now)
            lost = float(stopped.allocation.held.cores.sum()) * (now - stopped.start_s)
            paid = found.paid.get(number, 0.0)
            self._run.preempted.append(Preempted(number, found.start.demand.index, now, lost, paid))
            self.queue.add(demand)
        self._check(found.start)
        self._start(found.start, now)

    def _close(self) -> None:
        """Bring all nodes up again, and check that no job is lost without being listed.

        Raises:
            AwardError: it is, or stands in two lists.
        """
        for node in self._down:
            self.machine.bring_up(node)
        listed = Counter([*self._run.played, *self._run.never, *self._run.lost])
        for number, arriving in enumerate(self._jobs):
            if listed[number] != 1:
                raise AwardError(f"job {arriving.job.id} is in {listed[number]} lists of a finished run")
        if self._ended != self._run.played.keys():
            raise AwardError("jobs count as done that did not end")

    def _report(self) -> None:
        done = len(self._ended) + len(self._run.never) + len(self._run.lost)
        if self.progress is not None and done % _REPORT_EVERY == 0:
            self.progress(done)

    def _arrive(self, number: int) -> None:
        self._to_come -= 1
        found = self._never[number]
        why = self._remaining.why_not(found) if isinstance(found, Demand) else found
        if isinstance(found, Demand) and not why:
            self.queue.add(found)
        else:
            self._give_up(number, why)

    def _give_up(self, number: int, why: str) -> None:
        self._run.never[number] = why
        self._report()

    def _drop_hopeless(self) -> None:
        """List the waiting jobs that can never start since nodes are down for good."""
        self._has_shrunk = False
        for demand in list(self.queue):
            why = self._remaining.why_not(demand)
            if why:
                self.queue.remove(demand)
                self._give_up(demand.index, why)

    def _schedule(self, now: float) -> None:
        """Ask the policy, now or at the next multiple of the interval."""
        if self._has_shrunk:
            self._drop_hopeless()
        if not len(self.queue):
            self._is_due = self.interval_s is None
            return
        if self.interval_s is not None and not self._is_due:
            self._plan(self._at_interval(now))
            return
        self._pass(now)
        while self._is_stuck:
            self._unblock(now)
        if self._in_vain >= _IN_VAIN and not self.machine.running and len(self.queue):
            self._in_vain = 0
            self._drop_first(f"nothing could start while nodes failed {_IN_VAIN} times")
        self._is_due = self.interval_s is None
        wants_more = self.policy.wants_more or self.machine.columns.pools.counts_step
        if not len(self.queue):
            return
        for every_s in (self.policy.wakeup_s, self.interval_s if wants_more else None):
            if every_s is not None:
                self._plan(self._at_interval(turn_after(now, every_s)))
        if (alarm := self.policy.alarm) is not None and now < (time := self._at_interval(alarm)):
            self._plan(time)

    @property
    def _is_stuck(self) -> bool:
        """Whether jobs wait, nothing runs, and neither a job nor a node will come."""
        is_over = not self.machine.running and not self._to_come and len(self.queue) > 0
        return is_over and not any(up < inf for up in self._down.values())

    def _at_interval(self, time: float) -> float:
        """Return the first time from this one on at which there may be a pass."""
        return time if self.interval_s is None or time == inf else turn_at(time, self.interval_s)

    def _plan(self, time: float) -> None:
        """Let there be a pass at a time, once."""
        if time < inf and time not in self._planned:
            self._planned.add(time)
            self._events.push(time, EventKind.PASS, -1)

    def _pass(self, now: float) -> None:
        self._planned.discard(now)
        self._run.passes += 1
        self.queue.refresh(now)
        self.machine.begin_step()
        for start in self._decided(now):
            self._start(start, now)
        if self.preemptor is not None and len(self.queue):
            for found in self.preemptor.preempt(now, self.queue):
                self._preempt(found, now)

    def _decided(self, now: float) -> Sequence[StartingJob]:
        """Return the policy's starts, each checked; a job that makes its pass fail is given up."""
        while len(self.queue):
            try:
                starts = self.policy.step(now, self.queue)
                for start in starts:
                    self._check(start)
            except Exception as error:
                blamed = self.policy.blame(error, now, self.queue)
                if blamed is None:
                    raise
                demand, why = blamed
                self.queue.remove(demand)
                self._give_up(demand.index, why)
            else:
                return starts
        return ()

    def _unblock(self, now: float) -> None:
        """Nothing runs and nothing comes: ask again, or say that the first job never starts."""
        if not self.policy.wants_more:
            self._drop_first(LEFT_WAITING)
        self._pass(now)

    def _drop_first(self, why: str) -> None:
        first = self.queue.first(1)[0]
        self.queue.remove(first)
        self._give_up(first.index, why)

    def _check(self, start: StartingJob) -> None:
        """Check what a job would hold against what it asked for and what its nodes are.

        Raises:
            AwardError: it breaks a rule; the error names the job.
        """
        held = resources_of(start.demand, start.allocation, self.machine.columns.names)
        self._checker.check(self._jobs[start.demand.index].job, held)
        for node in start.allocation.nodes.tolist():
            if node in self._down:
                raise AwardError(
                    f"job {start.demand.job.id} starts on {self.machine.columns.names[node]}, down"
                )

    def _start(self, start: StartingJob, now: float) -> None:
        number = start.demand.index
        if number in self._run.played:
            raise AwardError(f"job {start.demand.job.id} starts twice, again at {now:g}")
        self.queue.remove(start.demand)
        self.machine.start(start, now)
        run, killed = _run_time(self._jobs[number], start.allocation)
        self._run.played[number] = PlayedJob(
            demand=start.demand, allocation=start.allocation, start_s=now, run_s=run, killed=killed
        )
        self._ends[number] = self._events.push(now + run, EventKind.END, number)


def _run_time(arriving: ArrivingJob, allocation: Allocation) -> tuple[float, bool]:
    """Return how long a job runs with what it was given, and whether its time limit ends it."""
    request = arriving.job.request
    fewest = sum(span.minimum for span in request.gres_per_node.values()) * len(allocation.nodes)
    fewest += sum(span.minimum for span in request.gres_total.values())
    names = (*request.gres_per_node, *request.gres_total)
    allocated = sum(
        int(counts.sum())
        for kind, counts in allocation.held.gres.items()
        if kind in names or kind.partition(":")[0] in names
    )
    run = arriving.run_time_with(fewest, allocated)
    limit = arriving.job.limit_on_s(len(allocation.nodes))
    return (run, False) if limit is None or run <= limit else (float(limit), True)
