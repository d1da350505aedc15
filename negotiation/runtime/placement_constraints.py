"""Which nodes a job may start on, grow onto and go on with: sets, neighbours, leaf switches.

A job without such wishes takes any node of its partition. What it may use never changes while it
runs, and it shrinks by its last nodes: it stays contiguous, below as few switches, in the same set.

The batch scheduler sees whole nodes; the runtime scheduler may let jobs share a node, each on its
own sockets or cores (Nagendra, sections 4.1.2 and 4.2.1). Its machine then counts equal parts of
nodes: a job that comes in nodes is turned into parts here, and what is said of it is turned back.
"""

from collections.abc import Iterator
from functools import lru_cache

import msgspec

from ...cluster.jobs import JobKind
from ..job_records import MapEntry, NodeCount
from ..speedup import LINEAR, speed
from .runtime_machine import MachineState, bits_of, lowest, nearest, places


def has_constraints(entry: MapEntry) -> bool:
    """Return whether a job cannot use every node of its partition instead of another."""
    return bool(entry.eligible or entry.contiguous or entry.max_switches or entry.parts)


def node_sets(entry: MapEntry, machine: MachineState) -> tuple[int, ...]:
    """Return the sets of nodes of which all of a job's nodes must stand in one."""
    partition = machine.partitions.get(entry.partition, 0)
    if not entry.eligible:
        return (partition,)
    return tuple(nodes & partition for nodes in _masks(machine.names, entry.eligible))


@lru_cache(maxsize=4096)
def _masks(names: tuple[str, ...], sets: tuple[tuple[str, ...], ...]) -> tuple[int, ...]:
    bits = bits_of(names)
    return tuple(sum(bits.get(name, 0) for name in members) for members in sets)


def usable(entry: MapEntry, machine: MachineState, nodes: int) -> int:
    """Return the most nodes of a set that the job could use together, by where they stand alone."""
    return max((nodes & mine for mine in node_sets(entry, machine)), key=int.bit_count)


def start_nodes(entry: MapEntry, machine: MachineState, idle: int, count: int, wanted: int = 0) -> int:
    """Return the nodes that a job starts on, 0 where it cannot start on that many.

    Args:
        entry: the job.
        machine: whose nodes these are.
        idle: nodes that it may take; only those of its partition count.
        count: how many it starts on.
        wanted: where its Map puts it: these first; below switches only these, as no tree is known.
    """
    if entry.max_switches is not None and not entry.parts:
        fits = wanted & idle == wanted and wanted.bit_count() == count
        return wanted if fits and any(wanted & nodes == wanted for nodes in node_sets(entry, machine)) else 0
    if entry.max_switches is not None:
        idle &= wanted
    choices = _choices(entry, machine, idle, count, wanted)
    return max(choices, key=lambda nodes: (nodes & wanted).bit_count(), default=0)


def _choices(entry: MapEntry, machine: MachineState, idle: int, count: int, wanted: int) -> Iterator[int]:
    for nodes in node_sets(entry, machine):
        free = idle & nodes
        if free.bit_count() < count:
            continue
        if entry.parts:
            yield from part_choices(entry, machine, free, count, wanted)
            continue
        if not entry.contiguous:
            chosen = lowest(wanted & free, count)
            yield chosen | lowest(free & ~chosen, count - chosen.bit_count())
            continue
        if wanted & free == wanted and wanted.bit_count() == count and len(list(_runs(wanted))) == 1:
            yield wanted
        shortest = _in_a_row(free, count)
        if shortest:
            yield shortest


def _runs(nodes: int) -> Iterator[int]:
    """Yield the maximal runs of neighbours among nodes."""
    while nodes:
        begin = (nodes & -nodes).bit_length() - 1
        shifted = nodes >> begin
        length = (~shifted & (shifted + 1)).bit_length() - 1
        run = ((1 << length) - 1) << begin
        yield run
        nodes &= ~run


def _in_a_row(nodes: int, count: int) -> int:
    """Return the first of the shortest run of neighbours with that many nodes, 0 where none has."""
    runs = [(run.bit_count(), run) for run in _runs(nodes) if run.bit_count() >= count]
    return lowest(min(runs)[1], count) if runs else 0


def more_nodes(entry: MapEntry, machine: MachineState, held: int, idle: int, count: int) -> int:
    """Return up to ``count`` idle nodes that a job may take beside its own, the nearest first.

    A contiguous job takes neighbours on either side only; one below few switches takes none.
    """
    if entry.max_switches is not None:
        return 0
    sets = [nodes for nodes in node_sets(entry, machine) if held & nodes == held]
    best = max((idle & nodes for nodes in sets), key=int.bit_count, default=0)
    if not entry.contiguous or not held:
        return nearest(best, held, count)
    run = next((run for run in _runs(best | held) if run & held), held)
    return nearest(run & ~held, held, count) if run & held == held else 0


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

    As many as it asks for of each of its nodes; the rest of a malleable job's on one node more.
    Nodes of its Map first, then those with the fewest parts free, so that others stay whole.
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

    row = places(_in_a_row(sum(1 << place for place in able), full)) if entry.contiguous else able
    chosen = row if entry.contiguous else sorted(able, key=order)[:full]
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
    return sum(node for node in _nodes(machine.parts, len(machine.names)) if node & parts)
