"""Blocks: one pass over a queue of segment jobs, and a simulated day of them.

    python benchmarks/blocks.py one-pass [--seeds N] [--highs N] [--seconds S]
    python benchmarks/blocks.py left [--seeds N]
    python benchmarks/blocks.py day [--seeds N] [--hours H] [--passes]

64 blocks of 18 nodes with four GPUs each. ``one-pass`` has 60 % of the nodes in use and 400 waiting jobs.
Each row is a way to decide who starts: first fit in order of priority on the blocks that Slurm would choose,
the auction, and HiGHS over all placements (the nodes of a block are alike, so that it decides how many each
job takes of a block). ``left`` has few waiting jobs, which all start: how many blocks are left wholly free?
On a tree the blocks are leaf switches, and no rule holds.
``day`` plays arriving jobs on 32 blocks under backfilling and under the auction. Seconds are processor time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from statistics import fmean
from time import perf_counter, process_time
from typing import Any

import click
import highspy
import numpy as np

from aucsched import schedule
from aucsched.cluster.jobs import Job, Request, RunningJob
from aucsched.cluster.network import Network, Unit
from aucsched.cluster.nodes import Node, NodeState, Resources
from aucsched.cluster.schedule import Schedule
from aucsched.cluster.snapshot import Snapshot
from aucsched.cluster.workload import ArrivingJob, ClusterWorkload
from aucsched.formats.native.cluster_file import save_snapshot
from aucsched.simulation.nodes.node_policies import NodeOptions, play
from aucsched.simulation.nodes.node_result import NodeSimulation
from aucsched.topology.blocks import BlockRequest, Blocks
from aucsched.topology.units import blocks

COUNT, SIZE, CORES, GPUS = 64, 18, 8, 4
#: Nodes, nodes of a segment, and how often jobs ask for them.
MIX: dict[tuple[int, int | None], int] = {
    (1, None): 4,
    (2, None): 6,
    (4, None): 14,
    (8, None): 14,
    (9, None): 4,
    (12, 4): 5,
    (16, None): 8,
    (16, 8): 4,
    (18, None): 6,
    (24, 12): 3,
    (32, 16): 5,
    (36, 18): 3,
    (36, None): 2,
    (64, 16): 2,
}
BUSY = 0.6


def machine(count: int = COUNT) -> Network:
    """Return the blocks."""
    width = len(str(count - 1))
    units = [
        Unit(name=f"b{one:0{width}d}", nodes=[f"n{one:0{width}d}-{node:02d}" for node in range(SIZE)])
        for one in range(count)
    ]
    return blocks((), units)


def drawn(rng: Random, name: str) -> Job:
    """Return a job: whole nodes, a time limit, and a priority that grows with its size."""
    ((nodes, segment),) = rng.choices(list(MIX), list(MIX.values()))
    request = Request(nodes=nodes, cores_per_node=CORES, gres_per_node={"gpu": GPUS}, segment=segment)
    limit = round(3600 * 2 ** rng.uniform(-2, 4))
    return Job(id=name, priority=nodes * rng.randint(500, 1500), request=request, time_limit_s=limit)


def asked(job: Job) -> BlockRequest:
    """Return what a job asks of blocks."""
    return BlockRequest(nodes=job.request.fewest_nodes, segment=job.request.segment)


def first_fit(rule: Blocks, free: Sequence[int], jobs: Sequence[Job]) -> list[tuple[Job, list[int]]]:
    """Start jobs one after another, each on the blocks that Slurm would choose."""
    left, started = list(free), []
    for job in jobs:
        counts = rule.choice(left, asked(job))
        if counts is not None:
            left = [have - taken for have, taken in zip(left, counts, strict=True)]
            started.append((job, counts))
    return started


def queue(seed: int, waiting: int = 400) -> Snapshot:
    """Return a machine that jobs have filled and partly left, and a queue."""
    rng, network = Random(seed), machine()  # noqa: S311 - drawn again by seed
    rule = Blocks(sizes=network.sizes, nodes=(SIZE,) * COUNT)
    filled = first_fit(rule, [SIZE] * COUNT, [drawn(rng, f"r{place}") for place in range(1000)])
    rng.shuffle(filled)
    names = [list(unit.nodes) for unit in network.units]
    for one in names:
        rng.shuffle(one)
    running: list[RunningJob] = []
    busy = 0
    for job, counts in filled:
        mine = [names[place].pop() for place, count in enumerate(counts) for _ in range(count)]
        if busy + len(mine) <= BUSY * COUNT * SIZE:
            busy += len(mine)
            held = {name: Resources(cores=CORES, gres={"gpu": GPUS}) for name in mine}
            running.append(RunningJob(id=job.id, nodes=held, end_time=rng.uniform(60, 7200)))
    taken = {name for job in running for name in job.nodes}
    total, none = Resources(cores=CORES, gres={"gpu": GPUS}), Resources(cores=0, gres={"gpu": 0})
    nodes = [
        Node(name=name, total=total, free=none, state=NodeState.ALLOCATED)
        if name in taken
        else Node(name=name, total=total)
        for name in network.members
    ]
    jobs = [drawn(rng, f"j{place}") for place in range(waiting)]
    return Snapshot(nodes=nodes, jobs=jobs, network=network, running=running, time=0.0)


def free_by_block(snapshot: Snapshot, started: Schedule | None = None) -> list[int]:
    """Return the free nodes of each block, after what starts."""
    taken = {name for award in started.started for name in award.nodes} if started else set()
    open_ = {node.name for node in snapshot.nodes if node.free.cores and node.name not in taken}
    assert snapshot.network is not None
    return [sum(name in open_ for name in unit.nodes) for unit in snapshot.network.units]


def whole(free: Sequence[int]) -> int:
    """Return how many blocks are wholly free."""
    return sum(count == SIZE for count in free)


class AllPlacements:
    """The program over all placements: a start of each job, and how many nodes it takes of each block."""

    def __init__(self, jobs: Sequence[Job], free: Sequence[int], seconds: float) -> None:
        self._jobs, self._free = jobs, free
        self._rule = Blocks(sizes=machine(len(free)).sizes, nodes=(SIZE,) * len(free))
        self._solver = highspy.Highs()  # type: ignore[no-untyped-call]
        for name, value in (("output_flag", False), ("time_limit", seconds), ("mip_rel_gap", 0.0)):
            self._solver.setOptionValue(name, value)
        self._used: list[list[tuple[int, float]]] = [[] for _ in self._free]
        self._starts = [self._variable(1.0, -float(job.priority)) for job in self._jobs]
        for job, start in zip(self._jobs, self._starts, strict=True):
            self._state(asked(job), start)
        for count, terms in zip(self._free, self._used, strict=True):
            self._row(terms, 0.0, float(count))

    def _variable(self, high: float, cost: float = 0.0) -> int:
        column = int(self._solver.getNumCol())
        self._solver.addCol(cost, 0.0, high, 0, np.array([], np.int32), np.array([], np.float64))
        self._solver.changeColIntegrality(column, highspy.HighsVarType.kInteger)
        return column

    def _row(self, terms: Sequence[tuple[int, float]], low: float = 0.0, high: float = 0.0) -> None:
        places, values = np.array([one for one, _ in terms], np.int32), np.array([one for _, one in terms])
        if len(terms):
            self._solver.addRow(low, high, len(terms), places, values)

    def _state(self, request: BlockRequest, start: int) -> None:
        """State where one job may be: whole segments of blocks, or anywhere in one group of blocks."""
        reach = self._rule.reach(request.unit)
        if reach.group == 1:
            slots = [(place, count // request.unit) for place, count in enumerate(self._free)]
            amounts = [(place, self._variable(high)) for place, high in slots if high]
            self._take(amounts, float(request.unit))
            self._row([*((one, 1.0) for _, one in amounts), (start, -request.nodes / request.unit)])
            return
        assert request.unit == request.nodes
        assert reach.parts * reach.part == reach.group
        groups: list[tuple[int, float]] = []
        for first in range(0, len(self._free), reach.group):
            chosen = self._variable(1.0)
            groups.append((chosen, 1.0))
            places = range(first, min(first + reach.group, len(self._free)))
            inside = [(place, self._variable(self._free[place])) for place in places if self._free[place]]
            self._take(inside, 1.0)
            self._row([*((one, 1.0) for _, one in inside), (chosen, -float(request.nodes))])
        self._row([*groups, (start, -1.0)])

    def _take(self, amounts: Sequence[tuple[int, int]], each: float) -> None:
        for place, one in amounts:
            self._used[place].append((one, each))

    def best(self) -> tuple[float, int, float]:
        """Return the greatest sum of priorities that is found, its nodes, and the bound."""
        self._solver.run()
        info, values = self._solver.getInfo(), self._solver.getSolution().col_value
        won = [job for job, start in zip(self._jobs, self._starts, strict=True) if round(values[start])]
        nodes = sum(job.request.fewest_nodes for job in won)
        return -info.objective_function_value, nodes, -info.mip_dual_bound

    def most_whole(self, started: Collection[str]) -> tuple[int, float]:
        """Return the most blocks that stay wholly free where exactly these jobs start, and the bound."""
        for job, start in zip(self._jobs, self._starts, strict=True):
            self._solver.changeColBounds(start, float(job.id in started), float(job.id in started))
            self._solver.changeColCost(start, 0.0)
        for count, terms in zip(self._free, self._used, strict=True):
            if count == SIZE:
                self._row([*terms, (self._variable(1.0, -1.0), float(SIZE))], 0.0, float(SIZE))
        self._solver.run()
        info = self._solver.getInfo()
        return round(-info.objective_function_value), -info.mip_dual_bound


def rule_of(snapshot: Snapshot) -> Blocks:
    """Return the rule of a snapshot's blocks."""
    assert snapshot.network is not None
    return Blocks(sizes=snapshot.network.sizes, nodes=(SIZE,) * len(snapshot.network.units))


