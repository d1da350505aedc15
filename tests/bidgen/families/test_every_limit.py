"""Every limit of the registries means the same in every command: each is held against ``schedule``.

``by_schedule`` plays a workload by calling ``schedule`` on a snapshot of each moment, which keeps nothing
from one to the next. Simulations, sweeps and plans must start the jobs when it does. A further family or
amount fails here until it has a scenario, in which it binds. Then it fails wherever a command keeps what it
should forget, or forgets what it should keep.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
import pytest
from support.build import document

import aucsched
from aucsched import ClusterWorkload, InputError, Reason, Snapshot
from aucsched.auction.options import StepOptions
from aucsched.bidgen.families import registry
from aucsched.bidgen.families.claims import Claim, Family
from aucsched.cluster.limits import AMOUNTS, Lasting
from aucsched.cluster.resources.capacity import Resource
from aucsched.formats.native.cluster_file import parse_snapshot, parse_workload
from aucsched.simulation.negotiated.plays import play_of
from aucsched.simulation.nodes.node_policies import NODE_POLICIES
from aucsched.slurm.answers.snapshot_of_answers import SlurmSources, SlurmText
from aucsched.slurm.live.passes import Look, take_pass

T0 = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
NODES = [{"name": "n[1-12]", "cores": 4, "gres": {"gpu:a": 2}}]
#: The pass looks at the snapshot only.
NONE = SlurmText(name="", content=b"")
#: What each job asks for: equal jobs, so that whoever starts, as many start.
JOB: dict[str, Any] = {
    "nodes": 1, "cores": 2, "gres_per_node": {"gpu": 1}, "licenses": {"solver": 1},
    "time_limit_s": 60, "account": "physics",
}  # fmt: skip
#: Arrivals: five at once on the empty machine, more beside running jobs, one when all are gone.
ARRIVALS = (0, 0, 0, 0, 0, 20, 20, 60, 70, 400)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """What makes a family bind.

    Attributes:
        members: of the workload.
        spent: what a job has used up of a budget that has run for so many seconds, by amount.
    """

    members: Mapping[str, Any] = field(default_factory=dict)
    spent: Mapping[str, int] = field(default_factory=dict)


def limited(what: str, most: int, spent: int = 0, **others: Any) -> Scenario:
    entry = {"name": what, "jobs": {"account": "physics"}, "max": {what: most}, **others}
    return Scenario(members={"limits": [entry]}, spent={what: spent})


#: Amount -> two jobs' worth, or a budget that ends before the jobs do.
OF_AMOUNTS = {
    "cores": limited("cores", 5),
    "nodes": limited("nodes", 2),
    "jobs": limited("jobs", 2),
    "core_seconds": limited("core_seconds", 300, spent=2),
    "gres/gpu": limited("gres/gpu", 2),
    "gres/gpu:a": limited("gres/gpu:a", 2),
}
#: Families of what stands on no node.
OF_FAMILIES = {
    "licenses": Scenario(members={"licenses": {"solver": {"total": 2}}}),
    # A balance of one step makes them; a snapshot has none.
    "shares": Scenario(),
    **{f"limits: {name}": scenario for name, scenario in OF_AMOUNTS.items()},
    "limits: jobs of each": limited("jobs", 1, per="user"),
}


def test_every_family_and_every_amount_has_a_scenario() -> None:
    assert {name.split(":")[0] for name in OF_FAMILIES} == {family.name for family in registry.POOLED}
    assert {name for name in OF_AMOUNTS if not name.startswith("gres/")} == set(AMOUNTS)


def test_the_page_says_of_every_amount_how_long_it_counts() -> None:
    page = (Path(__file__).parents[3] / "docs" / "limits.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.MULTILINE))
    assert rows == {name: lasting.value for name, lasting in AMOUNTS.items()}


def jobs_of(run_s: int) -> list[dict[str, Any]]:
    return [
        {**JOB, "user": f"u{place % 2}", "arrival_s": arrival, "run_time_s": run_s}
        for place, arrival in enumerate(ARRIVALS)
    ]


def workload_of(scenario: Scenario, run_s: int) -> ClusterWorkload:
    members = {"licenses": {"solver": {"total": 100}}, **scenario.members}
    told = document(NODES, jobs_of(run_s), name="w", **members)
    del told["time"]
    return parse_workload(msgspec.json.encode(told | {"format": "aucsched-workload/1"}))


def snapshot_at(
    scenario: Scenario, now: float, waiting: list[dict[str, Any]], ran: Mapping[str, tuple[Any, float, float]]
) -> Snapshot:
    """Return the cluster at a moment; ``ran`` has each started job's nodes, start and end."""
    running = [
        {
            "id": name,
            "nodes": {node: {"cores": use.cores, "gres": dict(use.gres)} for node, use in held.items()},
            "end_time": (T0 + timedelta(seconds=start + 60)).isoformat(), "account": "physics",
            "user": f"u{(int(name[1:]) - 1) % 2}",
        }
        for name, (held, start, end) in ran.items()
        if start <= now < end
    ]  # fmt: skip
    members = {"licenses": {"solver": {"total": 100}}, **scenario.members}
    licence = members["licenses"]["solver"]
    members["licenses"] = {"solver": {**licence, "free": licence["total"] - len(running)}}
    seconds = sum(min(now, end) - start for _, start, end in ran.values())
    if "limits" in members:
        (limit,) = members["limits"]
        (what, most), *_ = limit["max"].items()
        used = int(2 * seconds) if scenario.spent.get(what) else 0
        members["limits"] = [{**limit, "max": {what: max(most - used, 0)}}]
    told = document(NODES, waiting, **members, running=running)
    told["time"] = (T0 + timedelta(seconds=now)).isoformat()
    return parse_snapshot(msgspec.json.encode(told))


