"""Jobs under other numbers: how every policy gets by with one order of its queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ..requests import Requests
from ..stepping import Policy, stopped_by, wakes_of

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
    )


class Renumbered:
    """A policy that sees the jobs numbered by their place in the queue's order.

    Where the order of any two jobs never changes, a queue sorted by number is a queue in order, and every
    policy needs to know one order only.

    Args:
        policy: over the jobs as ``taken`` with ``job_at`` numbers them.
        job_at: the job of each place.

    """

    def __init__(self, policy: Policy, job_at: Sequence[int]) -> None:
        self._policy = policy
        self._job_at = job_at
        self._place = sorted(range(len(job_at)), key=job_at.__getitem__)
        self.wakes = wakes_of(policy)

    @property
    def stopped(self) -> Sequence[int] | None:
        """The jobs that the last step stopped."""
        places = stopped_by(self._policy)
        return None if places is None else [self._job_at[place] for place in places]

    def step(self, now: float, ended: Sequence[int], arrived: Sequence[int]) -> Sequence[int]:
        """Translate the events into places and the places that start into jobs."""
        place, job_at = self._place, self._job_at
        started = self._policy.step(now, [place[job] for job in ended], sorted(place[job] for job in arrived))
        return [job_at[number] for number in started]
