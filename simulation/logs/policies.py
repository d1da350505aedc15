"""The table of policies over logs, ours and users' own; one call plays a log under one of them."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import TypeAlias

import numpy as np

from ...cluster.errors import AwardError, OptionError, errors_of_policy
from ...cluster.nodes import Resources
from ...cluster.text import not_one_of
from ...cluster.value_types import shortest
from ...cluster.workload import SHORTEST_RUN_S
from ..backfilling.conservative import Conservative
from ..backfilling.easy import Easy, start
from ..backfilling.predicted import Predicted
from ..log_columns import Requests, Workload
from ..own_policy import ActiveJob, MachineView, Policy, QueuedJob, is_own, own_policy, stepped
from ..promised.log_auction import LogAuction
from ..report import bounded_slowdown, sum_of
from ..result import Simulation
from ..simulate_options import RENAMED, PolicyOptions
from ..stepping import Changes, CountPolicy, PolicyWrapper, Resort, StoppedRun
from .counts import CheckedPolicy, simulate_counts
from .orderings import (
    CHANGING_ORDERS,
    FLEXIBLE,
    MULTIFACTOR,
    STATIC_KEYS,
    FlexiblePriorities,
    Multifactor,
    MultifactorWeights,
)
from .planning import Planning
from .reservations import Lookahead, Partitioned, Reservations, Selective, Slack
from .selection import BestFit, FirstFit, NextFit, QueuePolicy, Queues
from .speculative import Speculative, TrialRuns

#: Makes a policy over jobs numbered in queue order; ``resort`` orders one that changes with time.
Made: TypeAlias = Callable[[Requests, Resort | None, PolicyOptions], CountPolicy]


class Adaptive(CountPolicy):
    """Adaptive backfilling: the policy that would have served recent jobs best (Chapter 3, Talby).

    docs/policies.md (adaptive) says how candidates are compared; between equals that are not the
    present one the first named wins.

    Taking over: the new policy receives the running jobs' starts in their order, then, now, of all
    that wait. Promises of the old one, such as reservations, are not kept. Where ``resort`` changes
    the queue's order with time, it orders the real queue only: the recent jobs are simulated in
    order of submission.

    Args:
        options: submissions between two comparisons, how many of the last are simulated, and the
            candidates, of which the first serves until the first comparison.
    """

    def __init__(self, requests: Requests, resort: Resort | None, options: PolicyOptions) -> None:
        for name in options.candidates:
            if name not in CANDIDATES:
                raise OptionError(f"--candidates: {not_one_of(name, CANDIDATES)}")
        if len(set(options.candidates)) < len(options.candidates):
            raise OptionError(f"--candidates {','.join(options.candidates)}: one is named twice")
        if not options.candidates:
            raise OptionError("--candidates names no policy")
        self._requests, self._resort, self._options = requests, resort, options
        self._new = 0
        self._name = options.candidates[0]
        self._policy = POLICIES[self._name](requests, resort, options)
        self._recent: deque[int] = deque(maxlen=options.adapt_window)
        self._run_of: dict[int, float] = {}
        # Running jobs by start, in the order in which they were chosen; and those that wait.
        self._start_of: dict[int, float] = {}
        self._waiting: set[int] = set()

    def step(self, now: float, seen: Changes) -> Sequence[int]:
        """Ask the present policy; before that, compare the candidates when it is time."""
        ended, arrived = seen
        for job in ended:
            # End less start may be a last digit above the estimate, or below the shortest run time.
            run = max(now - self._start_of.pop(job), SHORTEST_RUN_S)
            self._run_of[job] = min(run, self._requests.estimate[job])
        self._waiting.update(arrived)
        self._recent.extend(arrived)
        self._new += len(arrived)
        if self._new >= self._options.adapt_every:
            self._new = 0
            best = self._best()
            if best != self._name:
                self._name = best
                self._policy = POLICIES[best](self._requests, self._resort, self._options)
                # It knows the running jobs: alone, each starts when it is submitted.
                for job, start in self._start_of.items():
                    self._policy.step(start, ((), (job,)))
                ended, arrived = (), sorted(self._waiting)
        started = self._policy.step(now, (ended, arrived))
        self._waiting.difference_update(started)
        self._start_of.update(dict.fromkeys(started, now))
        return started

    def _best(self) -> str:
        jobs = list(self._recent)
        run = [self._run_of.get(job, self._requests.estimate[job]) for job in jobs]
        score = {name: self._score(name, jobs, run) for name in self._options.candidates}
        best = min(score, key=score.__getitem__)
        return best if score[best] < score[self._name] else self._name

    def _score(self, name: str, jobs: Sequence[int], run: Sequence[float]) -> float:
        """Return the jobs' mean bounded slowdown under a candidate."""
        requests = self._requests.taken(jobs)
        submit = tuple(time - requests.submit[0] for time in requests.submit)
        requests = replace(requests, submit=submit)
        numbers = tuple(range(len(jobs)))
        workload = Workload(requests=requests, run=tuple(run), ids=numbers, row=numbers, rows=len(jobs))
        # Jobs are numbered in queue order here too: it need not be that of submission.
        in_order = sorted(numbers, key=jobs.__getitem__)
        policy = POLICIES[name](requests.taken(in_order), None, self._options)
        policy.job_at = in_order
        starts = simulate_counts(workload, policy)
        return sum_of(bounded_slowdown(np.subtract(starts, submit), np.array(run))) / len(jobs)


