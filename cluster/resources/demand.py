"""A job's request turned into numbers to compare with columns, and the nodes it may ever use."""

from bisect import bisect_left
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, replace
from math import ceil, inf

import numpy as np

from ..jobs import Job, Request, Span
from ..network import Network, NetworkKind
from ..nodes import Node, PartitionState
from ..schedule import Reason, Refusal
from ..snapshot import Snapshot
from .capacity import BoolArray, IntArray
from .columns import Columns
from .pools import Use, fewest


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Variant:
    """One way to read a request: a partition of its list, a type for each gres that names none.

    Attributes:
        eligible: nodes that the job may use at all, shape (n,).
        gres: (gres of the nodes, request's name, range) of each gres asked for on every node.
        gres_total: the same of each gres asked for over all nodes.
    """

    eligible: BoolArray
    gres: tuple[tuple[str, str, Span], ...]
    gres_total: tuple[tuple[str, str, Span], ...]
    max_nodes: int


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Demand:
    """What a job of the window needs. Cores count in units of its cores per task.

    Attributes:
        index: the job's place in the window.
        unit: cores in a unit.
        units: units in all, None when they follow from the node count.
        units_per_node: units on each node exactly, None when they are free.
        least: units on each node at least: ``units_per_node`` where these are fixed.
        node_counts: node counts it may get, None for job type 1.
        in_units: its nodes must be a set that blocks, rings or three-dimensional tori allow.
        required: nodes that must be among its own, sorted.
        variants: at least one.
        kind: equal for jobs of one reader with equal requests and times: one could replace another.
        form: equal for equal requests, whatever their times: as good where nothing is reserved.
        worth: what starting it counts in the objective; None: its priority.
        reserves: whether a reservation is made for it where the step reserves.
        alone_in: the block or ring of each node, shape (n,), where no other job may be in those of
            its nodes; None: others may.
    """

    index: int
    job: Job
    unit: int
    units: int | None
    units_per_node: int | None
    least: int
    node_counts: Span | None
    memory_per_node: int
    memory_per_core: int
    exclusive: bool
    contiguous: bool
    max_switches: int | None
    required: IntArray
    variants: tuple[Variant, ...]
    kind: int = -1
    form: int = -1
    worth: int | None = None
    reserves: bool = True
    in_units: bool = False
    alone_in: IntArray | None = None

    @property
    def eligible(self) -> BoolArray:
        """Nodes that the job may use in some variant, shape (n,)."""
        mask: BoolArray = np.any([variant.eligible for variant in self.variants], axis=0)
        return mask

    @property
    def limit_s(self) -> float:
        """For how many seconds the job may run; inf: without end."""
        return inf if self.job.time_limit_s is None else self.job.time_limit_s

    @property
    def fewest_nodes(self) -> int:
        """Nodes that the job gets at least."""
        return 1 if self.node_counts is None else self.node_counts.minimum

    @property
    def fewest_cores(self) -> int:
        """Cores that the job gets at least, over all its nodes."""
        return max(self.units or 0, self.fewest_nodes * self.least) * self.unit

    @property
    def memory_per_unit(self) -> int:
        """MiB that a unit of cores counts."""
        return self.memory_per_core * self.unit

    @property
    def of_each_node(self) -> tuple[int, int, int, int, bool, bool]:
        """What the job asks of each of its nodes beside gres."""
        is_alone = self.alone_in is not None
        return self.unit, self.least, self.memory_per_node, self.memory_per_unit, self.exclusive, is_alone

    @property
    def is_tied(self) -> bool:
        """Whether it matters where its nodes are, not only how many there are."""
        return self.contiguous or self.max_switches is not None or self.in_units or len(self.required) > 0

    @property
    def is_anywhere(self) -> bool:
        """Whether its nodes are segments that may be far apart: their common level says nothing."""
        request, span = self.job.request, self.node_counts
        is_cut = request.segment is not None and span is not None and request.segment < span.minimum
        return self.in_units and is_cut and not request.consolidate_segments

    @property
    def counts_memory(self) -> bool:
        """Whether what the job holds includes memory."""
        return bool(self.memory_per_node or self.memory_per_core)

    def memory_on(self, cores: IntArray) -> IntArray:
        """Return the MiB that the job holds on nodes that give it so many cores."""
        return self.memory_per_node + self.memory_per_core * cores


