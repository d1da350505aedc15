"""The part of a machine where a schedule changes something, for pictures of full machines."""

from __future__ import annotations

from dataclasses import replace

from ...cluster.nodes import part_of_tree
from ...cluster.schedule import Schedule
from ...cluster.snapshot import Snapshot

#: At most this many leaf switches are drawn whole.
_FEW_LEAVES = 12


def changed_part(snapshot: Snapshot, schedule: Schedule) -> Snapshot:
    """Return the leaf switches with a free core or a job that starts, where most have neither.

    The jobs that run are cut to the nodes that stay; the snapshot itself where it has few leaves, or most of
    them matter.
    """
    leaves = [switch.nodes for switch in snapshot.switches or () if switch.nodes]
    taken = {name for award in schedule.started for name in award.nodes}
    matter = taken | {node.name for node in snapshot.nodes if node.free.cores and node.state.takes_jobs}
    kept = [nodes for nodes in leaves if not matter.isdisjoint(nodes)]
    if len(leaves) <= _FEW_LEAVES or not kept or 2 * len(kept) > len(leaves):
        return snapshot
    names = {name for nodes in kept for name in nodes}
    running = [
        replace(job, nodes={name: use for name, use in job.nodes.items() if name in names})
        for job in snapshot.running
        if not names.isdisjoint(job.nodes)
    ]
    return Snapshot(
        time=snapshot.time,
        nodes=[node for node in snapshot.nodes if node.name in names],
        switches=part_of_tree(snapshot.switches or (), names),
        running=running,
    )
