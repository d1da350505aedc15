"""Make the example snapshots from the trimmed output of an emulated Slurm 22.05 cluster.

The cluster has 1408 nodes of 12 cores and 3 GPUs, 16 nodes a leaf switch, 8 leaves a switch above; 55
jobs run, 66 wait. ``emulated-1408-full.json`` is the cluster as it was, with 32 free cores;
``emulated-1408-queue.json`` is the same without three of the running jobs, so that an auction has
something to award.

    python examples/make_examples.py [FOLDER]
"""

from __future__ import annotations

import gzip
import json
import sys
from dataclasses import replace
from pathlib import Path

from aucsched import Node, NodeState, Resources, Snapshot, save_snapshot
from aucsched.cluster.snapshot import held_resources
from aucsched.slurm.answers.snapshot_of_answers import SlurmSources, SlurmText, import_slurm

HERE = Path(__file__).parent
SOURCE = HERE / "source"
REMOVED = {"fill4", "fill7", "fill10"}


def main(folder: Path) -> None:
    """Write both examples to ``folder``."""
    sources = SlurmSources(
        jobs=answer("squeue.json.gz"),
        nodes=answer("sinfo.json.gz"),
        topology=answer("topology.conf"),
        job_detail=answer("scontrol_job_d.txt.gz"),
    )
    full, _ = import_slurm(sources)
    save_snapshot(full, folder / "emulated-1408-full.json")
    jobs = json.loads(sources.jobs.content)["jobs"]
    removed = {str(job["job_id"]) for job in jobs if job["name"] in REMOVED}
    save_snapshot(without(full, removed), folder / "emulated-1408-queue.json")


def answer(name: str) -> SlurmText:
    """Return one of Slurm's saved answers."""
    content = (SOURCE / name).read_bytes()
    return SlurmText(name=name, content=gzip.decompress(content) if name.endswith(".gz") else content)


def without(snapshot: Snapshot, removed: set[str]) -> Snapshot:
    """Return the snapshot as if the ``removed`` running jobs had ended: what they held is free."""
    gone = held_resources(job for job in snapshot.running if job.id in removed)
    return replace(
        snapshot,
        nodes=tuple(freed(node, gone[node.name]) if node.name in gone else node for node in snapshot.nodes),
        running=tuple(job for job in snapshot.running if job.id not in removed),
    )


def freed(node: Node, use: Resources) -> Node:
    """Return a node with ``use`` given back, its state as Slurm would then show it."""
    memory = node.free.memory_mib
    free = Resources(
        cores=node.free.cores + use.cores,
        memory_mib=None if memory is None else memory + (use.memory_mib or 0),
        gres={name: count + use.gres.get(name, 0) for name, count in node.free.gres.items()},
    )
    return replace(node, free=free, state=NodeState.IDLE if free == node.total else NodeState.MIXED)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