def is_type_of(kind: str, name: str) -> bool:
    """Return whether a gres is what a request names: the same, or any type if it names none."""
    return kind == name or (":" not in name and kind.startswith(f"{name}:"))


#: A reader forgets its jobs when they are so many times those that wait (at least so many).
_MOST_READ, _FEW_JOBS = 4, 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ineligible:
    """A job that no node of the cluster could take as things are set up, and why."""

    reason: Reason
    detail: str


class DemandReader:
    """Turns jobs into demands; node masks that jobs have in common are computed once."""

    def __init__(self, snapshot: Snapshot, columns: Columns) -> None:
        self._all_reservations = snapshot.reservations
        self._look(columns, snapshot.time, honours=True)
        self._partitions = {partition.name: partition for partition in snapshot.partitions}
        self._masks: dict[frozenset[str], BoolArray] = {}
        self._features = [node.features for node in snapshot.nodes]
        self.partition_masks = self._members(snapshot.nodes)
        network = snapshot.network
        self._units = network if network is not None and network.units else None
        units = network.units if network is not None else ()
        unit_of = {name: place for place, unit in enumerate(units) for name in unit.nodes}
        #: The unit of each node, -1 for none.
        self._unit_of = np.array([unit_of.get(node.name, -1) for node in snapshot.nodes], np.int64)
        self._in_unit = self._unit_of >= 0

    def at(self, columns: Columns, time: float | None, *, honour_reservations: bool = True) -> "DemandReader":
        """Return a reader of the same cluster at another time; what is read of nodes is shared."""
        later = copy(self)
        later._look(columns, time, honours=honour_reservations)  # noqa: SLF001 - its own class
        return later

    def after(self, snapshot: Snapshot, columns: Columns) -> "DemandReader":
        """Return a reader of a later snapshot: same nodes, partitions, network, limits, licences.

        What was read of jobs is kept where it holds: no node takes jobs that did not, and
        reservations stand between the same times and now.
        """
        later = copy(self)
        later._all_reservations = snapshot.reservations  # noqa: SLF001 - its own class
        is_same = np.array_equal(self._columns.takes_jobs, columns.takes_jobs)
        is_same &= self._all_reservations == snapshot.reservations
        is_same &= not snapshot.reservations or self._time == snapshot.time
        if is_same and len(self.looked_at) <= _MOST_READ * max(len(snapshot.jobs), _FEW_JOBS):
            later._columns, later._time = columns, snapshot.time  # noqa: SLF001 - the same
        else:
            later._look(columns, snapshot.time, honours=True)  # noqa: SLF001 - the same
        return later

    def _look(self, columns: Columns, time: float | None, *, honours: bool) -> None:
        """Read from now on what is asked of these columns at a time."""
        self._columns, self._time = columns, time
        self._reservations = self._all_reservations if honours else ()
        self._known: dict[object, tuple[Variant, ...] | str] = {}
        self._within_limits: dict[object, tuple[Variant, ...]] = {}
        self._kinds_met: dict[object, int] = {}
        #: By form, what jobs ask for that the machine never has; empty: nothing.
        self.impossible: dict[int, str] = {}
        #: By job id: the job, the model, and what a queue found of the job in it.
        self.looked_at: dict[str, tuple[Job, type, Demand | Refusal]] = {}

    def _members(self, nodes: Iterable[Node]) -> dict[str, BoolArray]:
        members: dict[str, BoolArray] = {}
        count = len(self._columns.names)
        for place, node in enumerate(nodes):
            for name in node.partitions:
                members.setdefault(name, np.zeros(count, np.bool_))[place] = True
        for partition in self._partitions.values():
            mask = members.setdefault(partition.name, np.zeros(count, np.bool_))
            mask[[self._columns.index[name] for name in partition.nodes]] = True
        return members

    def read(self, job: Job, index: int) -> Demand | Ineligible:
        """Return the job's demand, or why no node could ever take it."""
        # The same objects for every job that asks alike.
        key = self._key(job)
        if key not in self._known:
            self._known[key] = self._in_any_partition(job)
        found = self._known[key]
        if isinstance(found, str):
            return Ineligible(reason=Reason.INELIGIBLE, detail=found)
        demand = _demand(job, index, self._columns, found)
        if self._units is not None:
            on_units = _on_units(demand, self._units, self._columns, self._unit_of)
            if isinstance(on_units, Ineligible):
                return on_units
            demand = on_units
        form = (_form_key(demand), self._columns.pools.alike(job))
        met = self._kinds_met
        numbers = [met.setdefault(key, len(met)) for key in (form, (form, job.time_limit_s))]
        return replace(demand, variants=self._limited(demand, numbers[0]), form=numbers[0], kind=numbers[1])

    def _limited(self, demand: Demand, form: int) -> tuple[Variant, ...]:
        """Return the variants within a job's limits: the same objects for jobs with equal ones."""
        if self._columns.pools.are_empty:
            return demand.variants
        known = self._within_limits
        if form not in known:
            job, allow = demand.job, self._columns.pools.allow
            some = [one for one in demand.variants if allow(job, _least_use(job, one))] or demand.variants
            within = [_within_limits(demand, one, self._columns) for one in some]
            # What no limit allows, however few and small its nodes, stays: reasons name the limit.
            found = tuple(one for one in within if one.eligible.any()) or tuple(some)
            key = (id(demand.variants), *((one.eligible.tobytes(), one.max_nodes) for one in found))
            known[form] = known.setdefault(key, found)
        return known[form]

    def demand(self, job: Job, index: int = 0) -> Demand | None:
        """Return the job's demand; None where no node could ever take it."""
        found = self.read(job, index)
        return found if isinstance(found, Demand) else None

    def described_by(self, job: Job) -> BoolArray:
        """Return the nodes that a job names by partitions and features, shape (n,)."""
        masks = [self._partition_mask(name) for name in job.partition.split(",")]
        described: BoolArray = np.any(masks, axis=0) & self._with_features(job.request.features)
        return described & self._not_excluded(job.request)

    def _key(self, job: Job) -> object:
        request = job.request
        gres = (*request.gres_per_node.items(), None, *request.gres_total.items())
        key: tuple[object, ...] = (job.partition, request.features, request.excluded_nodes, gres)
        if self._partitions or self._reservations:
            key = (*key, job.user, job.time_limit_s, request.node_counts)
        return key

    def _in_any_partition(self, job: Job) -> tuple[Variant, ...] | str:
        refusals: list[str] = []
        variants: list[Variant] = []
        # A partition that is named again gives nothing new.
        for partition in dict.fromkeys(job.partition.split(",")) if job.partition else [""]:
            found = self._in_partition(job, partition)
            if isinstance(found, str):
                refusals.append(found)
            else:
                variants.extend(found)
        # Nor do partitions of the same nodes and limits.
        distinct: dict[object, Variant] = {}
        for one in variants:
            key = (one.eligible.tobytes(), one.gres, one.gres_total, one.max_nodes)
            distinct.setdefault(key, one)
        return tuple(distinct.values()) or "; ".join(refusals)

    def _in_partition(self, job: Job, name: str) -> list[Variant] | str:
        """Return the variants of a job in one partition, or why there is none."""
        limit = self._partitions.get(name)
        if limit is not None and limit.state is not PartitionState.UP:
            return f"partition {name} is {limit.state}"
        if limit is not None and (job.time_limit_s or 0) > (limit.max_time_limit_s or inf):
            allowed = f"the {limit.max_time_limit_s} s of partition {name}"
            return f"its time limit of {job.time_limit_s} s is above {allowed}"
        span = job.request.node_counts
        max_nodes = len(self._columns.names) if limit is None or limit.max_nodes is None else limit.max_nodes
        if limit is not None and span is not None and span.minimum > max_nodes:
            return f"it asks for {span.minimum} nodes, partition {name} allows {max_nodes}"
        if name and not self._partition_mask(name).any():
            return f"no node is in partition {name}"
        described = self._with_features(job.request.features) & self._partition_mask(name)
        if (described & self._in_unit).any():
            # As in Slurm: nodes outside all blocks serve only jobs that may use no node in one.
            described &= self._in_unit
        if not described.any():
            where = f" of partition {name}" if name else ""
            return f"no node{where} has the features {' and '.join(sorted(job.request.features))}"
        return self._variants(job, described, max_nodes)

    def _variants(self, job: Job, described: BoolArray, max_nodes: int) -> list[Variant] | str:
        request = job.request
        for name, span in (*request.gres_per_node.items(), *request.gres_total.items()):
            if span.minimum and not self._types(name, described):
                return f"no node that it may use has the gres {name}"
        eligible = described & self._columns.takes_jobs & self._not_excluded(request)
        eligible &= self._outside_reservations(job)
        return [
            Variant(
                eligible=eligible,
                gres=tuple((kinds[name], name, span) for name, span in request.gres_per_node.items()),
                gres_total=tuple((kinds[name], name, span) for name, span in request.gres_total.items()),
                max_nodes=max_nodes,
            )
            for kinds in self._kinds(request, described)
        ]

    def _types(self, name: str, described: BoolArray) -> list[str]:
        """Return the nodes' gres names that satisfy a request's: itself, or any type of it."""
        names = self._columns.total.gres
        return [kind for kind in names if is_type_of(kind, name) and (names[kind][described] > 0).any()]

    def _kinds(self, request: Request, described: BoolArray) -> list[dict[str, str]]:
        """Return every choice of one type for each gres of the request."""
        choices: list[dict[str, str]] = [{}]
        for name in (*request.gres_per_node, *request.gres_total):
            types = self._types(name, described) or [name]
            choices = [{**choice, name: kind} for choice in choices for kind in types]
        return choices

    def _partition_mask(self, name: str) -> BoolArray:
        if not name:
            return np.ones(len(self._columns.names), np.bool_)
        return self.partition_masks.get(name, np.zeros(len(self._columns.names), np.bool_))

    def _with_features(self, features: frozenset[str]) -> BoolArray:
        if features not in self._masks:
            self._masks[features] = np.array([features <= given for given in self._features], np.bool_)
        return self._masks[features]

    def _not_excluded(self, request: Request) -> BoolArray:
        allowed = np.ones(len(self._columns.names), np.bool_)
        index = self._columns.index
        allowed[[index[name] for name in request.excluded_nodes & index.keys()]] = False
        return allowed

    def _outside_reservations(self, job: Job) -> BoolArray:
        """Return nodes without reservations for others while a job started now could run."""
        allowed = np.ones(len(self._columns.names), np.bool_)
        now = self._time
        end = inf if now is None or job.time_limit_s is None else now + job.time_limit_s
        for reservation in self._reservations:
            holds = now is None or (reservation.start < end and now < reservation.end)
            if holds and job.user not in reservation.users:
                allowed[[self._columns.index[name] for name in reservation.nodes]] = False
        return allowed