def jobs_waiting(now: float, ran: Mapping[str, Any]) -> list[dict[str, Any]]:
    named = {f"J{place + 1}": arrival for place, arrival in enumerate(ARRIVALS)}
    return [
        {**JOB, "id": name, "user": f"u{place % 2}", "priority": 1000 - place}
        for place, (name, arrival) in enumerate(named.items())
        if arrival <= now and name not in ran
    ]


def by_schedule(scenario: Scenario, run_s: int) -> list[float]:
    """Return the starts of a workload's jobs that ``schedule`` makes, one call a moment."""
    ran: dict[str, tuple[Any, float, float]] = {}
    moments = {float(arrival) for arrival in ARRIVALS}
    while moments:
        now = min(moments)
        moments.remove(now)
        cluster = snapshot_at(scenario, now, jobs_waiting(now, ran), ran)
        for award in aucsched.schedule(cluster, work_limit=2).started:
            ran[award.job] = (award.nodes, now, now + run_s)
            moments.add(now + run_s)
    return sorted(start for _, start, _ in ran.values())


def simulated(scenario: Scenario, run_s: int, policy: str) -> list[float]:
    # Slurm's backfills have passes of their own, every 30 s: here they look when all others do.
    same: Any = {"backfill_interval_s": 0.0} if policy.startswith("backfill") else {}
    found = aucsched.simulate(workload_of(scenario, run_s), policy, **same)
    return sorted(start for start in found.columns["start_s"] if start is not None)


def swept(scenario: Scenario, run_s: int) -> list[float]:
    rows = aucsched.sweep(workload_of(scenario, run_s), policy=["easy", "aucsched3"]).rows
    assert {row["status"] for row in rows} == {"done"}
    return [float(str(row["wait_mean_s"])) for row in rows]


def planned(
    scenario: Scenario, now: float = 0.0, ran: Mapping[str, tuple[Any, float, float]] = MappingProxyType({})
) -> list[float]:
    cluster = snapshot_at(scenario, now, jobs_waiting(now, ran), ran)
    return sorted(one.start - T0.timestamp() for one in aucsched.plan(cluster).planned)


def passed(scenario: Scenario) -> tuple[int, int]:
    """Return how many jobs two passes of the live loop start, the first one's running in the second."""
    first = snapshot_at(scenario, 0.0, jobs_waiting(0.0, {}), {})
    ran = {award.job: (award.nodes, 0.0, 60.0) for award in _pass(first)}
    second = snapshot_at(scenario, 0.0, jobs_waiting(0.0, ran), ran)
    return len(ran), len(_pass(second))


def _pass(cluster: Snapshot) -> tuple[aucsched.Award, ...]:
    look = Look(snapshot=cluster, sources=SlurmSources(jobs=NONE, nodes=NONE), at=0.0, read_s=0.0)
    return take_pass(look, StepOptions(work_limit=2)).step.schedule.started


def check_simulation(scenario: Scenario) -> None:
    """Assert that every policy starts the jobs when ``schedule`` does; runs end before their time limit."""
    wanted = by_schedule(scenario, 40)
    for policy in NODE_POLICIES:
        assert simulated(scenario, 40, policy) == wanted, policy


@pytest.mark.parametrize("name", OF_FAMILIES)
def test_simulations_start_jobs_when_schedule_does(name: str) -> None:
    check_simulation(OF_FAMILIES[name])


@pytest.mark.parametrize("name", OF_FAMILIES)
def test_sweeps_wait_as_long_as_schedule_makes_them(name: str) -> None:
    scenario = OF_FAMILIES[name]
    starts = by_schedule(scenario, 60)
    waits = np.mean(np.array(starts) - sorted(ARRIVALS)[: len(starts)])
    assert swept(scenario, 60) == pytest.approx([waits, waits])


def check_plan(scenario: Scenario) -> None:
    """Assert that a plan of the first five jobs starts them when ``schedule`` does."""
    wanted = [start for start in by_schedule(scenario, 60) if start < 400][: len(planned(scenario))]
    assert planned(scenario) == wanted


