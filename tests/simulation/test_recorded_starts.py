"""Starts of every policy on random logs and workloads, as recorded: whoever moves code loses none of them.

``python tests/simulation/test_recorded_starts.py`` prints the digests anew, for a difference that is meant.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from aucsched import ArrivingJob, ClusterWorkload
from aucsched.auction.options import MODELS
from aucsched.cluster.jobs import Job, Request
from aucsched.cluster.nodes import Node, Resources
from aucsched.simulation.log_columns import Requests, Workload
from aucsched.simulation.logs.counts import simulate_counts
from aucsched.simulation.logs.hours import QueueLimits
from aucsched.simulation.logs.plan_constraints import Advance, StartRule
from aucsched.simulation.logs.policies import ORDERS, POLICIES, make_policy
from aucsched.simulation.nodes.node_policies import NODE_POLICIES, NodeOptions, play
from aucsched.simulation.simulate_options import PolicyOptions

RECORDED = Path(__file__).with_suffix(".json")
LOGS, WORKLOADS = 30, 10
#: Policies over logs with options that change what they do.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "promised response": ("promised", {"objective": "response"}),
    "promised plan": ("promised", {"objective": "response", "promise": "plan"}),
    "promised hours": ("promised", {"promise": "90s"}),
    "promised none": ("promised", {"objective": "response", "promise": "none"}),
    "lookahead last": ("lookahead", {"lookahead_ties": "last", "lookahead_depth": 5}),
    "test runs": ("speculative", {"test_run_s": 7.0, "stops": 2}),
    "planning rebuild": ("planning", {"replan": "rebuild"}),
    "planning advance": (
        "planning",
        {
            "advance": (
                Advance(start_s=30, duration_s=40, processors=3),
                Advance(start_s=90, duration_s=20, processors=5, submit_s=50, is_used=False),
            ),
            "release_unused_s": 5.0,
        },
    ),
    "planning rules": (
        "planning",
        {
            "start_rule": (
                StartRule.from_text("processors>=3: 1"),
                StartRule.from_text("estimate>50: 00:01-00:03"),
            )
        },
    ),
    "two queues": (
        "queues",
        {
            "queue": (QueueLimits.from_text("short: estimate=20"), QueueLimits.from_text("all: priority=2")),
            "heads": "best-fit",
        },
    ),
    "adaptive often": ("adaptive", {"adapt_every": 8, "adapt_window": 10}),
}
#: Orders under which each of the policies is played; others only in order of submission.
SORTED = ("fcfs", "easy", "conservative", "reservations", "slack", "planning", "promised", "speculative")
NODE_VARIANTS: dict[str, dict[str, Any]] = {
    **{f"{policy}": {"policy": policy} for policy in NODE_POLICIES},
    "easy best": {"policy": "easy", "selection": "best"},
    "easy next multifactor": {"policy": "easy", "selection": "next", "order": "multifactor"},
    "easy failing": {"policy": "easy", "mtbf_s": 90.0, "mttr_s": 10.0},
    "planned always": {"policy": "backfill-planned", "backfill_interval_s": 0.0},
    "response": {"policy": "aucsched3", "objective": "response"},
    "response auto": {"policy": "aucsched3", "objective": "response", "promise": "auto"},
    "priority auto": {"policy": "aucsched3", "promise": "auto", "interval_s": 5.0},
    "plan": {"policy": "aucsched3", "promise": "plan"},
    "preempting": {"policy": "aucsched3", "preempt": True},
}


def random_log(seed: int) -> Workload:
    """Return a log of up to 60 jobs, every third of them in fractions of seconds."""
    draw = random.Random(seed)
    processors, jobs = draw.choice((4, 10, 32)), draw.randint(20, 60)
    unit = 1 if seed % 3 else 0.1
    submit = sorted(draw.randint(0, 4 * jobs) for _ in range(jobs))
    size = [min(processors, draw.choice((1, 1, 2, 3, 4, 7, processors))) for _ in range(jobs)]
    estimate = [draw.choice((5, 10, 20, 60, draw.randint(1, 90))) for _ in range(jobs)]
    run = [max(1, round(one * draw.choice((1, 1, 0.5, draw.random())))) for one in estimate]
    numbers = tuple(range(jobs))
    requests = Requests(
        processors=processors,
        submit=tuple((one - submit[0]) * unit for one in submit),
        size=tuple(size),
        estimate=tuple(one * unit for one in estimate),
        user=tuple(draw.randint(-1, 3) for _ in numbers),
        weight=tuple(draw.choice((1, 2, 4)) for _ in numbers),
        group=tuple(draw.randint(-1, 2) for _ in numbers),
    )
    scaled = tuple(one * unit for one in run)
    return Workload(requests=requests, run=scaled, ids=numbers, row=numbers, rows=jobs)


def random_workload(seed: int) -> ClusterWorkload:
    """Return a workload of cores, every second one with GPUs, or nodes of two kinds."""
    draw = random.Random(1000 + seed)
    gres = {"gpu": 2} if seed % 2 else {}
    cores = [8 if seed % 4 < 2 or number % 2 else 4 for number in range(6)]
    nodes = tuple(
        Node(
            name=f"n{number}", total=Resources(cores=count, gres=gres), free=Resources(cores=count, gres=gres)
        )
        for number, count in enumerate(cores)
    )
    arrivals = sorted(draw.randint(0, 120) for _ in range(24))
    jobs = []
    for number, arrival in enumerate(arrivals):
        limit = draw.choice((10, 20, 60, 90))
        asked = {"gpu": 1} if gres and draw.random() < 0.3 else {}
        job = Job(
            id=str(number),
            request=Request(cores=draw.choice((1, 2, 4, 6, 8, 16)), gres_total=asked),
            priority=draw.randint(1, 5),
            time_limit_s=limit,
            user=f"u{draw.randint(0, 2)}",
        )
        run = max(1, round(limit * draw.choice((1, 0.5, draw.random()))))
        paid = draw.choice((0.5, 1.0, 3.0))
        jobs.append(ArrivingJob(job=job, arrival_s=arrival, run_time_s=run, credits_per_core_h=paid))
    return ClusterWorkload(name=f"random/{seed}", nodes=nodes, jobs=tuple(jobs))


def log_cases() -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Yield name, policy, order and options."""
    for policy in dict.fromkeys(("easy", *POLICIES)):
        for order in ORDERS if policy in SORTED else ("fcfs", "slowdown"):
            yield f"{policy} {order}", policy, order, {}
    for name, (policy, options) in VARIANTS.items():
        yield name, policy, "fcfs", options