def _form_key(demand: Demand) -> object:
    """Return what jobs that can replace each other have in common (variants are shared)."""
    request = demand.job.request
    return (
        *(id(demand.variants), demand.unit, demand.units, demand.units_per_node, demand.least),
        *(demand.node_counts, demand.memory_per_node, demand.memory_per_core, demand.exclusive),
        *(demand.contiguous, demand.max_switches, demand.required.tobytes()),
        *(request.cores, request.cores_per_node, demand.in_units),
        *(request.segment, request.spread_segments, request.consolidate_segments, request.exclusive_topo),
        tuple(demand.job.limits_by_nodes_s.items()),
    )


def _demand(job: Job, index: int, columns: Columns, variants: tuple[Variant, ...]) -> Demand:
    request = job.request
    unit = request.cores_per_task
    per_node = None if request.cores_per_node is None else request.cores_per_node // unit
    return Demand(
        index=index,
        job=job,
        unit=unit,
        units=None if request.cores is None or per_node is not None else request.cores // unit,
        units_per_node=per_node,
        least=per_node or ceil(request.min_cores_per_node / unit),
        node_counts=request.node_counts,
        memory_per_node=request.memory_mib_per_node or 0,
        memory_per_core=request.memory_mib_per_core or 0,
        exclusive=request.exclusive,
        contiguous=request.contiguous,
        max_switches=request.max_switches,
        required=np.array(sorted(columns.index[name] for name in request.required_nodes), np.int64),
        variants=variants,
    )


