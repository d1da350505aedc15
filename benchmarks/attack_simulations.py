"""Random small workloads on nodes that fail, under every policy, each run replayed by a checker of its own.

    python benchmarks/attack_simulations.py --count 300

The checker knows the workload, the failures and what the run says of itself; it shares nothing with the
kernel that made it: no job lost or run twice to its end, none on a node that is down, no node, gres or
licence beyond what there is, each run as long as it had to be. Prints figures and every violation; exit code
1 where there is any. The same seed makes the same runs.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import msgspec
from random_snapshots import random_document

from aucsched.cluster.errors import AucschedError
from aucsched.cluster.jobs import Job, Request
from aucsched.cluster.workload import ArrivingJob, ClusterWorkload, Outage
from aucsched.formats.native.cluster_file import parse_snapshot
from aucsched.simulation.nodes.node_policies import NODE_POLICIES, NodeOptions, play
from aucsched.simulation.nodes.node_result import NodeSimulation
from aucsched.simulation.stepping import LEFT_WAITING

#: Every policy, and the variants that choose nodes or jobs another way.
SETTINGS: tuple[dict[str, Any], ...] = (
    *({"policy": policy} for policy in NODE_POLICIES),
    *({"policy": "easy", "selection": selection} for selection in ("best", "next")),
    {"policy": "backfill-slurm", "backfill_interval_s": 0.0},
    {"policy": "backfill-planned", "backfill_interval_s": 0.0},
    {"policy": "aucsched1", "strategy": "greedy"},
    {"policy": "aucsched1", "strategy": "greedy", "balance": True},
    {"policy": "aucsched2", "balance": True},
    {"policy": "aucsched3", "balance": True},
    {"policy": "aucsched3", "balance": True, "reserve": 0},
    {"policy": "aucsched3", "reserve": 0, "work_limit": 3},
    {"policy": "aucsched3", "strategy": "exact", "reserve": 2},
    {"policy": "ipsched", "award_alone": True},
    {"policy": "aucsched1", "award_alone": True, "bid_order": "figure-4.5", "reserve": 0},
    {"policy": "aucsched3", "award_alone": True, "window": 3},
    {"policy": "aucsched3", "award_alone": True, "balance": True},
    {"policy": "easy", "order": "multifactor"},
    {"policy": "aucsched3", "order": "multifactor", "interval_s": 7.0},
    {"policy": "easy", "interval_s": 10.0},
)
_ENDLESS = 0.1


@dataclass(slots=True, kw_only=True)
class Figures:
    """What many runs came to.

    Attributes:
        simulations, jobs, done, never, lost: how many runs; of their jobs, what became of each.
        failures, requeues: nodes that went down while there was work, and jobs that then waited again.
        violations: a line for each, with the run's number.
        seconds: wall time.
    """

    simulations: int = 0
    jobs: int = 0
    done: int = 0
    never: int = 0
    lost: int = 0
    failures: int = 0
    requeues: int = 0
    violations: list[str] = field(default_factory=list)
    seconds: float = 0.0


def run(count: int, seed: int) -> Figures:
    """Play and check ``count`` simulations; the settings take turns."""
    figures = Figures()
    began = time.perf_counter()
    for number in range(seed, seed + count):
        _one(number, SETTINGS[number % len(SETTINGS)], figures)
    figures.seconds = time.perf_counter() - began
    return figures


def _one(number: int, setting: dict[str, Any], figures: Figures) -> None:
    rng = random.Random(f"failures/{number}")  # noqa: S311 - not a secret
    workload = random_workload(rng, number)
    failing = random_failures(rng, workload)
    figures.simulations += 1
    figures.jobs += len(workload.jobs)
    try:
        options = NodeOptions(**setting, **failing)
        result = play(workload, options)
        found = [*violations(workload, options, result), *_written(result)]
    except (AucschedError, ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as error:
        found = [f"{type(error).__name__}: {error}"]
    else:
        figures.done += len(result.record.played)
        figures.never += len(result.record.never)
        figures.lost += len(result.record.lost)
        figures.failures += len(result.record.outages)
        figures.requeues += result.record.requeues
    figures.violations += [f"{number} {setting}: {one}" for one in found]


def random_workload(rng: random.Random, seed: int) -> ClusterWorkload:
    """Return a machine of up to 24 nodes and up to 24 jobs of every kind of request."""
    documents = [random_document(seed), random_document(seed + 10**6)]
    document = documents[0]
    document["jobs"] += [
        {**job, "id": f"more{job['id']}"}
        for job in documents[1]["jobs"]
        if not {"required_nodes", "excluded_nodes"} & job.keys()
    ]
    for node in document["nodes"]:
        for member in ("free_cores", "free_gres", "free_memory_mib"):
            node.pop(member, None)
    document["licenses"] = {"matlab": {"total": 5}}
    document.pop("reservations", None)
    snapshot = parse_snapshot(msgspec.json.encode(document))
    arrival = 0.0
    jobs = []
    for job in snapshot.jobs:
        arrival += rng.choice([0, 0, rng.randint(0, 40), rng.random() * 20])
        jobs.append(_arriving(rng, job, arrival))
    return ClusterWorkload(
        name=str(seed),
        nodes=snapshot.nodes,
        jobs=tuple(jobs),
        switches=snapshot.switches,
        partitions=snapshot.partitions,
        licenses=snapshot.licenses,
    )


def _arriving(rng: random.Random, job: Job, arrival_s: float) -> ArrivingJob:
    run_s = rng.choice([rng.randint(1, 200), 0.001 + 50 * rng.random()])
    limit = rng.choice([None, job.time_limit_s, max(1, int(run_s * rng.choice([0.5, 1, 2])))])
    return ArrivingJob(
        job=replace(job, submit_time=None, time_limit_s=limit),
        arrival_s=arrival_s,
        run_time_s=run_s,
        gres_run_time_factor=rng.choice([None, None, 0.5, 1.0]),
    )


def random_failures(rng: random.Random, workload: ClusterWorkload) -> dict[str, Any]:
    """Return the options that let nodes of a workload fail."""
    options: dict[str, Any] = {}
    if rng.random() < 1 / 2:
        options = {
            "mtbf_s": rng.choice([100.0, 1000.0]),
            "mttr_s": rng.choice([1.0, 30.0, 200.0]),
            "failure_seed": rng.randint(0, 10**6),
        }
    else:
        options["failures"] = tuple(_outages(rng, workload))
    if rng.random() < 1 / 3:
        options["on_failure"] = "lost"
    elif rng.random() < 1 / 2:
        options["max_requeues"] = rng.randint(0, 5)
    return options


def _outages(rng: random.Random, workload: ClusterWorkload) -> Iterator[Outage]:
    """Yield outages of some nodes, at whole seconds so that they meet starts, ends and arrivals."""
    for node in workload.nodes:
        if not node.state.takes_jobs:
            continue
        now = 0
        while rng.random() < 2 / 3:
            down = now + rng.randint(0, 100)
            if rng.random() < _ENDLESS:
                yield Outage(nodes=(node.name,), down_s=down)
                break
            now = down + rng.randint(1, 60)
            yield Outage(nodes=(node.name,), down_s=down, up_s=now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One run of a job: what it held on each node, by name (cores, memory, gres), and when."""

    job: int
    start_s: float
    end_s: float
    nodes: dict[str, dict[str, int]]
    is_whole: bool


