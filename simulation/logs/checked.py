"""Every rule checked while a policy runs: the general loop around a policy that is not trusted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum

from ...cluster.errors import AwardError
from ..log_columns import Requests, Workload
from ..stepping import NEVER, CountPolicy, StoppedRun, alarm_of, stopped_by
from .general import simulate_general


class _State(IntEnum):
    UNKNOWN = 0
    WAITING = 1
    RUNNING = 2
    ENDED = 3


class CheckedPolicy:
    """A policy whose answers are checked: start once, never before submission, never over capacity.

    A job that the policy stopped may start once more.

    Raises:
        AwardError: an answer, or an event given to the policy, breaks a rule; names the job and the time.

    """

    def __init__(self, policy: CountPolicy, requests: Requests) -> None:
        self._policy = policy
        self._requests = requests
        self._state = [_State.UNKNOWN] * len(requests)
        self._free = requests.processors
        self._now: float = NEVER

    @property
    def alarm(self) -> float | None:
        """The next time at which the policy wants a step though nothing happens."""
        return alarm_of(self._policy)

    @property
    def stopped(self) -> Sequence[int] | None:
        """The jobs that the last step stopped."""
        return stopped_by(self._policy)

    def step(self, now: float, ended: Sequence[int], arrived: Sequence[int]) -> Sequence[int]:
        """Check the events, ask the policy and check its answer."""
        if now <= self._now:
            raise AwardError(f"time {now:g} does not follow {self._now:g}")
        self._now = now
        state, size = self._state, self._requests.size
        for job in ended:
            self._move(job, _State.RUNNING, _State.ENDED)
            self._free += size[job]
        for job in arrived:
            self._move(job, _State.UNKNOWN, _State.WAITING)
            if self._requests.submit[job] != now:
                raise AwardError(f"job {job} arrives at {now:g}, not at its submission")
        started = self._policy.step(now, ended, arrived)
        for job in self.stopped or ():
            self._move(job, _State.RUNNING, _State.WAITING)
            self._free += size[job]
        for job in started:
            if state[job] is not _State.WAITING:
                raise AwardError(f"job {job} starts at {now:g} while {state[job].name.lower()}")
            state[job] = _State.RUNNING
            self._free -= size[job]
        if self._free < 0:
            raise AwardError(f"{-self._free} processors are given twice at {now:g}")
        return started

    def _move(self, job: int, before: _State, after: _State) -> None:
        if self._state[job] is not before:
            raise AwardError(f"job {job} becomes {after.name.lower()} while {self._state[job].name.lower()}")
        self._state[job] = after


def simulate_checked(
    workload: Workload,
    policy: CountPolicy,
    progress: Callable[[int], None] | None = None,
    stopped: list[StoppedRun] | None = None,
) -> list[float]:
    """Run a policy over a workload as ``simulate_counts`` does, every rule checked.

    Raises:
        AwardError: the policy broke a rule.

    """
    starts, gone = simulate_general(workload, CheckedPolicy(policy, workload.requests), progress)
    if stopped is not None:
        stopped += gone
    return starts
