"""A pending Slurm job's request in native terms, and every part of it that has none.

What cannot be said goes to the job's ``unsupported``, named the way a user asked for it: such a job
never starts on a weaker request.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...cluster.errors import InputError
from ...cluster.jobs import Request, Span
from ...cluster.text import one_line
from ...formats.hostlist import expand
from ...formats.notes import Notes
from .answer_record import Record
from .answer_text import WORDS
from .consumables import parse_request, plain_licenses, wanted_gres, without_gate
from .partitions import DefaultMemory
from .policy import Site
from .size import CPUS_OF_TASK, SlurmSize, node_range, read_size, with_cpus_per_gres, with_whole_cores
from .states import is_expedited
from .versions import note_unknown


def unsupported_parts(record: Record, *, threads: bool) -> Iterator[str]:
    """Yield what a snapshot cannot express; ``threads`` if a core may be several CPUs."""
    for member, option in WORDS["job_counts"].items():
        if value := record.asked(member):
            yield f"{option}={value}"
    for member, option in WORDS["job_thread_counts"].items():
        if (value := record.asked(member)) and (threads or value > 1):
            yield f"{option}={value}"
    for member, option in WORDS["job_texts"].items():
        if text := record.text(member):
            yield f"{option} {text}"
    flags = record.words("flags")
    yield from (option for flag, option in WORDS["job_flags"].items() if flag in flags)
    if is_expedited(record):
        yield "it starts again before all others (EXPEDITING)"
    if record.flag("reboot"):
        yield "--reboot"
    if record.number("het_job_id"):
        yield f"parts of a heterogeneous job start together ({record.text('het_job_id_set') or 'het_job_id'})"


def note_preferences(record: Record, notes: Notes, label: str) -> None:
    """Note what a job would like and may be started without."""
    for member, text in WORDS["job_preferences"].items():
        value = record.members.get(member)
        wanted = record.number(member) if isinstance(value, (int, dict)) else record.text(member)
        if wanted:
            notes.add("preferences", f"{label}: {text}")
    flags = record.words("flags")
    for flag, text in WORDS["job_preference_flags"].items():
        if flag in flags:
            notes.add("preferences", f"{label}: {text}")


#: Members without which a request could be read as a weaker one.
_NEEDED = (
    "cpus",
    "tasks",
    "max_nodes",
    "tres_req_str",
    "tres_per_node",
    "tres_per_job",
    "tres_per_task",
    "tasks_per_node",
    "minimum_cpus_per_node",
    "memory_per_node",
    "memory_per_cpu",
    "contiguous",
    "features",
    "required_nodes",
    "excluded_nodes",
    "licenses",
    "flags",
)
#: A job's ``OverSubscribe=`` of scontrol in the words of its JSON; ``OK`` is no request.
_SHARING = {"NO": "none", "OK": "", "YES": "shared"}
_MEMORY_SET = {"JOB_MEM_SET", "EXACT_MEMORY_REQUESTED"}
_FEATURES = re.compile(r"[\w.:+-]+(?:&[\w.:+-]+)*")


@dataclass(slots=True, kw_only=True)
class _Reading:
    """One job while it is read."""

    record: Record
    site: Site
    notes: Notes
    label: str
    unsupported: list[str] = field(default_factory=list)

    def note(self, kind: str, text: str) -> None:
        self.notes.add(kind, f"{self.label}: {text}")


def read_request(record: Record, site: Site, notes: Notes, label: str) -> tuple[Request, tuple[str, ...]]:
    """Return a pending job's request and the parts of it that cannot be expressed.

    ``record``: with what its detail adds (``JobDetail.joined``).

    Raises:
        InputError: a member is missing or of an unknown shape.
    """
    record.require(*_NEEDED, *(["shared"] if site.tells_shared else []))
    note_unknown(record.words("flags"), "flags", notes)
    job = _Reading(record=record, site=site, notes=notes, label=label)
    members = _members(job)
    threads = any(max(counts) > 1 for counts in site.threads.values())
    job.unsupported.extend(unsupported_parts(record, threads=threads))
    try:
        request = Request(**members)
    except InputError as error:
        job.unsupported.append(f"the parts of the request contradict each other: {error}")
        request = Request(cores=members["cores"] or 1)
    # Users write some of it freely: it is kept as one line that shows all it holds.
    return request, tuple(map(one_line, job.unsupported))


def _members(job: _Reading) -> dict[str, Any]:
    required = wanted_nodes(_names(job, "required_nodes"), job.site.nodes, job.unsupported)
    size = read_size(job.record, len(required), len(job.site.nodes))
    size, per_node, total = _gres(job, size)
    _note_size(job, size)
    size = _whole_cores(job, size)
    fixed = size.cores_per_node is not None
    exclusive, exclusive_topo = _exclusive(job)
    for name in filter(None, job.record.text("partition").split(",")):
        if topology := job.site.elsewhere.get(name):
            # Nodes under the rules of a topology that is not the snapshot's.
            where = f"partition {name} is on the topology {topology}"
            job.unsupported.append(f"{where}, which is not read")
    flags = job.record.words("flags")
    switches = job.record.number("required_switches") or job.record.number("minimum_switches")
    licenses = without_gate(job.record.text("licenses"), job.site.gate)
    names = _names(job, "excluded_nodes")
    excluded = frozenset(name for name in names if name in job.site.nodes)
    if dropped := len(names) - len(excluded):
        job.note("names", f"excluded nodes not of the cluster are dropped: {dropped}")
    return {
        "cores": None if fixed else size.cores,
        "nodes": size.nodes,
        "cores_per_node": size.cores_per_node,
        "min_cores_per_node": size.min_cores_per_node,
        "cores_per_task": size.cores_per_task,
        "gres_per_node": {name: Span.exactly(count) for name, count in per_node.items()},
        "gres_total": {name: Span.exactly(count) for name, count in total.items()},
        "exclusive": exclusive,
        "segment": job.record.asked("segment_size") or None,
        "spread_segments": "SPREAD_SEGMENTS" in flags,
        "consolidate_segments": "CONSOLIDATE_SEGMENTS" in flags,
        "exclusive_topo": exclusive_topo,
        "max_switches": switches or None,
        "contiguous": job.record.flag("contiguous"),
        "features": _features(job),
        "required_nodes": required,
        "excluded_nodes": excluded,
        "licenses": wanted_licenses(licenses, job.site.licenses, job.unsupported),
        **_memory(job, per_node, exclusive=exclusive),
    }


def _note_size(job: _Reading, size: SlurmSize) -> None:
    if size.total_cores > max(size.cores, size.tasks * size.cores_per_task):
        text = f"CPUs asked for: {size.cores}; by Slurm's rules for each node it gets {size.total_cores}"
        job.note("sizes", text)
    low, high = node_range(job.record)
    if low > high > 0:
        job.note(
            "sizes", f"{low} nodes at least (tres_req_str), {high} at most (max_nodes): {high} are taken"
        )


def _whole_cores(job: _Reading, size: SlurmSize) -> SlurmSize:
    """Return the size in whole cores, its partitions' largest; unchanged if nodes of one differ."""
    names = job.record.text("partition").split(",")
    threads = [job.site.threads[name] for name in names if name in job.site.threads]
    is_mixed = any(len(counts) > 1 for counts in threads)
    return size if is_mixed else with_whole_cores(size, max((max(counts) for counts in threads), default=1))