def by_first_fit(snapshot: Snapshot) -> tuple[int, int, int]:
    """Return the sum of priorities, the nodes and the whole blocks that first fit starts and leaves."""
    jobs = sorted(snapshot.jobs, key=lambda job: -job.priority)
    free = free_by_block(snapshot)
    started = first_fit(rule_of(snapshot), free, jobs)
    left = np.array(free) - sum((np.array(counts) for _, counts in started), start=np.zeros(COUNT, int))
    priority = sum(int(job.priority) for job, _ in started)
    return priority, sum(job.request.fewest_nodes for job, _ in started), whole(left.tolist())


def by_auction(snapshot: Snapshot, *, on_tree: bool = False, **options: Any) -> tuple[int, int, int]:
    """Return the same of the auction; on a tree of switches where the blocks' rules do not hold."""
    found = schedule(replace(snapshot, network=None) if on_tree else snapshot, window=400, **options)
    priority = {job.id: int(job.priority) for job in snapshot.jobs}
    started = sum(priority[award.job] for award in found.started)
    nodes = sum(len(award.nodes) for award in found.started)
    return started, nodes, whole(free_by_block(snapshot, found))


@click.group()
def main() -> None:
    """Measure jobs on blocks."""


#: The auction alone, as first fit reserves nothing. Its work limit ends it, however busy this machine is.
ALONE: dict[str, Any] = {"promise": "none", "reserve": 0, "work_limit": 20, "time_limit_s": 60.0}


