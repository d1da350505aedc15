"""Limits of QOS and associations: ``scontrol show assoc_mgr``, ``sacctmgr -P show qos|assoc``."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import NamedTuple, Self

from ...cluster.checks import LARGEST_COUNT
from ...cluster.errors import InputError
from ...cluster.jobs import Job, Request, Span
from ...cluster.limits import JobSet, Limit, Owned, of_gres
from ...formats.notes import Notes
from .answer_text import count_of, duration_s
from .limit_records import LimitRecord, read_records

#: ``512``, ``512(128)`` with its use (64 bits: a job without time limit), ``N(0)`` without a limit.
_COUNT = re.compile(
    r"(?:N|(?P<limit>\d{1,20}[KMGTP]?|\d{1,15}\.\d{1,6}[KMGTP]))?(?:\((?P<used>\d{1,20})(?:\.\d+)?\))?"
)
_AMOUNTS = {"cpu": "cores", "node": "nodes"}
#: Limits over jobs together that are read: of all, of each user's, of each account's.
_TOGETHER = {
    "GrpTRES": None,
    "GrpTRESMins": None,
    "GrpTRESRunMins": None,
    "GrpJobs": None,
    "MaxJobs": None,
    "MaxTRESPU": "user",
    "MaxJobsPU": "user",
    "MaxTRESPA": "account",
    "MaxJobsPA": "account",
}
#: Limits of one job that are read: what of it they limit.
_ONE = {"MaxTRESPJ": "most", "MaxTRESMinsPJ": "most", "MinTRESPJ": "least", "MaxWallPJ": "time_s"}
#: What sacctmgr calls some of them.
_ALIASES = {name.removesuffix("PJ"): name for name in _ONE}
_READ = _TOGETHER.keys() | _ONE.keys()
#: Where Slurm tells how many minutes running jobs may use still.
_USED = re.compile(r"\bcpu=\w*\((\d+)")
#: Flags of a QOS that lift or add limits.
_FLAGS = {
    "EnforceUsageThreshold",
    "PartitionMaxNodes",
    "PartitionMinNodes",
    "PartitionTimeLimit",
    "Relative",
    "RequiresReservation",
    "UsageFactorSafe",
}
#: Limits that say nothing about who starts now, and usage.
_SILENT = re.compile(r".*(Submit|Accrue).*|Usage\w*|Shares\w*|Priority|Flags|Lft|ID|Def\w*")
_LIMIT = re.compile(r"(Grp|Max|Min)\w+|LimitFactor|Preempt")
#: Why a job waits in Slurm's words that a limit may say again: whose it is, and what it limits.
_LIMIT_REASON = re.compile(
    r"(Assoc|QOS|(?=Max\w+PerAccount))(?:Grp(?=Cpu|Node|Jobs|CPU|GRES)|Max(?=\w+Per(?:User|Account)|Jobs))"
    r"(Cpu|Node|Jobs|CPUMinutes|CPURunMinutes|GRES)(?:Per(User|Account))?(?:Limit)?"
)
_LIMITED = {"Cpu": "cores", "Node": "nodes", "Jobs": "jobs", "GRES": "gres/"}

#: What scontrol's answer names; without accounting it has no account.
_MANAGER = "Association Manager"
PARENTS_NOTE = "which accounts are below others is not told: associations with ParentName tell"
#: What a limit of one job counts, in Slurm's words.
_WORDS = {"cores": "Cpu", "nodes": "Node", "core_seconds": "CpuMinutes"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OneJob:
    """What a set's job may ask for at most (MaxTRESPJ, MaxTRESMinsPJ, MaxWall), at least (MinTRES).

    Attributes:
        name: of the QOS or association.
        jobs: the set.
        most: by ``cores``, ``nodes``, ``core_seconds`` and ``gres/NAME``.
        least: by ``cores``, ``nodes`` and ``gres/NAME``.
        time_s: its longest time limit; None: any.
    """

    name: str
    jobs: JobSet
    most: Mapping[str, int] = field(default_factory=dict)
    least: Mapping[str, int] = field(default_factory=dict)
    time_s: int | None = None

    def refusal(self, job: Job, cores_of_node: int) -> str | None:
        """Return Slurm's word for what a job breaks; a whole node has at least so many cores."""
        kind = "QOS" if self.jobs.qos else "Assoc"
        request = job.request
        # Of whole nodes all cores count (tried on 22.05).
        cores = max(request.fewest_cores, request.exclusive * cores_of_node * request.fewest_nodes)
        asked: dict[str, float] = {"cores": cores, "nodes": request.fewest_nodes}
        asked["core_seconds"] = cores * (job.time_limit_s or inf)
        for what, most in self.most.items():
            if what.startswith("gres/"):
                if of_gres(what, request.fewest_gres) > most:
                    return f"{kind}MaxGRESPerJob"
            elif asked[what] > most:
                return f"{kind}Max{_WORDS[what]}PerJobLimit"
        if self.time_s is not None and (job.time_limit_s is None or job.time_limit_s > self.time_s):
            return f"{kind}MaxWallDurationPerJobLimit"
        return self._below(request, cores)

    def _below(self, request: Request, cores: int) -> str | None:
        """Return Slurm's word for what a job asks too little of (tried on 22.05)."""
        for what, least in self.least.items():
            if what.startswith("gres/"):
                if of_gres(what, request.fewest_gres) < least:
                    return "QOSMinGRES"
            elif what == "cores" and cores < least:
                return "QOSMinCpuNotSatisfied"
            elif what == "nodes" and self.fitted(request).fewest_nodes < least:
                return "QOSMinNode"
        return None

    def fitted(self, request: Request) -> Request:
        """Return a request on no more nodes than one job may have, and on no fewer."""
        span = request.node_counts
        if span is not None and request.nodes is None:
            return request
        low, high = (1, request.fewest_cores) if span is None else (span.minimum, span.maximum)
        least = min(max(low, self.least.get("nodes", 1)), high)
        most = max(min(high, self.most.get("nodes", high)), least)
        return (
            request
            if (low, high) == (least, most)
            else replace(request, nodes=Span(minimum=least, maximum=most))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Associations:
    """What QOS and associations say.

    Attributes:
        limits: over sets of jobs.
        each: of one job.
        used: the core-seconds that Slurm counts of running jobs, by limit.
        parents: the account above each account; None: not told.
        qos: the names of the QOS.
    """

    limits: tuple[Limit, ...] = ()
    each: tuple[OneJob, ...] = ()
    used: Mapping[str, int] = field(default_factory=dict)
    parents: Mapping[str, str] | None = None
    qos: frozenset[str] = frozenset()


class _Amount(NamedTuple):
    """A limit that an entry sets: its name, what it limits, and to how much; None: not told."""

    key: str
    what: str
    most: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Precedence:
    """Which QOS set a limit that another one, or an association, would set otherwise.

    Slurm takes a limit from the QOS of the job's partition, else from the job's QOS, else from its
    associations; a job's QOS with ``OverPartQOS`` comes first (tried on 22.05).

    Attributes:
        setting: the QOS that set a limit, by its name and what it limits.
        first: those with ``OverPartQOS``.
        of_partitions: those that a partition has.
    """

    setting: Mapping[tuple[str, str], frozenset[str]]
    first: frozenset[str]
    of_partitions: frozenset[str]

    @classmethod
    def of(cls, told: Iterable[tuple[LimitRecord, Iterable[_Amount]]], of_partitions: Iterable[str]) -> Self:
        """Return what the QOS among entries say."""
        found: dict[tuple[str, str], set[str]] = {}
        first: set[str] = set()
        for entry, own in (one for one in told if one[0].qos):
            for one in own:
                found.setdefault((one.key, one.what), set()).add(entry.qos)
            if "OverPartQOS" in entry.fields.get("Flags", "").split(","):
                first.add(entry.qos)
        setting = {limit: frozenset(names) for limit, names in found.items()}
        return cls(setting=setting, first=frozenset(first), of_partitions=frozenset(of_partitions))

    def before(self, entry: LimitRecord, one: _Amount) -> tuple[str, ...]:
        """Return the QOS of the jobs that an entry's limit does not hold back."""
        keys = ("MaxJobsPU", "MaxJobsPA") if one.key == "MaxJobs" else (one.key,)
        found = frozenset[str]().union(*(self.setting.get((key, one.what), ()) for key in keys))
        if entry.qos in self.of_partitions:
            found &= self.first
        elif entry.qos:
            found &= self.of_partitions if entry.qos not in self.first else frozenset()
        return tuple(sorted(found - {entry.qos}))


def read_limits(
    text: str,
    notes: Notes,
    *,
    cluster: str = "",
    partitions: Mapping[str, str] | None = None,
    is_safe: bool = True,
) -> Associations:
    """Return the limits of every QOS and association; what is not read is noted.

    ``cluster``: its name, if known: sacctmgr prints the associations of all clusters.
    ``partitions``: the cluster's, each with its QOS; a user may have an association for each.
    ``is_safe``: no job starts that could exceed its minutes (``AccountingStorageEnforce=safe``).

    Raises:
        InputError: the text is neither command's, a value is no number, or it is of other clusters.
    """
    entries, partitions = read_records(text, cluster.lower()), partitions or {}
    told = [(entry, tuple(_limits_in(entry, notes, is_safe=is_safe))) for entry in entries]
    precedence = _Precedence.of(told, filter(None, partitions.values()))
    children: dict[str, list[str]] = {}
    parents: dict[str, str] = {}
    others: dict[tuple[str, str], set[str]] = {}
    for entry in entries:
        if entry.partition:
            others.setdefault((entry.account, entry.user), {*partitions}).discard(entry.partition)
        if entry.account and not entry.user and entry.parent:
            children.setdefault(entry.parent, []).append(entry.account)
            parents[entry.account] = entry.parent
    limits: dict[str, Limit] = {}
    used: dict[str, int] = {}
    each: list[OneJob] = []
    for entry, own in told:
        jobs = _set_of(entry, children, others.get((entry.account, entry.user), ()))
        for limit in _limits(entry, own, jobs, precedence):
            limits[limit.name] = limit
            match = _USED.search(entry.fields.get("GrpTRESRunMins", ""))
            if match and limit.per is None and "core_seconds" in limit.most:
                used[limit.name] = 60 * int(match[1])
        each.extend(_each(entry, own, jobs, precedence))
        _note_others(entry, notes)
    return Associations(
        limits=tuple(limits.values()),
        each=tuple(each),
        used=used,
        parents=parents if _tells_parents(entries, notes) and (parents or _MANAGER in text) else None,
        qos=frozenset(entry.qos for entry in entries if entry.qos),
    )


def _tells_parents(entries: Iterable[LimitRecord], notes: Notes) -> bool:
    """Return whether the entries tell the accounts above; a default table of sacctmgr does not."""
    is_told = all(entry.parent is not None for entry in entries)
    if not is_told:
        notes.unread("limits", PARENTS_NOTE)
    return is_told


def _each(
    entry: LimitRecord, own: Iterable[_Amount], jobs: JobSet, precedence: _Precedence
) -> Iterator[OneJob]:
    """Yield what one job of an entry may ask for."""
    groups: dict[tuple[str, ...], dict[str, dict[str, int]]] = {}
    for one in own:
        if one.key in _ONE and one.most is not None:
            members = groups.setdefault(precedence.before(entry, one), {})
            members.setdefault(_ONE[one.key], {})[one.what] = one.most
    for others, members in groups.items():
        yield OneJob(
            name=entry.name,
            jobs=replace(jobs, except_qos=others),
            most=members.get("most", {}),
            least=members.get("least", {}),
            time_s=members.get("time_s", {}).get("seconds"),
        )


def _limits(
    entry: LimitRecord, own: Iterable[_Amount], jobs: JobSet, precedence: _Precedence
) -> Iterator[Limit]:
    """Yield an entry's limits over jobs together, those of the same jobs as one."""
    groups: dict[tuple[str, str | None, tuple[str, ...]], dict[str, int]] = {}
    for one in own:
        if one.key in _TOGETHER and one.most is not None:
            per = _TOGETHER[one.key]
            name = " GrpTRESRunMins" if one.key == "GrpTRESRunMins" else f" each {per}" if per else ""
            most = groups.setdefault((name, per, precedence.before(entry, one)), {})
            most[one.what] = min(one.most, most.get(one.what, one.most))
    for (name, per, others), most in groups.items():
        but = f" except qos {', '.join(others)}" if others else ""
        counted = replace(jobs, except_qos=others)
        yield Limit(name=f"{entry.name}{name}{but}", jobs=counted, most=most, per=per)


def _limits_in(entry: LimitRecord, notes: Notes, *, is_safe: bool) -> Iterator[_Amount]:
    """Yield an entry's limits; an account's for a job or a user are its users' defaults."""
    known = _TOGETHER.keys() - {"MaxJobs"} if entry.account and not entry.user else _READ
    for name, text in entry.fields.items():
        key = _ALIASES.get(name, name)
        if key not in known:
            continue
        if "TRES" in key:
            for one in _amounts(entry, name, notes, is_safe=is_safe):
                is_beyond = one.most is not None and one.most > LARGEST_COUNT
                if is_beyond:
                    said = f"{entry.name}: {name}={text[:60]} is beyond all that is counted"
                    notes.add("limits", f"{said}: taken as {LARGEST_COUNT} {one.what}")
                # A job without a time limit reaches it.
                yield one._replace(most=LARGEST_COUNT) if is_beyond else one
        elif key == "MaxWallPJ":
            if (seconds := _wall_s(entry, name)) is not None:
                yield _Amount(key, "seconds", seconds)
        elif (count := _count(text, entry, name)[0]) is not None:
            yield _Amount(key, "jobs", count)


def _amounts(entry: LimitRecord, name: str, notes: Notes, *, is_safe: bool) -> Iterator[_Amount]:
    """Yield what a limit of an entry says of each TRES that is read."""
    key = _ALIASES.get(name, name)
    for tres, limit, used in _tres(entry, name):
        is_read = tres == "cpu" if "Mins" in key else tres in _AMOUNTS or tres.startswith("gres/")
        if not is_read:
            notes.unread("limits", f"{entry.name}: {name} of {tres} is not read")
        elif key == "GrpTRESMins":
            yield _Amount(key, "core_seconds", _unused(entry, limit, used, notes, is_safe=is_safe))
        elif "Mins" in key:
            yield _Amount(key, "core_seconds", 60 * limit)
        else:
            yield _Amount(key, _AMOUNTS.get(tres, tres), limit)


def _unused(entry: LimitRecord, limit: int, used: int | None, notes: Notes, *, is_safe: bool) -> int | None:
    """Return the core-seconds that GrpTRESMins leaves; None: not told, or it holds back no job."""
    if used is None:
        told = "only scontrol show assoc_mgr tells the usage"
        notes.unread("limits", f"{entry.name}: GrpTRESMins is not read: {told}")
        return None
    # If not safe, Slurm starts any job as long as something is left.
    return 60 * max(limit - used, 0) if is_safe or used >= limit else None


def _wall_s(entry: LimitRecord, key: str) -> int | None:
    """Return MaxWall in seconds: scontrol writes minutes, sacctmgr a duration."""
    text = entry.fields[key]
    if text in ("", "UNLIMITED", "N"):
        return None
    seconds = duration_s(text)
    if seconds is None:
        raise InputError(f"{text[:60]!r} is not a duration as Slurm writes it", path=f"{entry.path} {key}")
    return seconds


def is_limit_of(limit: Limit, reason: str, job: Owned) -> bool:
    """Return whether a limit says of a job what Slurm's reason says."""
    match = _LIMIT_REASON.fullmatch(reason)
    if match is None or limit.name.startswith("qos ") != (match[1] != "Assoc") or not limit.jobs.holds(job):
        return False
    if match[3] and limit.per != match[3].lower():
        return False
    return any(what.startswith(_LIMITED.get(match[2], "core_seconds")) for what in limit.most)


def _set_of(entry: LimitRecord, children: Mapping[str, list[str]], others: Collection[str]) -> JobSet:
    """Return an entry's jobs, and those below an account; ``others``: partitions with no entry."""
    if entry.qos:
        return JobSet(qos=(entry.qos,))
    if entry.user:
        partitions = (entry.partition,) if entry.partition else tuple(sorted(others))
        return JobSet(account=(entry.account,), user=(entry.user,), partition=partitions)
    accounts = [] if entry.account == "root" else [entry.account]
    for account in accounts:
        accounts += [name for name in children.get(account, []) if name not in accounts]
    return JobSet(account=tuple(accounts))


def _count(text: str, entry: LimitRecord, key: str) -> tuple[int | None, int | None]:
    """Return a limit and what is used of it, each None where it is not told."""
    match = _COUNT.fullmatch(text)
    if match is None:
        raise InputError(f"{text[:60]!r} is not a number as Slurm writes it", path=f"{entry.path} {key}")
    limit, used = match["limit"], match["used"]
    return None if limit is None else count_of(limit), None if used is None else int(used)


def _tres(entry: LimitRecord, key: str) -> Iterator[tuple[str, int, int | None]]:
    """Yield each TRES that is limited, the limit, and what is used of it."""
    for part in filter(None, entry.fields.get(key, "").split(",")):
        name, _, value = part.partition("=")
        limit, used = _count(value, entry, key)
        if limit is not None:
            yield name, limit, used


def _note_others(entry: LimitRecord, notes: Notes) -> None:
    """Note limits that are set and not read."""
    for flag in sorted(_FLAGS.intersection(entry.fields.get("Flags", "").split(","))):
        notes.unread("limits", f"{entry.name}: Flags={flag} is not read")
    for key, value in entry.fields.items():
        is_read = _ALIASES.get(key, key) in _READ and (key != "MaxJobs" or entry.account)
        if is_read or not _LIMIT.fullmatch(key) or _SILENT.fullmatch(key):
            continue
        names = key == "Preempt" and value not in ("", "N/A", "(null)")
        values = [part.partition("=")[2] or part for part in value.split(",")]
        if names or (key != "Preempt" and any(one and not one.startswith("N") for one in values)):
            notes.unread("limits", f"{entry.name}: {key} is not read")
