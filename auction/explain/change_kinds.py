"""The ways in which a job's request could be made easier to fulfil, each from the smallest change on."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...cluster.jobs import Job, Request, Span
from ...cluster.resources.job_reservations import Guard
from ...cluster.snapshot import Snapshot
from ...cluster.text import plural
from .words import duration


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ChangeKind:
    """One way to change a job.

    Attributes:
        values: what the changed part could be instead, the smallest change first.
        is_monotone: a job that fits with one of the values fits with all that come after it.
        finer: tells the values between one of ``values`` and the one before it.
        apply: makes the changed job of a job and a value.
        share: the share of what was asked for that a value gives up, 0 to 1.
    """

    values: Sequence[int]
    apply: Callable[[Job, int], Job]
    share: Callable[[int], float]
    finer: Callable[[int], Sequence[int]] = lambda _: ()
    is_monotone: bool = True


def kinds_of(job: Job, snapshot: Snapshot, guards: tuple[Guard, ...], leaves: int) -> list[ChangeKind]:
    """Return every way to change a job; those that give up no amount first.

    Args:
        job: what waits.
        snapshot: its reservations and partitions may limit the job's time.
        guards: reservations for blocked jobs do so, too.
        leaves: leaf switches of the cluster.
    """
    found = [
        *_places(job.request, leaves),
        *_sizes(job.request),
        *_amounts(job.request),
        *_times(job, snapshot, guards),
    ]
    return [kind for kind in found if len(kind.values)]


def _with_request(job: Job, **members: Any) -> Job:
    return replace(job, request=replace(job.request, **members))


def _dropped(**members: Any) -> ChangeKind:
    """Return the kind that drops a condition."""
    return ChangeKind(values=(0,), apply=lambda job, _: _with_request(job, **members), share=lambda _: 0.0)


def _amount(asked: int, values: Sequence[int], apply: Callable[[Job, int], Job], **more: Any) -> ChangeKind:
    """Return a kind of which a value gives up what is missing of the amount asked for."""
    return ChangeKind(values=values, apply=apply, share=lambda value: 1 - value / asked, **more)


def _places(request: Request, leaves: int) -> Iterator[ChangeKind]:
    """Yield the conditions on where the nodes are, and whether they are shared."""
    if request.contiguous:
        yield _dropped(contiguous=False)
    most = request.max_switches
    if most is not None:
        yield ChangeKind(
            values=range(most + 1, max(most + 2, leaves + 1)),
            apply=lambda job, value: _with_request(job, max_switches=value if value < leaves else None),
            share=lambda _: 0.0,
        )
    if request.segment is not None:
        yield _dropped(segment=None, spread_segments=False, consolidate_segments=False)
    if request.required_nodes:
        yield _dropped(required_nodes=())
    if request.exclusive:
        yield _dropped(exclusive=False)


def _sizes(request: Request) -> Iterator[ChangeKind]:
    """Yield fewer nodes with as many cores on each, and fewer cores."""
    step, nodes, per_node = request.cores_per_task, request.node_counts, request.cores_per_node
    if nodes is not None:
        lowest = max(1, len(request.required_nodes))
        less = request.segment if request.segment is not None and request.segment < nodes.minimum else 1
        yield _amount(
            nodes.minimum,
            range(nodes.minimum - less, lowest - 1, -less),
            _on_nodes,
            # Fewer consecutive nodes may be poorer ones, and few nodes may not hold what is asked for in all.
            is_monotone=not (request.required_nodes or request.gres_total)
            and (per_node is not None or not request.contiguous),
        )
    if per_node is not None:
        lowest = _whole(request.min_cores_per_node, step)
        yield _amount(per_node, range(per_node - step, lowest - 1, -step), _with_cores_per_node)
    elif request.cores is not None:
        yield _fewer_cores(request, request.cores)


def _on_nodes(job: Job, value: int) -> Job:
    """Return the job on this many nodes, with the same cores on each, in whole tasks."""
    request = job.request
    cores = request.cores
    if cores is not None and request.node_counts is not None:
        cores = _scaled(cores, value, request.node_counts.minimum, request.cores_per_task)
    return _with_request(job, nodes=Span.exactly(value), cores=cores)


def _scaled(cores: int, nodes: int, asked: int, step: int) -> int:
    """Return the cores of ``nodes`` nodes where ``asked`` have ``cores``, in whole tasks."""
    return cores // step * nodes // asked * step


def _whole(cores: int, step: int) -> int:
    """Return the number of cores, rounded up to whole tasks."""
    return -(-cores // step) * step


def _with_cores_per_node(job: Job, value: int) -> Job:
    nodes, total = job.request.node_counts, job.request.cores
    cores = None if total is None or nodes is None else nodes.minimum * value
    return _with_request(job, cores_per_node=value, cores=cores)


def _fewer_cores(request: Request, asked: int) -> ChangeKind:
    """Return fewer cores in all (on the nodes asked for, or on a smaller number of them).

    With a least number a node, only its multiples are sure to fit where a larger one does.
    """
    step, nodes = request.cores_per_task, request.nodes
    least = _whole(request.min_cores_per_node, step)
    lowest = least * (1 if nodes is None else nodes.minimum)
    stride = least if nodes is None else step

    def apply(job: Job, value: int) -> Job:
        now = job.request.nodes
        cores = value if now is None or nodes is None else _scaled(value, now.minimum, nodes.minimum, step)
        return _with_request(job, cores=cores)

    return _amount(
        asked,
        range((asked - 1) // stride * stride, lowest - 1, -stride),
        apply,
        finer=lambda value: range(min(asked - step, value + stride - step), value, -step),
        # Each of the nodes that are required, or needed for gres, takes a task.
        is_monotone=nodes is not None or not (request.required_nodes or request.gres_total),
    )


def _amounts(request: Request) -> Iterator[ChangeKind]:
    """Yield fewer gres and licences of each name, and less memory."""
    for member in ("gres_per_node", "gres_total"):
        for name, span in getattr(request, member).items():
            if span.minimum:
                yield _fewer(member, name, span.minimum, Span.exactly)
    for member in ("memory_mib_per_node", "memory_mib_per_core"):
        if asked := getattr(request, member):
            yield _amount(asked, range(asked - 1, 0, -1), partial(_with_member, member))
    for name, asked in request.licenses.items():
        yield _fewer("licenses", name, asked, int)


def _with_member(member: str, job: Job, value: Any) -> Job:
    return _with_request(job, **{member: value})


def _fewer(member: str, name: str, asked: int, entry: Callable[[int], Any]) -> ChangeKind:
    """Return fewer of what a member asks for by name, down to none of it."""

    def apply(job: Job, value: int) -> Job:
        others = {kind: one for kind, one in getattr(job.request, member).items() if kind != name}
        return _with_request(job, **{member: others | ({name: entry(value)} if value else {})})

    return _amount(asked, range(asked - 1, -1, -1), apply)


def _times(job: Job, snapshot: Snapshot, guards: tuple[Guard, ...]) -> Iterator[ChangeKind]:
    """Yield shorter time limits: up to the partition's, and to the starts of reservations."""
    now, asked = snapshot.time, job.time_limit_s
    ends = (
        [] if now is None else [one.start - now for one in snapshot.reservations if job.user not in one.users]
    )
    ends += [guard.time - guard.now for guard in guards if guard.job.id != job.id]
    names = job.partition.split(",")
    ends += [one.max_time_limit_s or 0 for one in snapshot.partitions if one.name in names]
    limits = sorted({int(end) for end in ends if end >= 1}, reverse=True)
    yield ChangeKind(
        values=[limit for limit in limits if asked is None or limit < asked],
        apply=lambda job, value: replace(job, time_limit_s=value),
        share=lambda value: 1.0 if asked is None else 1 - value / asked,
    )


