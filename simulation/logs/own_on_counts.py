"""Somebody's own policy over a log: a machine that counts processors."""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping, Sequence

from ...cluster.errors import AwardError
from ...cluster.nodes import Resources
from ..log_columns import Requests
from ..own_policy import ActiveJob, Policy, QueuedJob, stepped
from ..stepping import Resort


class OwnOnLog:
    """A policy of the kernel (stepping.py) that asks somebody's own what to start.

    Args:
        name: of the policy, for errors.
        policy: a fresh one.
        requests: the jobs, numbered in the queue's order.
        resort: sorts a queue whose order changes with time.
    """

    def __init__(self, name: str, policy: Policy, requests: Requests, resort: Resort | None) -> None:
        self._name = name
        self._policy = policy
        self._requests = requests
        self._resort = resort
        self.queue: list[int] = []
        self.active: dict[int, ActiveJob] = {}
        self.free = requests.processors
        self._jobs: dict[int, QueuedJob] = {}

    def step(self, now: float, ended: Sequence[int], arrived: Sequence[int]) -> Sequence[int]:
        """Let the policy look at the machine; return what it started, in that order."""
        for number in ended:
            self.free += self.active.pop(number).cores
        for number in arrived:
            insort(self.queue, number)
        if self._resort is not None:
            self._resort(now, self.queue)
        if not self.queue:
            return ()
        view = LogView(self, now, self._requests.processors)
        stepped(self._name, self._policy, now, view)
        for number in view.started:
            self.queue.remove(number)
            self._jobs.pop(number, None)
        return view.started

    def job(self, number: int) -> QueuedJob:
        """Return a waiting job as the policy sees it."""
        found = self._jobs.get(number)
        if found is None:
            requests = self._requests
            found = self._jobs[number] = QueuedJob(
                number=number,
                cores=requests.size[number],
                estimate_s=requests.estimate[number],
                submit_s=requests.submit[number],
                user=str(requests.user[number]),
            )
        return found


class LogView:
    """What the policy sees during one step (MachineView)."""

    def __init__(self, system: OwnOnLog, now: float, cores: int) -> None:
        self.cores = cores
        self.started: list[int] = []
        self._system = system
        self._now = now
        self._left = dict.fromkeys(system.queue)
        self._running = tuple(system.active.values())

    @property
    def waiting(self) -> Sequence[QueuedJob]:
        """The jobs that wait, in the queue's order."""
        return tuple(map(self._system.job, self._left))

    @property
    def running(self) -> Sequence[ActiveJob]:
        """The jobs that ran when the step began."""
        return self._running

    @property
    def free_cores(self) -> int:
        """The processors that nobody holds."""
        return self._system.free

    def start(self, job: QueuedJob, nodes: Mapping[str, Resources | int] | None = None) -> bool:
        """Start a job where enough processors are free."""
        if job.number not in self._left:
            raise AwardError(f"job {job.number} does not wait at {self._now:g}")
        if nodes is not None:
            raise AwardError(f"job {job.number} is put on nodes, but a log's machine has none")
        # What the policy holds may have been changed: the size is the request's.
        known = self._system.job(job.number)
        if known.cores > self._system.free:
            return False
        del self._left[job.number]
        self._system.free -= known.cores
        self._system.active[job.number] = ActiveJob(
            number=job.number,
            cores=known.cores,
            start_s=self._now,
            expected_end_s=self._now + known.estimate_s,
        )
        self.started.append(job.number)
        return True
