"""Which nodes a job may start on, grow onto and go on with: sets it must stand in, neighbours, leaf switches.

A job without such wishes takes any node of its partition. What it may use never changes while it runs, and to
shrink it gives its last nodes: what is left is contiguous, below as few switches, and of the same set.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from .node_parts import part_choices
from .records import MapEntry
from .runtime_machine import MachineState, bits_of, lowest, nearest


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
        wanted: where its Map puts it: these first. Below switches only there: the tree is not known here.
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
        runs = [(run.bit_count(), run) for run in _runs(free) if run.bit_count() >= count]
        if runs:
            yield lowest(min(runs)[1], count)


def _runs(nodes: int) -> Iterator[int]:
    """Yield the maximal runs of neighbours among nodes."""
    while nodes:
        begin = (nodes & -nodes).bit_length() - 1
        shifted = nodes >> begin
        length = (~shifted & (shifted + 1)).bit_length() - 1
        run = ((1 << length) - 1) << begin
        yield run
        nodes &= ~run


def more_nodes(entry: MapEntry, machine: MachineState, held: int, idle: int, count: int) -> int:
    """Return up to ``count`` idle nodes that a job may take beside those it holds, near these first.

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