@main.command()
@click.option("--seeds", type=int, default=10, show_default=True)
@click.option("--highs", type=int, default=2, show_default=True, help="Seeds that HiGHS solves, too.")
@click.option("--seconds", type=float, default=60.0, show_default=True, help="For HiGHS.")
@click.option("--save", type=click.Path(path_type=Path), help="The first queue as a snapshot; nothing runs.")
def one_pass(seeds: int, highs: int, seconds: float, save: Path | None) -> None:
    """Print who starts in one pass over a long queue."""
    if save is not None:
        save_snapshot(queue(0), save)
        return
    click.echo(f"{'seed':>4} {'by':10}{'priority':>10}{'GPUs':>7}{'wall s':>8}{'cpu s':>7}")
    rows: dict[str, list[tuple[float, float]]] = {}

    for seed in range(seeds):
        snapshot = queue(seed)
        ways: dict[str, Callable[[], tuple[float, ...]]] = {
            "first fit": partial(by_first_fit, snapshot),
            "auction": partial(by_auction, snapshot, **ALONE),
        }
        if seed < highs:
            ways["HiGHS"] = AllPlacements(snapshot.jobs, free_by_block(snapshot), seconds).best
        for name, run in ways.items():
            wall, cpu = perf_counter(), process_time()
            priority, nodes, *more = run()
            wall, cpu = perf_counter() - wall, process_time() - cpu
            rows.setdefault(name, []).append((priority, nodes * GPUS))
            bound = f"  at most {more[0]:.0f}" if name == "HiGHS" else ""
            click.echo(f"{seed:4} {name:10}{priority:10.0f}{nodes * GPUS:7.0f}{wall:8.2f}{cpu:7.2f}{bound}")
    for name, found in rows.items():
        priority, gpus = (fmean(column) for column in zip(*found, strict=True))
        click.echo(f"mean {name:10}{priority:10.0f}{gpus:7.0f}  of {len(found)} seeds")


