"""An independent check of every schedule, in plain Python: no numpy, no bids, no solver.

At the end: the check that an award keeps Slurm's rules for blocks, rings and tori. It shares
nothing with the sets that jobs bid on.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from itertools import product
from math import ceil, log2

from ..cluster.errors import AwardError
from ..cluster.jobs import Job, Request, RunningJob
from ..cluster.limits import Limit
from ..cluster.network import Network, NetworkKind, Unit, alone_on
from ..cluster.nodes import Node, PartitionState, Resources
from ..cluster.schedule import Schedule
from ..cluster.snapshot import Snapshot


def check_schedule(snapshot: Snapshot, schedule: Schedule) -> None:
    """Raise AwardError unless each job is in one list and each award is what the job asked for."""
    _check_lists(snapshot, schedule)
    check_awards(snapshot, schedule)


def check_awards(snapshot: Snapshot, schedule: Schedule) -> None:
    """Raise AwardError unless every award keeps what the job asked."""
    if not schedule.started:
        return
    jobs = {job.id: job for job in snapshot.jobs}
    checker = AwardChecker(snapshot)
    for award in schedule.started:
        checker.check(jobs[award.job], award.nodes)
    _check_capacity(snapshot, schedule, checker.places)
    _check_licenses(snapshot, schedule, jobs)
    _check_alone(snapshot, schedule, jobs)
    for limit in snapshot.limits:
        _check_limit(limit, snapshot, schedule, jobs)


class AwardChecker:
    """Checks awards one by one against their jobs; what they take together is not its business."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.places = {node.name: place for place, node in enumerate(snapshot.nodes)}
        self._leaves = _leaves(snapshot)

    def check(self, job: Job, held: Mapping[str, Resources]) -> None:
        """Raise AwardError unless what a job holds, by node name, keeps what it asked."""
        _Check(self._snapshot, job, held, self.places, self._leaves).run()


def _check_lists(snapshot: Snapshot, schedule: Schedule) -> None:
    """Raise AwardError unless every job stands in one list."""
    listed = Counter(
        [award.job for award in schedule.started] + [refusal.job for refusal in schedule.pending]
    )
    asked = Counter(job.id for job in snapshot.jobs)
    for job in asked | listed:
        if listed[job] != asked[job]:
            raise AwardError(f"job {job} is listed {listed[job]} times among started and pending")


def _leaves(snapshot: Snapshot) -> dict[str, str]:
    return {name: switch.name for switch in snapshot.switches or () for name in switch.nodes}


def _check_capacity(snapshot: Snapshot, schedule: Schedule, places: Mapping[str, int]) -> None:
    cores: Counter[str] = Counter()
    memory: Counter[str] = Counter()
    gres: dict[str, Counter[str]] = {}
    for award in schedule.started:
        for name, use in award.nodes.items():
            cores[name] += use.cores
            memory[name] += use.memory_mib or 0
            if use.gres:
                gres.setdefault(name, Counter()).update(use.gres)
    for node in (snapshot.nodes[places[name]] for name in cores):
        _check_amount(node.name, "cores", cores[node.name], node.free.cores)
        if node.free.memory_mib is not None:
            _check_amount(node.name, "memory", memory[node.name], node.free.memory_mib)
        for kind, count in gres.get(node.name, {}).items():
            _check_amount(node.name, kind, count, node.free.gres.get(kind, 0))


def _check_alone(snapshot: Snapshot, schedule: Schedule, jobs: dict[str, Job]) -> None:
    """Raise AwardError when another job is on a block or ring that one must have alone."""
    holders = {job.id: job.nodes for job in snapshot.running}
    holders |= {award.job: award.nodes for award in schedule.started}
    for award in schedule.started:
        closed = alone_on(snapshot.network, jobs[award.job].request, award.nodes)
        for name, nodes in holders.items() if closed else ():
            if name != award.job and not closed.isdisjoint(nodes):
                raise AwardError(f"job {award.job} is not alone on its blocks: job {name} is there")


def _check_amount(node: str, what: str, amount: int, free: int) -> None:
    if amount > free:
        raise AwardError(f"{amount} {what} are awarded on {node}, {free} are free")


def _check_licenses(snapshot: Snapshot, schedule: Schedule, jobs: dict[str, Job]) -> None:
    used: Counter[str] = Counter()
    for award in schedule.started:
        used.update(jobs[award.job].request.licenses)
    for name, count in used.items():
        if count > snapshot.licenses[name].free:
            raise AwardError(f"{count} {name} licences are awarded, {snapshot.licenses[name].free} are free")


