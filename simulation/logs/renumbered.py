"""Jobs under other numbers: how every policy gets by with one order of its queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ..log_columns import Requests
from ..stepping import CountPolicy, PolicyWrapper, loop_of

T = TypeVar("T")


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
