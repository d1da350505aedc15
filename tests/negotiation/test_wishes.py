"""Jobs that may not use every node: wherever they stand while they run, they have what they asked for."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aucsched.cluster.errors import InputError
from aucsched.cluster.jobs import Job, JobKind, Request, Span
from aucsched.cluster.nodes import Node, Resources, Switch
from aucsched.cluster.workload import ArrivingJob, ClusterWorkload
from aucsched.negotiation.batch.mapping import BatchSettings
from aucsched.negotiation.job_records import MapEntry, NodeCount
from aucsched.negotiation.runtime.placement_constraints import more_nodes, start_nodes
from aucsched.negotiation.runtime.runtime_machine import MachineState, empty_machine
from aucsched.negotiation.runtime.settings import RuntimeSettings
from aucsched.simulation.negotiated.negotiated_report import Negotiated
from aucsched.simulation.negotiated.negotiated_run import negotiate
from aucsched.simulation.negotiated.plays import play_of

NODES = 8


def node(
    number: int, kind: str, *, gpus: int = 0, memory: int = 1000, features: tuple[str, ...] = ()
) -> Node:
    """Return an idle node."""
    total = Resources(cores=4, memory_mib=memory, gres={kind: gpus} if gpus else {})
    return Node(name=f"n{number}", total=total, free=total, features=frozenset(features))


CLUSTER = (
    node(1, "gpu:a", gpus=1),
    node(2, "gpu:a", gpus=1, features=("fast",)),
    node(3, "gpu:a", gpus=2, memory=4000),
    node(4, "", memory=4000, features=("fast",)),
    node(5, "", features=("fast",)),
    node(6, "gpu:b", gpus=1, memory=4000, features=("fast",)),
    node(7, "gpu:b", gpus=1, memory=4000),
    node(8, "gpu:b", gpus=2),
)
SWITCHES = (
    Switch(name="s1", nodes=("n1", "n2", "n3")),
    Switch(name="s2", nodes=("n4", "n5")),
    Switch(name="s3", nodes=("n6", "n7", "n8")),
    Switch(name="top", switches=("s1", "s2", "s3")),
)


def fits(request: Request, names: set[str]) -> bool:
    """Say whether nodes give a job what it asks for on each, side by side, and below few switches."""
    nodes = [one for one in CLUSTER if one.name in names]
    for name, span in request.gres_per_node.items():
        kinds = [name] if ":" in name else [f"{name}:a", f"{name}:b"]
        if not any(all(one.total.gres.get(kind, 0) >= span.minimum for one in nodes) for kind in kinds):
            return False
    for name, span in request.gres_total.items():
        if sum(one.total.gres.get(name, 0) for one in nodes) < span.minimum:
            return False
    places = sorted(CLUSTER.index(one) for one in nodes)
    is_run = all(second == first + 1 for first, second in pairwise(places))
    leaves = sum(any(name in names for name in switch.nodes) for switch in SWITCHES[:3])
    return (
        all(request.features <= one.features for one in nodes)
        and all((one.total.memory_mib or 0) >= (request.memory_mib_per_node or 0) for one in nodes)
        and not request.excluded_nodes & names
        and (is_run or not request.contiguous)
        and (request.max_switches is None or leaves <= request.max_switches)
    )


WISHES: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "features": st.just(frozenset({"fast"})),
        "gres_per_node": st.sampled_from(
            [{"gpu": Span.exactly(1)}, {"gpu:a": Span.exactly(1)}, {"gpu": Span(minimum=1, maximum=2)}]
        ),
        "memory_mib_per_node": st.sampled_from([500, 2000]),
        "contiguous": st.booleans(),
        "max_switches": st.sampled_from([1, 2]),
        "excluded_nodes": st.sampled_from([frozenset({"n3"}), frozenset({"n5", "n7"})]),
    },
)


def workload(jobs: list[ArrivingJob]) -> ClusterWorkload:
    """Return a workload on the cluster."""
    return ClusterWorkload(name="wishes", nodes=CLUSTER, switches=SWITCHES, jobs=tuple(jobs))


def _job(data: st.DataObject, number: int) -> ArrivingJob:
    least = data.draw(st.integers(1, 3))
    kind = data.draw(st.sampled_from([JobKind.RIGID, JobKind.MOLDABLE, JobKind.MALLEABLE]))
    rigid = kind is JobKind.RIGID
    job = Job(
        id=f"j{number}",
        priority=data.draw(st.integers(1, 5)),
        request=Request(nodes=Span.exactly(least), cores_per_node=2, **data.draw(WISHES)),
        kind=kind,
        min_nodes=None if rigid else data.draw(st.integers(1, least)),
        max_nodes=None if rigid else data.draw(st.integers(least, NODES)),
        qos=data.draw(st.sampled_from(["", "", "", "urgent"])),
    )
    run = float(data.draw(st.integers(1, 200)))
    return ArrivingJob(job=job, arrival_s=float(data.draw(st.integers(0, 100))), run_time_s=run)


def check(result: Negotiated, jobs: dict[str, Job]) -> None:
    """Assert that every job ran, and that it had what it asked for on whatever nodes it held at any time."""
    assert set(result.done) == set(jobs)
    for held in result.held:
        names = {name for place, name in enumerate(result.play.nodes) if held.nodes >> place & 1}
        assert fits(jobs[held.job].request, names), (held, jobs[held.job])


@pytest.mark.parametrize("urgency", ["suspend", "kill"])
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_jobs_ask_for_holds_at_their_start_and_while_they_grow_and_shrink(
    urgency: Any, data: st.DataObject
) -> None:
    jobs: list[ArrivingJob] = []
    for number in range(data.draw(st.integers(1, 9))):
        job = _job(data, number)
        try:
            play_of(workload([job]), None)
        except InputError:
            continue
        jobs.append(job)
    jobs.sort(key=lambda one: one.arrival_s)
    if not jobs:
        return
    batch = BatchSettings(mapper="auction", ends_when_done=True, switches=SWITCHES, patience_s=100.0)
    play = play_of(workload(jobs), None)
    assert play.switches == SWITCHES
    result = negotiate(play, batch, RuntimeSettings(urgency=urgency))
    check(result, {one.job.id: one.job for one in jobs})


def test_gres_over_all_nodes_are_held_by_whichever_nodes_there_are() -> None:
    request = Request(
        nodes=Span(minimum=1, maximum=3), cores_per_node=1, gres_total={"gpu:b": Span.exactly(2)}
    )
    jobs = [ArrivingJob(job=Job(id="a", priority=1, request=request), arrival_s=0.0, run_time_s=10.0)]
    (arrival,) = play_of(workload(jobs), None).arrivals
    assert (arrival.job.min_nodes, arrival.job.max_nodes) == (2, 3)
    assert arrival.job.eligible == (("n6", "n7", "n8"),)


def test_gres_over_all_nodes_leave_the_run_time_what_it_is_on_the_nodes_asked_for() -> None:
    request = Request(nodes=Span.exactly(1), cores_per_node=1, gres_total={"gpu:b": Span.exactly(2)})
    job = Job(id="a", priority=1, request=request, kind=JobKind.MALLEABLE, min_nodes=1, max_nodes=3)
    (arrival,) = play_of(workload([ArrivingJob(job=job, arrival_s=0.0, run_time_s=10.0)]), None).arrivals
    assert (arrival.job.min_nodes, arrival.job.max_nodes, arrival.job.time_at_min_s) == (2, 3, 5.0)


def test_nodes_of_other_partitions_may_be_excluded() -> None:
    nodes = tuple(replace(one, partitions=("p" if one.name < "n5" else "q",)) for one in CLUSTER)
    request = Request(nodes=Span.exactly(1), cores_per_node=1, excluded_nodes=frozenset({"n1", "n8"}))
    job = Job(id="a", priority=1, request=request, partition="p")
    jobs = (ArrivingJob(job=job, arrival_s=0.0, run_time_s=10.0),)
    (arrival,) = play_of(ClusterWorkload(nodes=nodes, jobs=jobs), None).arrivals
    assert arrival.job.eligible == (("n2", "n3", "n4"),)


def test_a_rigid_job_of_cores_gets_the_nodes_that_hold_its_gres() -> None:
    request = Request(cores=4, gres_total={"gpu:b": Span.exactly(2)})
    jobs = [ArrivingJob(job=Job(id="a", priority=1, request=request), arrival_s=0.0, run_time_s=10.0)]
    (arrival,) = play_of(workload(jobs), None).arrivals
    assert (arrival.job.type, arrival.job.min_nodes, arrival.job.max_nodes) == (JobKind.RIGID, 2, 2)
    assert arrival.job.time_at_min_s == 10.0


def test_a_type_that_is_not_named_is_one_type_for_all_nodes() -> None:
    request = Request(nodes=Span.exactly(2), cores_per_node=1, gres_per_node={"gpu": Span.exactly(1)})
    job = Job(id="a", priority=1, request=request)
    arriving = ArrivingJob(job=job, arrival_s=0.0, run_time_s=10.0)
    (arrival,) = play_of(workload([arriving]), None).arrivals
    assert arrival.job.eligible == (("n1", "n2", "n3"), ("n6", "n7", "n8"))
    plain = replace(arriving, job=replace(job, request=replace(request, gres_per_node={})))
    assert play_of(workload([plain]), None).arrivals[0].job.eligible == ()


def test_what_no_idle_machine_holds_is_refused() -> None:
    request = Request(nodes=Span.exactly(4), cores_per_node=1, max_switches=1)
    job = ArrivingJob(job=Job(id="a", priority=1, request=request), arrival_s=0.0, run_time_s=10.0)
    with pytest.raises(InputError, match="no 4 nodes that it may use are below so few"):
        play_of(workload([job]), None)


# Where the runtime scheduler puts them.


def machine() -> MachineState:
    """Return ten nodes."""
    return empty_machine([f"n{number}" for number in range(10)])


def entry(**members: Any) -> MapEntry:
    """Return a malleable job."""
    return MapEntry(
        job="j",
        type=JobKind.MALLEABLE,
        node_cnt=0,
        node_count=NodeCount(min=1, max=9),
        min_nodes=1,
        max_nodes=9,
        priority=1,
        time_at_min_s=10.0,
        **members,
    )


def test_a_contiguous_job_starts_in_the_tightest_run_and_grows_by_neighbours() -> None:
    job = entry(contiguous=True)
    assert start_nodes(job, machine(), 0b11_0111_0111, 2) == 0b11_0000_0000
    assert start_nodes(job, machine(), 0b01_0111_0111, 3) == 0b111
    assert start_nodes(job, machine(), 0b01_0111_0111, 3, wanted=0b111_0000) == 0b111_0000
    assert start_nodes(job, machine(), 0b01_0111_0111, 4) == 0
    assert more_nodes(job, machine(), 0b1_1000, 0b10_0010_0111, 3) == 0b10_0110
    assert more_nodes(job, machine(), 0b1_1000, 0b10_0000_0011, 3) == 0


def test_a_job_stays_in_one_of_its_sets() -> None:
    job = entry(eligible=(("n0", "n1", "n2"), ("n4", "n5", "n6", "elsewhere")))
    assert start_nodes(job, machine(), 0b111_0110, 3) == 0b111_0000
    assert start_nodes(job, machine(), 0b111_1110, 2, wanted=0b10_0000) == 0b11_0000
    assert start_nodes(job, machine(), 0b11_1110, 3) == 0
    assert more_nodes(job, machine(), 0b10_0000, 0b1001_0111, 5) == 0b1_0000


def test_below_few_switches_a_job_starts_where_its_map_says_only() -> None:
    job = entry(max_switches=1)
    assert start_nodes(job, machine(), 0b1111, 2) == 0
    assert start_nodes(job, machine(), 0b1111, 2, wanted=0b110) == 0b110
    assert start_nodes(job, machine(), 0b1011, 2, wanted=0b110) == 0
    assert more_nodes(job, machine(), 0b110, 0b1001, 2) == 0