def _check_limit(limit: Limit, snapshot: Snapshot, schedule: Schedule, jobs: dict[str, Job]) -> None:
    """Raise AwardError when awards take more of a limit than running jobs leave."""
    used: Counter[tuple[str, str]] = Counter()
    awarded: set[tuple[str, str]] = set()
    for running in snapshot.running:
        if _is_limited(running, limit):
            end = running.end_time if snapshot.time is not None else None
            left = None if end is None else max(end - (snapshot.time or 0.0), 0.0)
            used.update(_limited(limit, running, list(running.nodes.values()), left))
    for award in schedule.started:
        job = jobs[award.job]
        if _is_limited(job, limit):
            taken = _limited(limit, job, list(award.nodes.values()), job.time_limit_s)
            used.update(taken)
            awarded.update(key for key, amount in taken.items() if amount)
    for who, what in awarded:
        if used[who, what] > limit.most[what]:
            raise AwardError(
                f"limit {limit.name}: {used[who, what]} {what} of {limit.most[what]} are held {who}"
            )


def _is_limited(job: Job | RunningJob, limit: Limit) -> bool:
    pairs = (
        (limit.jobs.user, job.user),
        (limit.jobs.group, job.group),
        (limit.jobs.account, job.account),
        (limit.jobs.qos, job.qos),
        (limit.jobs.partition, job.partition),
    )
    # Of a list with commas, as partitions and their QOS are, one name is enough.
    own = set(job.qos.split(","))
    excepted = own & set(limit.jobs.except_qos)
    if isinstance(job, Job) and (excepted == own if "," in job.partition else excepted):
        return False
    return all(not names or set(names) & set(named.split(",")) for names, named in pairs)


def _limited(
    limit: Limit, job: Job | RunningJob, held: list[Resources], seconds: float | None
) -> dict[tuple[str, str], int]:
    """Return what a job takes of each amount of a limit, by whose it is where that counts."""
    who = f"by {limit.per} {getattr(job, limit.per)}" if limit.per else "together"
    cores = sum(use.cores for use in held)
    taken: dict[tuple[str, str], int] = {}
    for what in limit.most:
        if what == "core_seconds":
            # Without an end it takes more than any limit.
            amount = limit.most[what] + 1 if seconds is None else ceil(cores * seconds)
        elif what.startswith("gres/"):
            name = what.removeprefix("gres/")
            amount = sum(count for use in held for kind, count in use.gres.items() if _is_kind(kind, name))
        else:
            amount = {"cores": cores, "nodes": len(held), "jobs": 1}[what]
        taken[who, what] = amount
    return taken


