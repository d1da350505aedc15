"""Which whole nodes a job may use by cores, memory, gres, features and excluded nodes.

A whole node's memory and gres are its job's, so what a job asks for on each node never runs short:
a node has it or not. The engine's own readers of requests (bidgen/) say so, for each partition.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from ...auction.state import state_of
from ...bidgen.candidates import GresChoice, fewest_gres, usable
from ...cluster.errors import InputError
from ...cluster.jobs import Job, Request, Span
from ...cluster.nodes import Node, NodeState, Switch, part_of_tree
from ...cluster.resources.capacity import BoolArray, Capacity
from ...cluster.resources.demand import Demand, is_type_of
from ...cluster.snapshot import Snapshot
from ..nodes.node_machine import why_never

#: Members of a request that the nodes of one partition do not settle.
_NOT_NEGOTIATED = ("licenses", "required_nodes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Eligibility:
    """What a job may use.

    Attributes:
        members: the nodes, of all sets together.
        eligible: sets of node names, one of which must hold all of the job's nodes; empty: any.
        largest: nodes of the largest set, of its longest run where they must stand side by side.
        fewest: nodes that hold the gres asked for over all of them, whichever they are.
        contiguous: whether they must stand side by side.
        max_switches: the most leaf switches that they may be below; None: none exist, or any do.
    """

    members: tuple[Node, ...]
    eligible: tuple[tuple[str, ...], ...]
    largest: int
    fewest: int
    contiguous: bool
    max_switches: int | None


class PartitionNodes:
    """The nodes of a partition, all of them idle (``members``).

    Args:
        members: the nodes.
        switches: the tree above these and others, None where they stand in a row.
    """

    def __init__(self, members: Sequence[Node], switches: Sequence[Switch] | None) -> None:
        self.members = tuple(
            replace(node, free=node.total, state=NodeState.IDLE, partitions=()) for node in members
        )
        names = {node.name for node in self.members}
        self._has_switches = bool(switches)
        tree = part_of_tree(switches, names) if switches else None
        snapshot = Snapshot(nodes=self.members, switches=tree)
        self._state = state_of(snapshot)
        self._columns, self._reader = self._state.columns, self._state.reader
        self._could_start: set[object] = set()

    def of(self, job: Job) -> Eligibility:
        """Return which nodes a job may use.

        Raises:
            InputError: none, or it asks for what is not negotiated; names the member.
        """
        request = job.request
        for name in _NOT_NEGOTIATED:
            if getattr(request, name):
                raise InputError("negotiations do not support this: remove it", path=name)
        ways = self._ways(job)
        sets = [np.flatnonzero(mask).tolist() for mask, _ in ways]
        together = sorted({node for nodes in sets for node in nodes})
        # The longest of neighbours, where a job's nodes must stand side by side.
        runs = [run for nodes in sets for run in np.split(nodes, np.flatnonzero(np.diff(nodes) != 1) + 1)]
        is_all = any(len(nodes) == len(self.members) for nodes in sets)
        return Eligibility(
            members=tuple(self.members[node] for node in together),
            eligible=()
            if is_all
            else tuple(tuple(self._columns.names[node] for node in mine) for mine in sets),
            largest=max(map(len, runs if request.contiguous else sets)),
            fewest=max(fewest for _, fewest in ways),
            contiguous=request.contiguous,
            max_switches=request.max_switches if self._has_switches else None,
        )

    def check(self, job: Job, wishes: Eligibility, least: int) -> None:
        """Refuse a job whose least nodes do not stand below so few switches, were all of them idle.

        Raises:
            InputError: it could not.
        """
        key = (wishes.eligible, wishes.contiguous, wishes.max_switches, least)
        if wishes.max_switches is None or key in self._could_start:
            return
        asked = Request(
            nodes=Span.exactly(least),
            cores_per_node=1,
            contiguous=wishes.contiguous,
            max_switches=wishes.max_switches,
        )
        sets = wishes.eligible or (self._columns.names,)
        every = set(self._columns.names)
        tried = (replace(asked, excluded_nodes=frozenset(every - set(names))) for names in sets)
        jobs = (replace(job, partition="", request=one) for one in tried)
        if all(isinstance(found, str) for found in why_never(jobs, self._state)):
            raise InputError(f"no {least} nodes that it may use are below so few", path="max_switches")
        self._could_start.add(key)

    def share(self, job: Job, members: Sequence[Node], least: int) -> Fraction:
        """Return how much of a node a job asks for on its fewest: cores, memory or a gres."""
        request = job.request
        if request.exclusive or request.gres_total:
            return Fraction(1)
        cores = max(
            request.cores_per_node or -(-(request.cores or 1) // least),
            request.min_cores_per_node,
            request.cores_per_task,
        )
        memory = request.memory_mib_per_node or (request.memory_mib_per_core or 0) * cores
        shares = [Fraction(cores, min(node.total.cores for node in members))]
        limits = [node.total.memory_mib for node in members if node.total.memory_mib]
        shares += [Fraction(memory, min(limits))] if limits else []
        for name, span in request.gres_per_node.items():
            shares.append(_share_of_gres(members, name, span.minimum))
        return min(max(shares), Fraction(1))

    def _ways(self, job: Job) -> list[tuple[BoolArray, int]]:
        """Return the nodes of each way to read the request that has any; how many hold it all."""
        request = job.request
        read = self._reader.read(replace(job, partition=""), 0)
        if not isinstance(read, Demand):
            raise InputError(read.detail, path=_about(request))
        cores, wanted = self._columns.total.cores, request.cores_per_node
        if wanted is None:
            # On the fewest nodes asked for.
            span = request.node_counts
            shared = 1 if span is None else -(-(request.cores or 1) // span.minimum)
            wanted = max(request.min_cores_per_node, shared)
        if wanted > int(cores.max()):
            path = "cores_per_node" if request.cores_per_node else "cores"
            raise InputError(f"{wanted} cores a node are above the partition's {int(cores.max())}", path=path)
        total, found = self._columns.total, []
        for asked in fewest_gres(read):
            mask = usable(asked, total, self._columns)[0] & (cores >= wanted)
            for kind, _, low, _ in asked.choice.total:
                # A node without any would never help.
                mask &= (total.gres[kind] > 0) | (low == 0)
            if mask.any():
                found.append((mask, _fewest(asked.choice, mask, total)))
        if not found:
            raise InputError(f"no node of the partition has {_asked(request)}", path=_about(request))
        return found


def _share_of_gres(members: Sequence[Node], name: str, asked: int) -> Fraction:
    """Return how much of a node's gres a job asks for: of the fewest of one type that suffice."""
    counts = [
        count
        for node in members
        for own, count in node.total.gres.items()
        if is_type_of(own, name) and count >= asked > 0
    ]
    return Fraction(asked, min(counts)) if counts else Fraction(bool(asked))


def _fewest(choice: GresChoice, mask: BoolArray, total: Capacity) -> int:
    """Return how many nodes hold what a job asks for over all its nodes, whichever they are."""
    lows = [(low, int(total.gres[kind][mask].min())) for kind, _, low, _ in choice.total if low]
    return max((-(-low // least) for low, least in lows), default=1)


def _about(request: Request) -> str:
    """Return the member of a request that leaves no node, none where it may be one of several."""
    names = ("gres_per_node", "gres_total", "features", "memory_mib_per_node", "memory_mib_per_core")
    given = [name for name in (*names, "excluded_nodes") if getattr(request, name)]
    return given[0] if len(given) == 1 else ""


def _asked(request: Request) -> str:
    """Return in words what a node must have beside cores."""
    memory = request.memory_mib_per_node or request.memory_mib_per_core
    words = [f"{span.minimum} {name}" for name, span in request.gres_per_node.items()]
    words += [f"{memory} MiB a {'node' if request.memory_mib_per_node else 'core'}"] if memory else []
    words += sorted(request.features)
    return " and ".join(words) or "what it asks for"