def violations(workload: ClusterWorkload, options: NodeOptions, result: NodeSimulation) -> Iterator[str]:
    """Yield every rule that a finished run broke."""
    runs = list(_runs(workload, result))
    down = {(workload.nodes[one.node].name, one.down_s, one.up_s) for one in result.record.outages}
    yield from _lists(workload, options, result, runs)
    yield from _times(workload, runs)
    yield from _on_nodes_down(runs, down)
    yield from _capacity(workload, runs)
    for one in runs:
        yield from _request(workload, one)
    if options.failures is not None:
        yield from _as_in_the_file(
            tuple(options.failures), down, max([one.end_s for one in runs], default=0.0)
        )


def _runs(workload: ClusterWorkload, result: NodeSimulation) -> Iterator[Held]:
    for job, one in result.record.played.items():
        yield Held(
            job=job,
            start_s=one.start_s,
            end_s=one.start_s + one.run_s,
            nodes=_held(workload, one.allocation),
            is_whole=True,
        )
    for stop in result.record.stopped:
        yield Held(
            job=stop.job,
            start_s=stop.start_s,
            end_s=stop.end_s,
            nodes=_held(workload, stop.allocation),
            is_whole=False,
        )


def _held(workload: ClusterWorkload, allocation: Any) -> dict[str, dict[str, int]]:
    held = {}
    for place, node in enumerate(allocation.nodes.tolist()):
        amounts = {"cores": int(allocation.held.cores[place]), "memory": int(allocation.held.memory[place])}
        for kind, counts in allocation.held.gres.items():
            if counts[place]:
                amounts[f"gres/{kind}"] = int(counts[place])
        held[workload.nodes[node].name] = amounts
    return held


