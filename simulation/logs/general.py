"""The counts-only machine under the general loop: for policies that stop jobs or wake by themselves."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from ..events import Event, EventKind, EventQueue, run_events
from ..log_columns import Workload
from ..stepping import NEVER, REPORT_EVERY, CountPolicy, StoppedRun, alarm_of, stopped_by


class _CountsSystem:
    """The machine, its policy and the record of what happened."""

    def __init__(
        self, workload: Workload, policy: CountPolicy, progress: Callable[[int], None] | None
    ) -> None:
        self._progress = progress
        self._run = workload.run
        self._policy = policy
        self._ended: list[int] = []
        self._arrived: list[int] = []
        # The event of a running job's end.
        self._end: dict[int, int] = {}
        self._alarms: set[float] = set()
        self.starts: list[float] = [NEVER] * len(workload)
        self.stopped: list[StoppedRun] = []

    def handle(self, event: Event) -> None:
        if event.kind is EventKind.END:
            del self._end[event.job]
            self._ended.append(event.job)
        elif event.kind is EventKind.ARRIVAL:
            self._arrived.append(event.job)
            if self._progress and event.job % REPORT_EVERY == 0:
                self._progress(event.job)

    def schedule(self, now: float, queue: EventQueue) -> None:
        self._alarms.discard(now)
        started = self._policy.step(now, self._ended, self._arrived)
        for job in stopped_by(self._policy) or ():
            queue.cancel(self._end.pop(job))
            self.stopped.append(StoppedRun(job, self.starts[job], now))
            self.starts[job] = NEVER
        for job in started:
            self.starts[job] = now
            self._end[job] = queue.push(now + self._run[job], EventKind.END, job)
        self._ended, self._arrived = [], []
        alarm = alarm_of(self._policy)
        if alarm is not None and now < alarm < inf and alarm not in self._alarms:
            self._alarms.add(alarm)
            queue.push(alarm, EventKind.PASS, 0)


def simulate_general(
    workload: Workload, policy: CountPolicy, progress: Callable[[int], None] | None = None
) -> tuple[list[float], list[StoppedRun]]:
    """Run a policy over a workload as ``simulate_counts`` does; return the starts and the stopped runs."""
    queue = EventQueue()
    for job, submit in enumerate(workload.requests.submit):
        queue.push(submit, EventKind.ARRIVAL, job)
    system = _CountsSystem(workload, policy, progress)
    run_events(queue, system)
    return system.starts, system.stopped
