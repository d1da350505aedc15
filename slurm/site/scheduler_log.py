"""A Slurm site's submissions as the Slurm simulator's event files have them, made into a workload.

A line is ``-dt SECONDS -e submit_batch_job | -sim-walltime SECONDS OPTIONS … SCRIPT``: when the job
was submitted, how long it ran, and what sbatch was told.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...cluster.checks import plain
from ...cluster.errors import InputError
from ...cluster.jobs import Job, Request, Span
from ...cluster.text import hidden_in, one_line, plural
from ...cluster.workload import ArrivingJob, ClusterWorkload, basic_priority
from ...formats.hostlist import names_in, one_file
from ...formats.native.topology_wire import Laid
from ...formats.notes import Notes
from ...formats.reading import numbered_lines, read_document, text_of
from ..answers.answer_text import duration_s, memory_mib
from ..answers.consumables import parse_gres, wanted_gres
from ..answers.partitions import DefaultMemory, PartitionFigures
from ..answers.request import nodes_of_gres, wanted_features, wanted_licenses, wanted_nodes
from ..answers.topology_conf import parse_topology
from .conf import SlurmConf, fit_gres, parse_slurm_conf
from .sbatch import OPTIONS, parse_sbatch, words_of

_SUBMIT = "submit_batch_job"
_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,9})?", re.ASCII)
#: Slurm counts whole seconds; what ended within its first one ran that long.
_SHORTEST_S = 1.0


@one_file()
def import_events(events: str | Path, conf: Path) -> tuple[ClusterWorkload, Notes]:
    """Return the workload of an event file on the site that a folder's configuration describes.

    Args:
        events: the event file, plain or gzip; ``-`` is standard input.
        conf: the folder with slurm.conf, and gres.conf and topology.conf where the site has them.

    Raises:
        InputError: a file cannot be read or is malformed; names file, line and value.
    """
    notes = Notes()
    site = read_document(conf / "slurm.conf", lambda content: parse_slurm_conf(text_of(content), notes))
    if (conf / "gres.conf").exists():
        site = read_document(conf / "gres.conf", lambda content: fit_gres(site, text_of(content), notes))
    laid = _topology(conf, site, notes)
    jobs = read_document(events, lambda content: _jobs(text_of(content), site, notes))
    notes.add("priorities", f"priorities go by order of submission: the first job's is {basic_priority(0)}")
    workload = ClusterWorkload(
        name=one_line(Path(events).name),
        nodes=site.nodes,
        switches=laid.switches,
        network=laid.network,
        partitions=tuple(figures.partition for figures in site.partitions),
        licenses=site.licenses,
        jobs=jobs,
        notes=notes.texts(),
    )
    return workload, notes


def _topology(conf: Path, site: SlurmConf, notes: Notes) -> Laid:
    # Slurm reads topology.conf only where there is no topology.yaml.
    paths = [conf / name for name in ("topology.yaml", "topology.conf")]
    path = next((one for one in paths if one.exists()), None)
    if path is None:
        notes.add("topology", "there is no topology.conf: the topology is linear")
        return Laid()
    names = [node.name for node in site.nodes]

    def laid(content: bytes) -> Laid:
        return parse_topology(text_of(content), notes).fitted(names, notes)

    return read_document(path, laid)


def _jobs(text: str, site: SlurmConf, notes: Notes) -> tuple[ArrivingJob, ...]:
    """Read every submission, in order of arrival."""
    remarks: defaultdict[str, list[str]] = defaultdict(list)
    events = sorted(_events(text, site, remarks, notes), key=lambda event: event.at_s)
    _name(events, notes)
    jobs = tuple(
        ArrivingJob(
            job=event.job(basic_priority(rank)),
            arrival_s=event.at_s,
            run_time_s=max(event.run_s, _SHORTEST_S),
        )
        for rank, event in enumerate(events)
    )
    for event, arriving in zip(events, jobs, strict=True):
        limit_s = arriving.job.time_limit_s
        if event.run_s < _SHORTEST_S:
            event.remark(f"ran less than {_SHORTEST_S:g} s: taken as {_SHORTEST_S:g} s")
        if limit_s is not None and event.run_s > limit_s:
            event.remark("ran longer than its limit, at which a simulation ends it")
    for remark, names in remarks.items():
        notes.add("jobs", f"{plural(len(names), 'job')}, the first {names[0]}: {remark}")
    _note_unsupported([arriving.job for arriving in jobs], notes)
    return jobs


def _name(events: "list[Submission]", notes: Notes) -> None:
    """Call jobs by their names if each has its own, else by numbers in order of submission."""
    names = [event.options.get("job-name", "") for event in events]
    if not all(names) or len(set(names)) < len(names) or any(map(hidden_in, names)):
        why = "are missing, repeat or hold control characters"
        notes.add("ids", f"job names {why}: ids are numbers in order of submission")
        names = [str(place) for place in range(1, len(names) + 1)]
    for event, name in zip(events, names, strict=True):
        event.job_id = name


def _events(
    text: str, site: SlurmConf, remarks: defaultdict[str, list[str]], notes: Notes
) -> "Iterator[Submission]":
    others: Counter[str] = Counter()
    for number, line in numbered_lines(text):
        if line.startswith("#"):
            continue
        path = f"line {number}"
        head, bar, rest = line.partition("|")
        at_s, kind = _head(head.split(), path)
        if kind != _SUBMIT:
            others[kind] += 1
            continue
        if not bar:
            raise InputError(f"{line.strip()[:60]!r} has no '|' before the job's options", path=path)
        words = words_of(rest, path)
        if "-sim-walltime" not in words:
            raise InputError("-sim-walltime is missing", path=path)
        # The simulator's own option is taken out, the rest is read as sbatch would.
        place = words.index("-sim-walltime")
        value = words[place + 1] if place + 1 < len(words) else ""
        told = parse_sbatch([*words[:place], *words[place + 2 :]], path)
        run_s = _seconds(value, f"{path} -sim-walltime")
        yield Submission(conf=site, options=told, path=path, remarks=remarks, at_s=at_s, run_s=run_s)
    for kind, count in others.items():
        notes.add("events", f"{plural(count, 'event')} {kind!r} not read")


def _head(words: list[str], path: str) -> tuple[float, str]:
    """Return the time and the kind of an event."""
    pairs = dict(zip(words[::2], words[1::2], strict=False))
    if len(words) % 2 or pairs.keys() != {"-dt", "-e"}:
        raise InputError(f"{' '.join(words)[:60]!r} is not -dt SECONDS -e EVENT", path=path)
    return _seconds(pairs["-dt"], f"{path} -dt"), pairs["-e"]


def _seconds(text: str, path: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise InputError(f"{text[:60]!r} is not a number of seconds of at least 0", path=path)
    return float(text)


def _note_unsupported(jobs: list[Job], notes: Notes) -> None:
    lacking: defaultdict[str, list[str]] = defaultdict(list)
    for job in jobs:
        for part in job.unsupported:
            lacking[part].append(job.id)
    for part, names in lacking.items():
        never = plural(len(names), "job", "never starts")
        notes.add("not expressible", f"{never}, first {names[0]}: {part}")


_NODES = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
#: What else sbatch takes: ``1k``, and lists of counts (``1,2,4``, ``2-16:2``).
_COUNTS = re.compile(r"[1-9]\d{0,8}[kKmM]?(?:[-,:][1-9]\d{0,8}[kKmM]?)*", re.ASCII)
_MINUTE_S = 60
_NO_LIMIT = {"0", "UNLIMITED", "INFINITE", "-1"}


@dataclass(slots=True, kw_only=True)
class Submission:
    """A job while it is read; what has no native member goes to its ``unsupported``.

    Attributes:
        conf: the site.
        options: sbatch's, by their long names.
        path: its place in the file.
        remarks: the jobs by what was taken otherwise than asked, in words.
        at_s, run_s: when it was submitted, and how long it ran, in seconds.
    """

    conf: SlurmConf
    options: Mapping[str, str]
    job_id: str = ""
    path: str
    remarks: defaultdict[str, list[str]]
    at_s: float = 0.0
    run_s: float = 0.0
    unsupported: list[str] = field(default_factory=list)

    def job(self, priority: int) -> Job:
        """Return the job.

        Raises:
            InputError: a value is not as sbatch reads it.
        """
        partition = self.options.get("partition") or self.conf.default_partition or ""
        for name, value in sorted(self.options.items()):
            if OPTIONS[name].reading == "preferred":
                self.remark(f"--{name} is not looked at")
            elif OPTIONS[name].reading == "unsupported":
                self.unsupported.append(f"--{name}={value}" if value else f"--{name}")
        request = self._request(partition)
        for name in ("uid", "gid", "account", "qos", "partition"):
            plain(self.options.get(name, ""), f"{self.path} --{name}")
        return Job(
            id=self.job_id,
            priority=priority,
            request=request,
            user=self.options.get("uid", ""),
            group=self.options.get("gid", ""),
            account=self.options.get("account", ""),
            qos=self.options.get("qos", ""),
            partition=partition,
            time_limit_s=self._time_limit_s(partition),
            hold="JobHeldUser" if "hold" in self.options else None,
            unsupported=tuple(map(one_line, self.unsupported)),
        )

    def remark(self, text: str) -> None:
        """Keep that something was taken otherwise than asked."""
        self.remarks[text].append(self.job_id)

    def _first(self, partitions: str) -> PartitionFigures | None:
        # A job may name several partitions; the first one's defaults count.
        first = partitions.partition(",")[0]
        return next((one for one in self.conf.partitions if one.partition.name == first), None)

    def _request(self, partition: str) -> Request:
        licenses = self.options.get("licenses", "")
        members = {
            **self._size(),
            **self._gres(),
            **self._sharing(partition),
            "segment": self._count("segment"),
            "spread_segments": "spread-segments" in self.options,
            "consolidate_segments": "consolidate-segments" in self.options,
            "contiguous": "contiguous" in self.options,
            "max_switches": self._switches(),
            "features": wanted_features(self.options.get("constraint", ""), self.unsupported),
            **self._node_lists(),
            "licenses": wanted_licenses(licenses, self.conf.licenses, self.unsupported),
        }
        self._join(members)
        members |= self._memory(self._first(partition), members)
        try:
            return Request(**members)
        except InputError as error:
            self.unsupported.append(f"the parts of the request contradict each other: {error}")
            return Request(cores=members.get("cores") or 1)

    def _join(self, members: dict[str, Any]) -> None:
        """Join gres on each node with the same over all nodes: together they fix the node count."""
        each, total = members["gres_per_node"], members["gres_total"]
        for name in each.keys() & total.keys():
            count = total.pop(name).minimum
            span = members["nodes"] or Span(minimum=1, maximum=count)
            nodes = nodes_of_gres(name, count, each[name].minimum, span, self.unsupported)
            if members.get("cores") and "ntasks" not in self.options:
                # As sbatch does: a task for each node at least.
                members["cores"] = max(members["cores"], nodes.minimum * members.get("cores_per_task", 1))
            members["nodes"] = nodes

    def _count(self, name: str) -> int | None:
        text = self.options.get(name)
        if text is not None and not re.fullmatch(r"0*[1-9][0-9]{0,8}", text):
            raise InputError(f"{text[:60]!r} is not a number above 0", path=f"{self.path} --{name}")
        return None if text is None else int(text)

    def _nodes(self) -> Span | None:
        text = self.options.get("nodes")
        if text is None:
            return None
        match = _NODES.fullmatch(text)
        if match is None and _COUNTS.fullmatch(text):
            self.unsupported.append(f"--nodes={text}")
            return None
        if match is None or int(match[1]) == 0:
            raise InputError(f"{text[:60]!r} is not a number of nodes", path=f"{self.path} --nodes")
        low, high = int(match[1]), int(match[2] or match[1])
        if high < low:
            raise InputError(f"{text!r} counts backwards", path=f"{self.path} --nodes")
        return Span(minimum=low, maximum=high)

    def _size(self) -> dict[str, Any]:
        """Return cores and nodes: tasks of so many CPUs, so many a node or as Slurm divides."""
        nodes, tasks = self._nodes(), self._count("ntasks")
        each, step = self._count("ntasks-per-node"), self._count("cpus-per-task") or 1
        if each is not None:
            if nodes is None:
                nodes = Span.exactly(-(-(tasks or each) // each))
            return {"nodes": nodes, "cores_per_node": each * step, "cores_per_task": step}
        if nodes is not None and tasks is not None and tasks < nodes.minimum:
            self.remark("fewer tasks than nodes: as many nodes as tasks, as sbatch does")
            nodes = Span.exactly(tasks)
        cores = (tasks or (nodes.minimum if nodes else 1)) * step
        least = self._count("mincpus") or 1
        if nodes is not None and least * nodes.minimum > cores:
            return {"nodes": nodes, "cores_per_node": least}
        return {
            "cores": cores,
            "nodes": nodes,
            "cores_per_task": step,
            "min_cores_per_node": least if least > step else 1,
        }

    def _gres(self) -> dict[str, Any]:
        gres = self.options.get("gres", "")
        named = parse_gres("none" if gres.lower() == "none" else gres, f"{self.path} --gres")
        gpus, total = self._gpus("gpus-per-node"), self._gpus("gpus")
        # What --gpus-per-node says counts, 0 too.
        others = {name: count for name, count in named.items() if name not in gpus}
        return {
            "gres_per_node": self._wanted("gres", others) | self._wanted("gpus-per-node", gpus),
            "gres_total": self._wanted("gpus", total),
        }

    def _gpus(self, option: str) -> dict[str, int]:
        """Return an option's GPUs as gres: ``2`` or ``a100:2``, several with commas."""
        parts = self.options[option].split(",") if option in self.options else ()
        return parse_gres(",".join(f"gpu:{part}" for part in parts), f"{self.path} --{option}")

    def _wanted(self, option: str, counts: Mapping[str, int]) -> dict[str, Span]:
        wanted = wanted_gres(counts, f"--{option} ", self.conf.gres_kinds, self.unsupported)
        return {name: Span.exactly(count) for name, count in wanted.items()}

    def _sharing(self, partition: str) -> dict[str, bool]:
        """Return whether the job has its nodes, and their blocks, for itself."""
        named = [one for one in self.conf.partitions if one.partition.name in partition.split(",")]
        within, is_whole = self.options.get("exclusive"), any(one.exclusive for one in named)
        whole = is_whole or within not in (None, "topo")
        if within and within != "topo" and not is_whole:
            self.remark(f"--exclusive={within} is taken as --exclusive, which is stricter")
        elif not whole and self.options.get("mem") == "0":
            self.remark("--mem=0, all the memory of each node, is taken as --exclusive")
            whole = True
        topo = within == "topo" or any(one.exclusive_topo for one in named)
        return {"exclusive": whole, "exclusive_topo": topo}

    def _switches(self) -> int | None:
        text = self.options.get("switches")
        if text is None:
            return None
        count, at, _ = text.partition("@")
        if not re.fullmatch(r"[1-9][0-9]{0,8}", count):
            raise InputError(f"{text[:60]!r} is not a number of switches", path=f"{self.path} --switches")
        if at:
            self.remark("the time that --switches waits at most is not looked at")
        return int(count)

    def _node_lists(self) -> dict[str, Any]:
        names, excluded = self.conf.names, self._names("exclude")
        if any(name not in names for name in excluded):
            self.remark("excluded nodes that the cluster does not have are dropped")
        return {
            "required_nodes": wanted_nodes(self._names("nodelist"), names, self.unsupported),
            "excluded_nodes": frozenset(excluded) & names,
        }

    def _names(self, option: str) -> tuple[str, ...]:
        return names_in(self.options.get(option, ""), f"{self.path} --{option}")

    def _memory(self, first: PartitionFigures | None, members: Mapping[str, Any]) -> dict[str, Any]:
        """Return the memory members, by default the partition's; none if jobs use none up."""
        if not self.conf.counts_memory:
            if self.options.keys() & {"mem", "mem-per-cpu"}:
                self.remark("memory is not looked at: jobs use none up (SelectTypeParameters)")
            return {}
        asked = DefaultMemory(per_cpu=self._mebibytes("mem-per-cpu"), per_node=self._mebibytes("mem"))
        if asked == DefaultMemory():
            asked = first.memory if first is not None and first.memory else self.conf.memory
            if not (asked or members["exclusive"]):
                self.remark("all the memory of each node, for want of a default, is taken as --exclusive")
                return {"exclusive": True}
        return asked.members

    def _mebibytes(self, option: str) -> int | None:
        text = self.options.get(option)
        if text is None:
            return None
        amount = None if "." in text else memory_mib(text)
        if amount is None:
            raise InputError(f"{text[:60]!r} is not an amount of memory", path=f"{self.path} --{option}")
        return amount

    def _time_limit_s(self, partition: str) -> int | None:
        """Return the limit in seconds, rounded up to minutes as in Slurm; else the partition's."""
        text, first = self.options.get("time"), self._first(partition)
        if text is None:
            return None if first is None else self.conf.times_s[first.partition.name]
        if text.upper() in _NO_LIMIT:
            return None if first is None else first.partition.max_time_limit_s
        seconds = duration_s(text)
        if not seconds:
            raise InputError(f"{text[:60]!r} is not a time limit", path=f"{self.path} --time")
        return -(-seconds // _MINUTE_S) * _MINUTE_S
