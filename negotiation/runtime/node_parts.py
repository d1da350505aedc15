"""Nodes given out in equal parts, sockets or cores: what the runtime scheduler decides below the nodes.

The batch scheduler sees whole nodes; the runtime scheduler may let jobs share a node, each on cores of its
own (Nagendra, sections 4.1.2 and 4.2.1). Its machine then counts parts: a job that comes in nodes is turned
into parts here, and what is said of it is turned back.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import msgspec

from ...cluster.jobs import JobKind
from .records import MapEntry, NodeCount
from .runtime_machine import MachineState, lowest
from .speedup import LINEAR, speed


def in_parts(entry: MapEntry, parts: int) -> MapEntry:
    """Return a job whose counts are parts of nodes; of one part a node it stays as it is."""
    if parts == 1:
        return entry
    part, whole = entry.node_share
    each = -(-parts * part // whole)
    span = NodeCount(min=entry.node_count.min * each, max=entry.node_count.max * each)
    true_speedup = entry.true_speedup
    return msgspec.structs.replace(
        entry,
        parts=each,
        node_cnt=entry.node_cnt * each,
        node_count=span,
        min_nodes=entry.min_nodes * each,
        max_nodes=entry.max_nodes * each,
        speedup=_model_in_parts(entry.speedup, each, entry.max_nodes),
        true_speedup=None if true_speedup is None else _model_in_parts(true_speedup, each, entry.max_nodes),
    )


@lru_cache(maxsize=4096)
def _model_in_parts(model: str, each: int, most: int) -> str:
    """Return a model by parts: as given on whole nodes, on straight lines between them."""
    if model == LINEAR or each == 1:
        return model
    return "table:" + ",".join(f"{nodes * each}={speed(model, nodes)!r}" for nodes in range(1, most + 1))


def part_choices(entry: MapEntry, machine: MachineState, free: int, count: int, wanted: int) -> Iterator[int]:
    """Yield where a job could start on that many of the free parts.

    As many as it asks for of each of its nodes; the rest of a malleable job's on one node more. Nodes of its
    Map first, then those with the fewest parts free, so that others stay whole.
    """
    full, rest = divmod(count, entry.parts)
    if rest and (entry.type is not JobKind.MALLEABLE or entry.contiguous):
        return
    there = [node & free for node in _nodes(machine.parts, len(machine.names))]
    able = [place for place, node in enumerate(there) if node.bit_count() >= entry.parts]
    if len(able) < full:
        return

    def order(place: int) -> tuple[bool, int, int]:
        return (not there[place] & wanted, there[place].bit_count(), place)

    chosen = _neighbours(able, full) if entry.contiguous else sorted(able, key=order)[:full]
    if len(chosen) < full:
        return
    taken = sum(lowest(there[place], entry.parts) for place in chosen)
    if rest:
        others = [
            place for place, node in enumerate(there) if node.bit_count() >= rest and place not in chosen
        ]
        if not others:
            return
        taken |= lowest(there[min(others, key=order)], rest)
    if taken:
        yield taken


def _neighbours(able: list[int], count: int) -> list[int]:
    """Return the first of the shortest rows of neighbours with that many nodes, none where none has."""
    rows: list[list[int]] = []
    for place in able:
        if rows and rows[-1][-1] == place - 1:
            rows[-1].append(place)
        else:
            rows.append([place])
    long = [row for row in rows if len(row) >= count]
    return min(long, key=len)[:count] if long else []


@lru_cache(maxsize=64)
def _nodes(parts: int, bits: int) -> tuple[int, ...]:
    """Return each node's parts."""
    one = (1 << parts) - 1
    return tuple(one << first for first in range(0, bits, parts))


def whole_nodes(machine: MachineState, parts: int) -> int:
    """Return those of some parts whose nodes are among them with all of theirs."""
    if machine.parts == 1:
        return parts
    return sum(node for node in _nodes(machine.parts, len(machine.names)) if node & parts == node)


def touched(machine: MachineState, parts: int) -> int:
    """Return all parts of the nodes of some parts."""
    if machine.parts == 1:
        return parts
    return sum(node for node in _nodes(machine.parts, len(machine.names)) if node & parts)
