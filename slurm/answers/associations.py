"""Limits of QOS and associations: ``scontrol show assoc_mgr``, ``sacctmgr -P show qos|assoc``."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Self

from ...cluster.errors import InputError
from ...cluster.jobs import Job, Request, RunningJob, Span
from ...cluster.limits import JobSet, Limit, Owned, of_gres
from ...cluster.resources.pools import LimitPool, Pools
from ...cluster.text import listed, plural
from ...formats.notes import Notes
from .answer_text import duration_s

#: ``512``, ``512(128)`` with its use (64 bits: a job without time limit), ``N(0)`` without a limit.
_COUNT = re.compile(r"(?P<limit>N|\d{1,13})?(?:\((?P<used>\d{1,20})(?:\.\d+)?\))?")
_PAIR = re.compile(r"([A-Z][A-Za-z]*)=(\S*)")
_AMOUNTS = {"cpu": "cores", "node": "nodes"}
#: Limits that are read: of all jobs together, of each user's, of each account's.
_TRES = {"GrpTRES": None, "MaxTRESPU": "user", "MaxTRESPA": "account"}
_JOBS = {"GrpJobs": None, "MaxJobsPU": "user", "MaxJobsPA": "account"}
#: Where Slurm tells how many minutes running jobs may use still.
_USED = re.compile(r"\bcpu=\w*\((\d+)")
#: Limits of one job: holdings, duration, and their product; sacctmgr's names, scontrol's.
_EACH, _WALL, _PRODUCT = ("MaxTRESPJ", "MaxTRES"), ("MaxWallPJ", "MaxWall"), ("MaxTRESMinsPJ", "MaxTRESMins")
_LEAST = ("MinTRESPJ", "MinTRES")
_READ = {*_TRES, *_JOBS, *_EACH, *_LEAST, *_WALL, *_PRODUCT, "GrpTRESMins", "GrpTRESRunMins"}
#: Flags of a QOS that lift or add limits.
_FLAGS = {
    "EnforceUsageThreshold",
    "OverPartQOS",
    "PartitionMaxNodes",
    "PartitionMinNodes",
    "PartitionTimeLimit",
    "Relative",
    "RequiresReservation",
    "UsageFactorSafe",
}
#: Limits that say nothing about who starts now, and usage.
_SILENT = re.compile(r".*(Submit|Accrue).*|Usage\w*|Shares\w*|Priority|Flags|Lft|ID|Def\w*")
_LIMIT = re.compile(r"(Grp|Max|Min)\w+|Preempt")
#: Why a job waits in Slurm's words that a limit may say again: whose it is, and what it limits.
_LIMIT_REASON = re.compile(
    r"(Assoc|QOS|(?=Max\w+PerAccount))(?:Grp(?=Cpu|Node|Jobs|CPU|GRES)|Max(?=\w+Per(?:User|Account)|Jobs))"
    r"(Cpu|Node|Jobs|CPUMinutes|CPURunMinutes|GRES)(?:Per(User|Account))?(?:Limit)?"
)
_LIMITED = {"Cpu": "cores", "Node": "nodes", "Jobs": "jobs", "GRES": "gres/"}

#: What a limit of one job counts, in Slurm's words.
_WORDS = {"cores": "Cpu", "nodes": "Node", "core_seconds": "CpuMinutes"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """A QOS or an association: its limits as Slurm writes them."""

    path: str
    cluster: str = ""
    qos: str = ""
    account: str = ""
    user: str = ""
    partition: str = ""
    parent: str = ""
    fields: Mapping[str, str]

    @property
    def name(self) -> str:
        """What a limit of it is called."""
        if self.qos:
            return f"qos {self.qos}"
        parts = (("account", self.account), ("user", self.user), ("partition", self.partition))
        return " ".join(f"{what} {name}" for what, name in parts if name)


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
        parents: the account above each account.
        qos: the names of the QOS.
    """

    limits: tuple[Limit, ...] = ()
    each: tuple[OneJob, ...] = ()
    used: Mapping[str, int] = field(default_factory=dict)
    parents: Mapping[str, str] = field(default_factory=dict)
    qos: frozenset[str] = frozenset()

    def beside(
        self,
        running: Sequence[RunningJob],
        names: Mapping[str, Collection[str]],
        now: float | None,
        notes: Notes,
    ) -> Self:
        """Return them with limits that leave what Slurm's count of running jobs leaves.

        Slurm counts a node that jobs share once, and minutes times the UsageFactor of their QOS.
        ``names``: of all users and accounts, by ``per``.
        """
        pool = LimitPool(self.limits)
        pools = Pools.beside((pool,), running, now)
        again: dict[str, Counter[str]] = {limit.name: Counter() for limit in self.limits}
        seen: set[tuple[str, str, str]] = set()
        for job in running:
            for limit in (one for one in pool.limits_of(job) if "nodes" in one.most):
                who = getattr(job, limit.per) if limit.per else ""
                nodes = {(limit.name, who, node) for node in job.nodes}
                again[limit.name][who] += len(nodes & seen)
                seen |= nodes
        found: list[Limit] = []
        for limit in self.limits:
            most = dict(limit.most)
            if limit.name in self.used:
                held = most["core_seconds"] - pools.remaining(pool.resource(limit, "core_seconds", Owned()))
                most["core_seconds"] = max(most["core_seconds"] + held - self.used[limit.name], 0)
            found += _of_each(replace(limit, most=most), +again[limit.name], names, notes)
        return replace(self, limits=tuple(found))