def change_words(before: Job, after: Job) -> list[str]:
    """Return in words what a changed job asks for instead."""
    old, new = before.request, after.request
    said = [*_place_words(old, new), *_size_words(old, new)]
    for member, where in (("gres_per_node", " a node"), ("gres_total", " in all")):
        said += _counts_words(_least(getattr(old, member)), _least(getattr(new, member)), where)
    for member, where in (("memory_mib_per_node", "a node"), ("memory_mib_per_core", "a core")):
        if getattr(old, member) != getattr(new, member):
            said.append(f"{getattr(new, member)} MiB {where} instead of {getattr(old, member)}")
    said += _counts_words(old.licenses, new.licenses, " licences")
    if before.time_limit_s != after.time_limit_s and after.time_limit_s is not None:
        limit = "none" if before.time_limit_s is None else duration(before.time_limit_s)
        said.append(f"a time limit of {duration(after.time_limit_s)} instead of {limit}")
    return said


def _place_words(old: Request, new: Request) -> Iterator[str]:
    if old.contiguous != new.contiguous:
        yield "nodes that need not be consecutive"
    if old.max_switches != new.max_switches:
        few = f"up to {new.max_switches} leaf switches instead of {old.max_switches}"
        yield "any leaf switches" if new.max_switches is None else few
    if old.segment != new.segment:
        yield "nodes that need not be in segments"
    if old.required_nodes != new.required_nodes:
        yield "other nodes than those it names"
    if old.exclusive != new.exclusive:
        yield "nodes shared with other jobs"


def _size_words(old: Request, new: Request) -> Iterator[str]:
    if old.node_counts is not None and new.node_counts is not None and old.node_counts != new.node_counts:
        yield f"{plural(new.node_counts.minimum, 'node')} instead of {old.node_counts.minimum}"
    if old.cores_per_node != new.cores_per_node:
        yield f"{plural(new.cores_per_node or 0, 'core')} a node instead of {old.cores_per_node}"
    elif old.cores_per_node is None and old.cores != new.cores:
        yield f"{plural(new.cores or 0, 'core')} instead of {old.cores}"


def _least(spans: Mapping[str, Span]) -> dict[str, int]:
    return {name: span.minimum for name, span in spans.items()}


def _counts_words(old: Mapping[str, int], new: Mapping[str, int], where: str) -> Iterator[str]:
    for name, count in old.items():
        if new.get(name, 0) != count:
            yield f"{new.get(name) or 'no'} {name}{where} instead of {count}"
