"""Maps that the auction's engine awards: within the offer, of the most worth, with what jobs ask for."""

from __future__ import annotations

from itertools import combinations, pairwise, product
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.negotiation import malleable, moldable, rigid

from aucsched.auction.decide import decide
from aucsched.cluster.errors import OptionError
from aucsched.cluster.nodes import Switch
from aucsched.negotiation.batch import auction_map as module
from aucsched.negotiation.batch.auction_map import auction_map
from aucsched.negotiation.batch.mapping import (
    BatchSettings,
    Dispatched,
    Engine,
    MapRequest,
    Place,
    Slot,
)
from aucsched.negotiation.job_records import JobReport, JobState, MapEntry, NodeCount
from aucsched.simulation.workloads.named_clusters import node_names

EXACT = Engine(strategy="exact", work_limit=10_000)


def dispatched(names: tuple[str, ...], end_s: float, partition: str = "") -> Dispatched:
    """Return a running job."""
    report = JobReport(
        job="r",
        state=JobState.RUNNING,
        node_count=len(names),
        nodes=names,
        start_s=0,
        run_time_s=0,
        end_s=end_s,
    )
    return Dispatched(peer="", entry=rigid("r", len(names), end_s, partition=partition), report=report)


def request(  # noqa: PLR0913 - what a test may set
    jobs: list[MapEntry],
    place: Place,
    idle: int,
    *,
    running: dict[str, Dispatched] | None = None,
    engine: Engine | None = None,
    switches: tuple[Switch, ...] | None = None,
    patience_s: float = 1e9,
    depth: int = 100,
    promised: dict[str, int] | None = None,
) -> MapRequest:
    """Return a request with the jobs' whole ranges open."""
    queue = [(job, NodeCount(min=job.min_nodes, max=job.max_nodes)) for job in jobs]
    return MapRequest(
        queue=queue, place=place, idle=idle, promised=promised or {}, later={}, now_s=0.0, attempt=5,
        running=running or {},
        settings=BatchSettings(
            depth=depth, switches=switches, patience_s=patience_s, engine=engine or Engine()
        ),
    )  # fmt: skip


def mapped(slots: list[Slot]) -> dict[str, int]:
    """Return how many nodes each mapped job gets."""
    return {slot.entry.job: slot.count for slot in slots if slot.nodes}


def numbers(nodes: int) -> list[int]:
    """Return a node set's numbers."""
    return [place for place in range(nodes.bit_length()) if nodes >> place & 1]


def keeps(entry: MapEntry, nodes: int, place: Place, leaves: tuple[int, ...] | None) -> bool:
    """Say whether nodes are what a job asks for."""
    partition = place.partitions[entry.partition]
    sets = [place.mask(names) for names in entry.eligible] or [partition]
    is_run = all(second == first + 1 for first, second in pairwise(numbers(nodes)))
    below = 1 if leaves is None else sum(1 for leaf in leaves if leaf & nodes)
    return (
        not nodes & ~partition
        and any(not nodes & ~mine for mine in sets)
        and (is_run or not entry.contiguous)
        and (entry.max_switches is None or below <= entry.max_switches)
    )


def test_neighbours_are_taken_where_others_cost_as_much() -> None:
    jobs = [rigid("a", 2, 10, priority=9), rigid("b", 3, 10, priority=8)]
    slots = auction_map(request(jobs, Place.of({"": node_names(7)}), 0b111_0110))
    assert {slot.entry.job: slot.nodes for slot in slots} == {"a": 0b000_0110, "b": 0b111_0000}


def _tiny(data: st.DataObject, nodes: int, *, choosy: bool) -> list[MapEntry]:
    names = node_names(nodes)
    jobs = []
    for number in range(data.draw(st.integers(1, 4))):
        least = data.draw(st.integers(1, nodes))
        most = data.draw(st.integers(least, nodes))
        make = data.draw(st.sampled_from([malleable, moldable]))
        job = make(
            f"j{number}", least, most, data.draw(st.integers(1, 99)), priority=data.draw(st.integers(0, 9))
        )
        if choosy:
            sets = data.draw(
                st.lists(st.sets(st.sampled_from(names), min_size=1).map(sorted).map(tuple), max_size=2)
            )
            job = msgspec.structs.replace(job, eligible=tuple(sets), contiguous=data.draw(st.booleans()))
        jobs.append(job)
    return sorted(jobs, key=lambda job: -job.priority)


