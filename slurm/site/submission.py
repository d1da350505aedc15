"""A job as sbatch's options ask for it, in native terms; Slurm 22.05's rules fill in what they leave open."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...cluster.checks import plain
from ...cluster.errors import InputError
from ...cluster.jobs import Job, Request, Span
from ...cluster.text import one_line
from ...formats.hostlist import expand
from ..answers.answer_text import duration_s, memory_mib
from ..answers.gres_text import parse_gres
from ..answers.license_lists import plain_licenses
from ..answers.request import plain_features
from .conf import Defaults, SlurmConf
from .sbatch import HARMLESS, PREFERENCES, READ

_NODES = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_MINUTE_S = 60
_NO_LIMIT = {"0", "UNLIMITED", "INFINITE", "-1"}


@dataclass(slots=True, kw_only=True)
class SubmissionReader:
    """Reads submissions against a site; ``remarks`` counts what was taken otherwise than asked, by text."""

    conf: SlurmConf
    remarks: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)
    names: frozenset[str] = frozenset()
    exclusive: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.names = frozenset(node.name for node in self.conf.nodes)
        self.exclusive = frozenset(
            figures.partition.name for figures in self.conf.partitions if figures.exclusive
        )

    def read(self, options: Mapping[str, str], job_id: str, priority: int, path: str) -> Job:
        """Return the job; what has no native member goes to its ``unsupported``.

        Raises:
            InputError: a value is not as sbatch reads it.
        """
        return _Submission(reader=self, options=options, job_id=job_id, path=path).job(priority)

    def remark(self, text: str, job_id: str) -> None:
        """Count a remark about a job."""
        self.remarks[text] += 1
        self.first.setdefault(text, job_id)


@dataclass(slots=True, kw_only=True)
class _Submission:
    """One job while it is read."""

    reader: SubmissionReader
    options: Mapping[str, str]
    job_id: str
    path: str
    unsupported: list[str] = field(default_factory=list)

    def job(self, priority: int) -> Job:
        partition = self.options.get("partition") or self.reader.conf.default_partition or ""
        for name in sorted(self.options.keys() - READ - HARMLESS):
            self._leave_out(name)
        request = self._request(partition)
        for name in ("uid", "gid", "account", "qos", "partition"):
            plain(self.options.get(name), f"{self.path} --{name}")
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

    def _leave_out(self, name: str) -> None:
        value = self.options[name]
        text = f"--{name}={value}" if value else f"--{name}"
        if name in PREFERENCES:
            self._remark(f"--{name} is not looked at")
        else:
            self.unsupported.append(text)

    def _remark(self, text: str) -> None:
        self.reader.remark(text, self.job_id)

    def _defaults(self, partition: str) -> Defaults:
        # A job may name several partitions; the first one's defaults count.
        defaults = self.reader.conf.defaults
        return defaults.get(partition.partition(",")[0], defaults[""])

    def _request(self, partition: str) -> Request:
        members = {
            **self._size(),
            **self._gres(),
            "exclusive": self._exclusive(partition),
            "contiguous": "contiguous" in self.options,
            "max_switches": self._switches(),
            "features": self._features(),
            **self._node_lists(),
            "licenses": self._licenses(),
        }
        self._join(members)
        members |= self._memory(self._defaults(partition), members)
        try:
            return Request(**members)
        except InputError as error:
            self.unsupported.append(f"the parts of the request contradict each other: {error}")
            return Request(cores=members.get("cores") or 1)

    def _join(self, members: dict[str, Any]) -> None:
        """Join gres on each node with the same over all nodes: together they fix the node count."""
        each, total = members["gres_per_node"], members["gres_total"]
        for name in each.keys() & total.keys():
            count, on_node = total[name].minimum, each[name].minimum
            nodes, rest = divmod(count, on_node)
            span = members["nodes"] or Span(minimum=1, maximum=max(1, nodes))
            if rest or not span.minimum <= nodes <= span.maximum:
                self.unsupported.append(f"{count} {name} over all nodes, {on_node} on each")
            elif members.get("cores") and "ntasks" not in self.options:
                # As sbatch does: a task for each node at least.
                members["cores"] = max(members["cores"], nodes * members.get("cores_per_task", 1))
            members["nodes"] = span if rest else Span.exactly(nodes)
            del total[name]

    def _count(self, name: str) -> int | None:
        text = self.options.get(name)
        if text is None:
            return None
        if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) == 0:
            raise InputError(f"{text[:60]!r} is no number above 0", path=f"{self.path} --{name}")
        return int(text)

    def _nodes(self) -> Span | None:
        text = self.options.get("nodes")
        if text is None:
            return None
        match = _NODES.fullmatch(text)
        if match is None or int(match[1]) == 0:
            raise InputError(f"{text[:60]!r} is no number of nodes", path=f"{self.path} --nodes")
        low, high = int(match[1]), int(match[2] or match[1])
        if high < low:
            raise InputError(f"{text!r} counts backwards", path=f"{self.path} --nodes")
        return Span(minimum=low, maximum=high)

    def _size(self) -> dict[str, Any]:
        """Return cores and nodes: tasks of so many CPUs, so many a node or as Slurm divides them."""
        nodes, tasks = self._nodes(), self._count("ntasks")
        each, step = self._count("ntasks-per-node"), self._count("cpus-per-task") or 1
        if each is not None:
            if nodes is None:
                nodes = Span.exactly(-(-(tasks or each) // each))
            return {"nodes": nodes, "cores_per_node": each * step, "cores_per_task": step}
        if nodes is not None and tasks is not None and tasks < nodes.minimum:
            self._remark("fewer tasks than nodes: as many nodes as tasks, as sbatch does")
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
        per_node = self._gres_counts("gres")
        if text := self.options.get("gpus-per-node"):
            per_node |= parse_gres(_gpus(text), f"{self.path} --gpus-per-node")
        total = parse_gres(_gpus(self.options["gpus"]), self.path) if "gpus" in self.options else {}
        return {
            "gres_per_node": {name: Span.exactly(count) for name, count in per_node.items() if count},
            "gres_total": {name: Span.exactly(count) for name, count in total.items() if count},
        }

    def _gres_counts(self, name: str) -> dict[str, int]:
        text = self.options.get(name, "")
        return parse_gres(
            text.removeprefix("gres:").lower() if text == "NONE" else text, f"{self.path} --{name}"
        )

    def _exclusive(self, partition: str) -> bool:
        if not self.reader.exclusive.isdisjoint(partition.split(",")):
            return True
        within = self.options.get("exclusive")
        if within:
            self._remark(f"--exclusive={within} is taken as --exclusive, which is stricter")
        elif self.options.get("mem") == "0":
            self._remark("--mem=0, all the memory of each node, is taken as --exclusive")
        return within is not None or self.options.get("mem") == "0"

    def _switches(self) -> int | None:
        text = self.options.get("switches")
        if text is None:
            return None
        count, at, _ = text.partition("@")
        if not re.fullmatch(r"[1-9][0-9]{0,8}", count):
            raise InputError(f"{text[:60]!r} is no number of switches", path=f"{self.path} --switches")
        if at:
            self._remark("the time that --switches waits at most is not looked at")
        return int(count)

    def _features(self) -> frozenset[str]:
        text = self.options.get("constraint", "")
        features = plain_features(text)
        if features is None:
            self.unsupported.append(f"the constraint {text}")
            return frozenset()
        return features

    def _node_lists(self) -> dict[str, Any]:
        required = self._names("nodelist")
        excluded = self._names("exclude")
        for name in required:
            if name not in self.reader.names:
                self.unsupported.append(f"the required node {name}, which the cluster does not have")
        if any(name not in self.reader.names for name in excluded):
            self._remark("excluded nodes that the cluster does not have are dropped")
        return {
            "required_nodes": tuple(name for name in required if name in self.reader.names),
            "excluded_nodes": frozenset(excluded) & self.reader.names,
        }

    def _names(self, option: str) -> tuple[str, ...]:
        text = self.options.get(option)
        return expand(text, f"{self.path} --{option}") if text else ()

    def _licenses(self) -> dict[str, int]:
        text = self.options.get("licenses", "")
        counts, reason = plain_licenses(text, self.reader.conf.licenses)
        if reason:
            self.unsupported.append(f"the licences {text}, {reason}")
        return counts

    def _memory(self, defaults: Defaults, members: Mapping[str, Any]) -> dict[str, Any]:
        """Return the memory members, by default the partition's; none where jobs use no memory up."""
        if not self.reader.conf.counts_memory:
            if self.options.keys() & {"mem", "mem-per-cpu"}:
                self._remark("memory is not looked at: jobs use none up (SelectTypeParameters)")
            return {}
        per_node, per_core = self._mebibytes("mem"), self._mebibytes("mem-per-cpu")
        if per_node is None and per_core is None:
            per_node, per_core = defaults.memory_per_node, defaults.memory_per_cpu
            if not (per_node or per_core or members["exclusive"]):
                self._remark("all the memory of each node, for want of a default, is taken as --exclusive")
                return {"exclusive": True}
        if per_core:
            return {"memory_mib_per_core": per_core}
        return {"memory_mib_per_node": per_node} if per_node else {}

    def _mebibytes(self, option: str) -> int | None:
        text = self.options.get(option)
        if text is None:
            return None
        amount = None if "." in text else memory_mib(text)
        if amount is None:
            raise InputError(f"{text[:60]!r} is no amount of memory", path=f"{self.path} --{option}")
        return amount

    def _time_limit_s(self, partition: str) -> int | None:
        """Return the limit in seconds, up to the next minute as Slurm counts; the partition's by default."""
        text = self.options.get("time")
        if text is None or text.upper() in _NO_LIMIT:
            return self._defaults(partition).time_s if text is None else self._longest_s(partition)
        seconds = duration_s(text)
        if not seconds:
            raise InputError(f"{text[:60]!r} is no time limit", path=f"{self.path} --time")
        return -(-seconds // _MINUTE_S) * _MINUTE_S

    def _longest_s(self, partition: str) -> int | None:
        name = partition.partition(",")[0]
        limits = {
            entry.partition.name: entry.partition.max_time_limit_s for entry in self.reader.conf.partitions
        }
        return limits.get(name)


def _gpus(text: str) -> str:
    """Return ``--gpus``' value as gres: ``2`` or ``a100:2``, several with commas."""
    return ",".join(f"gpu:{part}" for part in text.split(","))
