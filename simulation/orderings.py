"""The orders of the waiting queue (Chapter 3; Nagendra 3.1). Smallest key first, ties by submission.

Every order uses the user's estimate, never the true run time, which no scheduler knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from math import log

from ..cluster.errors import OptionError
from .workload import Requests

#: Sorts a queue of job numbers in place as of a time.
Resort = Callable[[float, list[int]], None]

MULTIFACTOR = "multifactor"


def _areas(requests: Requests) -> list[float]:
    return [size * estimate for size, estimate in zip(requests.size, requests.estimate, strict=True)]


#: Order name -> the jobs' keys, for orders in which no two jobs ever change places.
STATIC_KEYS: dict[str, Callable[[Requests], Sequence[float]]] = {
    # First come, first served: submission time.
    "fcfs": lambda requests: requests.submit,
    # Shortest job first: estimate.
    "sjf": lambda requests: requests.estimate,
    # Longest job first: estimate.
    "ljf": lambda requests: [-estimate for estimate in requests.estimate],
    # First fit increasing area: processors × estimate.
    "area": _areas,
    # Heaviest first: the weight given to the job's queue.
    "weight": lambda requests: [-weight for weight in requests.weight],
    # Largest Smith ratio weight / area first; its inverse keeps equal weights exact.
    "smith": lambda requests: [
        area / weight for area, weight in zip(_areas(requests), requests.weight, strict=True)
    ],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MultifactorWeights:
    """The weights and times of the multifactor priority.

    Attributes:
        age: weight of the wait, which counts in full from ``age_max_s`` on.
        size: weight of the job's share of the machine.
        fairshare: weight of the user's fair-share factor.
        age_max_s: seconds of waiting that make the age factor 1.
        half_life_s: seconds after which past usage counts half.

    """

    age: float = 1000
    size: float = 1000
    fairshare: float = 1000
    age_max_s: float = 86_400
    half_life_s: float = 604_800

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            smallest = "above" if entry.name.endswith("_s") else "at or above"
            if not 0 <= value < float("inf") or (value == 0 and smallest == "above"):
                raise OptionError(f"--multifactor: {entry.name}={value:g} is not {smallest} 0")

    @classmethod
    def from_text(cls, text: str) -> MultifactorWeights:
        """Return the weights that e.g. ``age=1000,size=0,half_life_s=86400`` names, the rest default.

        Raises:
            OptionError: a name or a value cannot be used.

        """
        names = [entry.name for entry in fields(cls)]
        values: dict[str, float] = {}
        for part in text.split(","):
            name, _, value = part.partition("=")
            if name not in names:
                raise OptionError(f"--multifactor: {name!r} is none of {', '.join(names)}")
            try:
                values[name] = float(value)
            except ValueError:
                raise OptionError(f"--multifactor: {part!r} is not {name}=NUMBER") from None
        return cls(**values)


class Multifactor:
    """Priorities of age, size and fair-share (Soner, section 8.2, after Slurm's multifactor plugin).

    The priority of job j at time t, highest first, ties by submission::

        age·min(wait / age_max, 1) + size·processors_j / processors + fairshare·2^(−users·usage_u / usage)

    The usage of a user u is the processor-seconds its jobs have held, each second halved every half-life::

        usage_u(t) = ∫ held_u(s) · 2^(−(t − s) / half_life) ds,   s up to t

    and every user has the same share. Before anybody has used anything the factor is 1.

    Attributes:
        usage: decayed processor-seconds by user, users in the order of their numbers.

    """

    def __init__(self, requests: Requests, weights: MultifactorWeights) -> None:
        self._requests = requests
        self._weights = weights
        users = sorted(set(requests.user))
        index = {user: place for place, user in enumerate(users)}
        self._user = [index[user] for user in requests.user]
        self._held = [0] * len(users)
        self.usage = [0.0] * len(users)
        self._as_of: float = 0

    def changed(self, now: float, jobs: Sequence[int], sign: int) -> None:
        """Charge usage up to now, then add (+1) or remove (−1) what the jobs hold."""
        if not jobs:
            return
        self._charge(now)
        for job in jobs:
            self._held[self._user[job]] += sign * self._requests.size[job]

    def _charge(self, now: float) -> None:
        """Bring every user's usage up to now: the integral above in closed form."""
        if now == self._as_of:
            return
        half_life = self._weights.half_life_s
        left = 0.5 ** ((now - self._as_of) / half_life)
        weight = (1 - left) * half_life / log(2)
        self.usage = [
            usage * left + held * weight for usage, held in zip(self.usage, self._held, strict=True)
        ]
        self._as_of = now

    def sort(self, now: float, queue: list[int]) -> None:
        """Sort job numbers by falling priority as of now."""
        if len(queue) > 1:
            self._charge(now)
            shares = self._shares()
            queue.sort(key=lambda job: (-self._priority(now, job, shares), job))

    def _shares(self) -> list[float]:
        """Return each user's weighted fair-share term."""
        weight, users = self._weights.fairshare, len(self.usage)
        total = sum(self.usage)
        if not total:
            return [weight] * users
        # The exponent is a share times the number of users: at most that number, never an overflow.
        return [weight * 2.0 ** (-users * usage / total) for usage in self.usage]

    def _priority(self, now: float, job: int, shares: Sequence[float]) -> float:
        requests, weights = self._requests, self._weights
        age = min((now - requests.submit[job]) / weights.age_max_s, 1)
        size = requests.size[job] / requests.processors
        return weights.age * age + weights.size * size + shares[self._user[job]]