@main.command()
@click.option("--seeds", type=int, default=10, show_default=True)
def left(seeds: int) -> None:
    """Print how many blocks are wholly free after all jobs of a short queue have started."""
    click.echo(f"{'jobs':>4} {'by':22}{'priority':>10}{'whole blocks':>14}")
    unproved = 0
    for waiting in (10, 15, 20):
        rows: dict[str, list[tuple[int, int, int]]] = {}
        for seed in range(seeds):
            snapshot = queue(seed, waiting)
            rows.setdefault("first fit", []).append(by_first_fit(snapshot))
            rows.setdefault("auction", []).append(by_auction(snapshot, **ALONE))
            found = by_auction(snapshot, **ALONE, keep_whole=False)
            rows.setdefault("auction, level alone", []).append(found)
            won = [award.job for award in schedule(snapshot, window=400, **ALONE).started]
            most, bound = AllPlacements(snapshot.jobs, free_by_block(snapshot), 60.0).most_whole(won)
            rows.setdefault("at most, HiGHS", []).append((found[0], found[1], most))
            unproved += bound > most + 1 - 1e-6
            for name, kept in (("on a tree", True), ("on a tree, level alone", False)):
                found = by_auction(snapshot, on_tree=True, **ALONE, keep_whole=kept)
                rows.setdefault(name, []).append(found)
        for name, results in rows.items():
            priority, _, blocks_left = (fmean(column) for column in zip(*results, strict=True))
            click.echo(f"{waiting:4} {name:22}{priority:10.0f}{blocks_left:14.1f}")
    click.echo(f"queues whose most is not proved: {unproved}")


def arriving(seed: int, hours: float, count: int = 32, load: float = 1.1) -> ClusterWorkload:
    """Return a day of jobs for so many blocks, which ask for about all of the machine."""
    rng, network = Random(seed), machine(count)  # noqa: S311 - drawn again by seed
    node_s, at = 0.0, 0.0
    jobs: list[ArrivingJob] = []
    while node_s < load * hours * 3600 * count * SIZE:
        job = drawn(rng, f"j{len(jobs)}")
        run = max(60.0, (job.time_limit_s or 0) * rng.uniform(0.2, 1.0))
        node_s += run * job.request.fewest_nodes
        jobs.append(ArrivingJob(job=job, arrival_s=at, run_time_s=run))
    times = sorted(rng.uniform(0, hours * 3600) for _ in jobs)
    jobs = [replace(job, arrival_s=time) for job, time in zip(jobs, times, strict=True)]
    total = Resources(cores=CORES, gres={"gpu": GPUS})
    nodes = [Node(name=name, total=total) for name in network.members]
    return ClusterWorkload(nodes=nodes, network=network, jobs=jobs)