def _least_use(job: Job, variant: Variant) -> Use:
    """Return the least that a job holds in a variant, by the gres of the nodes."""
    least = fewest(job)
    kinds = {name: kind for kind, name, _ in (*variant.gres, *variant.gres_total)}
    return replace(least, gres={kinds[name]: count for name, count in least.gres.items()})


def _within_limits(demand: Demand, variant: Variant, columns: Columns) -> Variant:
    """Return a variant without node counts, and whole nodes, that a job's limits never allow."""
    fewest, eligible, span = demand.fewest_nodes, variant.eligible, demand.node_counts

    def allowed(count: int, amounts: IntArray) -> bool:
        cores, *gres = amounts.tolist()
        held = Use(
            nodes=count, cores=max(cores, demand.fewest_cores), gres=dict(zip(kinds, gres, strict=True))
        )
        return columns.pools.allow(demand.job, held)

    if demand.exclusive and eligible.any():
        kinds, whole = tuple(columns.total.gres), columns.total.at(np.flatnonzero(eligible))
        on_nodes = np.stack([whole.cores, *whole.gres.values()], axis=1)
        least = on_nodes.min(axis=0)
        kinds_of_nodes, kind = np.unique(on_nodes, axis=0, return_inverse=True)
        may_take = [allowed(fewest, (fewest - 1) * least + one) for one in kinds_of_nodes]
        eligible = eligible.copy()
        eligible[eligible] = np.array(may_take)[kind.ravel()]
    elif span is None or not span.is_exact:
        kinds = tuple(kind for kind, _, _ in variant.gres)
        each = [span.minimum for _, _, span in variant.gres]
        least = np.array([demand.least * demand.unit, *each])
    else:
        return variant
    counts = range(fewest + 1, variant.max_nodes + 1)
    most = fewest + bisect_left(counts, True, key=lambda count: not allowed(count, count * least))
    return replace(variant, eligible=eligible, max_nodes=min(most, variant.max_nodes))