def _gres(job: _Reading, size: SlurmSize) -> tuple[SlurmSize, dict[str, int], dict[str, int]]:
    """Return the size, which gres may fix, and gres counts per node and over all nodes."""
    per_node, total = _counts(job, "tres_per_node"), _counts(job, "tres_per_job")
    for name, count in _counts(job, "tres_per_task").items():
        _add_per_task(job, size, name, count, per_node, total)
    for name in per_node.keys() & total.keys():
        span = size.nodes or Span(minimum=1, maximum=max(1, len(job.site.nodes)))
        nodes = nodes_of_gres(name, total.pop(name), per_node[name], span, job.unsupported)
        size = replace(size, nodes=nodes)
    if text := job.record.text("cpus_per_tres"):
        counted = with_cpus_per_gres(size, text, per_node, job.record.place("cpus_per_tres"))
        if counted is None:
            job.unsupported.append(f"--cpus-per-gpu ({text}) where the GPUs of a node are not fixed")
        else:
            size = counted
    return size, per_node, total


def _counts(job: _Reading, member: str) -> dict[str, int]:
    counts, others = parse_request(job.record.text(member), job.record.place(member))
    option = f"{member} "
    if member == "tres_per_task":
        option = "--tres-per-task="
        # The CPUs of a task are a part of its size.
        others = [one for one in others if not CPUS_OF_TASK.fullmatch(one)]
    job.unsupported.extend(f"{option}{other}" for other in others)
    return wanted_gres(counts, option, job.site.gres_kinds, job.unsupported)


def _add_per_task(
    job: _Reading, size: SlurmSize, name: str, count: int, per_node: dict[str, int], total: dict[str, int]
) -> None:
    """Turn ``--gpus-per-task`` into a count per node where the tasks of a node are fixed."""
    tasks = size.tasks_per_node
    if tasks is None:
        job.unsupported.append(f"{count} {name} for each task (tres_per_task): tasks per node are not fixed")
    elif per_node.setdefault(name, tasks * count) != tasks * count:
        job.unsupported.append(f"{count} {name} for each task besides {per_node[name]} on each node")
    elif total.get(name) == size.tasks * count:
        del total[name]


def nodes_of_gres(name: str, total: int, each: int, span: Span, unsupported: list[str]) -> Span:
    """Return how many nodes of a span a job gets that asks for gres over all nodes and on each."""
    nodes, rest = divmod(total, each)
    if not rest and span.minimum <= nodes <= span.maximum:
        return Span.exactly(nodes)
    unsupported.append(f"{total} {name} over all nodes, {each} on each")
    return span