def _lists(
    workload: ClusterWorkload, options: NodeOptions, result: NodeSimulation, runs: list[Held]
) -> Iterator[str]:
    """Each job ends once, or is listed once with a reason; each stop is a requeue or a loss."""
    whole = Counter(one.job for one in runs if one.is_whole)
    stops = Counter(one.job for one in runs if not one.is_whole)
    record = result.record
    for job in range(len(workload.jobs)):
        listed = whole[job] + (job in record.never) + (job in record.lost)
        if listed != 1:
            yield f"job {job} is listed {listed} times"
        reason = record.never.get(job, record.lost.get(job, "-"))
        if not reason or reason == LEFT_WAITING:
            # What can never start is known when it comes, or when nodes go down for good.
            yield f"job {job} is listed with the reason {reason!r}"
        most = 0 if options.on_failure == "lost" else 100
        most = most if options.max_requeues is None else options.max_requeues
        if (job in record.lost) != (stops[job] > most):
            yield f"job {job} was stopped {stops[job]} times, {most} allowed; lost: {job in record.lost}"
    if sum(stops.values()) != record.requeues + len(record.lost):
        yield f"{sum(stops.values())} stops are {record.requeues} requeues and {len(record.lost)} losses"
    lost_s = sum(
        sum(held["cores"] for held in one.nodes.values()) * (one.end_s - one.start_s)
        for one in runs
        if not one.is_whole
    )
    if abs(lost_s - result.failure_counts()["lost_core_s"]) > 1e-6 * max(1.0, lost_s):
        yield f"{lost_s} core-seconds are lost, not {result.failure_counts()['lost_core_s']}"


def _times(workload: ClusterWorkload, runs: list[Held]) -> Iterator[str]:
    """A job runs after it came, once at a time, a whole run last, and as long as it has to."""
    by_job: dict[int, list[Held]] = defaultdict(list)
    for one in sorted(runs, key=lambda one: (one.start_s, one.end_s)):
        by_job[one.job].append(one)
    for job, mine in by_job.items():
        arriving = workload.jobs[job]
        free_s = arriving.arrival_s
        for one in mine:
            if one.start_s < free_s:
                yield f"job {job} starts at {one.start_s}, not before {free_s} it could"
            free_s = one.end_s
        if any(one.is_whole for one in mine[:-1]):
            yield f"job {job} runs again after its end"
        limit = inf if arriving.job.time_limit_s is None else float(arriving.job.time_limit_s)
        longest = min(arriving.run_time_s, limit)
        for one in mine:
            ran = one.end_s - one.start_s
            is_exact = one.is_whole and arriving.gres_run_time_factor is None
            if ran > longest + 1e-6 or (is_exact and ran < longest - 1e-6):
                yield f"job {job} runs {ran} s instead of {longest}"


def _on_nodes_down(runs: list[Held], down: set[tuple[str, float, float]]) -> Iterator[str]:
    by_node: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for name, from_s, to_s in down:
        by_node[name].append((from_s, to_s))
    for one in runs:
        for name in one.nodes:
            for from_s, to_s in by_node[name]:
                if one.start_s < to_s and from_s < one.end_s:
                    held = f"from {one.start_s} to {one.end_s}"
                    yield f"job {one.job} runs on {name} {held}, down from {from_s}"
        if not one.is_whole and not any(
            from_s == one.end_s for name in one.nodes for from_s, _ in by_node[name]
        ):
            yield f"job {one.job} is stopped at {one.end_s}, when none of its nodes fails"


def _capacity(workload: ClusterWorkload, runs: list[Held]) -> Iterator[str]:
    """Replay starts and ends: ends first at one time."""
    there: dict[tuple[str, str], int] = {}
    for node in workload.nodes:
        there[node.name, "cores"] = node.total.cores
        memory = node.total.memory_mib
        there[node.name, "memory"] = 10**18 if memory is None else memory
        for kind, amount in node.total.gres.items():
            there[node.name, f"gres/{kind}"] = amount
    for name, entry in workload.licenses.items():
        there["licence", name] = entry.total
    used: Counter[tuple[str, str]] = Counter()
    events = [(one.start_s, 1, place) for place, one in enumerate(runs)]
    events += [(one.end_s, 0, place) for place, one in enumerate(runs)]
    for moment, starts, place in sorted(events):
        one = runs[place]
        takes = {(name, what): count for name, held in one.nodes.items() for what, count in held.items()}
        for name, count in workload.jobs[one.job].job.request.licenses.items():
            takes["licence", name] = count
        for key, count in takes.items():
            used[key] += count if starts else -count
            if used[key] > there.get(key, 0):
                yield f"{used[key]} of {there.get(key, 0)} {key} are held at {moment}"


