"""With no option given every command decides the same: ``python benchmarks/defaults.py --count 300``.

Random queues before an empty machine: what ``schedule`` starts and where is what the first pass of
``simulate`` starts there, and what ``explain``, ``compare``, ``sweep`` and a pass beside a live Slurm start.
Jobs that could never start on the machine are in neither queue: a simulation lists them and leaves them out.
The same seed makes the same queue; ``--first-seed 700000`` makes others. Prints how many agree, and each
that does not.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import msgspec
from random_snapshots import random_document

import aucsched
from aucsched import Snapshot
from aucsched.auction import options
from aucsched.cluster.workload import ClusterWorkload
from aucsched.formats.hostlist import join
from aucsched.formats.native.cluster_file import parse_snapshot, parse_workload
from aucsched.simulation.nodes.node_machine import Machine, why_never
from aucsched.slurm.live.passes import Look, take_pass
from aucsched.sweeps.run_kinds import SNAPSHOT

#: Nodes and jobs of a case at most: few nodes, so that jobs wait.
NODES, JOBS = 8, 24
#: Members of a snapshot's nodes and jobs that a workload's do not have.
_BUSY = ("free_cores", "free_gres", "free_memory_mib", "state")
_NOT_QUEUED = ("hold", "unsupported")


def random_case(seed: int) -> tuple[Snapshot, ClusterWorkload]:
    """Return a queue before an empty machine, as a snapshot and as a workload whose jobs come at once."""
    document = random_document(seed, NODES, JOBS)
    document.pop("reservations", None)
    for node in document["nodes"]:
        for member in _BUSY:
            node.pop(member, None)
    for place, job in enumerate(document["jobs"]):
        for member in _NOT_QUEUED:
            job.pop(member, None)
        job.setdefault("time_limit_s", 900 + 60 * place)
    if "matlab" in document["licenses"]:
        document["licenses"]["matlab"].pop("free")
    workload = _as_workload(document)
    startable = why_never((arriving.job for arriving in workload.jobs), Machine(workload))
    kept = [job for job, one in zip(document["jobs"], startable, strict=True) if not isinstance(one, str)]
    document["jobs"] = kept
    return parse_snapshot(msgspec.json.encode(document)), _as_workload(document)


def _as_workload(document: dict[str, Any]) -> ClusterWorkload:
    """Return a snapshot's content as a workload."""
    arriving = [{**job, "arrival_s": 0, "run_time_s": 60} for job in document["jobs"]]
    played = {name: value for name, value in document.items() if name != "time"}
    played |= {"format": "aucsched-workload/1", "jobs": arriving}
    return parse_workload(msgspec.json.encode(played))


def differing(seed: int) -> list[str]:
    """Return the commands that do not start what ``schedule`` starts, each with what it starts."""
    snapshot, workload = random_case(seed)
    decided = aucsched.schedule(snapshot)
    where = {award.job: join(award.nodes) for award in decided.started}
    played = aucsched.simulate(workload, "aucsched3").columns
    first = zip(*(played.get(name, []) for name in ("id", "start_s", "nodes")), strict=True)
    look = Look(snapshot=snapshot, sources=_nothing(), at=0.0, read_s=0.0)
    beside = take_pass(look, options.options_with_preset({})).step.schedule
    prices = aucsched.explain(snapshot).columns
    swept = SNAPSHOT.run(snapshot, SNAPSHOT.resolve(snapshot, {"repeat": 0}))
    compared = aucsched.compare(snapshot).auction
    reasons = {one.job: one.detail for one in decided.pending}
    found: dict[str, tuple[Any, Any]] = {
        "simulate": ({job: nodes for job, start, nodes in first if start == 0}, where),
        "slurm": ({award.job: join(award.nodes) for award in beside.started}, where),
        "slurm, why jobs wait": ({one.job: one.detail for one in beside.pending}, reasons),
        "explain": (
            {job for job, starts in zip(prices["job"], prices["starts"], strict=True) if starts},
            {job for job in prices["job"] if job in where},
        ),
        "sweep": (swept["jobs_started"], len(where)),
        "sweep, priority": (swept["priority"], float(decided.objective.priority)),
        "compare": (compared.priority, decided.objective.priority),
    }
    return [f"{name}: {got} instead of {wanted}" for name, (got, wanted) in found.items() if got != wanted]


def _nothing() -> Any:
    """Return what stands for Slurm's answers: a pass decides by the snapshot alone."""
    return None


def main() -> None:
    """Print how many cases agree; end with 1 where one does not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--ceiling", type=float, help="seconds instead of 3, where the machine is very busy")
    given = parser.parse_args()
    count, first = given.count, given.first_seed
    if given.ceiling is not None:
        options.TIME_LIMIT_S = given.ceiling
    apart = {seed: found for seed in range(first, first + count) if (found := differing(seed))}
    for seed, found in apart.items():
        print(f"{seed}: {'; '.join(found)}")
    print(f"{count - len(apart)} of {count}: every command decides what schedule decides")
    sys.exit(bool(apart))


if __name__ == "__main__":
    main()
