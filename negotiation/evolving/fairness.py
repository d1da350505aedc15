"""Dynamic fairness: how long running jobs may put off queued ones (Prabhakaran, section III-D).

Budgets are the same limits as the engine sees them: what users may still be put off by, counted as
licences of milliseconds. A bidding request takes of each budget what its grant alone would delay
that budget's jobs: one row of the program for each (bidgen/families/pooled.py). Several grants
together may delay more than each alone: awards are measured once more, together, before they count.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from math import ceil, floor, inf
from typing import Any

import msgspec

from ...cluster.checks import LARGEST_COUNT
from ...cluster.errors import InputError
from ...cluster.limits import Owned

#: Whom limits are set for, as Maui calls them; the class of a job is its partition.
KINDS = ("user", "group", "account", "class", "qos")
#: Limits of this name hold for every name that says nothing itself.
DEFAULT = "DEFAULT"
#: DFSInterval where nothing is said: the paper's experiments.
INTERVAL_S = 3600.0


class DelayPolicy(StrEnum):
    """DFSPolicy: nothing is limited, each job's delay, a user's in an interval, or both."""

    NONE = "none"
    SINGLE = "single_job_delay"
    TARGET = "target_delay"
    BOTH = "single_target_delay"

    @property
    def limits_jobs(self) -> bool:
        """Whether DFSSingleDelayTime is read."""
        return self in (DelayPolicy.SINGLE, DelayPolicy.BOTH)

    @property
    def limits_intervals(self) -> bool:
        """Whether DFSTargetDelayTime is read."""
        return self in (DelayPolicy.TARGET, DelayPolicy.BOTH)


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayLimits:
    """What one user, group, account, class or QOS bears; None: as DEFAULT says.

    Attributes:
        permitted: DFSDynDelayPerm; False: its jobs are never put off.
        single_s: DFSSingleDelayTime, of each job over all grants; 0: no limit.
        target_s: DFSTargetDelayTime, of all its jobs together in an interval; 0: no limit.
    """

    permitted: bool | None = None
    single_s: float | None = None
    target_s: float | None = None

    def over(self, other: "DelayLimits") -> "DelayLimits":
        """Return these limits, and another's where these say nothing."""
        mine = {one.name: getattr(self, one.name) for one in fields(self)}
        return replace(other, **{name: value for name, value in mine.items() if value is not None})


_NOTHING = DelayLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fairness:
    """A configuration (figure 6).

    Attributes:
        policy: DFSPolicy.
        interval_s: DFSInterval.
        decay: DFSDecay, the share of an interval's delay that the next one begins with.
        limits: by kind and name.
    """

    policy: DelayPolicy = DelayPolicy.NONE
    interval_s: float = INTERVAL_S
    decay: float = 0.0
    limits: Mapping[tuple[str, str], DelayLimits] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.interval_s:
            raise InputError("0 is not a time above 0", path="interval")

    def of(self, kind: str, name: str) -> DelayLimits:
        """Return the limits of one name."""
        own = self.limits.get((kind, name), _NOTHING)
        return own.over(self.limits.get((kind, DEFAULT), _NOTHING))


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """How much later a queued job would start, in seconds."""

    job: str
    owner: Owned
    seconds: float


class Accounts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The delays that are counted so far, as files hold them.

    Attributes:
        since_s: when the interval began.
        targets: seconds in this interval, with what the last one left, by kind and name.
        singles: seconds by job, over all grants; never reset.
    """

    since_s: float = 0.0
    targets: dict[str, dict[str, float]] = {}
    singles: dict[str, float] = {}

    def rolled(self, fairness: Fairness, now_s: float) -> "Accounts":
        """Return them at a time: each interval that has ended leaves the share ``decay``."""
        passed = int((now_s - self.since_s) // fairness.interval_s)
        if passed < 1:
            return self
        targets: dict[str, dict[str, float]] = {}
        for kind, names in self.targets.items():
            for name, seconds in names.items():
                if (left := seconds * fairness.decay**passed) > 0:
                    targets.setdefault(kind, {})[name] = left
        return msgspec.structs.replace(
            self, since_s=self.since_s + passed * fairness.interval_s, targets=targets
        )


def at_start(fairness: Fairness, now_s: float) -> Accounts:
    """Return empty accounts, whose intervals are counted from 0 on."""
    return Accounts(since_s=now_s // fairness.interval_s * fairness.interval_s)


def credentials(owner: Owned) -> Iterator[tuple[str, str]]:
    """Yield whose a job is, by kind and name; a job of several partitions is of each class."""
    yield "user", owner.user
    yield "group", owner.group
    yield "account", owner.account
    for name in dict.fromkeys(owner.partition.split(",")):
        yield "class", name
    yield "qos", owner.qos


def counts(delay: Delay, requester: Owned) -> bool:
    """Return whether a delay counts: one of another user's job, or of a job without a user."""
    user = delay.owner.user
    return delay.seconds > 0 and not (user and user == requester.user)


