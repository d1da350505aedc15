"""The best priority sum of a small snapshot over all placements, not only those some bid asks for.

An integer program of its own (cores on node and job), solved by CBC: it shares no line with the auction.
"""

from __future__ import annotations

import pulp

from aucsched import Job, Snapshot


def best_priority_sum(snapshot: Snapshot) -> int:
    """Return the greatest sum of priorities that can be started at once."""
    problem = pulp.LpProblem("free_placement", pulp.LpMaximize)
    nodes = range(len(snapshot.nodes))
    cores = {}
    used = {}
    starts = {}
    for place, job in enumerate(snapshot.jobs):
        starts[place] = problem.add_variable(f"s{place}", cat="Binary")
        for node in nodes:
            cores[place, node] = problem.add_variable(f"x{place}_{node}", 0, snapshot.nodes[node].free.cores, "Integer")
            used[place, node] = problem.add_variable(f"t{place}_{node}", cat="Binary")
            problem += cores[place, node] >= used[place, node]
            problem += cores[place, node] <= snapshot.nodes[node].free.cores * used[place, node]
        _size(problem, job, starts[place], [cores[place, node] for node in nodes], [used[place, node] for node in nodes])
        if job.request.contiguous:
            _contiguous(problem, place, starts[place], [used[place, node] for node in nodes])
    problem += pulp.lpSum(int(job.priority) * starts[place] for place, job in enumerate(snapshot.jobs))
    for node in nodes:
        problem += pulp.lpSum(cores[place, node] for place in starts) <= snapshot.nodes[node].free.cores
        gpus = [
            span.minimum * used[place, node]
            for place, job in enumerate(snapshot.jobs)
            for span in job.request.gres_per_node.values()
        ]
        problem += pulp.lpSum(gpus) <= snapshot.nodes[node].free.gres.get("gpu", 0)
    problem.solve(pulp.PULP_CBC_CMD(msg=False, gapRel=0, gapAbs=0.5))
    assert pulp.LpStatus[problem.status] == "Optimal"
    return round(pulp.value(problem.objective))


def _size(
    problem: pulp.LpProblem,
    job: Job,
    start: pulp.LpVariable,
    cores: list[pulp.LpVariable],
    used: list[pulp.LpVariable],
) -> None:
    request = job.request
    if request.cores is not None:
        problem += pulp.lpSum(cores) == request.cores * start
    if request.nodes is not None:
        problem += pulp.lpSum(used) >= request.nodes.minimum * start
        problem += pulp.lpSum(used) <= request.nodes.maximum * start
    if request.cores_per_node is not None:
        for node, variable in enumerate(cores):
            problem += variable == request.cores_per_node * used[node]
    for variable in used:
        problem += variable <= start


def _contiguous(problem: pulp.LpProblem, place: int, start: pulp.LpVariable, used: list[pulp.LpVariable]) -> None:
    spans = {
        (first, last): problem.add_variable(f"w{place}_{first}_{last}", cat="Binary")
        for first in range(len(used))
        for last in range(first, len(used))
    }
    problem += pulp.lpSum(spans.values()) == start
    for node, variable in enumerate(used):
        problem += pulp.lpSum(w for (first, last), w in spans.items() if first <= node <= last) == variable
