"""What people type: plain numbers, pairs, numpy's integers and floats become the types that the rooms use."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aucsched
from aucsched import (
    ArrivingJob,
    ClusterWorkload,
    InputError,
    Job,
    JobSet,
    License,
    Limit,
    Node,
    Partition,
    Request,
    Reservation,
    Resources,
    RunningJob,
    Snapshot,
    Span,
    Switch,
)

N8 = Node(name="a", cores=8)


def test_counts_and_pairs_become_spans() -> None:
    request = Request(cores=8, nodes=2, gres_per_node={"gpu": 2}, gres_total={"fpga": (1, 3)})
    assert request.nodes == Span.exactly(2)
    assert request.gres_per_node == {"gpu": Span.exactly(2)}
    assert request.gres_total == {"fpga": Span(minimum=1, maximum=3)}
    assert Request(cores=8, nodes=[2, 4]).nodes == Span(minimum=2, maximum=4)
    same = Request(cores=8, nodes=Span.exactly(2), gres_per_node={"gpu": Span.exactly(2)})
    assert Request(cores=8, nodes=2, gres_per_node={"gpu": 2}) == same


def test_numpy_integers_become_integers() -> None:
    request = Request(cores=np.int64(8), nodes=np.int32(2), licenses={"matlab": np.int16(1)})
    assert type(request.cores) is int
    assert type(request.licenses["matlab"]) is int
    assert request.nodes is not None
    assert type(request.nodes.minimum) is int
    amount = Resources(cores=np.uint8(4), memory_mib=np.int64(10), gres={"gpu": np.int64(1)})
    assert [type(value) for value in (amount.cores, amount.memory_mib, amount.gres["gpu"])] == [int] * 3
    assert type(License(total=np.int64(3), free=np.int64(2)).free) is int
    job = Job(id="a", priority=np.int64(7), request=request, time_limit_s=np.int64(60))
    assert type(job.priority) is int
    assert type(job.time_limit_s) is int


@pytest.mark.parametrize(
    ("given", "exact"),
    [(2.0, 2), (0.1, Fraction(1, 10)), (np.float64(2.5), Fraction(5, 2)), (Decimal("1.25"), Fraction(5, 4))],
)
def test_priorities_are_exact_as_written(given: Any, exact: int | Fraction) -> None:
    job = Job(id="a", priority=given, request=Request(cores=1))
    assert job.priority == exact
    assert type(job.priority) is type(exact)


@pytest.mark.parametrize(
    "priority", [float("nan"), float("inf"), "7", True, None, "1/3", Fraction(1, 10**40 + 1)]
)
def test_what_is_no_priority_is_refused(priority: Any) -> None:
    with pytest.raises(InputError, match="priority"):
        Job(id="a", priority=priority, request=Request(cores=1))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"cores": 8, "nodes": 2.5}, "nodes: 2.5 is neither a count nor a pair of counts"),
        ({"cores": 8, "nodes": (2, 3, 4)}, "nodes: a tuple is neither a count nor a pair of counts"),
        ({"cores": 8, "nodes": (4, 2)}, "nodes: the range [4, 2] is empty"),
        ({"cores": 8, "nodes": True}, "nodes: True is neither a count nor a pair of counts"),
        ({"cores": 8, "nodes": "2"}, "nodes: '2' is neither a count nor a pair of counts"),
        ({"cores": 8, "gres_per_node": {"gpu": "2"}}, "gres_per_node.gpu: '2' is neither"),
        ({"cores": 8, "gres_per_node": {"gpu": 0}}, "gres_per_node.gpu: 0 is below 1"),
        ({"cores": 8, "gres_per_node": 2}, "gres_per_node: 2 is not a mapping"),
        ({"cores": 8.0}, "cores: 8.0 is not an integer"),
        ({"cores": np.True_}, "cores: "),
        ({"cores": "8"}, "cores: '8' is not an integer"),
        ({"cores": 1, "features": 3}, "features: 3 is not a list of names"),
    ],
)
def test_what_is_no_count_is_refused_with_its_path(members: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        Request(**members)
    assert str(refused.value).startswith(message)


def test_lists_and_sets_of_names_are_taken_and_one_name_is_one() -> None:
    request = Request(cores=1, features=["a", "b"], required_nodes="n1", excluded_nodes=["n2"])
    assert request.features == {"a", "b"}
    assert request.required_nodes == ("n1",)
    assert request.excluded_nodes == {"n2"}
    assert isinstance(hash(Request(cores=1, features=["a"]).features), int)


def test_what_a_caller_does_to_a_mapping_afterwards_changes_no_value() -> None:
    counts, none = {"gpu": 1}, dict[str, int]()
    spans, times, held = {"gpu": Span.exactly(1)}, {1: 60.0}, {"n1": Resources(cores=1)}
    licenses = {"matlab": License(total=2)}
    values = (
        Node(name="n1", cores=4, gres=counts),
        Resources(cores=1, gres=none),
        Request(cores=1, gres_per_node=spans, gres_total=none, licenses=counts),
        Job(id="1", priority=1, request=Request(cores=1), limits_by_nodes_s=times),
        RunningJob(id="2", nodes=held),
        Limit(name="one", most={"cores": 3}),
        Snapshot(nodes=[Node(name="n1", cores=4)], licenses=licenses),
    )
    before = [repr(value) for value in values]
    for mapping in (counts, none, spans, times, held, licenses):
        mapping.clear()
    none["gpu"] = -1
    assert [repr(value) for value in values] == before


def test_a_node_of_plain_counts_is_all_free() -> None:
    node = Node(name="n01", cores=8, memory_mib=1000, gres={"gpu": 2}, features=["a100"], partitions="gpu")
    whole = Resources(cores=8, memory_mib=1000, gres={"gpu": 2})
    assert node == Node(
        name="n01", total=whole, free=whole, features=frozenset({"a100"}), partitions=("gpu",)
    )
    assert node.free == node.total == whole
    assert replace(node, name="n02") == Node(name="n02", total=whole, features=["a100"], partitions=["gpu"])
    assert pickle.loads(pickle.dumps(node)) == node  # noqa: S301 - our own bytes
    assert replace(node, free=Resources(cores=1)).free.cores == 1


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({}, "cores: a node needs cores, or total"),
        ({"total": Resources(cores=1), "cores": 2}, "cores: total is given too"),
        ({"total": Resources(cores=1), "gres": {"gpu": 2}}, "gres: total is given too"),
        ({"cores": 0}, "cores: 0 is below 1"),
        ({"cores": 2, "free": Resources(cores=3)}, "free.cores: 3 is above the node's 2"),
    ],
)
def test_a_node_that_contradicts_itself_is_refused(members: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        Node(name="n", **members)
    assert str(refused.value) == message


@pytest.mark.parametrize("name", ["a b", "n[1-2]", "a,b", "é", "n1\n"])
def test_a_node_s_name_is_one_that_files_hold(name: str) -> None:
    with pytest.raises(InputError, match=r"^name: "):
        Node(name=name, cores=1)


def test_lists_of_nodes_and_jobs_make_a_snapshot() -> None:
    nodes = [Node(name=f"n{place}", cores=4) for place in range(4)]
    jobs = [Job(id="a", priority=1.5, request=Request(cores=4, nodes=2))]
    made = Snapshot(
        nodes=nodes,
        jobs=jobs,
        switches=[
            Switch(name="s1", nodes=["n0", "n1"]),
            Switch(name="s2", nodes=["n2", "n3"]),
            Switch(name="root", switches=["s1", "s2"]),
        ],
        running=[RunningJob(id="r", nodes={"n0": Resources(cores=0)})],
        reservations=[Reservation(name="r", nodes=["n3"], start=0, end=1, users="u")],
    )
    assert made.nodes == tuple(nodes)
    assert made.jobs == tuple(jobs)
    assert made.switches is not None
    assert made.switches[0].nodes == ("n0", "n1")
    assert made.reservations[0].users == ("u",)
    played = ClusterWorkload(
        name="w", nodes=nodes, jobs=[ArrivingJob(job=jobs[0], arrival_s=0, run_time_s=1)]
    )
    assert isinstance(played.jobs, tuple)


NODE, JOB = Node(name="n0", cores=8), Job(id="a", priority=1, request=Request(cores=2))
ARRIVING: dict[str, Any] = {"job": JOB, "arrival_s": 0, "run_time_s": 1}
#: Type -> members that it takes, and a snapshot or workload with a value of it.
TYPES: dict[type, tuple[dict[str, Any], Callable[[Any], Snapshot | ClusterWorkload]]] = {
    Snapshot: ({"nodes": [NODE], "jobs": [JOB], "time": 5}, lambda one: one),
    Node: ({"name": "n0", "cores": 8}, lambda one: Snapshot(nodes=[one])),
    Resources: (
        {"cores": 1},
        lambda one: Snapshot(
            nodes=[
                Node(
                    name="n0", total=Resources(cores=9, gres={"x": 9}), free=Resources(cores=0, gres={"x": 0})
                )
            ],
            running=[RunningJob(id="r", nodes={"n0": one})],
        ),
    ),
    Switch: ({"name": "s", "nodes": "n0"}, lambda one: Snapshot(nodes=[NODE], switches=[one])),
    Partition: ({"name": "p"}, lambda one: Snapshot(nodes=[NODE], partitions=[one])),
    License: ({"total": 2}, lambda one: Snapshot(nodes=[NODE], licenses={"x": one})),
    Reservation: (
        {"name": "r", "nodes": "n0", "start": 0, "end": 9},
        lambda one: Snapshot(nodes=[NODE], jobs=[JOB], reservations=[one]),
    ),
    Limit: (
        {"name": "l", "most": {"cores": 9}},
        lambda one: Snapshot(nodes=[NODE], jobs=[JOB], limits=[one]),
    ),
    JobSet: (
        {},
        lambda one: Snapshot(nodes=[NODE], jobs=[JOB], limits=[Limit(name="l", jobs=one, most={"jobs": 1})]),
    ),
    Job: (
        {"id": "a", "priority": 1, "request": Request(cores=2)},
        lambda one: Snapshot(nodes=[NODE], jobs=[one], time=5),
    ),
    Request: (
        {"cores": 2},
        lambda one: Snapshot(
            nodes=[NODE], jobs=[replace(JOB, request=one)], licenses={"x": License(total=9)}
        ),
    ),
    Span: (
        {"minimum": 1, "maximum": 2},
        lambda one: Snapshot(nodes=[NODE], jobs=[replace(JOB, request=Request(cores=2, nodes=one))]),
    ),
    RunningJob: (
        {"id": "r", "nodes": {"n0": Resources(cores=1)}},
        lambda one: Snapshot(
            nodes=[replace(NODE, free=Resources(cores=0))], jobs=[JOB], running=[one], time=5
        ),
    ),
    ArrivingJob: (ARRIVING, lambda one: ClusterWorkload(nodes=[NODE], jobs=[one])),
    ClusterWorkload: ({"nodes": [NODE], "jobs": [ArrivingJob(**ARRIVING)]}, lambda one: one),
}
HUGE = 10**5000
#: What a program may give by mistake for whatever member.
WRONG: list[Any] = [
    *("x", "", "2026-01-01", "a\n", b"x", np.str_("x"), None, True, np.True_, object(), NODE, JOB, Span),
    *(0, 1, -1, 1.5, -1.5, 10**13, 10**400, HUGE, np.int64(1), np.float32(1.5), np.array([1, 2])),
    *(float("nan"), float("inf"), float("-inf"), np.float64("nan"), Decimal("NaN"), Fraction(1, 2), 1j),
    *(
        [],
        ["x"],
        [""],
        [1],
        [None],
        [["x"]],
        [NODE],
        [JOB],
        ["n0", 3],
        (1, 2),
        (1, "x"),
        (None, 2),
        {"x"},
        {1},
    ),
    *({}, {"x": 1}, {"x": None}, {"x": 1.5}, {"x": "1"}, {"x": HUGE}, {1: 1}, {None: 1}, {"": 1}, {"a\n": 1}),
    *({"x": float("nan")}, {"x": [1]}, {"x": (1, 2)}, {"x": NODE}, {"n0": Resources(cores=0)}, {"n0": 1}),
    *({3: Resources(cores=1)}, {2: 60.0}, {2: "60"}, {"cores": 4}, {"cores": HUGE}, {"cores": None}),
]


@pytest.mark.parametrize(
    "members",
    [
        {"limits_by_nodes_s": {1: 100, 2: 50.5}},
        {"limits_by_nodes_s": {np.int64(4): np.float64(0.1), 1: np.int64(60)}},
        {"priority": Fraction(1, 3)},
        {"priority": Fraction(10**40, 3)},
        {"priority": Fraction(1, 2**60)},
        {"priority": Fraction(1, 10**40)},
        {"priority": Fraction(10**80 + 1, 10**40 - 1)},
        {"speedup": np.int64(3)},
        {
            "speedup": {
                "model": "amdahl",
                "serial": [0.1, np.float32(0.5), np.uint8(2)],
                "at": (1, None, True),
            }
        },
        {"speedup": Decimal("0.25")},
        {"speedup": 10**30},
    ],
)
def test_what_a_job_holds_is_written_exactly_and_read_back(members: dict[str, Any], tmp_path: Path) -> None:
    job = Job(**{"id": "a", "priority": 1, "request": Request(cores=2), **members})
    made = Snapshot(nodes=[NODE], jobs=[job])
    aucsched.save_snapshot(made, tmp_path / "now.json")
    read = aucsched.load_snapshot(tmp_path / "now.json")
    assert read == made
    for name, value in members.items():
        assert getattr(read.jobs[0], name) == (
            {"model": "amdahl", "serial": [0.1, 0.5, 2], "at": [1, None, True]}
            if isinstance(value, dict) and "at" in value
            else 0.25
            if isinstance(value, Decimal)
            else value
        )
    played = ClusterWorkload(nodes=[NODE], jobs=[ArrivingJob(job=job, arrival_s=0, run_time_s=1)])
    aucsched.save_workload(played, tmp_path / "w.json")
    assert aucsched.load_workload(tmp_path / "w.json") == played


@pytest.mark.parametrize(
    "speedup",
    [
        float("nan"),
        [float("inf")],
        {"at": np.float64("nan")},
        object(),
        1j,
        {1, 2},
        b"x",
        {(1, 2): 3},
        "\ud800",
    ],
)
def test_a_speedup_that_no_file_holds_is_refused(speedup: Any) -> None:
    with pytest.raises(InputError, match=r"^speedup: .* is not a value of JSON$"):
        Job(id="a", priority=1, request=Request(cores=2), speedup=speedup)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({0: 5}, "limits_by_nodes_s: 0 is below 1"),
        ({"2": 5}, "limits_by_nodes_s: '2' is not an integer"),
        ({2: -1}, "limits_by_nodes_s.2: -1 is not a run time in seconds"),
        ([5], "limits_by_nodes_s: a list is not of type Mapping"),
    ],
)
def test_limits_by_node_count_name_what_is_wrong(limits: Any, message: str) -> None:
    with pytest.raises(InputError) as refused:
        Job(id="a", priority=1, request=Request(cores=2), limits_by_nodes_s=limits)
    assert str(refused.value) == message


def test_gres_of_which_none_is_free_are_read_back_so(tmp_path: Path) -> None:
    node = Node(name="n0", total=Resources(cores=9, gres={"x": 9}), free=Resources(cores=0))
    aucsched.save_snapshot(Snapshot(nodes=[node]), tmp_path / "now.json")
    assert aucsched.load_snapshot(tmp_path / "now.json").nodes[0].free.gres == {"x": 0}


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
def test_what_a_public_type_takes_is_scheduled_and_read_back(kind: Any, tmp_path: Path) -> None:
    members, whole = TYPES[kind]
    for name in inspect.signature(kind).parameters:
        for wrong in WRONG:
            try:
                made = whole(kind(**{**members, name: wrong}))
            except InputError:
                continue
            said = f"{kind.__name__}({name}={type(wrong).__name__})"
            if isinstance(made, Snapshot):
                aucsched.schedule(made, work_limit=1)
                aucsched.save_snapshot(made, tmp_path / "now.json")
                assert aucsched.load_snapshot(tmp_path / "now.json") == made, said
            else:
                aucsched.save_workload(made, tmp_path / "w.json")
                assert aucsched.load_workload(tmp_path / "w.json") == made, said


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Snapshot(nodes=[N8], running=[RunningJob(id="r", nodes={"a": Resources(cores=8)})]),
            "nodes[0].free.cores: 8 is above the 0 that running jobs leave",
        ),
        (lambda: Limit(name="x", most={}), "most: nothing is limited"),
        (
            lambda: Snapshot(nodes=[N8], switches=[Switch(name="s", nodes=["b"])]),
            "switches[0].nodes: 'b' is not a node of this cluster",
        ),
        (
            lambda: Snapshot(nodes=[N8], network={"kind": "torus"}),  # type: ignore[arg-type]
            "network: a dict is not of type Network: it comes from a file's topology (parse_snapshot)",
        ),
    ],
)
def test_errors_name_python_s_members(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError) as refused:
        make()
    assert str(refused.value) == message