def _of_each(
    limit: Limit, again: Mapping[str, int], names: Mapping[str, Collection[str]], notes: Notes
) -> Iterator[Limit]:
    """Yield a limit with as many nodes more as its jobs hold again: of a limit of each for those alone."""
    others = set(names.get(limit.per or "", ())) - again.keys()
    if not again or "" in others:
        yield limit
        return
    for who, count in again.items():
        name = f"{limit.name} {who}".strip()
        notes.add("limits", f"{name}: {plural(count, 'node')} that its running jobs share count once")
        most = {**limit.most, "nodes": limit.most["nodes"] + count}
        jobs = replace(limit.jobs, **{limit.per: (who,)}) if limit.per else limit.jobs
        yield replace(limit, name=name, jobs=jobs, most=most)
    if others:
        yield replace(limit, jobs=replace(limit.jobs, **{str(limit.per): tuple(sorted(others))}))


def read_limits(
    text: str, notes: Notes, *, cluster: str = "", partitions: Collection[str] = (), is_safe: bool = True
) -> Associations:
    """Return the limits of every QOS and association; what is not read is noted.

    ``cluster``: its name, where it is known: sacctmgr prints the associations of all clusters.
    ``partitions``: the cluster's, of which a user may have an association each. ``is_safe``: no job
    starts that could use more minutes than are left (``AccountingStorageEnforce=safe``).

    Raises:
        InputError: the text is neither command's, a value is no number, or it is of other clusters.
    """
    told = _of_table(text) if "|" in text.partition("\n")[0] else _of_manager(text)
    entries = _of_cluster(list(told), cluster.lower())
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
    for entry in entries:
        jobs = _set_of(entry, children, others.get((entry.account, entry.user), ()))
        for limit in _limits(entry, jobs, notes, is_safe=is_safe):
            limits[limit.name] = limit
            match = _USED.search(entry.fields.get("GrpTRESRunMins", ""))
            if match and limit.per is None and "core_seconds" in limit.most:
                used[limit.name] = 60 * int(match[1])
        each.extend(_each(entry, jobs, notes))
    return Associations(
        limits=tuple(limits.values()),
        each=tuple(each),
        used=used,
        parents=parents,
        qos=frozenset(entry.qos for entry in entries if entry.qos),
    )


def _each(entry: _Entry, jobs: JobSet, notes: Notes) -> Iterator[OneJob]:
    """Yield what one job of an entry may ask for; an account's is its users' default."""
    if entry.account and not entry.user:
        return
    most = {name: count for key in _EACH for name, count in _amounts(entry, key, notes)}
    for key in _PRODUCT:
        if (minutes := _minutes(entry, key, notes, used=False)) is not None:
            most["core_seconds"] = 60 * minutes
    time_s = next((_wall_s(entry, key) for key in _WALL if entry.fields.get(key)), None)
    least = {name: count for key in _LEAST for name, count in _amounts(entry, key, notes)}
    if most or least or time_s is not None:
        yield OneJob(name=entry.name, jobs=jobs, most=most, least=least, time_s=time_s)


