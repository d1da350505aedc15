"""A schedule as commands that place its jobs on a Slurm cluster, one line of shell for each job.

What each command does was tried on Slurm 22.05. The same cores on every node: ``NumNodes``,
``ReqNodeList`` and ``MinCPUsNode`` of a held job fix them. Different cores: a reservation of
exactly those cores, which Slurm removes by itself once it is idle. A line's commands stop at the
first that fails, so that no job is released without its place. Every word is quoted for the shell;
a name that scontrol would read as something else, several names for one, is refused.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..cluster.checks import HOST_NAME
from ..cluster.jobs import Job
from ..cluster.network import alone_on
from ..cluster.nodes import Node
from ..cluster.schedule import Award, Schedule
from ..cluster.snapshot import Snapshot
from ..cluster.text import one_line
from ..formats.hostlist import join
from .answers.node_records import THREADS_NOTE

_SLURM_ID = re.compile(r"[1-9]\d{0,9}(?:_\d{1,9})?", re.ASCII)
#: What scontrol reads as one name: no comma (begins the next), no sign in front (adds or removes).
_ONE_NAME = re.compile(r"[^,+-][^,]*")
_MINUTE_S = 60
#: A reservation must outlast its job, which starts some seconds after it is made (minutes).
_MARGIN = 10
#: An idle reservation goes after so long; between being made and used it is idle for a moment.
_PURGE = "PURGE_COMP=00:01:00"
_HEAD = """\
# {count} of {total} started jobs, to place with: sh THIS_FILE (as root or SlurmUser)
# A line holds its job, gives it its place and releases it. Other waiting jobs must be held too:
# Slurm starts those that are not by itself, perhaps on these nodes.
"""


class CannotPlaceError(Exception):
    """Why Slurm's commands cannot put a job where the schedule has it."""


def placement(snapshot: Snapshot, schedule: Schedule) -> tuple[str, tuple[str, ...]]:
    """Return the commands that start the awards on the snapshot's cluster, exactly as awarded.

    First the lines of shell, with a comment for a job that cannot be placed; then why, a line each.
    """
    jobs = {job.id: job for job in snapshot.jobs}
    nodes = {node.name: node for node in snapshot.nodes}
    lines: list[str] = []
    problems: list[str] = []
    for award in schedule.started:
        try:
            line = " && ".join(_commands(JobCommands(snapshot, jobs[award.job], award, nodes)))
        except CannotPlaceError as error:
            name = award.job if _SLURM_ID.fullmatch(award.job) else repr(award.job)
            problems.append(one_line(f"job {name} cannot be placed: {error}"))
            line = f"# {problems[-1]}"
        lines.append(line + "\n")
    total = len(schedule.started)
    head = _HEAD.format(count=total - len(problems), total=total)
    return head + "".join(lines), tuple(problems)


@dataclass(frozen=True, slots=True)
class JobCommands:
    """One award with what decides its commands.

    Attributes:
        nodes: the snapshot's, by name.
    """

    snapshot: Snapshot
    job: Job
    award: Award
    nodes: Mapping[str, Node]

    @property
    def counts_threads(self) -> bool:
        """Whether the snapshot counts threads as cores, which reservations do not."""
        return THREADS_NOTE in self.snapshot.notes

    @property
    def cores(self) -> list[int]:
        """The cores on each of its nodes."""
        return [use.cores for use in self.award.nodes.values()]

    @property
    def hosts(self) -> str:
        """Its nodes as Slurm lists them.

        Raises:
            CannotPlaceError: a name is none of Slurm's.
        """
        for node in self.award.nodes:
            if not HOST_NAME.fullmatch(node):
                raise CannotPlaceError(f"{node!r} is not a node name of Slurm")
        return join(self.award.nodes)

    @property
    def is_whole(self) -> bool:
        """Whether it holds whole nodes, as one alone on its blocks does: no counts are needed."""
        request = self.job.request
        return request.exclusive or bool(alone_on(self.snapshot.network, request, self.award.nodes))