def _memory(job: _Reading, per_node: Mapping[str, int], *, exclusive: bool) -> dict[str, Any]:
    """Return memory members; ``tres_req_str``'s mem= is the whole node if none is asked for."""
    for member in ("memory_per_node", "memory_per_cpu"):
        if amount := job.record.number(member):
            return {f"memory_mib_per_{'node' if member.endswith('node') else 'core'}": amount}
    text = job.record.text("memory_per_tres")
    amounts, others = parse_request(text, job.record.place("memory_per_tres"))
    kinds = {name.partition(":")[0]: amount for name, amount in amounts.items()}
    total = sum(count * kinds.get(name.partition(":")[0], 0) for name, count in per_node.items())
    if text and (others or not total):
        job.unsupported.append(f"--mem-per-gpu ({text}) where the GPUs of a node are not fixed")
    # An exclusive job gets empty nodes, so all of their memory is free.
    elif not text and not exclusive:
        return _memory_by_default(job)
    return {"memory_mib_per_node": total} if total else {}


def _memory_by_default(job: _Reading) -> dict[str, Any]:
    """Return a job's memory if it asks for none: its partition's default, else all of each node's.

    All of it where nodes differ: empty nodes, as no other job with memory fits beside it.
    """
    asked_for_all = bool(_MEMORY_SET & job.record.words("flags"))
    given = DefaultMemory() if asked_for_all else job.site.memory_of(job.record.text("partition"))
    if given:
        return given.members
    if not job.site.config.counts_memory:
        if asked_for_all:
            job.unsupported.append("all the memory of each node (--mem=0)")
        return {}
    partitions = set(filter(None, job.record.text("partition").split(",")))
    nodes = (figures.node for figures in job.site.nodes.values())
    amounts = {node.total.memory_mib for node in nodes if partitions.intersection(node.partitions)}
    if len(amounts) == 1 and (amount := amounts.pop()):
        return {"memory_mib_per_node": amount}
    job.note("memory", "gets all the memory of nodes that differ in it: it takes empty nodes")
    return {"exclusive": True}


def _exclusive(job: _Reading) -> tuple[bool, bool]:
    """Return whether a job gets whole nodes, and whether it gets whole blocks."""
    names = filter(None, job.record.text("partition").split(","))
    named = [job.site.partitions.get(name) for name in names]
    exclusive = [one is not None and one.exclusive for one in named]
    if any(exclusive) and not all(exclusive):
        job.note("sizes", "gets whole nodes in each of its partitions, as one of them gives no others")
    whole, topo = any(exclusive), any(one is not None and one.exclusive_topo for one in named)
    # 24.05 and later say it in a member of its own as well.
    words = job.record.words("shared") | job.record.words("exclusive")
    for word in sorted(words if job.site.tells_shared else words | _sharing(job)):
        if word in ("none", "true"):
            whole = True
        elif word == "topo":
            topo = True
        elif word in ("shared", "oversubscribe"):
            job.note("preferences", "may share its cores (--oversubscribe): it gets cores of its own")
        elif word != "false":
            job.unsupported.append(f"nodes shared only within {word} (--exclusive={word})")
    return whole, topo


def _sharing(job: _Reading) -> frozenset[str]:
    """Return how a job shares nodes by scontrol's detail; without it, it gets whole nodes."""
    if word := job.record.text("sharing"):
        return frozenset(filter(None, [_SHARING.get(word, word.lower())]))
    text = "26.05's JSON does not tell which jobs ask for whole nodes, so all get whole nodes"
    job.notes.unread("sharing", f"{text}: give --job-detail, or squeue --json=v0.0.44")
    return frozenset(["none"])


def _features(job: _Reading) -> frozenset[str]:
    features = wanted_features(job.record.text("features"), job.unsupported)
    for name in sorted(features & job.site.inactive):
        job.unsupported.append(f"the feature {name}, which Slurm gives nodes by a reboot")
    return features


def wanted_features(text: str, unsupported: list[str]) -> frozenset[str]:
    """Return the features of ``--constraint``; more than an AND of names is not expressible."""
    if text and not _FEATURES.fullmatch(text):
        unsupported.append(f"the constraint {text}")
        return frozenset()
    return frozenset(filter(None, text.split("&")))


def wanted_nodes(names: Sequence[str], known: Collection[str], unsupported: list[str]) -> tuple[str, ...]:
    """Return the required nodes that the cluster has; one that it has not is not expressible."""
    missing = next((name for name in names if name not in known), None)
    if missing is not None:
        unsupported.append(f"the required node {missing}, which the cluster does not have")
    return tuple(name for name in names if name in known)


def wanted_licenses(text: str, known: Collection[str], unsupported: list[str]) -> dict[str, int]:
    """Return the counts by name that ``--licenses`` asks for; other terms are not expressible."""
    counts, reason = plain_licenses(text, known)
    if reason:
        unsupported.append(f"the licences {text}, {reason}")
    return counts


def _names(job: _Reading, member: str) -> tuple[str, ...]:
    """Return a hostlist's names; newer versions write a list of them."""
    return tuple(name for text in job.record.texts(member) for name in expand(text, job.record.place(member)))