POLICIES: dict[str, Made] = {
    "fcfs": QueuePolicy,
    "first-fit": FirstFit,
    "best-fit": BestFit,
    "next-fit": NextFit,
    "queues": Queues,
    "easy": lambda requests, resort, _: Easy(requests, resort),
    "predicted": lambda requests, resort, options: Predicted(requests, resort, options.predictor),
    "conservative": lambda requests, resort, _: Conservative(requests, resort),
    "reservations": Reservations,
    "lookahead": Lookahead,
    "slack": Slack,
    "selective": Selective,
    "partitioned": Partitioned,
    "adaptive": Adaptive,
    "speculative": lambda requests, resort, options: (
        Speculative if options.test_run_s is None else TrialRuns
    )(requests, resort, options),
    "planning": Planning,
    "promised": lambda requests, resort, options: LogAuction(
        requests, resort, objective=options.objective, promise=options.promise
    ),
}

#: Policies between which ``adaptive`` may choose: they stop no job, and can take over at any time.
CANDIDATES = (
    "fcfs",
    "easy",
    "conservative",
    "reservations",
    "lookahead",
    "slack",
    "selective",
    "partitioned",
)

#: Names of the orders of the waiting queue.
ORDERS: tuple[str, ...] = (*STATIC_KEYS, FLEXIBLE, *CHANGING_ORDERS, MULTIFACTOR)


def make_policy(
    name: str, requests: Requests, *, order: str = "fcfs", options: PolicyOptions | None = None
) -> CountPolicy:
    """Return a new policy by its name, ours or somebody's own, its queue in the given order.

    Raises:
        OptionError: no such policy or order.
        PolicyError: somebody's own cannot be made.
    """
    if order not in ORDERS:
        raise OptionError(f"order {not_one_of(order, ORDERS)}")
    options = options or PolicyOptions()
    name = RENAMED.get(name, name)
    factory = _factory(name)
    if order == MULTIFACTOR:
        priorities = Multifactor(requests, options.multifactor or MultifactorWeights())
        return _Prioritised(factory(requests, priorities.sort, options), priorities)
    if order in CHANGING_ORDERS:
        return factory(requests, CHANGING_ORDERS[order](requests), options)
    if order == "fcfs":
        return factory(requests, None, options)
    # The order does not change with time; ties go by submission.
    keys = _queue_keys(requests, order, options.flexible)
    job_at = sorted(range(len(requests)), key=keys.__getitem__)
    policy = factory(requests.taken(job_at), None, options)
    policy.job_at = job_at
    return policy


def _factory(name: str) -> Made:
    if name in POLICIES:
        return POLICIES[name]
    if is_own(name):
        own = own_policy(name)
        return lambda requests, resort, _: OwnOnCounts(name, own, requests, resort)
    raise OptionError(f"policy {not_one_of(name, POLICIES)}")


def queue_rank(
    requests: Requests, order: str, flexible: FlexiblePriorities | None = None
) -> tuple[float, ...] | None:
    """Return what sorts the queue, by job; None where submission does, or it changes with time."""
    if order in ("fcfs", MULTIFACTOR, *CHANGING_ORDERS):
        return None
    return tuple(map(float, _queue_keys(requests, order, flexible)))


def _queue_keys(requests: Requests, order: str, flexible: FlexiblePriorities | None) -> Sequence[float]:
    if order == FLEXIBLE:
        return (flexible or FlexiblePriorities()).keys(requests)
    return STATIC_KEYS[order](requests)


class OwnOnCounts(QueuePolicy):
    """A user's own policy over a log: its queue is sorted by job number, or by ``resort``."""

    def __init__(self, name: str, policy: Policy, requests: Requests, resort: Resort | None) -> None:
        super().__init__(requests, resort)
        self._name, self._policy = name, policy
        self._active: dict[int, ActiveJob] = {}
        self._seen: dict[int, QueuedJob] = {}

    def _release(self, now: float, ended: Iterable[int]) -> None:
        for job in ended:
            super()._release(now, (self._active.pop(job).number,))

    def _from_front(self, now: float) -> None:
        """Start what the policy starts, from wherever it stands."""
        if not self._queue:
            return
        view = CountView(now, self._requests, self._unused(), self._queue, self._active, self._seen)
        stepped(self._name, self._policy, now, view)
        for job in view.started:
            start(self._state, now, job)
            self._queue.remove(job)


