"""Forecasts of a queue that is followed: what they know, what they cannot know, and bad histories."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from math import inf, isfinite
from pathlib import Path

import numpy as np
import pytest
from support.build import snapshot

from aucsched import ArrivingJob, ClusterWorkload, Job, Node, Request, Resources
from aucsched.bidgen.families.registry import columns_of
from aucsched.cluster.resources.allocation import allocation_of_resources
from aucsched.cluster.resources.demand import Demand, DemandReader
from aucsched.formats.native.cluster_file import load_workload
from aucsched.simulation.forecast.forecaster import Forecaster, QueuedRequest, StartForecast
from aucsched.simulation.forecast.futures import PLAY_FUTURES
from aucsched.simulation.forecast.futures_kernel import CONSERVATIVE, EASY, RESPONSE, WITHDRAWING
from aucsched.simulation.forecast.logged import AnsweredForecast, forecasts_csv, forecasts_of
from aucsched.simulation.forecast.snapshot_queue import NodePools, SnapshotForecaster
from aucsched.simulation.log_columns import Requests, Workload
from aucsched.simulation.logs.policies import play_log
from aucsched.simulation.nodes.node_forecasts import node_forecasts_of
from aucsched.simulation.nodes.node_policies import NodeOptions, play
from aucsched.simulation.nodes.node_result import NodeSimulation
from aucsched.simulation.result import Simulation
from aucsched.simulation.simulate_options import PolicyOptions

DAY = 86_400
EXAMPLES = Path(__file__).parents[3] / "examples"


def workload(jobs: int = 150, seed: int = 1, processors: int = 16) -> Workload:
    """Jobs that come faster than the machine runs them, three days long."""
    random = np.random.default_rng(seed)
    submit = np.sort(random.integers(0, 3 * DAY, jobs))
    submit -= submit[0]
    estimate = random.choice([3600, 7200, 36_000], jobs)
    user = random.integers(0, 5, jobs)
    run = np.maximum(1, (estimate * random.random(jobs) ** (1 + user)).astype(int))
    size = random.integers(1, processors, jobs)
    requests = Requests(
        processors=processors,
        submit=tuple(submit.tolist()),
        size=tuple(size.tolist()),
        estimate=tuple(estimate.tolist()),
        user=tuple(user.tolist()),
        weight=(1,) * jobs,
    )
    numbers = tuple(range(jobs))
    return Workload(requests=requests, run=tuple(run.tolist()), ids=numbers, row=numbers, rows=jobs)


def played(jobs: Workload | None = None, policy: str = "easy") -> Simulation:
    """The jobs under a policy; ``response``: that objective."""
    if policy == "response":
        return play_log(jobs or workload(), "promised", options=PolicyOptions(objective="response"))
    return play_log(jobs or workload(), policy)


#: Policies over logs whose forecasts read nothing ahead, with what their futures play.
ON_LOGS = {"easy": EASY, "conservative": CONSERVATIVE, "response": WITHDRAWING}


def shown(found: StartForecast) -> tuple[float, ...]:
    """A forecast's numbers."""
    return (*found.quantiles, found.plan_s)


def test_every_forecast_is_ordered_and_has_an_outcome() -> None:
    found = list(forecasts_of(played(), futures=30))
    assert len(found) > 300
    for _, forecast, came in found:
        assert came >= 0
        assert list(forecast.quantiles) == sorted(forecast.quantiles)
        assert 0 <= forecast.p10_s <= forecast.p50_s <= forecast.p90_s < inf


