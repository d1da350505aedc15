"""Which nodes the winners of an offer get: their own first, then neighbours, or below few switches.

The counts are settled; this is the auction's second stage, preference. On a row of nodes the shortest run of
neighbours that holds a job is taken. Below switches the winners bid on node sets in the auction itself, each
for exactly its count, and the integer program maximises preference (Soner, AUCSCHED3).
"""

from __future__ import annotations

from collections.abc import Sequence

from ...cluster.jobs import Job, Request, Span
from ...cluster.nodes import Node, NodeState, Resources, Switch
from ...cluster.snapshot import Snapshot
from ...runtime.machine import lowest
from .mapping import Place

#: Steps of the search for better places: a count, so that no clock decides.
_STEPS = 20


def place_winners(
    winners: Sequence[tuple[str, int, int]], free: int, place: Place, switches: Sequence[Switch] | None
) -> dict[str, int]:
    """Return each winner's nodes.

    Args:
        winners: (job, count, nodes that the offer promises it), most important first.
        free: nodes to give; as many as all counts together at least.
        place: names of the nodes.
        switches: their tree, None where they stand in a row.
    """
    placed: dict[str, int] = {}
    rest = []
    for job, count, promised in winners:
        if promised.bit_count() == count and promised & free == promised:
            placed[job] = promised
            free &= ~promised
        else:
            rest.append((job, count))
    if switches and rest:
        found = _auctioned(rest, free, place, switches)
        for job, nodes in found.items():
            placed[job] = nodes
            free &= ~nodes
        rest = [(job, count) for job, count in rest if job not in found]
    for job, count in sorted(rest, key=lambda winner: -winner[1]):
        placed[job] = _tightest(free, count)
        free &= ~placed[job]
    return placed


def _tightest(free: int, count: int) -> int:
    """Return ``count`` nodes from the shortest run of neighbours that holds them, else the first ones."""
    best, length, at = 0, 0, free
    while at:
        begin = (at & -at).bit_length() - 1
        shifted = at >> begin
        run = (~shifted & (shifted + 1)).bit_length() - 1
        if run >= count and (not length or run < length):
            best, length = begin, run
        at &= ~(((1 << run) - 1) << begin)
    return ((1 << count) - 1) << best if length else lowest(free, count)


def _auctioned(
    winners: Sequence[tuple[str, int]], free: int, place: Place, switches: Sequence[Switch]
) -> dict[str, int]:
    """Let the winners bid on node sets below the switches; those without an award are left out."""
    from ...auction.step import schedule  # noqa: PLC0415 - only machines with switches pay for it

    one = Resources(cores=1)
    none = Resources(cores=0)
    nodes = tuple(
        Node(
            name=name,
            total=one,
            free=one if free >> number & 1 else none,
            state=NodeState.IDLE if free >> number & 1 else NodeState.ALLOCATED,
        )
        for number, name in enumerate(place.names)
    )
    jobs = tuple(
        Job(id=job, priority=1, request=Request(cores=count, nodes=Span.exactly(count), cores_per_node=1))
        for job, count in winners
    )
    snapshot = Snapshot(nodes=nodes, switches=_above(switches, place), jobs=jobs)
    found = schedule(
        snapshot, model="aucsched3", window=max(1, len(jobs)), strategy="anytime", work_limit=_STEPS
    )
    return {award.job: place.mask(tuple(award.nodes)) for award in found.started}


def _above(switches: Sequence[Switch], place: Place) -> tuple[Switch, ...]:
    """Return the part of a tree that stands above a place's nodes."""
    left = list(switches)
    kept: dict[str, Switch] = {}
    while True:
        done = len(kept)
        for switch in left:
            nodes = tuple(name for name in switch.nodes if name in place.bits)
            below = tuple(name for name in switch.switches if name in kept)
            if nodes or below:
                kept[switch.name] = Switch(name=switch.name, nodes=nodes, switches=below)
        if len(kept) == done:
            return tuple(kept[switch.name] for switch in left if switch.name in kept)
