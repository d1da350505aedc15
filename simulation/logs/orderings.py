"""The waiting queue's orders (Chapter 3; Nagendra 3.1). Smallest key first, ties by submission.

Every order uses the user's estimate, never the true run time, which no scheduler knows.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from math import inf, log, log2, log10, sqrt

import numpy as np

from ...cluster.errors import OptionError
from ..events import DAY_S, WEEK_S
from ..log_columns import Requests
from ..stepping import Resort

MULTIFACTOR, FLEXIBLE = "multifactor", "flexible"
#: What UNICEP takes for the logarithm of one processor.
_NO_LOGARITHM = 1e-15


def _areas(requests: Requests) -> list[float]:
    return [size * estimate for size, estimate in zip(requests.size, requests.estimate, strict=True)]


def _learnt(by_request: Callable[[float, int], float], weight: float) -> Callable[[Requests], list[float]]:
    """Return keys f(estimate, processors) + weight · log10(submission).

    F1 to F4 of Carastan-Santos and de Camargo (SC'17, "Obtaining dynamic scheduling policies with
    simulation and machine learning", table 3) are nonlinear regressions on simulated machines of
    256 processors. Submissions count from the log's first; those within a second count as 1.
    """

    def keys(requests: Requests) -> list[float]:
        columns = zip(requests.submit, requests.estimate, requests.size, strict=True)
        return [
            by_request(estimate, size) + weight * log10(max(submit, 1)) for submit, estimate, size in columns
        ]

    return keys


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
    # First fit increasing width: processors, the narrowest first; and the widest first.
    "width": lambda requests: requests.size,
    "widest": lambda requests: [-size for size in requests.size],
    # Heaviest first: the weight given to the job's queue.
    "weight": lambda requests: [-weight for weight in requests.weight],
    # Largest Smith ratio weight / area first; its inverse keeps equal weights exact.
    "smith": lambda requests: [
        area / weight for area, weight in zip(_areas(requests), requests.weight, strict=True)
    ],
    "f1": _learnt(lambda estimate, size: log10(estimate) * size, 870),
    "f2": _learnt(lambda estimate, size: sqrt(estimate) * size, 25_600),
    "f3": _learnt(lambda estimate, size: estimate * size, 6_860_000),
    "f4": _learnt(lambda estimate, size: estimate * sqrt(size), 530_000),
}


def _by_wait_over(divisor: Sequence[float], submit: Sequence[float]) -> Resort:
    """Return the order by wait / divisor, the largest first."""

    def resort(now: float, queue: list[int]) -> None:
        queue.sort(key=lambda job: ((submit[job] - now) / divisor[job], job))

    return resort


def _wfp3(requests: Requests) -> Resort:
    """Return the order by (wait / estimate)³ · processors, the largest first.

    Tang, Lan, Desai and Buettner (2009): "Fault-aware, utility-based job scheduling on Blue Gene/P
    systems".
    """
    submit, estimate, size = requests.submit, requests.estimate, requests.size

    def resort(now: float, queue: list[int]) -> None:
        queue.sort(key=lambda job: (((submit[job] - now) / estimate[job]) ** 3 * size[job], job))

    return resort


def _unicep(requests: Requests) -> Resort:
    """Return the order by wait / (log2(processors) · estimate), the largest first.

    UNICEF of the same paper as WFP3, spelt as in the tables of learnt schedulers. Blue Gene/P runs
    no job of one processor, with logarithm 0: here such a job is before all others once it waits.
    """
    columns = zip(requests.size, requests.estimate, strict=True)
    divisor = [max(log2(size), _NO_LOGARITHM) * estimate for size, estimate in columns]
    return _by_wait_over(divisor, requests.submit)


#: Order name -> what sorts the queue as of a time, where jobs change places as they wait.
CHANGING_ORDERS: dict[str, Callable[[Requests], Resort]] = {
    # Current slowdown (wait + estimate) / estimate, the largest first.
    "slowdown": lambda requests: _by_wait_over(requests.estimate, requests.submit),
    "wfp3": _wfp3,
    "unicep": _unicep,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FlexiblePriorities:
    """The priorities of flexible backfilling (Chapter 3, the third parameter; Talby and Feitelson).

    A job's priority is admin · (what its user and project are given) + user · (its weight, by its
    user's choice of queue) + scheduler · (wait in days), the highest first. All waits grow alike:
    no two jobs change places, and one that waits long precedes all that come later: nobody starves.

    Attributes:
        admin: weight of the administrative priority, which favours users and projects.
        user: weight of the user priority, which tells the jobs of one user apart.
        scheduler: weight of the scheduler's, above 0.
        of_user, of_group: administrative priorities by the log's numbers of users, and of groups,
            which are projects; 0 where none is named.
    """

    admin: float = 1
    user: float = 1
    scheduler: float = 1
    of_user: Mapping[int, float] = field(default_factory=dict)
    of_group: Mapping[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_numbers(self, "--priorities", ("admin", "user", "scheduler"), above=("scheduler",))

    @classmethod
    def from_text(cls, text: str | None, of_user: str | None) -> "FlexiblePriorities":
        """Return what e.g. ``admin=2,scheduler=0.5`` and ``7=3,9=1`` say, the rest default.

        Raises:
            OptionError: a name or a value cannot be used.
        """
        names = ("admin", "user", "scheduler")
        weights = {} if text is None else named_numbers(text.split(","), "--priorities", names)
        given: dict[str, dict[int, float]] = {} if of_user is None else _administrative(of_user)
        return cls(**weights, of_user=given.get("user", {}), of_group=given.get("group", {}))

    def settings(self) -> dict[str, float]:
        """Return all of it under names of its own."""
        given = {f"user_{user}": priority for user, priority in sorted(self.of_user.items())}
        given |= {f"group_{group}": priority for group, priority in sorted(self.of_group.items())}
        return {"admin": self.admin, "user": self.user, "scheduler": self.scheduler, **given}

    def keys(self, requests: Requests) -> list[float]:
        """Return the jobs' keys, the smallest first."""
        # A log may name no groups.
        groups = requests.group or [-1] * len(requests.submit)
        return [
            self.scheduler * submit / DAY_S
            - self.admin * (self.of_user.get(user, 0) + self.of_group.get(group, 0))
            - self.user * weight
            for submit, user, group, weight in zip(
                requests.submit, requests.user, groups, requests.weight, strict=True
            )
        ]


def _administrative(text: str) -> dict[str, dict[int, float]]:
    """Return the priorities of users and groups by their numbers."""
    found: dict[str, dict[int, float]] = {"user": {}, "group": {}}
    for part in text.split(","):
        *kind, number, value = ["", *part.split("=")]
        try:
            named, priority = found["".join(kind) or "user"], float(value)
            place = int(number)
        except (KeyError, ValueError):
            raise OptionError(
                f"--user-priorities: {part!r} is not USER=NUMBER or group=GROUP=NUMBER"
            ) from None
        if not 0 <= priority < inf:
            raise OptionError(f"--user-priorities: {part!r} is not at or above 0")
        if place in named:
            raise OptionError(f"--user-priorities: {part!r}: {number} is given twice")
        named[place] = priority
    return found


def named_numbers(parts: Iterable[str], option: str, names: Sequence[str]) -> dict[str, float]:
    """Return the numbers that texts ``NAME=NUMBER`` give to some of the names.

    Raises:
        OptionError: a text reads otherwise, or a name comes twice.
    """
    values: dict[str, float] = {}
    for part in parts:
        name, _, value = part.partition("=")
        if name not in names:
            raise OptionError(f"{option}: {name!r} is none of {', '.join(names)}")
        if name in values:
            raise OptionError(f"{option}: {name} is given twice")
        try:
            values[name] = float(value)
        except ValueError:
            raise OptionError(f"{option}: {part!r} is not {name}=NUMBER") from None
    return values


def _check_numbers(record: object, option: str, names: Iterable[str], above: Container[str]) -> None:
    for name in names:
        value = getattr(record, name)
        if not 0 <= value < inf or (value == 0 and name in above):
            raise OptionError(f"{option}: {name}={value:g} is not {'' if name in above else 'at or '}above 0")


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
    age_max_s: float = DAY_S
    half_life_s: float = WEEK_S

    def __post_init__(self) -> None:
        _check_numbers(self, "--multifactor", asdict(self), above=("age_max_s", "half_life_s"))

    @classmethod
    def from_text(cls, text: str) -> "MultifactorWeights":
        """Return the weights of e.g. ``age=1000,size=0,half_life_s=86400``, the rest default.

        Raises:
            OptionError: a name or a value cannot be used.
        """
        names = [entry.name for entry in fields(cls)]
        return cls(**named_numbers(text.split(","), "--multifactor", names))


class Multifactor:
    """Priorities of age, size and fair-share (Soner, section 8.2, as Slurm's multifactor plugin).

    The priority of job j at time t, highest first, ties by submission::

        age·min(wait/age_max, 1) + size·processors_j/processors + fairshare·2^(−users·usage_u/usage)

    The usage of a user u is the processor-seconds of its jobs, each second halved every half-life::

        usage_u(t) = ∫ held_u(s) · 2^(−(t − s) / half_life) ds,   s up to t

    and every user has the same share. Before anybody has used anything the factor is 1.
    """

    def __init__(self, requests: Requests, weights: MultifactorWeights) -> None:
        self._weights = weights
        users = {user: place for place, user in enumerate(sorted(set(requests.user)))}
        self._user = [users[user] for user in requests.user]
        self._users = len(users)
        self._processors = requests.size
        size_term = [weights.size * (size / requests.processors) for size in requests.size]
        # By user, the last entry everybody: processors held, and usage as of a time.
        self._held = [0] * (self._users + 1)
        self._usage = [0.0] * (self._users + 1)
        self._as_of: list[float] = [0] * (self._users + 1)
        self._columns = np.array([requests.submit, size_term], np.float64)

    def changed(self, now: float, jobs: Sequence[int], sign: int) -> None:
        """Charge usage up to now, then add (+1) or remove (−1) what the jobs hold."""
        for job in jobs:
            for user in (self._user[job], self._users):
                self._charge(now, user)
                self._held[user] += sign * self._processors[job]

    def usage(self, now: float, user: int) -> float:
        """Return a user's usage as of now in processor-seconds; users by rising number."""
        self._charge(now, user)
        return self._usage[user]

    def _charge(self, now: float, user: int) -> None:
        """Bring a user's usage up to now: the integral above in closed form."""
        if now == self._as_of[user]:
            return
        half_life = self._weights.half_life_s
        left = 0.5 ** ((now - self._as_of[user]) / half_life)
        self._usage[user] = self._usage[user] * left + self._held[user] * (1 - left) * half_life / log(2)
        self._as_of[user] = now

    def sort(self, now: float, queue: list[int]) -> None:
        """Sort job numbers by falling priority as of now."""
        if len(queue) < 2:  # noqa: PLR2004 - nothing to sort
            return
        shares = self._shares(now, {self._user[job] for job in queue})
        jobs = np.array(queue)
        submit, size_term = self._columns[:, jobs]
        share = np.array([shares[self._user[job]] for job in queue])
        age = np.minimum((now - submit) / self._weights.age_max_s, 1)
        priority = self._weights.age * age + size_term + share
        queue[:] = jobs[np.lexsort((jobs, -priority))].tolist()

    def _shares(self, now: float, users: Iterable[int]) -> dict[int, float]:
        """Return the weighted fair-share terms of users."""
        weight, total = self._weights.fairshare, self.usage(now, self._users)
        if not total:
            return dict.fromkeys(users, weight)
        # The exponent is a share times the number of users: never an overflow.
        return {user: weight * 2.0 ** (-self._users * self.usage(now, user) / total) for user in users}
