"""The interface between policies over counted processors and the kernels that call them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from .log_columns import Requests

T = TypeVar("T")

#: Sorts a queue of job numbers in place as of a time.
Resort = Callable[[float, list[int]], None]

#: Start time of a job that never started: times count from the first submission, so none is below 0.
NEVER = -1
#: Arrivals between two reports of progress.
REPORT_EVERY = 4096


class CountPolicy(Protocol):
    """A policy over a counts-only machine.

    It may ask for more than a plain kernel does:

    - ``stopped``, where it has such a member: the jobs that the last step took off the machine before it
      started others. They wait again, and run from the beginning when they start.
    - ``alarm``: after each step, the next time at which it wants one though nothing happens; infinite for
      none.
    - ``refused``: fixed-time requests that it has refused, as texts.
    - ``loop``: the name of the compiled loop that gives its starts for a whole log (backfilling/log_loop.py).

    """

    def step(self, now: float, ended: Sequence[int], arrived: Sequence[int]) -> Sequence[int]:
        """Return the jobs to start now, in the order in which they were chosen.

        Args:
            now: seconds after the first submission.
            ended: the jobs that ended now; their processors are free.
            arrived: the jobs submitted now, by rising number.

        """
        ...


class StoppedRun(NamedTuple):
    """A run that the policy stopped; times in seconds."""

    job: int
    start: float
    end: float


def stopped_by(policy: CountPolicy) -> Sequence[int] | None:
    """Return the jobs that a policy's last step stopped; None for one that never stops any."""
    stopped: Sequence[int] | None = getattr(policy, "stopped", None)
    return stopped


def refused_by(policy: CountPolicy) -> Sequence[str] | None:
    """Return the fixed-time requests that a policy has refused; None for one that is asked for none."""
    refused: Sequence[str] | None = getattr(policy, "refused", None)
    return refused


def alarm_of(policy: CountPolicy) -> float | None:
    """Return the next time at which a policy wants a step though nothing happens; None: it never does."""
    alarm: float | None = getattr(policy, "alarm", None)
    return alarm


def loop_of(policy: CountPolicy) -> str | None:
    """Return the name of the loop that plays a whole log as a policy does; None where there is none."""
    loop: str | None = getattr(policy, "loop", None)
    return loop


class PolicyWrapper:
    """A policy around another, which asks for what that one asks for."""

    def __init__(self, policy: CountPolicy) -> None:
        self._policy = policy

    @property
    def alarm(self) -> float | None:
        """The next time at which the policy wants a step though nothing happens."""
        return alarm_of(self._policy)

    @property
    def refused(self) -> Sequence[str] | None:
        """The fixed-time requests that were refused."""
        return refused_by(self._policy)

    @property
    def stopped(self) -> Sequence[int] | None:
        """The jobs that the last step stopped."""
        return stopped_by(self._policy)


def taken(requests: Requests, jobs: Sequence[int]) -> Requests:
    """Return the requests of some jobs, numbered by their place in ``jobs``."""

    def take(column: Sequence[T]) -> tuple[T, ...]:
        return tuple(map(column.__getitem__, jobs))

    return Requests(
        processors=requests.processors,
        submit=take(requests.submit),
        size=take(requests.size),
        estimate=take(requests.estimate),
        user=take(requests.user),
        weight=take(requests.weight),
        group=take(requests.group) if requests.group else (),
    )


class Renumbered(PolicyWrapper):
    """A policy that sees the jobs numbered by their place in the queue's order.

    Where the order of any two jobs never changes, a queue sorted by number is a queue in order, and every
    policy needs to know one order only.

    Args:
        policy: over the jobs as ``taken`` with ``job_at`` numbers them.
        job_at: the job of each place.

    Attributes:
        job_at: the same.

    """

    def __init__(self, policy: CountPolicy, job_at: Sequence[int]) -> None:
        super().__init__(policy)
        self.job_at = job_at
        self._place = sorted(range(len(job_at)), key=job_at.__getitem__)

    @property
    def loop(self) -> str | None:
        """The compiled loop that plays the policy's jobs by their places."""
        return loop_of(self._policy)

    @property
    def stopped(self) -> Sequence[int] | None:
        """The jobs that the last step stopped."""
        places = super().stopped
        return None if places is None else [self.job_at[place] for place in places]

    def step(self, now: float, ended: Sequence[int], arrived: Sequence[int]) -> Sequence[int]:
        """Translate the events into places and the places that start into jobs."""
        place, job_at = self._place, self.job_at
        started = self._policy.step(now, [place[job] for job in ended], sorted(place[job] for job in arrived))
        return [job_at[number] for number in started]