def _request(workload: ClusterWorkload, one: Held) -> Iterator[str]:
    """A run holds what its job asked for: nodes, cores, order, names."""
    job = workload.jobs[one.job].job
    request = job.request
    nodes = {node.name: node for node in workload.nodes}
    places = sorted(place for place, node in enumerate(workload.nodes) if node.name in one.nodes)
    cores = [held["cores"] for held in one.nodes.values()]
    if request.exclusive:
        if any(held["cores"] != nodes[name].total.cores for name, held in one.nodes.items()):
            yield f"job {job.id} does not hold whole nodes"
    else:
        yield from (f"job {job.id}: {said}" for said in _cores(request, cores))
    if request.contiguous and places != list(range(places[0], places[0] + len(places))):
        yield f"job {job.id} is not contiguous"
    if not set(request.required_nodes) <= one.nodes.keys() or request.excluded_nodes & one.nodes.keys():
        yield f"job {job.id} holds the wrong nodes"
    for name, held in one.nodes.items():
        if not request.features <= nodes[name].features or not nodes[name].state.takes_jobs:
            yield f"job {job.id} runs on {name}, which lacks a feature or takes no jobs"
        yield from (f"job {job.id} on {name}: {said}" for said in _gres(request, held))


def _cores(request: Request, cores: list[int]) -> Iterator[str]:
    span = request.node_counts
    if span is not None and not span.minimum <= len(cores) <= span.maximum:
        yield f"{len(cores)} nodes are held"
    if request.cores is not None and sum(cores) != request.cores:
        yield f"{sum(cores)} cores are held"
    if request.cores_per_node is not None and set(cores) != {request.cores_per_node}:
        yield f"{cores} cores are held on its nodes"


def _gres(request: Request, held: dict[str, int]) -> Iterator[str]:
    """On each node a job holds as many gres as it asked for; a name without a type takes any."""
    for gres, counts in request.gres_per_node.items():
        got = sum(
            amount
            for what, amount in held.items()
            if what == f"gres/{gres}" or (":" not in gres and what.startswith(f"gres/{gres}:"))
        )
        if got < counts.minimum or (got > counts.maximum and not request.exclusive):
            yield f"{got} {gres} are held"


def _as_in_the_file(
    failures: tuple[Outage, ...], down: set[tuple[str, float, float]], last_s: float
) -> Iterator[str]:
    """Nodes are down when the file says, up to the last moment at which anything ran."""
    stated = {
        (name, outage.down_s, inf if outage.up_s is None else outage.up_s)
        for outage in failures
        for name in outage.nodes
    }
    for one in sorted(down - stated):
        yield f"{one} is not an outage of the file"
    for one in sorted(stated - down):
        if one[1] < last_s:
            yield f"{one} did not happen, though jobs ran until {last_s}"


def _written(result: NodeSimulation) -> Iterator[str]:
    """What is printed of a run counts every job."""
    rows = result.jobs_csv().splitlines()
    document = result.to_dict()
    if len(rows) != len(result.cluster.jobs) + 1:
        yield f"{len(rows) - 1} rows of {len(result.cluster.jobs)} jobs"
    if document["jobs"] + len(document["never_started"]) + len(document["lost"]) != document["rows"]:
        yield "the document does not count every job"
    share = result.metrics.get("loss_of_capacity")
    if share is not None and not 0 <= share <= 1:
        yield f"{share} of the capacity is lost"
    if "lost core s" not in result.to_text("run"):
        yield "the text does not tell what was lost"


def main() -> int:
    """Play and check ``--count`` simulations."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    figures = run(arguments.count, arguments.seed)
    for one in figures.violations:
        print(one)
    print(
        f"{figures.simulations} simulations under {len(SETTINGS)} settings: "
        f"{figures.failures} failures of nodes, {figures.requeues} requeues; "
        f"of {figures.jobs} jobs {figures.done} done, {figures.lost} lost, {figures.never} unable to start; "
        f"{len(figures.violations)} violations; {figures.seconds:.0f} s"
    )
    return 1 if figures.violations else 0


if __name__ == "__main__":
    sys.exit(main())