def starts_of_logs(name: str, policy: str, order: str, options: dict[str, Any]) -> str:
    """Return the digest of a policy's starts on all logs."""
    found = sha256()
    for seed in range(LOGS):
        log = random_log(seed)
        made = make_policy(policy, log.requests, order=order, options=PolicyOptions(**options))
        stopped: list[Any] = []
        starts = simulate_counts(log, made, stopped=stopped)
        found.update(repr((starts, [tuple(one) for one in stopped])).encode())
    return f"{name}: {found.hexdigest()[:16]}"


def starts_on_nodes(name: str, options: dict[str, Any]) -> str:
    """Return the digest of a policy's starts and places on all workloads."""
    found = sha256()
    for seed in range(WORKLOADS):
        limit = 2 if options["policy"] in MODELS else None
        result = play(random_workload(seed), NodeOptions(work_limit=limit, **options))
        runs = [
            (job, one.start_s, one.allocation.nodes.tolist(), one.allocation.held.cores.tolist())
            for job, one in sorted(enumerate(result.played))
        ]
        found.update(repr(runs).encode())
    return f"{name}: {found.hexdigest()[:16]}"


def recorded(part: str) -> list[str]:
    """Return the digests of a part as they were."""
    found: list[str] = json.loads(RECORDED.read_text())[part]
    return found


def test_starts_on_logs() -> None:
    assert [starts_of_logs(*case) for case in log_cases()] == recorded("logs")


@pytest.mark.parametrize("name", NODE_VARIANTS)
def test_starts_on_nodes(name: str) -> None:
    assert starts_on_nodes(name, NODE_VARIANTS[name]) in recorded("nodes")


if __name__ == "__main__":
    logs = [starts_of_logs(*case) for case in log_cases()]
    nodes = [starts_on_nodes(name, options) for name, options in NODE_VARIANTS.items()]
    sys.stdout.write(json.dumps({"logs": logs, "nodes": nodes}, indent=1) + "\n")
