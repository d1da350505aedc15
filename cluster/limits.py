"""Limits over sets of jobs: the most cores, nodes, gres or jobs of an account, a QOS and the like."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from .checks import at_least, named
from .errors import InputError

#: What a set of jobs may name, and what a limit may hold for each of.
JOB_MEMBERS = ("user", "group", "account", "qos", "partition")


class Lasting(StrEnum):
    """How long what a job takes of a limit counts."""

    RUN = "while the job runs"
    BUDGET = "for good; what a job leaves of its time limit is returned"
    STEP = "in the step that starts the job"


#: What may be limited, besides ``gres/NAME`` and ``gres/NAME:TYPE``, which count while a job runs.
AMOUNTS: dict[str, Lasting] = {
    "cores": Lasting.RUN,
    "nodes": Lasting.RUN,
    "jobs": Lasting.RUN,
    "core_seconds": Lasting.BUDGET,
}
_GRES = re.compile(r"gres/[^/\s]+")


class Owned(Protocol):
    """A pending or running job: whose it is."""

    @property
    def user(self) -> str:
        """Its user."""
        ...

    @property
    def group(self) -> str:
        """Its group."""
        ...

    @property
    def account(self) -> str:
        """Its account."""
        ...

    @property
    def qos(self) -> str:
        """Its QOS."""
        ...

    @property
    def partition(self) -> str:
        """Its partition, or those it could start in, with commas between."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSet:
    """The jobs of one of some users, groups, accounts, QOS and partitions: all that are given must match.

    A member without names takes every job. A job that names several partitions is in the set of each.

    Examples:
        >>> from aucsched import Job, Request
        >>> JobSet(account=("physics",)).holds(Job(id="1", priority=1, request=Request(cores=1)))
        False
    """

    user: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    account: tuple[str, ...] = ()
    qos: tuple[str, ...] = ()
    partition: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for member in JOB_MEMBERS:
            for name in getattr(self, member):
                named(name, member)

    def holds(self, job: Owned) -> bool:
        """Return whether a job is in the set."""
        return all(
            not names or any(name in names for name in getattr(job, member).split(","))
            for member in JOB_MEMBERS
            for names in (getattr(self, member),)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The most that the running jobs of a set may hold together.

    Attributes:
        name: for messages; unique.
        jobs: the set.
        most: by ``cores``, ``nodes``, ``jobs``, ``core_seconds`` and ``gres/NAME`` (of every type, or of one:
            ``gres/NAME:TYPE``). Core-seconds are those still to come: of a running job its cores times the
            seconds to its estimated end; the writer subtracts past usage.
        per: None: the set together; a member of JOB_MEMBERS: this amount for the jobs of each.

    Examples:
        >>> Limit(name="physics", jobs=JobSet(account=("physics",)), most={"cores": 512}).most["cores"]
        512
    """

    name: str
    jobs: JobSet = field(default_factory=JobSet)
    most: Mapping[str, int]
    per: str | None = None

    def __post_init__(self) -> None:
        named(self.name, "name")
        if not self.most:
            raise InputError("nothing is limited", path="max")
        for what, count in self.most.items():
            if what not in AMOUNTS and not _GRES.fullmatch(what):
                raise InputError(f"{what!r} is not one of {', '.join(AMOUNTS)}, gres/NAME", path="max")
            at_least(count, 0, f"max.{what}")
        if self.per is not None and self.per not in JOB_MEMBERS:
            raise InputError(f"{self.per!r} is not one of {', '.join(JOB_MEMBERS)}", path="per")


def of_gres(what: str, gres: Mapping[str, int]) -> int:
    """Return how many of some gres ``gres/NAME`` counts: of NAME and of each type of it."""
    name = what.removeprefix("gres/")
    return sum(count for kind, count in gres.items() if kind == name or kind.startswith(f"{name}:"))
