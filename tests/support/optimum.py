"""The best priority sum of a small snapshot over all placements, not only those some bid asks for.

An integer program of its own (cores of each job on each node), solved by CBC: it shares no line with the
auction, and knows every member of a request.
"""

from __future__ import annotations

from itertools import product

import cbcbox
import pulp

from aucsched import Job, Node, Snapshot, Span


def best_priority_sum(snapshot: Snapshot, *, even_gres: bool = False) -> float:
    """Return the greatest sum of priorities that can be started at once.

    ``even_gres``: a gres range takes one count on all nodes of a job, as bids do.
    """
    return _Placement(snapshot, snapshot.jobs, even_gres=even_gres).best()


def fits_alone(snapshot: Snapshot, job: Job) -> bool:
    """Return whether a job could be started if no other were."""
    return _Placement(snapshot, (job,), even_gres=False).best() > 0


class _Placement:
    """Variables: x cores, t on node, g gres, of each job (in each of its variants) on each node."""

    def __init__(self, snapshot: Snapshot, jobs: tuple[Job, ...], *, even_gres: bool) -> None:
        self._snapshot = snapshot
        self._even_gres = even_gres
        self._nodes = snapshot.nodes
        self._problem = pulp.LpProblem("free_placement", pulp.LpMaximize)
        self._cores: list[list[pulp.LpVariable]] = []
        self._memory: list[list[pulp.LpAffineExpression]] = [[] for _ in self._nodes]
        self._gres: list[dict[str, list[pulp.LpVariable]]] = [{} for _ in self._nodes]
        self._licenses: dict[str, list[pulp.LpAffineExpression]] = {}
        self._value: list[pulp.LpAffineExpression] = []
        self._count = 0
        for job in jobs:
            if job.hold is None and not job.unsupported and job.priority > 0:
                self._add_job(job)

    def best(self) -> float:
        problem = self._problem
        problem += pulp.lpSum(self._value)
        for place, node in enumerate(self._nodes):
            problem += pulp.lpSum(cores[place] for cores in self._cores) <= node.free.cores
            if node.free.memory_mib is not None:
                problem += pulp.lpSum(self._memory[place]) <= node.free.memory_mib
            for kind, counts in self._gres[place].items():
                problem += pulp.lpSum(counts) <= node.free.gres.get(kind, 0)
        for name, counts in self._licenses.items():
            problem += pulp.lpSum(counts) <= self._snapshot.licenses[name].free
        if not self._value:
            return 0.0
        # Branching alone: CBC's cuts and heuristics take as long again on programs of this size.
        plain = {"cuts": False, "options": ["heuristics off"]}
        problem.solve(pulp.COIN_CMD(path=cbcbox.cbc_bin_path(), msg=False, gapRel=0, gapAbs=0, **plain))
        assert pulp.LpStatus[problem.status] == "Optimal"
        return float(pulp.value(problem.objective) or 0.0)

    def _variable(self, category: str = "Binary", high: float | None = 1) -> pulp.LpVariable:
        self._count += 1
        return self._problem.add_variable(f"v{self._count}", 0, high, category)

    def _add_job(self, job: Job) -> None:
        partitions = job.partition.split(",") if job.partition else [""]
        names = [*job.request.gres_per_node, *job.request.gres_total]
        types = [self._types(name) for name in names]
        variants = [
            self._add_variant(job, partition, dict(zip(names, kinds, strict=True)))
            for partition in partitions
            for kinds in product(*types)
        ]
        self._problem += pulp.lpSum(variants) <= 1
        self._value.append(float(job.priority) * pulp.lpSum(variants))

    def _types(self, name: str) -> list[str]:
        kinds = sorted({kind for node in self._nodes for kind in node.total.gres})
        fitting = [kind for kind in kinds if kind == name or (":" not in name and kind.split(":")[0] == name)]
        return fitting or [name]

    def _add_variant(self, job: Job, partition: str, kinds: dict[str, str]) -> pulp.LpVariable:
        start = self._variable()
        request = job.request
        used = [self._variable() for _ in self._nodes]
        cores = [self._variable("Integer", None) for _ in self._nodes]
        tasks = [self._variable("Integer", None) for _ in self._nodes]
        self._cores.append(cores)
        for place, node in enumerate(self._nodes):
            self._problem += used[place] <= (start if self._eligible(job, node, partition) else 0)
            self._problem += cores[place] <= node.free.cores * used[place]
            self._problem += cores[place] >= max(1, request.min_cores_per_node) * used[place]
            if request.exclusive:
                self._problem += cores[place] == node.total.cores * used[place]
            else:
                self._problem += cores[place] == request.cores_per_task * tasks[place]
            self._memory[place].append(
                (request.memory_mib_per_node or 0) * used[place]
                + (request.memory_mib_per_core or 0) * cores[place]
            )
            if node.name in request.required_nodes:
                self._problem += used[place] >= start
        self._size(job, partition, start, cores, used)
        for name, span in request.gres_per_node.items():
            self._gres_each(kinds[name], span, used, start)
        for name, span in request.gres_total.items():
            self._gres_all(kinds[name], span, used, start)
        for name, count in request.licenses.items():
            self._licenses.setdefault(name, []).append(count * start)
        if request.contiguous:
            self._contiguous(start, used)
        if request.max_switches is not None and self._snapshot.switches:
            self._switches(request.max_switches, used)
        return start

    def _eligible(self, job: Job, node: Node, partition: str) -> bool:
        request = job.request
        limits = {one.name: one for one in self._snapshot.partitions}.get(partition)
        if limits is not None and (
            limits.state != "up" or (job.time_limit_s or 0) > (limits.max_time_limit_s or 1e18)
        ):
            return False
        if (
            partition
            and partition not in node.partitions
            and (limits is None or node.name not in limits.nodes)
        ):
            return False
        if request.exclusive and node.free != node.total:
            return False
        return (
            node.state.takes_jobs
            and request.features <= node.features
            and node.name not in request.excluded_nodes
            and not any(self._reserved(job, node, place) for place in range(len(self._snapshot.reservations)))
        )

    def _reserved(self, job: Job, node: Node, place: int) -> bool:
        reservation = self._snapshot.reservations[place]
        now = self._snapshot.time or 0.0
        end = float("inf") if job.time_limit_s is None else now + job.time_limit_s
        overlaps = reservation.start < end and now < reservation.end
        return overlaps and node.name in reservation.nodes and job.user not in reservation.users

    def _size(
        self,
        job: Job,
        partition: str,
        start: pulp.LpVariable,
        cores: list[pulp.LpVariable],
        used: list[pulp.LpVariable],
    ) -> None:
        request = job.request
        limits = {one.name: one for one in self._snapshot.partitions}.get(partition)
        if limits is not None and limits.max_nodes is not None:
            self._problem += pulp.lpSum(used) <= limits.max_nodes
        if request.cores is not None:
            total = pulp.lpSum(cores)
            self._problem += (
                (total >= request.cores * start) if request.exclusive else (total == request.cores * start)
            )
        if request.node_counts is not None:
            self._problem += pulp.lpSum(used) >= request.node_counts.minimum * start
            self._problem += pulp.lpSum(used) <= request.node_counts.maximum * start
        if request.cores_per_node is not None:
            for place in range(len(used)):
                if request.exclusive:
                    self._problem += cores[place] >= request.cores_per_node * used[place]
                else:
                    self._problem += cores[place] == request.cores_per_node * used[place]

    def _gres_each(self, kind: str, span: Span, used: list[pulp.LpVariable], start: pulp.LpVariable) -> None:
        same = self._variable("Integer", None) if self._even_gres and not span.is_exact else None
        for place in range(len(used)):
            count = self._variable("Integer", None)
            self._problem += count >= span.minimum * used[place]
            self._problem += count <= span.maximum * used[place]
            if same is not None:
                self._problem += count <= same
                self._problem += count >= same - span.maximum * (1 - used[place])
            self._gres[place].setdefault(kind, []).append(count)
        del start

    def _gres_all(self, kind: str, span: Span, used: list[pulp.LpVariable], start: pulp.LpVariable) -> None:
        counts = [self._variable("Integer", None) for _ in used]
        for place, count in enumerate(counts):
            self._problem += count <= span.maximum * used[place]
            self._gres[place].setdefault(kind, []).append(count)
        self._problem += pulp.lpSum(counts) >= span.minimum * start
        self._problem += pulp.lpSum(counts) <= span.maximum * start

    def _contiguous(self, start: pulp.LpVariable, used: list[pulp.LpVariable]) -> None:
        spans = {
            (first, last): self._variable() for first in range(len(used)) for last in range(first, len(used))
        }
        self._problem += pulp.lpSum(spans.values()) == start
        for place, variable in enumerate(used):
            self._problem += (
                pulp.lpSum(chosen for (first, last), chosen in spans.items() if first <= place <= last)
                == variable
            )

    def _switches(self, most: int, used: list[pulp.LpVariable]) -> None:
        leaves = {name: switch.name for switch in self._snapshot.switches or () for name in switch.nodes}
        touched = {leaf: self._variable() for leaf in sorted(set(leaves.values()))}
        for place, node in enumerate(self._nodes):
            self._problem += used[place] <= touched[leaves[node.name]]
        self._problem += pulp.lpSum(touched.values()) <= most