def _most(jobs: list[MapEntry], idle: int, place: Place, worth: dict[str, int]) -> int:
    """Return the worth of the best Map, all node sets tried."""
    free = numbers(idle)
    options = []
    for job in jobs:
        sets = [
            sum(1 << node for node in chosen)
            for count in range(job.min_nodes, job.max_nodes + 1)
            for chosen in combinations(free, count)
        ]
        options.append([0, *(nodes for nodes in sets if keeps(job, nodes, place, None))])
    best = 0
    for choice in product(*options):
        taken = 0
        for nodes in choice:
            if taken & nodes:
                break
            taken |= nodes
        else:
            best = max(
                best, sum(worth[job.job] * nodes.bit_count() for job, nodes in zip(jobs, choice, strict=True))
            )
    return best


@pytest.mark.parametrize("is_critical", [False, True])
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_map_is_worth_the_most_there_is(is_critical: bool, data: st.DataObject) -> None:
    """Against every choice of node sets; all jobs are critical where nothing else is known to run."""
    nodes = 4
    place = Place.of({"": (*node_names(nodes), "busy")})
    jobs = _tiny(data, nodes, choosy=False)
    idle = data.draw(st.integers(1, (1 << nodes) - 1))
    running = {"r": dispatched(("busy",), 1e9)} if not is_critical else {}
    slots = auction_map(request(jobs, place, idle, running=running, engine=EXACT))
    # With work for a long time ahead no job is critical: priority × nodes is all.
    work = sum(job.min_nodes * job.time_at_min_s for job in jobs) / 5
    shortest = {
        job.job: job.time_at_min_s * (job.min_nodes / job.max_nodes if job.type == "malleable" else 1)
        for job in jobs
    }
    first = (max(job.priority for job in jobs) + 1) * 6
    worth = {
        job.job: job.priority + 1 + first * (is_critical and shortest[job.job] * 2.0 >= work - 1e-9)
        for job in jobs
    }
    got = sum(worth[slot.entry.job] * slot.count for slot in slots)
    assert got == _most(jobs, idle, place, worth)


@pytest.mark.parametrize("engine", [Engine(), EXACT, Engine(strategy="anytime", work_limit=0)])
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_map_keeps_to_the_offer_and_to_what_jobs_ask_for(engine: Engine, data: st.DataObject) -> None:
    nodes = 8
    names = node_names(nodes)
    cut = data.draw(st.sampled_from([0, 3, 5]))
    place = Place.of({"": names} if not cut else {"": names[:cut], "big": names[cut:]})
    leaves = (0b111, 0b111000, 0b11000000)
    switches = (
        *(Switch(name=f"s{n}", nodes=place.names_of(leaf)) for n, leaf in enumerate(leaves)),
        Switch(name="top", switches=("s0", "s1", "s2")),
    )
    jobs = []
    for job in _tiny(data, nodes, choosy=True):
        partition = data.draw(st.sampled_from(sorted(place.partitions)))
        limit = data.draw(st.sampled_from([None, None, 1, 2]))
        jobs.append(msgspec.structs.replace(job, partition=partition, max_switches=limit))
    idle = data.draw(st.integers(0, (1 << nodes) - 1))
    promised = {jobs[0].job: ((1 << nodes) - 1) & ~idle} if data.draw(st.booleans()) and idle != 255 else {}
    depth = data.draw(st.integers(1, 3))
    asked = request(
        jobs, place, idle, engine=engine, switches=switches, depth=depth, promised=promised,
        patience_s=data.draw(st.sampled_from([0.0, 1e9])),
    )  # fmt: skip
    slots = auction_map(asked)
    seen = 0
    for slot in slots:
        assert not seen & slot.nodes
        seen |= slot.nodes
        if slot.nodes:
            assert slot.range.min <= slot.count <= slot.range.max
            assert keeps(slot.entry, slot.nodes, place, leaves)
    assert not seen & ~(idle | sum(promised.values()))
    ids = [slot.entry.job for slot in slots]
    assert len(ids) == len(set(ids))
    assert sum(not slot.nodes for slot in slots) == min(depth, len(jobs) - len(mapped(slots)))


def test_a_promise_of_another_partition_s_nodes_is_not_kept() -> None:
    place = Place.of({"a": node_names(8)[:5], "b": node_names(8)[5:]})
    job = msgspec.structs.replace(moldable("j", 1, 5, 9, priority=1), partition="a")
    (slot,) = auction_map(request([job], place, 0b1011, promised={"j": 0b1111_0100}))
    assert slot.nodes == 0b1_1111


def test_all_partitions_are_one_award() -> None:
    place = Place.of({"a": ("a1", "a2"), "b": ("b1", "b2", "b3")})
    jobs = [
        rigid("x", 2, 10, priority=9, partition="b"),
        rigid("y", 2, 10, priority=8, partition="a"),
        rigid("z", 1, 10, priority=7, partition="b"),
    ]
    slots = auction_map(request(jobs, place, 0b11111))
    assert mapped(slots) == {"x": 2, "y": 2, "z": 1}
    for slot in slots:
        assert all(name[0] == slot.entry.partition for name in place.names_of(slot.nodes))