def _wall_s(entry: _Entry, key: str) -> int | None:
    """Return MaxWall in seconds: scontrol writes minutes, sacctmgr a duration."""
    text = entry.fields[key]
    if text in ("UNLIMITED", "N"):
        return None
    seconds = duration_s(text)
    if seconds is None:
        raise InputError(f"{text[:60]!r} is not a duration as Slurm writes it", path=f"{entry.path} {key}")
    return seconds


def _of_table(text: str) -> Iterator[_Entry]:
    """Yield the records of one or more tables of sacctmgr, each with its heading."""
    heading: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        cells = line.split("|")
        if cells[0] in ("Name", "Cluster", "Account"):
            heading = cells
        elif line.strip():
            if len(cells) != len(heading):
                message = f"{len(cells)} fields, the heading has {len(heading)}"
                raise InputError(message, path=f"line {number}")
            yield _of_row(dict(zip(heading, cells, strict=True)), f"line {number}")


def _of_row(row: Mapping[str, str], path: str) -> _Entry:
    if "Name" in row:
        return _Entry(path=path, qos=row["Name"], fields=row)
    parent = row.get("ParentName") or row.get("Par Name") or ""
    names = ("Cluster", "Account", "User", "Partition")
    members = {member.lower(): row.get(member, "") for member in names}
    return _Entry(path=path, parent=parent, fields=row, **members)


def _of_cluster(entries: Sequence[_Entry], cluster: str) -> list[_Entry]:
    """Return the QOS and the associations of a cluster; an empty name stands for the only one."""
    named = sorted({entry.cluster for entry in entries if entry.cluster})
    if named and (cluster not in named if cluster else len(named) > 1):
        this = (
            f"this cluster is {cluster}"
            if cluster
            else "the name of this cluster is not known (--conf tells)"
        )
        raise InputError(f"the associations are of {listed(named)}; {this}", path="Cluster")
    return [entry for entry in entries if entry.cluster in ("", cluster or "".join(named))]


def _of_manager(text: str) -> Iterator[_Entry]:
    """Yield the records of scontrol: each begins with a line that is not indented."""
    if "Association Manager" not in text:
        raise InputError("neither what scontrol show assoc_mgr nor what sacctmgr -P prints", path="line 1")
    for record in re.split(r"^(?=ClusterName=|QOS=)", text, flags=re.MULTILINE)[1:]:
        # What follows the association and QOS records is of users and types.
        body = re.split(r"^(?=\S+ Records)", record, flags=re.MULTILINE)[0]
        fields: dict[str, str] = {}
        for key, value in _PAIR.findall(body):
            # Limits of each user stand with each of them again.
            fields[key] = fields.get(key) or value
        head = record.partition("\n")[0].strip()[:60]
        if record.startswith("QOS="):
            yield _Entry(path=head, qos=_plain(fields["QOS"]), fields=fields)
        else:
            yield _Entry(
                path=head,
                account=fields.get("Account", ""),
                user=_plain(fields.get("UserName", "")),
                partition=fields.get("Partition", ""),
                parent=_plain(fields.get("ParentAccount", "")),
                fields=fields,
            )


def _plain(name: str) -> str:
    """Return a name without its number: ``ann(1001)``."""
    return re.sub(r"\(\d+\)$", "", name)


def _limits(entry: _Entry, jobs: JobSet, notes: Notes, *, is_safe: bool) -> Iterator[Limit]:
    together: dict[str | None, dict[str, int]] = {None: {}, "user": {}, "account": {}}
    for key, per in _TRES.items():
        together[per] |= dict(_amounts(entry, key, notes))
    # An account's MaxJobs is what its users' associations are given by default: each shows its own.
    own: dict[str, str | None] = {"MaxJobs": None} if entry.user else {}
    for key, per in (_JOBS | own).items():
        count, _ = _count(entry.fields.get(key, ""), entry, key)
        if count is not None:
            together[per]["jobs"] = count
    budget = _minutes(entry, "GrpTRESMins", notes, used=True)
    # If not safe, Slurm starts any job as long as something is left.
    if budget is not None and (is_safe or not budget):
        together[None]["core_seconds"] = 60 * budget
    for per, most in together.items():
        if most:
            name = f"{entry.name} each {per}" if per else entry.name
            yield Limit(name=name, jobs=jobs, most=most, per=per)
    running = _minutes(entry, "GrpTRESRunMins", notes, used=False)
    if running is not None:
        name = f"{entry.name} GrpTRESRunMins"
        yield Limit(name=name, jobs=jobs, most={"core_seconds": 60 * running})
    _note_others(entry, notes)


