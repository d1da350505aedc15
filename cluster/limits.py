"""Limits over sets of jobs: the most cores, nodes, gres or jobs of an account, a QOS and so on."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

from .checks import named
from .errors import InputError
from .text import plural
from .value_types import (
    Choice,
    CountMap,
    Embedded,
    Integer,
    IntLikeByName,
    Name,
    NameList,
    NameTuple,
    Text,
    coerce_members,
    member,
    value_class,
)

#: What a set of jobs may name, and what a limit may hold for each of.
JOB_MEMBERS = ("user", "group", "account", "qos", "partition")


class Lasting(StrEnum):
    """How long what a job takes of a limit counts."""

    RUN = "while the job runs"
    BUDGET = "for good; when a job ends early, the unused part of its time limit is returned"
    STEP = "in the step that starts the job"


#: What may be limited, besides ``gres/NAME`` and ``gres/NAME:TYPE``, which count while a job runs.
AMOUNTS: dict[str, Lasting] = {
    "cores": Lasting.RUN,
    "nodes": Lasting.RUN,
    "jobs": Lasting.RUN,
    "core_seconds": Lasting.BUDGET,
}
_GRES = re.compile(r"gres/[^/\s]+")


def limited(what: str, count: int) -> str:
    """Return an amount that a limit names: ``1 core``, ``5 core-seconds``, ``2 gres/gpu``."""
    unit = what.replace("_", "-")
    return plural(count, unit.removesuffix("s")) if what in AMOUNTS else f"{count} {unit}"


@value_class
class Owned:
    """Whose a pending or running job is; ``partition``: its own, or several with commas between."""

    #: Whether it runs: a limit counts what runs, also where it holds back no such job.
    runs = False
    user: str = member(Text(), default="")
    group: str = member(Text(), default="")
    account: str = member(Text(), default="")
    qos: str = member(Text(), default="")
    partition: str = member(Text(), default="")


def members_of(job: Owned) -> dict[str, Any]:
    """Return whose a job is, by the members of ``Owned``."""
    return {name: getattr(job, name) for name in JOB_MEMBERS}


@dataclass(frozen=True, slots=True)
class FilledNames(NameList):
    """Names that are not empty; in files one may stand without a list."""

    def coerced(self, value: Any, path: str) -> Any:
        """Return them as a tuple."""
        names = NameList.coerced(self, value, path)
        for name in names:
            named(name, path)
        return names


@dataclass(frozen=True, slots=True)
class LimitMap(CountMap):
    """What is limited, and to how much."""

    def coerced(self, value: Any, path: str) -> Any:
        """Return it with Python's integers."""
        made: Mapping[str, int] = CountMap.coerced(self, value, path)
        if not made:
            raise InputError("nothing is limited", path=path)
        for what in made:
            if what not in AMOUNTS and not _GRES.fullmatch(what):
                raise InputError(f"{what!r} is not one of {', '.join(AMOUNTS)}, gres/NAME", path=path)
        return made


@value_class
class JobSet:
    """The jobs of some users, groups, accounts, QOS and partitions: all that are given must match.

    A member without names takes every job. A job of several partitions is in the set of each.
    ``except_qos``: waiting jobs of one of these QOS are not in the set, those that run are. A job of
    several partitions is left out only if it names no other QOS.

    Examples:
        >>> from aucsched import Job, Request
        >>> JobSet(account=("physics",)).holds(Job(id="1", priority=1, request=Request(cores=1)))
        False
    """

    user: NameTuple = member(FilledNames(), default=())
    group: NameTuple = member(FilledNames(), default=())
    account: NameTuple = member(FilledNames(), default=())
    qos: NameTuple = member(FilledNames(), default=())
    partition: NameTuple = member(FilledNames(), default=())
    except_qos: NameTuple = member(FilledNames(), default=())

    def __post_init__(self) -> None:
        coerce_members(self)

    def holds(self, job: Owned) -> bool:
        """Return whether a job is in the set."""
        if self.except_qos and not job.runs:
            excepted = (qos in self.except_qos for qos in job.qos.split(","))
            if all(excepted) if "," in job.partition else any(excepted):
                return False
        return all(
            not names or any(given in names for given in getattr(job, name).split(","))
            for name in JOB_MEMBERS
            for names in (getattr(self, name),)
        )


@value_class
class Limit:
    """The most that the running jobs of a set may hold together.

    Attributes:
        name: for messages; unique.
        jobs: the set.
        most: by ``cores``, ``nodes``, ``jobs``, ``core_seconds`` and ``gres/NAME`` (of every type,
            or of one: ``gres/NAME:TYPE``). Core-seconds are those still to come: of a running job
            its cores times the seconds to its estimated end; the writer subtracts past usage.
        per: None: the set together; a member of JOB_MEMBERS: this amount for the jobs of each.

    Examples:
        >>> Limit(name="physics", jobs=JobSet(account="physics"), most={"cores": 512}).most["cores"]
        512
    """

    name: str = member(Name())
    jobs: JobSet = member(Embedded(JobSet), default_factory=JobSet)
    most: IntLikeByName = member(LimitMap(Integer(0)), file="max")
    per: str | None = member(Choice(JOB_MEMBERS), default=None)

    def __post_init__(self) -> None:
        coerce_members(self)


class _HasJobSet(Protocol):
    """What is said of a set of jobs."""

    @property
    def jobs(self) -> JobSet:
        """The set."""
        ...


Limiting = TypeVar("Limiting", bound=_HasJobSet)


class JobSetIndex(Generic[Limiting]):
    """Which of some entries hold for a job: a site may have one for each user."""

    def __init__(self, entries: Sequence[Limiting]) -> None:
        self._entries = entries
        self._of_user: dict[str, list[int]] = {}
        self._known: dict[tuple[str | bool, ...], tuple[Limiting, ...]] = {}
        for place, entry in enumerate(entries):
            for user in entry.jobs.user or ("",):
                self._of_user.setdefault(user, []).append(place)

    def find(self, job: Owned) -> tuple[Limiting, ...]:
        """Return the entries with a job in their set, in their order."""
        key = (job.runs, *(getattr(job, name) for name in JOB_MEMBERS))
        if key not in self._known:
            places = {place for user in ("", *job.user.split(",")) for place in self._of_user.get(user, ())}
            found = (self._entries[place] for place in sorted(places))
            self._known[key] = tuple(entry for entry in found if entry.jobs.holds(job))
        return self._known[key]


def of_gres(what: str, gres: Mapping[str, int]) -> int:
    """Return how many of some gres ``gres/NAME`` counts: of NAME and of each type of it."""
    name = what.removeprefix("gres/")
    return sum(count for kind, count in gres.items() if kind == name or kind.startswith(f"{name}:"))