@pytest.mark.parametrize("name", OF_FAMILIES)
def test_plans_start_jobs_when_schedule_does(name: str) -> None:
    check_plan(OF_FAMILIES[name])


@pytest.mark.parametrize("name", OF_FAMILIES)
def test_the_live_loop_s_next_pass_counts_what_runs(name: str) -> None:
    both = OF_FAMILIES[name] == Scenario()
    assert passed(OF_FAMILIES[name]) == ((5, 0) if both else (2, 0))


def test_negotiations_refuse_limits_that_they_would_ignore() -> None:
    told = workload_of(OF_FAMILIES["limits: jobs"], 60)
    with pytest.raises(InputError, match="limits: the negotiating schedulers keep no limits"):
        play_of(told, None)


class StartPool:
    """Two starts in a step: as somebody adds it who reads docs/extending.md."""

    family = "starts"
    reason = Reason.LIMIT
    holds_queue = False

    def __init__(self, counts: Lasting) -> None:
        self._counts = counts

    def held(self, job: object, use: object, now: float | None) -> Iterator[tuple[Resource, int]]:
        """Yield one of what runs: whether it counts is for ``lasting`` to say."""
        del job, use, now
        yield STARTS, 1

    def lasting(self, resource: Resource) -> Lasting:
        """Return how long a start counts."""
        del resource
        return self._counts

    def takes(self, job: object, use: object, seconds: float | None) -> Iterator[tuple[Resource, int]]:
        """Yield one start."""
        del job, use, seconds
        yield STARTS, 1

    def spent(self, job: object, use: object, seconds: float | None) -> tuple[()]:
        """Return nothing."""
        del job, use, seconds
        return ()

    def capacity(self, resource: Resource) -> int:
        """Return the most."""
        del resource
        return 2

    def alike(self, job: object) -> None:
        """Return that all jobs are alike."""
        del job

    def lacking(self, resource: Resource, asked: int, left: int) -> str:
        """Return it in words."""
        del resource
        return f"it is {asked} start, the step has {left} left"


STARTS = Resource("starts")


class Starts(Family):
    """Σ_i b_i ≤ 2 over the bids of a step."""

    name = title = "starts"

    def __init__(self, counts: Lasting) -> None:
        self._pool = StartPool(counts)

    def pool(self, snapshot: Snapshot) -> StartPool:
        """Return the pool."""
        del snapshot
        return self._pool

    def claims(self, table: Any, columns: Any) -> Iterator[Claim]:
        """Yield a start for each bid."""
        yield Claim(
            resource=STARTS,
            symbol="starts",
            by_bid=True,
            row=np.zeros(len(table), np.int64),
            amount=np.ones(len(table), np.int64),
            capacity=np.array([columns.pools.remaining(STARTS)]),
        )

    def words(self, resource: Resource) -> str:
        """Return it in words."""
        del resource
        return "starts of this step"


@pytest.fixture
def add(monkeypatch: pytest.MonkeyPatch) -> Callable[[Lasting], None]:
    def added(counts: Lasting) -> None:
        family = Starts(counts)
        for name in ("POOLED", "FAMILIES"):
            monkeypatch.setattr(registry, name, (*getattr(registry, name), family))
        monkeypatch.setitem(registry._BY_NAME, "starts", family)  # noqa: SLF001 - what registry.py lists

    return added


def test_a_limit_of_starts_in_a_step_is_right_everywhere(add: Callable[[Lasting], None]) -> None:
    add(Lasting.STEP)
    with pytest.raises(AssertionError):
        test_every_family_and_every_amount_has_a_scenario()
    # Two at 0, two when the sixth and seventh come, …: nothing of an earlier step counts.
    assert by_schedule(Scenario(), 60)[:6] == [0, 0, 20, 20, 60, 60]
    check_simulation(Scenario())
    # The end of another job is a step of a plan too, in which nobody else's start counts.
    held = {"n1": aucsched.Resources(cores=2, gres={"gpu:a": 1})}
    assert planned(Scenario(), 20.0, {"J9": (held, 0.0, 60.0)}) == [20, 20, 60, 60, 80, 80, 120]
    assert passed(Scenario()) == (2, 2)
    found = aucsched.simulate(workload_of(Scenario(), 60), "aucsched3", interval_s=5)
    assert found.columns["start_s"][:8] == [0, 0, 5, 5, 10, 20, 20, 60]


@pytest.mark.parametrize("counts", [Lasting.RUN, Lasting.BUDGET])
def test_a_limit_of_starts_that_runs_keep_is_found_out(
    add: Callable[[Lasting], None], counts: Lasting, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Right in schedule, whose snapshot holds nothing of earlier steps, wrong wherever a state is kept.
    monkeypatch.setattr(StartPool, "held", lambda *_: iter(()))
    add(counts)
    assert by_schedule(Scenario(), 60)[:6] == [0, 0, 20, 20, 60, 60]
    with pytest.raises(AssertionError):
        check_simulation(Scenario())