def is_limit_of(limit: Limit, reason: str, job: Owned) -> bool:
    """Return whether a limit says of a job what Slurm's reason says."""
    match = _LIMIT_REASON.fullmatch(reason)
    if match is None or limit.name.startswith("qos ") != (match[1] != "Assoc") or not limit.jobs.holds(job):
        return False
    if match[3] and limit.per != match[3].lower():
        return False
    return any(what.startswith(_LIMITED.get(match[2], "core_seconds")) for what in limit.most)


def _set_of(entry: _Entry, children: Mapping[str, list[str]], others: Collection[str]) -> JobSet:
    """Return an entry's jobs, an account's with those below; ``others``: partitions without one."""
    if entry.qos:
        return JobSet(qos=(entry.qos,))
    if entry.user:
        partitions = (entry.partition,) if entry.partition else tuple(sorted(others))
        return JobSet(account=(entry.account,), user=(entry.user,), partition=partitions)
    accounts = [] if entry.account == "root" else [entry.account]
    for account in accounts:
        accounts += [name for name in children.get(account, []) if name not in accounts]
    return JobSet(account=tuple(accounts))


def _count(text: str, entry: _Entry, key: str) -> tuple[int | None, int | None]:
    """Return a limit and what is used of it, each None where it is not told."""
    match = _COUNT.fullmatch(text)
    if match is None:
        raise InputError(f"{text[:60]!r} is not a number as Slurm writes it", path=f"{entry.path} {key}")
    limit, used = match["limit"], match["used"]
    return None if limit in (None, "N") else int(limit), None if used is None else int(used)


def _tres(entry: _Entry, key: str) -> Iterator[tuple[str, int, int | None]]:
    """Yield each TRES that is limited, the limit, and what is used of it."""
    for part in filter(None, entry.fields.get(key, "").split(",")):
        name, _, value = part.partition("=")
        # Memory may have a unit: it is not read, only whether it is limited.
        unread = name not in _AMOUNTS and not name.startswith("gres/")
        limit, used = _count(
            re.sub(r"^(\d+)(?:\.\d+)?[KMGTP]", r"\1", value) if unread else value, entry, key
        )
        if limit is not None:
            yield name, limit, used


def _amounts(entry: _Entry, key: str, notes: Notes) -> Iterator[tuple[str, int]]:
    for name, limit, _ in _tres(entry, key):
        if name in _AMOUNTS or name.startswith("gres/"):
            yield _AMOUNTS.get(name, name), limit
        else:
            notes.unread("limits", f"{entry.name}: {key} of {name} is not read")


def _minutes(entry: _Entry, key: str, notes: Notes, *, used: bool) -> int | None:
    """Return the core-minutes of a limit that are left; ``used``: what has been used counts."""
    for name, limit, spent in _tres(entry, key):
        if name != "cpu":
            notes.unread("limits", f"{entry.name}: {key} of {name} is not read")
        elif used and spent is None:
            notes.unread(
                "limits", f"{entry.name}: {key} is not read: only scontrol show assoc_mgr tells the usage"
            )
        else:
            return max(limit - (spent or 0), 0) if used else limit
    return None


def _note_others(entry: _Entry, notes: Notes) -> None:
    """Note limits that are set and not read."""
    for flag in sorted(_FLAGS.intersection(entry.fields.get("Flags", "").split(","))):
        notes.unread("limits", f"{entry.name}: Flags={flag} is not read")
    for key, value in entry.fields.items():
        is_read = key in _READ or (key == "MaxJobs" and entry.account)
        if is_read or not _LIMIT.fullmatch(key) or _SILENT.fullmatch(key):
            continue
        names = key == "Preempt" and value not in ("", "N/A", "(null)")
        values = [part.partition("=")[2] or part for part in value.split(",")]
        if names or (key != "Preempt" and any(one and not one.startswith("N") for one in values)):
            notes.unread("limits", f"{entry.name}: {key} is not read")