class CountView(MachineView):
    """What a user's own policy sees of a log's machine during one step."""

    def __init__(
        self,
        now: float,
        requests: Requests,
        free: int,
        queue: Sequence[int],
        active: dict[int, ActiveJob],
        seen: dict[int, QueuedJob],
    ) -> None:
        super().__init__(now, requests.processors, {number: number for number in queue}, seen)
        self._requests, self._free = requests, free
        self._active, self._running = active, tuple(active.values())

    @property
    def running(self) -> Sequence[ActiveJob]:
        """The jobs that ran when the step began."""
        return self._running

    @property
    def free_cores(self) -> int:
        """The processors that nobody holds."""
        return self._free

    def _shown(self, asked: int) -> QueuedJob:
        requests = self._requests
        return QueuedJob(
            number=asked,
            id=str(requests.ids[asked]) if requests.ids else "",
            cores=requests.size[asked],
            estimate_s=requests.estimate[asked],
            submit_s=requests.submit[asked],
            user=str(requests.user[asked]),
        )

    def _try_start(self, asked: int, nodes: Mapping[str, Resources | int] | None) -> int | None:
        if nodes is not None:
            raise AwardError(f"it puts job {self._shown(asked).id} on nodes, but a log's machine has none")
        # What the policy holds may have been changed: the size is the request's.
        size, estimate = self._requests.size[asked], self._requests.estimate[asked]
        if size > self._free:
            return None
        self._free -= size
        end = self._now + estimate
        self._active[asked] = ActiveJob(number=asked, cores=size, start_s=self._now, expected_end_s=end)
        return asked


class _Prioritised(PolicyWrapper):
    """A policy whose queue is sorted again before each pass; it keeps users' usage up to date."""

    def __init__(self, policy: CountPolicy, priorities: Multifactor) -> None:
        super().__init__(policy)
        self._priorities = priorities

    def step(self, now: float, seen: Changes) -> Sequence[int]:
        """Charge users for what ended, let the policy choose, charge for what starts."""
        self._priorities.changed(now, seen[0], -1)
        started = self._policy.step(now, seen)
        self._priorities.changed(now, self.stopped or (), -1)
        self._priorities.changed(now, started, +1)
        return started


def weights_by_queue(given: str | Mapping[int, float]) -> Mapping[int, float]:
    """Return the weights that ``1=4,2=0.5``, or a mapping, gives to the log's queues 1 and 2.

    Raises:
        OptionError: it reads otherwise, or a weight is not above 0.
    """
    weights: dict[int, float] = {}
    parts = given.split(",") if isinstance(given, str) else [f"{name}={one}" for name, one in given.items()]
    text = ",".join(parts)
    for part in parts:
        name, _, value = part.partition("=")
        try:
            queue, weight = int(name), float(value)
        except ValueError:
            raise OptionError(f"--queue-weights {text!r}: {part!r} is not QUEUE=WEIGHT") from None
        if not 0 < weight < inf:
            raise OptionError(f"--queue-weights {text!r}: {part!r} is not above 0")
        if queue in weights:
            raise OptionError(f"--queue-weights {text!r}: queue {queue} is given twice")
        weights[queue] = shortest(weight)
    return weights


def play_log(
    jobs: Workload,
    policy: str,
    *,
    order: str = "fcfs",
    options: PolicyOptions | None = None,
    checked: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Simulation:
    """Play a log's jobs.

    Args:
        jobs: and the machine's size.
        policy: a name in POLICIES, or of somebody's own policy, which is always checked.
        order: of the queue.
        options: the policy's parameters.
        checked: check every start against every rule; the results are the same.
        progress: called now and then with the number of jobs that have arrived.

    Raises:
        AwardError: a policy that is checked broke a rule.
        OptionError: no such policy or order.
        PolicyError: somebody's own policy raised.
    """
    policy = RENAMED.get(policy, policy)
    is_checked = checked or (policy not in POLICIES and is_own(policy))
    stopped: list[StoppedRun] = []
    began = time.perf_counter()
    made = make_policy(policy, jobs.requests, order=order, options=options)
    made = CheckedPolicy(made, jobs.requests) if is_checked else made
    with errors_of_policy(policy):
        starts = simulate_counts(jobs, made, progress, stopped)
    return Simulation(
        workload=jobs,
        policy=policy,
        order=order,
        starts=tuple(starts),
        seconds=time.perf_counter() - began,
        stopped=None if made.stopped is None else tuple(stopped),
        refused=None if made.refused is None else tuple(made.refused),
    )