def _commands(place: JobCommands) -> Iterator[str]:
    name = check_id(place.award.job)
    hosts = place.hosts
    gres = _gres(place)
    # Twice: one number alone leaves the most nodes of a job's own range as they are.
    count = len(place.award.nodes)
    options = [f"NumNodes={count}-{count}", f"ReqNodeList={hosts}", *gres]
    cores = place.cores
    # A snapshot does not tell which jobs Slurm holds: one already held stays so.
    yield _scontrol("hold", name)
    if gres:
        # Slurm refuses a typed request next to the job's own for any type: clear that first, alone.
        yield _scontrol("update", f"JobId={name}", "TresPerNode=", "TresPerJob=", "TresPerTask=")
    if place.is_whole:
        pass
    elif len(set(cores)) == 1:
        options.append(f"MinCPUsNode={cores[0]}")
    else:
        reservation = f"aucsched-{name}"
        yield _scontrol(*reservation_words(place, reservation))
        options.append(f"ReservationName={reservation}")
    yield _scontrol("update", f"JobId={name}", *options)
    yield _scontrol("release", name)


def check_id(job: str) -> str:
    """Return a job's id.

    Raises:
        CannotPlaceError: it is none of Slurm's.
    """
    if not _SLURM_ID.fullmatch(job):
        raise CannotPlaceError("its id is not a job id of Slurm")
    return job


def _scontrol(*words: str) -> str:
    return shlex.join(("scontrol", *words))


def _one_name(text: str, what: str) -> str:
    """Return a name as a list of scontrol's has it; refuse one that it would read as another."""
    if not _ONE_NAME.fullmatch(text):
        raise CannotPlaceError(f"{text!r} is not a {what} that scontrol reads as one name")
    return text


def reservation_words(place: JobCommands, name: str) -> tuple[str, ...]:
    """Return scontrol's words for a reservation of the award's cores on each node, in node order.

    Raises:
        CannotPlaceError: Slurm cannot reserve these cores, or scontrol would read a name as more.
    """
    if place.counts_threads:
        raise CannotPlaceError(
            "it holds different cores on its nodes, which Slurm counts in cores and the snapshot in threads"
        )
    limit = place.job.time_limit_s
    duration = "UNLIMITED" if limit is None else str(-(-limit // _MINUTE_S) + _MARGIN)
    words = [
        f"ReservationName={name}",
        f"Nodes={place.hosts}",
        f"CoreCnt={','.join(map(str, place.cores))}",
        "StartTime=now",
        f"Duration={duration}",
        f"Users={_one_name(place.job.user or 'root', 'user')}",
        f"Flags={_PURGE}",
    ]
    if partition := _partition(place):
        words.append(f"PartitionName={partition}")
    return ("create", "reservation", *words)


def _partition(place: JobCommands) -> str:
    """Return the job's first partition that has all its nodes; Slurm would take its default."""
    listed = {partition.name: partition.nodes for partition in place.snapshot.partitions}
    for name in filter(None, place.job.partition.split(",")):
        more = listed.get(name, ())
        if all(node in more or name in place.nodes[node].partitions for node in place.award.nodes):
            return name
    return ""


def _gres(place: JobCommands) -> list[str]:
    """Return the option that fixes gres: none where the job's own request leaves no choice."""
    if place.is_whole or not _gres_open(place):
        return []
    uses = place.award.nodes.values()
    held = [{name: count for name, count in use.gres.items() if count} for use in uses]
    if any(counts != held[0] for counts in held):
        shown = ", ".join(
            f"{node} {_listed(counts)}" for node, counts in zip(place.award.nodes, held, strict=True)
        )
        raise CannotPlaceError(f"Slurm gives the same gres on each node, the award does not ({shown})")
    for name in held[0]:
        _one_name(name, "gres")
    return [f"Gres={_listed(held[0])}" if held[0] else "TresPerNode="]


def _listed(counts: Mapping[str, int]) -> str:
    return ",".join(f"{name}:{count}" for name, count in sorted(counts.items())) or "none"


def _gres_open(place: JobCommands) -> bool:
    """Whether the request leaves Slurm a choice: a range, a total over nodes, one of many types."""
    request = place.job.request
    if any(not span.is_exact for span in (*request.gres_per_node.values(), *request.gres_total.values())):
        return True
    if request.gres_total and len(place.award.nodes) > 1:
        return True
    untyped = [name for name in (*request.gres_per_node, *request.gres_total) if ":" not in name]
    nodes = (place.nodes[node] for node in place.award.nodes)
    kinds = ([name.partition(":")[0] for name in node.total.gres] for node in nodes)
    return any(types.count(kind) > 1 for types in kinds for kind in untyped)