def test_a_job_that_starts_at_once_is_forecast_to_do_so() -> None:
    for _, forecast, came in forecasts_of(played(), futures=10, asked_at=[0.0]):
        if forecast.p90_s == 0:
            assert came == 0
        else:
            assert came > 0


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_the_plan_by_limits_is_the_policy_itself(policy: str) -> None:
    # All jobs come at once and run to their limits: the plan on arrival is what the policy does.
    base = workload(60)
    requests = replace(base.requests, submit=(0,) * 60)
    result = played(replace(base, requests=requests, run=tuple(requests.estimate)), policy)
    found = list(forecasts_of(result, futures=2, asked_at=[0.0]))
    assert [forecast.plan_s for _, forecast, _ in found] == [came for *_, came in found]


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_the_plan_amid_running_jobs_is_the_policy_itself(policy: str) -> None:
    # Sixty jobs come one after another, then sixty at once, and nobody after them; all run to their limits.
    base = workload(120, seed=3)
    requests = replace(base.requests, submit=base.requests.submit[:60] + base.requests.submit[60:61] * 60)
    result = played(replace(base, requests=requests, run=tuple(requests.estimate)), policy)
    found = [one for one in forecasts_of(result, futures=2, asked_at=[0.0]) if one.number >= 60]
    assert [one.forecast.plan_s for one in found] == [one.came_s for one in found]
    assert sum(one.came_s > 0 for one in found) > 50


