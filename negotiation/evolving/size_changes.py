"""A snapshot with a running job grown, shrunk, stopped or started: nodes are free or held, never both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ...cluster.jobs import RunningJob
from ...cluster.nodes import Node, NodeState, Resources
from ...cluster.snapshot import Snapshot

#: What a node is that jobs hold all of or nothing of, and what it becomes when they hold some.
_BUSY = (NodeState.ALLOCATED, NodeState.COMPLETING)


def held_more(snapshot: Snapshot, job: str, more: Mapping[str, Resources]) -> Snapshot:
    """Return the snapshot with a running job that holds more."""
    running = tuple(_grown(one, more) if one.id == job else one for one in snapshot.running)
    return replace(snapshot, running=running, nodes=_taken(snapshot.nodes, more))


def held_less(snapshot: Snapshot, job: str, less: Mapping[str, Resources]) -> Snapshot:
    """Return the snapshot with a running job that gave something back; one without anything has ended."""
    running = []
    for one in snapshot.running:
        left = _shrunk(one, less) if one.id == job else one
        if left is not None:
            running.append(left)
    return replace(snapshot, running=tuple(running), nodes=_given_nodes(snapshot.nodes, less))


def without(snapshot: Snapshot, job: str) -> Snapshot:
    """Return the snapshot without a running job."""
    (gone,) = [one for one in snapshot.running if one.id == job]
    return held_less(snapshot, job, gone.nodes)


def with_started(snapshot: Snapshot, started: Iterable[RunningJob]) -> Snapshot:
    """Return the snapshot with jobs of its queue running."""
    for job in started:
        jobs = tuple(one for one in snapshot.jobs if one.id != job.id)
        nodes = _taken(snapshot.nodes, job.nodes)
        snapshot = replace(snapshot, jobs=jobs, running=(*snapshot.running, job), nodes=nodes)
    return snapshot


def parts_of(job: RunningJob, cores: Mapping[str, int]) -> dict[str, Resources]:
    """Return what a job gives back with some of its cores: where it keeps none, all else as well."""
    given = {}
    for name, count in cores.items():
        held = job.nodes[name]
        given[name] = held if count >= held.cores else Resources(cores=count)
    return given


def _grown(job: RunningJob, more: Mapping[str, Resources]) -> RunningJob:
    nodes = dict(job.nodes)
    for name, use in more.items():
        nodes[name] = _sum(nodes[name], use) if name in nodes else use
    return replace(job, nodes=nodes)


def _shrunk(job: RunningJob, less: Mapping[str, Resources]) -> RunningJob | None:
    nodes = dict(job.nodes)
    for name, use in less.items():
        left = _difference(nodes.pop(name), use)
        if left.cores:
            nodes[name] = left
    return replace(job, nodes=nodes) if nodes else None


def _sum(one: Resources, other: Resources) -> Resources:
    memory = None
    if one.memory_mib is not None or other.memory_mib is not None:
        memory = (one.memory_mib or 0) + (other.memory_mib or 0)
    names = {*one.gres, *other.gres}
    gres = {name: one.gres.get(name, 0) + other.gres.get(name, 0) for name in names}
    return Resources(cores=one.cores + other.cores, memory_mib=memory, gres=gres)


def _difference(one: Resources, other: Resources) -> Resources:
    memory = None if one.memory_mib is None else one.memory_mib - (other.memory_mib or 0)
    gres = {name: count - other.gres.get(name, 0) for name, count in one.gres.items()}
    return Resources(cores=one.cores - other.cores, memory_mib=memory, gres=gres)


def _taken(nodes: tuple[Node, ...], uses: Mapping[str, Resources]) -> tuple[Node, ...]:
    return tuple(
        replace(node, free=_difference(node.free, uses[node.name])) if node.name in uses else node
        for node in nodes
    )


def _given_nodes(nodes: tuple[Node, ...], uses: Mapping[str, Resources]) -> tuple[Node, ...]:
    return tuple(_with_back(node, uses[node.name]) if node.name in uses else node for node in nodes)


def _with_back(node: Node, use: Resources) -> Node:
    known = Resources(
        cores=use.cores,
        memory_mib=None if node.free.memory_mib is None else use.memory_mib or 0,
        gres={name: count for name, count in use.gres.items() if name in node.total.gres},
    )
    state = NodeState.MIXED if node.state in _BUSY else node.state
    return replace(node, free=_sum(node.free, known), state=state)