class _Check:
    """Checks one award against its job."""

    def __init__(
        self,
        snapshot: Snapshot,
        job: Job,
        held: Mapping[str, Resources],
        places: dict[str, int],
        leaves: dict[str, str],
    ) -> None:
        self._snapshot = snapshot
        self._job = job
        self._request: Request = job.request
        self._held = held
        self._places = places
        self._leaves = leaves
        self._nodes = [snapshot.nodes[places[name]] for name in held]
        # A job that is alone on its blocks has whole nodes.
        is_alone = bool(alone_on(snapshot.network, job.request, held))
        self._is_exclusive = job.request.exclusive or is_alone

    def run(self) -> None:
        """Make every check."""
        if self._job.hold is not None or self._job.unsupported or self._job.priority == 0:
            self._fail("must not start")
        for node in self._nodes:
            self._check_node(node)
        self._check_partition()
        self._check_counts()
        self._check_order()
        for name in self._request.gres_per_node:
            self._check_gres_per_node(name)
        for name in self._request.gres_total:
            self._check_gres_total(name)
        self._check_nothing_extra()

    def _fail(self, message: str) -> None:
        raise AwardError(f"job {self._job.id}: {message}", job=self._job.id)

    def _check_node(self, node: Node) -> None:
        request, use = self._request, self._held[node.name]
        if not node.state.takes_jobs:
            self._fail(f"{node.name} is {node.state}")
        if not request.features <= node.features or node.name in request.excluded_nodes:
            self._fail(f"{node.name} lacks a feature or is excluded")
        is_all = use.cores == node.total.cores and Counter(use.gres) == Counter(node.total.gres)
        if self._is_exclusive and (node.free != node.total or not is_all):
            self._fail(f"{node.name} is not empty or not all the job's")
        memory = request.memory_mib_per_node or (request.memory_mib_per_core or 0) * use.cores
        if (use.memory_mib or 0) != memory:
            self._fail(f"{use.memory_mib} MiB on {node.name} instead of {memory}")
        for reservation in self._snapshot.reservations:
            if node.name in reservation.nodes and self._job.user not in reservation.users:
                self._check_reservation(reservation.name, reservation.start, reservation.end)

    def _check_reservation(self, name: str, start: float, end: float) -> None:
        now, limit = self._snapshot.time, self._job.time_limit_s
        if now is None or ((limit is None or start < now + limit) and now < end):
            self._fail(f"runs into the reservation {name}")

    def _check_partition(self) -> None:
        if self._job.partition and not any(map(self._is_in, self._job.partition.split(","))):
            self._fail(f"is not wholly in partition {self._job.partition}")

    def _is_in(self, name: str) -> bool:
        limits = {partition.name: partition for partition in self._snapshot.partitions}.get(name)
        listed = set(limits.nodes) if limits else set()
        if limits is not None and (
            limits.state is not PartitionState.UP
            or len(self._nodes) > (limits.max_nodes or len(self._nodes))
            or (self._job.time_limit_s or 0) > (limits.max_time_limit_s or float("inf"))
        ):
            return False
        return all(name in node.partitions or node.name in listed for node in self._nodes)

    def _check_counts(self) -> None:
        request = self._request
        cores = [use.cores for use in self._held.values()]
        counts = request.node_counts
        if not cores or (counts is not None and not counts.minimum <= len(cores) <= counts.maximum):
            self._fail(f"has {len(cores)} nodes")
        if min(cores) < max(1, request.min_cores_per_node):
            self._fail(f"has {min(cores)} cores on a node")
        if self._is_exclusive:
            wanted = request.cores or len(cores) * (request.cores_per_node or 0)
            if sum(cores) < wanted or min(cores) < (request.cores_per_node or 1):
                self._fail(f"has {sum(cores)} cores")
            return
        if request.cores is not None and sum(cores) != request.cores:
            self._fail(f"has {sum(cores)} cores instead of {request.cores}")
        if request.cores_per_node is not None and set(cores) != {request.cores_per_node}:
            self._fail(f"has {sorted(set(cores))} cores a node")
        if any(count % request.cores_per_task for count in cores):
            self._fail("has a task split across nodes")

    def _check_order(self) -> None:
        request = self._request
        places = sorted(self._places[name] for name in self._held)
        network = self._snapshot.network
        is_on_units = network is not None and network.units
        if request.contiguous and not is_on_units and places[-1] - places[0] + 1 != len(places):
            self._fail("is not contiguous")
        leaves = {self._leaves.get(name, "") for name in self._held}
        if request.max_switches is not None and len(leaves) > request.max_switches:
            self._fail(f"is below {len(leaves)} leaf switches")
        if not set(request.required_nodes) <= set(self._held):
            self._fail("lacks a required node")
        fault = "" if network is None else unit_fault(network, request, frozenset(self._held))
        if fault:
            self._fail(fault)

    def _check_gres_per_node(self, name: str) -> None:
        span = self._request.gres_per_node[name]
        kinds = self._kinds(name)
        # An exclusive job holds all of its nodes' types.
        most = max if len(kinds) > 1 else sum
        for node, use in self._held.items():
            count = most(use.gres.get(kind, 0) for kind in kinds)
            if count < span.minimum or (count > span.maximum and not self._is_exclusive):
                self._fail(f"has {count} {name} on {node}")

    def _check_gres_total(self, name: str) -> None:
        span = self._request.gres_total[name]
        kinds = self._kinds(name)
        count = sum(use.gres.get(kind, 0) for use in self._held.values() for kind in kinds)
        if count < span.minimum or (count > span.maximum and not self._is_exclusive):
            self._fail(f"has {count} {name}")

    def _kinds(self, name: str) -> set[str]:
        """Return the types of a gres that the job holds: one, of any that the request names."""
        kinds = {kind for held in self._held.values() for kind in held.gres if _is_kind(kind, name)}
        if len(kinds) > 1 and not self._is_exclusive:
            self._fail(f"mixes {' and '.join(sorted(kinds))}")
        return kinds

    def _check_nothing_extra(self) -> None:
        if self._is_exclusive:
            return
        asked = (*self._request.gres_per_node, *self._request.gres_total)
        for use in self._held.values():
            for kind, count in use.gres.items():
                if count and not any(_is_kind(kind, name) for name in asked):
                    self._fail(f"holds {count} {kind} that it did not ask for")


def _is_kind(kind: str, name: str) -> bool:
    return kind == name or (":" not in name and kind.startswith(f"{name}:"))


def unit_fault(network: Network, request: Request, held: Collection[str]) -> str:
    """Return what an award breaks of its network's rules, by names of its nodes; "": nothing."""
    inside = {name for unit in network.units for name in unit.nodes}
    here = [name for name in held if name in inside]
    if not here:
        return ""
    if len(here) < len(held):
        return "has nodes in and outside of units"
    counts = tuple(sum(name in held for name in unit.nodes) for unit in network.units)
    if network.kind is NetworkKind.BLOCKS:
        return _block_fault(network.sizes, counts, request)
    segment = min((request.node_counts and request.segment) or len(here), len(here))
    if network.kind is NetworkKind.RING:
        units = [unit for unit, count in zip(network.units, counts, strict=True) if count]
        is_legal = all(_is_arc(unit, held, segment) for unit in units)
        return "" if is_legal else f"is not on arcs of {segment} nodes, one a ring"
    places = [box for unit in network.units for box in _boxes(unit, segment) if box <= set(held)]
    return "" if _is_cut(frozenset(here), places) else f"is not in placements of {segment} nodes"