def in_use(result: NodeSimulation, until_s: float) -> float:
    """Return which share of all nodes' time up to a time is used."""
    spans = [(one.start_s, one.start_s + one.run_s, len(one.allocation.nodes)) for one in result.played]
    used = sum(max(0.0, min(stop, until_s) - start) * nodes for start, stop, nodes in spans)
    return used / (until_s * len(result.empty.names))


def whole_in_mean(result: NodeSimulation, until_s: float) -> float:
    """Return how many blocks are wholly free in the mean over the time."""
    busy: list[list[tuple[float, float]]] = [[] for _ in range(len(result.empty.names) // SIZE)]
    for one in result.played:
        for block in set((one.allocation.nodes // SIZE).tolist()):
            busy[block].append((one.start_s, one.start_s + one.run_s))
    free = 0.0
    for spans in busy:
        covered, end = 0.0, 0.0
        for start, stop in sorted(spans):
            covered += max(0.0, min(stop, until_s) - max(start, end, 0.0))
            end = max(end, min(stop, until_s))
        free += until_s - covered
    return free / until_s


def left_by_pass(result: NodeSimulation) -> tuple[int, int, int, int]:
    """Return the moments at which jobs start, the wholly free blocks after them, and the most there could be.

    The last: moments for which HiGHS did not prove the most.
    """
    count, moments, ours, most, unproved = len(result.empty.names) // SIZE, 0, 0, 0, 0
    for now in sorted({one.start_s for one in result.played}):
        free, after = [SIZE] * count, [SIZE] * count
        jobs = [one.demand.job for one in result.played if one.start_s == now]
        for one in result.played:
            if one.start_s <= now < one.start_s + one.run_s:
                for block in (one.allocation.nodes // SIZE).tolist():
                    after[block] -= 1
                    free[block] -= one.start_s < now
        found, bound = AllPlacements(jobs, free, 20.0).most_whole({job.id for job in jobs})
        moments, ours, most = moments + 1, ours + whole(after), most + found
        unproved += bound > found + 1 - 1e-6
    return moments, ours, most, unproved


POLICIES: dict[str, dict[str, Any]] = {
    "easy": {},
    "easy best": {"policy": "easy", "selection": "best"},
    "backfill-slurm": {"backfill_interval_s": 0},
    "aucsched3": {},
}
_SHOWN = ("wait_mean_s", "wait_max_s", "bounded_slowdown_mean", "level_mean")


@main.command()
@click.option("--seeds", type=int, default=2, show_default=True)
@click.option("--hours", type=float, default=24.0, show_default=True)
@click.option("--passes", is_flag=True, help="HiGHS says how many blocks each pass could have left.")
@click.option("--policies", multiple=True, type=click.Choice(list(POLICIES)), default=list(POLICIES))
def day(seeds: int, hours: float, passes: bool, policies: Sequence[str]) -> None:
    """Print how a day of arriving jobs goes under each policy."""
    click.echo(f"{'policy':16}{'seed':>5}{'in use':>8}{'whole':>8}" + "".join(f"{one:>23}" for one in _SHOWN))
    for seed in range(seeds):
        workload = arriving(seed, hours)
        for name, chosen in ((one, POLICIES[one]) for one in policies):
            began = process_time()
            result = play(workload, NodeOptions(**{"policy": name, **chosen}))
            values = result.metrics
            cells = "".join(f"{values[one]:23.2f}" for one in _SHOWN)
            used, free = in_use(result, hours * 3600), whole_in_mean(result, hours * 3600)
            seconds = process_time() - began
            if passes:
                moments, left_, most, unproved = left_by_pass(result)
                cells += f"  {left_} of {most} whole blocks over {moments} moments, {unproved} not proved"
            click.echo(
                f"{name:16}{seed:5}{used:8.3f}{free:8.2f}{cells}  {len(workload.jobs)} jobs {seconds:.0f} s"
            )


if __name__ == "__main__":
    main()