def _on_units(demand: Demand, network: Network, columns: Columns, unit_of: IntArray) -> Demand | Ineligible:
    """Return a demand as Slurm's topology units read it: a job of no node count needs one of them.

    Of a range of node counts the fewest that have the cores count. A job that is alone on its
    blocks or rings gets whole nodes; a three-dimensional torus knows no such jobs.
    """
    request, span = demand.job.request, demand.node_counts
    if not demand.eligible[unit_of >= 0].any():
        return demand
    is_alone = request.exclusive_topo and network.kind is not NetworkKind.TORUS3D
    if is_alone:
        demand = replace(demand, exclusive=True, alone_in=unit_of)
        most = network.sizes[0] if network.sizes else len(columns.names)
        span = span or Span(minimum=1, maximum=most)
    if span is None and network.kind is NetworkKind.TORUS3D:
        return Ineligible(
            reason=Reason.NOT_EXPRESSIBLE, detail="on a three-dimensional torus it needs a node count"
        )
    if span is None:
        return replace(demand, max_switches=1, contiguous=network.kind is NetworkKind.RING)
    demand = replace(demand, contiguous=False)
    if not span.is_exact and not demand.job.limits_by_nodes_s:
        most = int(columns.total.cores[demand.eligible].max(initial=1))
        count = max(span.minimum, ceil((demand.units or 0) / max(1, most // demand.unit)))
        demand = replace(demand, node_counts=Span.exactly(min(count, span.maximum)))
    is_one = network.kind is NetworkKind.BLOCKS and request.segment is None and not is_alone
    if is_one and demand.node_counts is not None and demand.node_counts.maximum <= network.sizes[0]:
        return replace(demand, max_switches=1)
    return replace(demand, in_units=True, max_switches=None)