@pytest.mark.parametrize("by_partition", [True, False])
def test_who_asks_for_busy_nodes_does_not_stand_for_others_of_its_size(by_partition: bool) -> None:
    parts = {"x": ("x1", "x2"), "y": ("y1", "y2")}
    place = Place.of(parts if by_partition else {"": (*parts["x"], *parts["y"])})
    asks = {"x": {"partition": "x"}, "y": {"partition": "y"}}
    if not by_partition:
        asks = {name: {"eligible": (names,)} for name, names in parts.items()}  # type: ignore[dict-item]
    jobs = [
        msgspec.structs.replace(rigid(name, 2, 100, priority=priority), **asks[name])
        for name, priority in (("x", 5), ("y", 1))
    ]
    running = {"r": dispatched(("x1", "x2"), 100.0, "x" if by_partition else "")}
    assert mapped(auction_map(request(jobs, place, 0b1100, running=running))) == {"y": 2}


def test_a_job_that_is_through_in_time_on_more_nodes_passes_a_reservation() -> None:
    """Wide gets all six nodes at 100: on three others are through at 80, on two at 120."""
    place = Place.of({"": node_names(6)})
    running = {"r": dispatched(("n1", "n2", "n3"), 100.0), "s": dispatched(("n1",), 100.0)}
    ahead = [rigid(f"w{n}", 6, 10_000, priority=1) for n in range(3)]
    wide = rigid("wide", 6, 50, priority=90)
    for least, most, won in ((2, 3, {"m": 3}), (2, 2, {}), (3, 3, {"m": 3})):
        job = moldable("m", least, most, 240.0 / least, priority=5)
        asked = request([wide, job, *ahead], place, 0b111000, running=running, patience_s=0.0, engine=EXACT)
        assert mapped(auction_map(asked)) == won
        asked = request([wide, job, *ahead], place, 0b111000, running=running, engine=EXACT)
        assert mapped(auction_map(asked)) == {"m": most}


def test_reservations_leave_idle_nodes_to_others_where_held_ones_will_do() -> None:
    place = Place.of({"": node_names(6)})
    running = {"r": dispatched(("n4", "n5", "n6"), 100.0)}
    ahead = [rigid(f"w{n}", 6, 10_000, priority=1) for n in range(3)]
    jobs = [rigid("wide", 4, 50, priority=90), rigid("long", 2, 500, priority=5), *ahead]
    # Three held nodes and one idle are enough for wide: two idle ones are long's.
    assert mapped(auction_map(request(jobs, place, 0b000111, running=running, patience_s=0.0))) == {"long": 2}


def test_priorities_of_any_size_are_summed_exactly() -> None:
    place = Place.of({"": node_names(64)})
    large = 2**62
    jobs = [rigid(f"j{n}", 40, 10, priority=large - n) for n in range(4)]
    running = {"r": dispatched(("n01",), 1e12)}
    assert mapped(auction_map(request(jobs, place, (1 << 64) - 1, running=running, engine=EXACT))) == {
        "j0": 40
    }
    jobs = [rigid(f"j{n}", 40, 10, priority=large + n) for n in reversed(range(4))]
    assert mapped(auction_map(request(jobs, place, (1 << 64) - 1, running=running))) == {"j3": 40}


def test_each_map_is_one_call_of_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nagendra: 8.1: an integer program maps."""
    calls = []

    def counted(*arguments: Any, **options: Any) -> Any:
        calls.append(arguments)
        return decide(*arguments, **options)

    monkeypatch.setattr(module, "decide", counted)
    place = Place.of({"a": ("a1", "a2"), "b": ("b1",)})
    jobs = [rigid("x", 1, 10, partition="a"), rigid("y", 1, 10, partition="b")]
    for idle in (0b111, 0b100, 0):
        auction_map(request(jobs, place, idle))
    assert len(calls) == 3


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        (Engine(strategy="greedy", work_limit=5), "work_limit: strategy greedy reaches no limit"),
        (Engine(strategy="greedy", time_limit_s=5), "time_limit_s: strategy greedy reaches no limit"),
        (
            Engine(strategy="exact", work_limit=5, time_limit_s=1),
            "work_limit: it counts instead of time_limit",
        ),
        (Engine(strategy="some"), "strategy: 'some' is not one of"),  # type: ignore[arg-type]
        (Engine(strategy="exact", time_limit_s=0), "time_limit_s: 0 is not above 0"),
    ],
)
def test_limits_that_would_be_ignored_are_refused(engine: Engine, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        BatchSettings(engine=engine)
