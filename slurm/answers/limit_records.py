"""Limits of QOS and associations: their records, and what running jobs leave of them.

Records are what ``scontrol show assoc_mgr`` and ``sacctmgr -P show qos|assoc`` print. The limits of
a snapshot leave what Slurm leaves beside running jobs, as a snapshot counts these.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...cluster.checks import LARGEST_COUNT
from ...cluster.errors import InputError
from ...cluster.jobs import RunningJob
from ...cluster.limits import Limit, Owned, limited
from ...cluster.resources.capacity import Resource
from ...cluster.resources.pools import LimitPool, use_of_nodes
from ...cluster.text import listed
from ...formats.notes import Notes
from .answer_text import pairs_in


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRecord:
    """A QOS or an association: its limits as Slurm writes them; ``parent`` None: not told."""

    path: str
    cluster: str = ""
    qos: str = ""
    account: str = ""
    user: str = ""
    partition: str = ""
    parent: str | None = ""
    fields: Mapping[str, str]

    @property
    def name(self) -> str:
        """What a limit of it is called."""
        if self.qos:
            return f"qos {self.qos}"
        parts = (("account", self.account), ("user", self.user), ("partition", self.partition))
        return " ".join(f"{what} {name}" for what, name in parts if name)


def read_records(text: str, cluster: str) -> list[LimitRecord]:
    """Return the QOS and the associations of a cluster; an empty name stands for the only one.

    Raises:
        InputError: the text is neither command's, or it is of other clusters.
    """
    records = list(_of_table(text) if "|" in text.partition("\n")[0] else _of_manager(text))
    named = sorted({record.cluster for record in records if record.cluster})
    if named and (cluster not in named if cluster else len(named) > 1):
        this = (
            f"this cluster is {cluster}"
            if cluster
            else "the name of this cluster is not known (--conf tells)"
        )
        raise InputError(f"the associations are of {listed(named)}; {this}", path="Cluster")
    return [record for record in records if record.cluster in ("", cluster or "".join(named))]


def _of_table(text: str) -> Iterator[LimitRecord]:
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


def _of_row(row: Mapping[str, str], path: str) -> LimitRecord:
    if "Name" in row:
        return LimitRecord(path=path, qos=row["Name"], fields=row)
    parent = row.get("ParentName", row.get("Par Name"))
    names = ("Cluster", "Account", "User", "Partition")
    members = {member.lower(): row.get(member, "") for member in names}
    return LimitRecord(path=path, parent=parent, fields=row, **members)


def _of_manager(text: str) -> Iterator[LimitRecord]:
    """Yield the records of scontrol: each begins with a line that is not indented."""
    if "Association Manager" not in text:
        raise InputError("neither what scontrol show assoc_mgr nor what sacctmgr -P prints", path="line 1")
    for record in re.split(r"^(?=ClusterName=|QOS=)", text, flags=re.MULTILINE)[1:]:
        # What follows the association and QOS records is of users and types.
        body = re.split(r"^(?=\S+ Records)", record, flags=re.MULTILINE)[0]
        fields: dict[str, str] = {}
        for key, value in pairs_in(body):
            # Limits of each user stand with each of them again, below a line with the user.
            fields[key] = fields.get(key) or value.partition("\n")[0]
        head = record.partition("\n")[0].strip()[:60]
        if record.startswith("QOS="):
            yield LimitRecord(path=head, qos=_plain(fields["QOS"]), fields=fields)
        else:
            yield LimitRecord(
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


def limits_beside(
    limits: Sequence[Limit], used: Mapping[str, int], running: Sequence[RunningJob], now: float | None
) -> Iterator[tuple[Limit, dict[str, dict[str, int]]]]:
    """Yield each limit, and its amounts for each user or account that Slurm counts otherwise.

    Slurm counts a node that jobs share once, and minutes times the UsageFactor of their QOS.

    Args:
        limits: of the site.
        used: the core-seconds that Slurm counts, by limit, where it says so.
        running: the jobs that run.
        now: the snapshot's time, seconds since the epoch.
    """
    pool = LimitPool(tuple(limits))
    held, told = Counter[Resource](), Counter[Resource]()
    #: A job of each that has some; of limits of all together anybody's.
    owners: dict[str, dict[str, Owned]] = {limit.name: {} if limit.per else {"": Owned()} for limit in limits}
    seen = set[tuple[Resource, str]]()
    for job in running:
        uses = dict(pool.held(job, use_of_nodes(job.nodes.values()), now))
        held.update(uses)
        told.update(uses)
        for limit in pool.limits_of(job):
            if limit.per and getattr(job, limit.per):
                owners[limit.name][getattr(job, limit.per)] = job
            if "nodes" in limit.most:
                resource = pool.resource(limit, "nodes", job)
                nodes = {(resource, node) for node in job.nodes}
                told[resource] -= len(nodes & seen)
                seen |= nodes
    for limit in limits:
        if limit.name in used:
            told[pool.resource(limit, "core_seconds", Owned())] = used[limit.name]
        most = {
            who: {
                what: min(max(count + held[resource] - told[resource], 0), LARGEST_COUNT)
                for what, count in limit.most.items()
                for resource in (pool.resource(limit, what, job),)
            }
            for who, job in owners[limit.name].items()
        }
        yield limit, {who: own for who, own in most.items() if own != limit.most}


def limits_of_each(
    limit: Limit, own: Mapping[str, Mapping[str, int]], names: Mapping[str, Collection[str]], notes: Notes
) -> Iterator[Limit]:
    """Yield a limit for each one in ``own`` and one for the rest; ``names``: of all, by ``per``."""
    others = set(names.get(limit.per or "", ())) - own.keys() - {""}
    if not own:
        yield limit
        return
    for who, most in own.items():
        name = f"{limit.name} {who}".strip()
        changed = [what for what in most if what != "core_seconds" and most[what] != limit.most[what]]
        if changed:
            words = ", ".join(limited(what, most[what]) for what in changed)
            notes.add("limits", f"{name}: by Slurm's count of running jobs it is {words}")
        jobs = replace(limit.jobs, **{limit.per: (who,)}) if limit.per else limit.jobs
        yield replace(limit, name=name, jobs=jobs, most=most)
    if others:
        yield replace(limit, jobs=replace(limit.jobs, **{str(limit.per): tuple(sorted(others))}))