def _is_arc(ring: Unit, held: Collection[str], count: int) -> bool:
    mine = [name in held for name in ring.nodes]
    # An arc begins once on the way round the ring, unless it is all of it.
    pairs = zip(mine, mine[-1:] + mine[:-1], strict=True)
    begins = sum(is_mine and not before for is_mine, before in pairs)
    return sum(mine) == count and (begins == 1 or all(mine))


def _boxes(torus: Unit, count: int) -> Iterator[frozenset[str]]:
    """Yield the nodes of each box of a torus' placements that has so many nodes."""
    wide, deep, high = torus.dims
    for size in torus.placements:
        corners = product(*(range(length) for length in torus.dims))
        for corner in corners:
            steps = zip(corner, size.anchor_seed, size.anchor_spacing, torus.dims, strict=True)
            is_anchor = all(
                (place - seed) % length in range(0, length, by) for place, seed, by, length in steps
            )
            box = {
                torus.nodes[
                    (corner[0] + x) % wide + wide * ((corner[1] + y) % deep + deep * ((corner[2] + z) % high))
                ]
                for x, y, z in product(*(range(length) for length in size.dims))
            }
            if is_anchor and len(box) == count:
                yield frozenset(box)


def _is_cut(nodes: frozenset[str], places: Collection[frozenset[str]]) -> bool:
    if not nodes:
        return True
    one = min(nodes)
    mine = (place for place in places if one in place and place <= nodes)
    return any(_is_cut(nodes - place, places) for place in mine)


def _block_fault(sizes: tuple[int, ...], counts: tuple[int, ...], request: Request) -> str:
    nodes = sum(counts)
    # A job without a node count counts as one node: one base block.
    asked = 1 if request.node_counts is None else nodes
    unit = asked if request.segment is None or request.node_counts is None else min(request.segment, nodes)
    group, part, parts = _reach(sizes, len(counts), unit)
    if unit == asked:
        groups = {place // group for place, count in enumerate(counts) if count}
        touched = {place // part for place, count in enumerate(counts) if count}
        return "" if len(groups) == 1 and len(touched) <= parts else "is on too many blocks"
    if request.consolidate_segments:
        base = sizes[0]
        least = ceil(unit / base) * base * (nodes // unit) if request.spread_segments else nodes
        width = _reach(sizes, len(counts), least)[0]
        if len({place // width for place, count in enumerate(counts) if count}) > 1:
            return "is not consolidated"
    is_spread = request.spread_segments
    for start in range(0, len(counts), group):
        here = counts[start : start + group]
        if not is_spread and parts * part >= group and sum(here) % unit == 0:
            continue
        if not _is_segmented(here, unit, part, parts, is_spread):
            return f"is not in segments of {unit} nodes"
    return ""


def _reach(sizes: tuple[int, ...], blocks: int, count: int) -> tuple[int, int, int]:
    """Return the blocks of a group that holds so many nodes, of its parts, and the most parts."""
    wanted = ceil(log2(ceil(count / sizes[0])))
    levels = [round(log2(size / sizes[0])) for size in sizes]
    group = min((2**level for level in levels if level >= wanted), default=blocks)
    part = max((2**level for level in levels if level < wanted), default=1)
    return group, part, ceil(count / (part * sizes[0]))


@lru_cache(maxsize=10_000)
def _is_segmented(counts: tuple[int, ...], unit: int, part: int, parts: int, is_spread: bool) -> bool:
    """Return whether counts of a group's blocks are sums of segments, each in some parts only."""
    first = next((place for place, count in enumerate(counts) if count), None)
    if first is None:
        return True

    def ways(at: int, missing: int, used: frozenset[int]) -> Iterator[tuple[int, ...]]:
        if at == len(counts):
            yield from [] if missing else [()]
            return
        amounts = {0, counts[at]} if is_spread else set(range(counts[at] + 1))
        for amount in sorted(amounts - ({0} if at == first else set()), reverse=True):
            now = used | {at // part} if amount else used
            if amount <= missing and len(now) <= parts:
                yield from ((amount, *rest) for rest in ways(at + 1, missing - amount, now))

    return any(
        _is_segmented(
            tuple(count - amount for count, amount in zip(counts, way, strict=True)),
            unit,
            part,
            parts,
            is_spread,
        )
        for way in ways(0, unit, frozenset())
    )