def delays_document(delays: Iterable[Delay], requester: Owned) -> list[dict[str, Any]]:
    """Return delays for a request as plain values, each with whether it counts."""
    return [
        {
            "job": delay.job,
            "user": delay.owner.user,
            "seconds": None if delay.seconds == inf else delay.seconds,
            "counts": counts(delay, requester),
        }
        for delay in delays
    ]


def charged(
    accounts: Accounts, fairness: Fairness, requester: Owned, delays: Iterable[Delay]
) -> Accounts | str:
    """Return the accounts after a grant, or why it would be unfair.

    The most restrictive limit decides.
    """
    if fairness.policy is DelayPolicy.NONE:
        return accounts
    targets = {kind: dict(names) for kind, names in accounts.targets.items()}
    singles = dict(accounts.singles)
    for delay in delays:
        if not counts(delay, requester):
            continue
        seconds = min(delay.seconds, LARGEST_COUNT)  # a file of accounts holds numbers only
        singles[delay.job] = singles.get(delay.job, 0.0) + seconds
        for kind, name in credentials(delay.owner):
            of_kind = targets.setdefault(kind, {})
            of_kind[name] = of_kind.get(name, 0.0) + seconds
            why = _beyond(fairness, (kind, name), delay.job, of_kind[name], singles[delay.job])
            if why:
                return why
    return Accounts(since_s=accounts.since_s, targets=targets, singles=singles)


def _beyond(fairness: Fairness, name: tuple[str, str], job: str, target_s: float, single_s: float) -> str:
    """Return which limit of a name is broken, empty when none is."""
    limits, policy = fairness.of(*name), fairness.policy
    who = " ".join(name)
    if limits.permitted is False:
        return f"job {job} of {who} must not be delayed"
    if policy.limits_jobs and limits.single_s and single_s > limits.single_s:
        return (
            f"job {job} would be delayed by {single_s:g} s in all, above the {limits.single_s:g} s of {who}"
        )
    if policy.limits_intervals and limits.target_s and target_s > limits.target_s:
        return f"{who} would be delayed by {target_s:g} s in this interval, above {limits.target_s:g} s"
    return ""


def same_for_every_user(target_s: float, *, interval_s: float = INTERVAL_S, decay: float = 0.0) -> Fairness:
    """Return Dynamic-500's and Dynamic-600's configuration: so many seconds a user and interval."""
    return Fairness(
        policy=DelayPolicy.TARGET,
        interval_s=interval_s,
        decay=decay,
        limits={("user", DEFAULT): DelayLimits(target_s=target_s)},
    )


_MS = 1000
#: A budget of nothing, of which any delay takes something.
_FORBIDDEN = -1.0


class Budgets:
    """What is left of each limit that requests would touch, and what each request takes.

    Attributes:
        left: milliseconds by budget.
        costs: milliseconds by budget, by request.
    """

    def __init__(self, fairness: Fairness, accounts: Accounts) -> None:
        self._fairness, self._accounts = fairness, accounts
        self.left: dict[str, int] = {}
        self.costs: dict[str, dict[str, int]] = {}

    def add(self, request: str, requester: Owned, delays: Iterable[Delay]) -> None:
        """Count what a request alone would delay."""
        taken = self.costs.setdefault(request, {})
        for delay in delays:
            if not counts(delay, requester):
                continue
            cost = LARGEST_COUNT if delay.seconds == inf else ceil(_MS * delay.seconds)
            for name, left_s in self._rows(delay):
                self.left[name] = max(0, min(LARGEST_COUNT, floor(_MS * left_s)))
                taken[name] = min(LARGEST_COUNT, taken.get(name, 0) + cost)

    def _rows(self, delay: Delay) -> Iterator[tuple[str, float]]:
        """Yield the budgets of a delayed job, and the seconds that are left of each."""
        policy, accounts = self._fairness.policy, self._accounts
        for kind, name in credentials(delay.owner):
            limits = self._fairness.of(kind, name)
            if limits.permitted is False:
                yield f"no delay of {kind} {name}", _FORBIDDEN
            if policy.limits_intervals and limits.target_s:
                used = accounts.targets.get(kind, {}).get(name, 0.0)
                yield f"delay of {kind} {name}", limits.target_s - used
            if policy.limits_jobs and limits.single_s:
                used = accounts.singles.get(delay.job, 0.0)
                yield f"delay of job {delay.job} by {kind}", limits.single_s - used