@pytest.mark.parametrize("policy", ON_LOGS)
def test_plain_python_and_compiled_futures_are_the_same(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    result = played(workload(60), policy=policy)
    compiled = list(forecasts_of(result, futures=8))
    monkeypatch.setattr(PLAY_FUTURES, "_loaded", [None])
    plain = list(forecasts_of(result, futures=8))
    assert [shown(one.forecast) for one in plain] == [shown(one.forecast) for one in compiled]


@pytest.mark.parametrize("policy", ON_LOGS)
def test_what_happens_later_changes_no_forecast(policy: str) -> None:
    result = played(policy=policy)
    jobs = result.workload
    half = result.workload.requests.submit[75]
    before = [
        one
        for one in forecasts_of(result, futures=20, by_worth=policy == "response")
        if one.forecast.asked_s <= half
    ]
    # From then on everything is otherwise: who comes, for how long, and when those start that wait.
    starts, estimate = np.array(result.starts), np.array(jobs.requests.estimate)
    random = np.random.default_rng(5)
    late = starts > half
    starts[late] = np.maximum(np.array(jobs.requests.submit)[late], half) + random.integers(
        1, DAY, late.sum()
    )
    run = np.array(jobs.run)
    lasts = starts + run > half
    run[lasts] = np.minimum(estimate, np.maximum(half - starts, 0) + random.integers(1, DAY, len(run)))[lasts]
    other = replace(result, workload=replace(jobs, run=tuple(run.tolist())), starts=tuple(starts.tolist()))
    asked = {(one.number, one.forecast.asked_s): shown(one.forecast) for one in before}
    again = {
        (one.number, one.forecast.asked_s): shown(one.forecast)
        for one in forecasts_of(other, futures=20, by_worth=policy == "response")
        if one.forecast.asked_s <= half
    }
    common = asked.keys() & again.keys()
    assert len(common) > 80
    assert all(asked[key] == again[key] for key in common)


FOLLOWER = """
import json, sys
from aucsched.simulation.forecast.forecaster import Forecaster, QueuedRequest
cores, members = json.loads(sys.stdin.readline())
forecaster = Forecaster(cores, **members)
for line in sys.stdin:
    kind, now, job = json.loads(line)
    if kind == "submit":
        forecaster.submit(QueuedRequest(**job))
    elif kind == "ask":
        found = forecaster.forecast(now, [job])[0]
        print(json.dumps([*found.quantiles, found.plan_s]), flush=True)
    elif kind == "start":
        forecaster.start(job, now)
    elif kind == "hold":
        forecaster.hold(job)
    else:
        forecaster.end(job, now)
"""


def events(result: Simulation) -> Iterator[tuple[str, float, object]]:
    """What happens on a log, in order; every job is asked for on arrival."""
    requests = result.workload.requests
    rows: list[tuple[float, int, int, str, object]] = []
    for job, start in enumerate(result.starts):
        request = {
            "id": job,
            "submit_s": requests.submit[job],
            "cores": requests.size[job],
            "limit_s": requests.estimate[job],
            "user": requests.user[job],
        }
        rows.append((requests.submit[job], 1, job, "submit", request))
        rows.append((requests.submit[job], 2, job, "ask", job))
        rows.append((start, 3, job, "start", job))
        rows.append((start + result.workload.run[job], 0, job, "end", job))
    for now, _, _, kind, what in sorted(rows, key=lambda row: row[:3]):
        yield kind, now, what


def heard_by_a_process(
    cores: list[int], members: Mapping[str, object], told: Iterable[tuple[str, float, object]]
) -> list[tuple[float, ...]]:
    """What a process says that is told events one by one; an answer is read before more is said."""
    with subprocess.Popen(
        [sys.executable, "-c", FOLLOWER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps([cores, members]) + "\n")
        heard = []
        for kind, now, what in told:
            process.stdin.write(json.dumps([kind, now, what]) + "\n")
            if kind == "ask":
                process.stdin.flush()
                heard.append(tuple(json.loads(process.stdout.readline())))
        process.stdin.close()
    return heard


@pytest.mark.parametrize("policy", ON_LOGS)
def test_a_process_that_hears_of_events_one_by_one_says_the_same(policy: str) -> None:
    result = played(workload(80), policy)
    members = {"futures": 12, "policy": ON_LOGS[policy], "is_exact": policy == "easy"}
    heard = heard_by_a_process([16], members, events(result))
    asked = list(forecasts_of(result, futures=12, asked_at=[0.0], by_worth=policy == "response"))
    assert heard == [shown(one.forecast) for one in asked]
    # They are forecasts of waits, not of "now" alone.
    assert sum(one.came_s > 60 for one in asked) > 30


def crowded(late_runs: int = 1) -> ClusterWorkload:
    """Jobs that crowd 4 nodes; runs that begin late may take another time."""
    random = np.random.default_rng(3)
    nodes = [Node(name=f"n{place}", cores=4) for place in range(4)]
    arrivals = np.cumsum(random.integers(0, 40, 80)).tolist()
    jobs = []
    for number, arrival in enumerate(arrivals):
        run, cores = int(random.integers(5, 200)), int(random.integers(1, 17))
        job = Job(
            id=str(number),
            priority=1000 - number,
            request=Request(cores=cores),
            time_limit_s=400,
            user=f"u{number % 3}",
        )
        # Who comes in the second half starts, and ends, after it.
        run = run * late_runs if number >= len(arrivals) // 2 else run
        jobs.append(ArrivingJob(job=job, arrival_s=arrival, run_time_s=min(run, 400)))
    return ClusterWorkload(name="crowded", nodes=nodes, jobs=jobs)


def asked_on_nodes(result: Simulation, until: float = inf) -> dict[tuple[int, float], tuple[float, ...]]:
    """The forecasts on arrival of a run on nodes, asked up to a time."""
    assert isinstance(result, NodeSimulation)
    found = node_forecasts_of(result, futures=12, asked_at=[0.0], depth=100)
    return {
        (one.number, one.forecast.asked_s): shown(one.forecast)
        for one in found
        if one.forecast.asked_s <= until
    }


def test_on_nodes_what_happens_later_changes_no_forecast() -> None:
    base = crowded()
    half = base.jobs[40].arrival_s
    options = NodeOptions(policy="backfill-slurm")
    before, again = (asked_on_nodes(play(one, options), half) for one in (base, crowded(2)))
    assert len(before) > 35
    assert before == again


def test_on_nodes_a_process_that_hears_of_events_one_by_one_says_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[tuple[str, float, object]] = []

    class Told(Forecaster):
        """Notes what it is told."""

        def submit(self, job: QueuedRequest) -> None:
            told.append(("submit", job.submit_s, asdict(job)))
            super().submit(job)

        def start(self, job: Hashable, now: float) -> None:
            told.append(("start", now, job))
            super().start(job, now)

        def hold(self, held: Iterable[Sequence[int]]) -> None:
            cores = [*held]
            told.append(("hold", told[-1][1], cores))
            super().hold(cores)

        def end(self, job: Hashable, now: float) -> None:
            told.append(("end", now, job))
            super().end(job, now)

        def forecast(
            self, now: float, ids: Sequence[Hashable], *, is_decided: bool = False
        ) -> list[StartForecast]:
            told.extend(("ask", now, job) for job in ids)
            return super().forecast(now, ids, is_decided=is_decided)

    monkeypatch.setattr("aucsched.simulation.nodes.node_forecasts.Forecaster", Told)
    asked = asked_on_nodes(play(crowded(), NodeOptions(policy="backfill-slurm")))
    members = {"futures": 12, "policy": EASY, "is_exact": False, "depth": 100}
    assert heard_by_a_process([16], members, told) == list(asked.values())
    times = [now for _, now, _ in told]
    assert times == sorted(times)


def test_futures_withdraw_promises_under_overload() -> None:
    # 150 jobs wait: the shortest that fit start, whoever came before.
    found = {}
    for policy in (RESPONSE, WITHDRAWING):
        forecaster = Forecaster([4], futures=2, policy=policy, is_exact=False)
        forecaster.submit(QueuedRequest(id="r", submit_s=0, cores=4, limit_s=100))
        forecaster.start("r", 0)
        for job in range(150):
            forecaster.submit(QueuedRequest(id=job, submit_s=1, cores=4, limit_s=100 + 50 * (job % 2)))
        found[policy] = [one.plan_s for one in forecaster.forecast(2, range(150))]
    assert found[WITHDRAWING] != found[RESPONSE]
    assert max(found[WITHDRAWING][0::2]) < max(found[WITHDRAWING][1::2])


def followed(**members: object) -> Forecaster:
    """A machine of 4 cores on which a job of all of them runs since 0."""
    forecaster = Forecaster([4], futures=20, **members)  # type: ignore[arg-type]
    forecaster.submit(QueuedRequest(id="r", submit_s=0, cores=4, limit_s=3600, user="ann"))
    forecaster.start("r", 0)
    return forecaster


def test_without_any_history_intervals_are_wide() -> None:
    forecaster = followed()
    forecaster.submit(QueuedRequest(id="w", submit_s=5, cores=1, limit_s=60, user="bob"))
    [found] = forecaster.forecast(5, ["w"])
    assert found.plan_s == 3595
    assert found.p90_s > 10 * found.p10_s


def test_a_job_that_can_never_start_says_why() -> None:
    forecaster = followed()
    forecaster.submit(QueuedRequest(id="w", submit_s=5, cores=9, limit_s=60))
    forecaster.submit(QueuedRequest(id="x", submit_s=6, cores=1, limit_s=60))
    wide, narrow = forecaster.forecast(6, ["w", "x"])
    assert wide.never == "it asks for 9 cores, and the nodes that it can use have 4"
    assert wide.probability_by(inf) == 0
    assert not wide.quantiles
    assert not narrow.never


@pytest.mark.parametrize("limit", [0, None, 1e-9])
def test_odd_limits_are_no_error(limit: float | None) -> None:
    forecaster = followed()
    forecaster.submit(QueuedRequest(id="w", submit_s=5, cores=1, limit_s=limit))
    [found] = forecaster.forecast(5, ["w"])
    assert isfinite(found.p90_s)


def test_times_that_run_backwards_are_no_error() -> None:
    forecaster = followed()
    for job in range(80):
        forecaster.submit(QueuedRequest(id=job, submit_s=1000 - job, cores=1, limit_s=60, user=1))
    forecaster.end("r", -5)
    for job in range(4):
        forecaster.start(job, -50)
    found = forecaster.forecast(10, [20, 30])
    assert all(isfinite(one.p90_s) for one in found)


def test_hundreds_of_jobs_before_leave_run_times_and_no_cores_in_use() -> None:
    forecaster = Forecaster([4], futures=50)
    for number in range(600):
        forecaster.submit(QueuedRequest(id=number, submit_s=1000 * number, cores=4, limit_s=1000))
        forecaster.start(number, 1000 * number)
        forecaster.end(number, 1000 * number + 500)
    for name in ("runs", "waits"):
        forecaster.submit(QueuedRequest(id=name, submit_s=600_000, cores=4, limit_s=1000))
    forecaster.start("runs", 600_000)
    [found] = forecaster.forecast(600_000, ["waits"])
    assert found.plan_s == 1000
    assert 400 < found.p50_s < 600


def test_who_waits_for_its_time_starts_no_earlier() -> None:
    forecaster = Forecaster([4], futures=20)
    forecaster.submit(QueuedRequest(id="w", submit_s=500, cores=1, limit_s=60))
    [found] = forecaster.forecast(5, ["w"])
    assert found.plan_s == 495
    assert found.p10_s > 300


def test_pools_keep_jobs_off_nodes_that_they_cannot_use() -> None:
    forecaster = Forecaster([4, 4], futures=20)
    forecaster.submit(QueuedRequest(id="r", submit_s=0, cores=4, limit_s=3600, pools=0b01))
    forecaster.start("r", 0)
    forecaster.submit(QueuedRequest(id="a", submit_s=1, cores=2, limit_s=60, pools=0b01))
    forecaster.submit(QueuedRequest(id="b", submit_s=2, cores=2, limit_s=60, pools=0b10))
    waits, starts = forecaster.forecast(2, ["a", "b"])
    assert waits.plan_s == 3598
    assert starts.p90_s == 0


def test_probabilities_follow_the_quantiles() -> None:
    forecaster = followed()
    forecaster.submit(QueuedRequest(id="w", submit_s=5, cores=1, limit_s=60))
    [found] = forecaster.forecast(5, ["w"])
    assert found.probability_by(found.p50_s) == pytest.approx(0.5)
    assert found.probability_by(found.p90_s) == pytest.approx(0.9)
    assert found.probability_by(-1) == 0
    assert found.probability_by(1e9) == 1


def test_the_file_has_its_columns_and_an_outcome_a_row() -> None:
    result = played(workload(40))
    text = forecasts_csv(result, forecasts_of(result, futures=5))
    head, *rows = text.splitlines()
    assert head == "job,asked_s,cores,p10_s,p50_s,p90_s,plan_s,start_s"
    assert all(len(row.split(",")) == 8 for row in rows)
    never = StartForecast(id=0, asked_s=1.0, cores=3, never="it asks for more")
    assert forecasts_csv(result, [AnsweredForecast(0, never, 5.0)]).splitlines()[1] == "0,1,3,,,,,5"


@pytest.mark.parametrize("by_worth", [True, False])
def test_worth_lets_short_jobs_pass(by_worth: bool) -> None:
    forecaster = followed(policy=RESPONSE if by_worth else EASY)
    # The longest wait says from when on a job is overdue: it was an hour.
    forecaster.end("r", 3600)
    forecaster.submit(QueuedRequest(id="old", submit_s=3600, cores=4, limit_s=1000, user="ann"))
    forecaster.start("old", 7200)
    forecaster.submit(QueuedRequest(id="long", submit_s=7200, cores=4, limit_s=36_000, user="bob"))
    forecaster.submit(QueuedRequest(id="short", submit_s=7201, cores=4, limit_s=60, user="eve"))
    long, short = forecaster.forecast(7202, ["long", "short"])
    assert (short.plan_s < long.plan_s) is by_worth


def test_a_run_on_nodes_is_forecast_too() -> None:
    workload = load_workload(EXAMPLES / "overtaken.json")
    result = play(workload, NodeOptions(policy="easy"))
    assert isinstance(result, NodeSimulation)
    found = list(node_forecasts_of(result, futures=20))
    assert len(found) >= len(workload.jobs)
    assert all(one.forecast.quantiles and one.came_s >= 0 for one in found)


def test_nodes_that_the_same_jobs_can_use_are_one_pool() -> None:
    nodes = [{"name": f"n{place}", "cores": 8, "gres": {"gpu": 2} if place < 2 else {}} for place in range(5)]
    shown = snapshot(nodes, [{"cores": 4}, {"nodes": 2, "cores_per_node": 2, "gres_per_node": {"gpu": 2}}])
    columns = columns_of(shown)
    pools = NodePools(shown.nodes, columns, DemandReader(shown, columns).partition_masks)
    assert pools.cores == [16, 24]
    reader = DemandReader(shown, pools.columns)
    demands = [reader.read(job, 0) for job in shown.jobs]
    assert all(isinstance(one, Demand) for one in demands)
    # Two GPUs of two take all cores of a node.
    assert [pools.requested(one) for one in demands if isinstance(one, Demand)] == [(4, 0b11), (16, 0b01)]
    uses = {"n0": Resources(cores=2, gres={"gpu": 1}), "n3": Resources(cores=3)}
    assert [*pools.held_at_once([allocation_of_resources(uses, pools.columns)])] == [[4, 3]]


def test_an_exclusive_job_needs_memory_for_all_cores_of_a_node() -> None:
    nodes = [{"name": f"n{place}", "cores": 8, "memory_mib": (9_000, 16_000)[place]} for place in range(2)]
    shown = snapshot(
        nodes, [{"cores_per_node": 2, "exclusive": True, "memory_mib_per_core": 2000, "nodes": 1}]
    )
    columns = columns_of(shown)
    reader = DemandReader(shown, columns)
    pools = NodePools(shown.nodes, columns, reader.partition_masks)
    demand = reader.read(shown.jobs[0], 0)
    assert isinstance(demand, Demand)
    assert pools.requested(demand) == (8, 0b10)


def test_jobs_of_a_node_count_for_no_core_twice() -> None:
    nodes = [
        {"name": "n0", "cores": 12, "gres": {"gpu": 3}, "free_cores": 0, "free_gres": {"gpu": 0}},
        {"name": "n1", "cores": 12, "gres": {"gpu": 3}},
    ]
    running = [
        {"id": "gpus", "nodes": {"n0": {"cores": 1, "gres": {"gpu": 3}}}, "end_time": 1600},
        {"id": "cores", "nodes": {"n0": {"cores": 11}}, "end_time": 1600},
    ]
    shown = snapshot(nodes, [{"cores": 12, "time_limit_s": 60}], running=running, time=1000)
    columns = columns_of(shown)
    pools = NodePools(shown.nodes, columns, DemandReader(shown, columns).partition_masks)
    held = [*pools.held_at_once([allocation_of_resources(job.nodes, columns) for job in shown.running])]
    assert sum(map(sum, held)) == 12
    # n1 is free: the job starts now, in every future.
    (found,) = SnapshotForecaster(shown, futures=4).forecasts()
    assert found.plan_s == 0
    assert set(found.quantiles) == {0.0}


def test_jobs_of_a_node_of_a_run_count_for_no_core_twice() -> None:
    nodes = [Node(name=f"n{place}", cores=12, gres={"gpu": 3}) for place in range(2)]
    asked = (
        (Request(nodes=1, cores_per_node=1, gres_per_node={"gpu": 3}), 100),
        (Request(nodes=1, cores_per_node=11), 800),
        (Request(nodes=1, cores_per_node=12), 60),
        (Request(nodes=1, cores_per_node=12), 60),
    )
    jobs = [
        ArrivingJob(
            job=Job(id=str(number), priority=9 - number, request=request, time_limit_s=1000),
            arrival_s=[0, 0, 10, 200][number],
            run_time_s=run,
        )
        for number, (request, run) in enumerate(asked)
    ]
    result = play(ClusterWorkload(name="shared", nodes=nodes, jobs=jobs), NodeOptions(policy="easy"))
    assert isinstance(result, NodeSimulation)
    assert list(result.starts) == [0, 0, 10, 200]
    # A node is free: the job starts now, beside both jobs on the other node and after one of them ended.
    *_, beside, after = node_forecasts_of(result, futures=4, asked_at=[0.0])
    assert [beside.forecast.plan_s, after.forecast.plan_s] == [0, 0]
    assert set(beside.forecast.quantiles) == set(after.forecast.quantiles) == {0.0}
