"""Nodes given out in parts: who shares a node, who has whole ones, and that nothing is held twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.negotiation import check_machine, malleable, moldable, rigid
from support.run import aucsched, in_a_process, refused

from aucsched.cluster.jobs import JobKind
from aucsched.negotiation.batch.batch_state import Arrival, BatchState
from aucsched.negotiation.batch.mapping import BatchSettings
from aucsched.negotiation.job_records import MapEntry
from aucsched.negotiation.messages import ResourceOffer, StatusReport
from aucsched.negotiation.pair import Pair, Sent
from aucsched.negotiation.runtime.irtsched import RuntimeState
from aucsched.negotiation.runtime.placement_constraints import in_parts, start_nodes
from aucsched.negotiation.runtime.runtime_machine import MachineState, empty_machine
from aucsched.negotiation.runtime.settings import RuntimeSettings
from aucsched.negotiation.speedup import relative_speed
from aucsched.negotiation.transport.framing import decode_message, encode_message
from aucsched.simulation.workloads.named_clusters import node_names


def sharing(entry: MapEntry, part: int, whole: int) -> MapEntry:
    return msgspec.structs.replace(entry, node_share=(part, whole))


def test_a_job_in_parts_is_as_large_and_as_fast_as_in_nodes() -> None:
    entry = moldable("a", 2, 4, 100.0)
    entry = msgspec.structs.replace(entry, speedup="amdahl:0.1", node_cnt=3)
    parts = in_parts(entry, 4)
    assert (parts.min_nodes, parts.max_nodes, parts.node_cnt, parts.parts) == (8, 16, 12, 4)
    for nodes in (2, 3, 4):
        fast = relative_speed(parts.speedup, 4 * nodes, parts.min_nodes)
        assert fast == pytest.approx(relative_speed("amdahl:0.1", nodes, 2))
    assert in_parts(entry, 1) is entry
    # Five of sixteen cores are two of four parts.
    assert in_parts(sharing(entry, 5, 16), 4).parts == 2


def placed(machine: MachineState, entry: MapEntry, idle: int) -> list[int]:
    """Return how many parts of each node a job starts on."""
    nodes = start_nodes(entry, machine, idle, entry.min_nodes)
    per_node = machine.parts
    assert nodes & idle == nodes
    mask = (1 << per_node) - 1
    return [(nodes >> place & mask).bit_count() for place in range(0, len(machine.names), per_node)]


def test_who_starts_where() -> None:
    machine = empty_machine(node_names(3), parts=4)
    half, two_halves, whole = (
        in_parts(sharing(rigid("a", count, 10.0), part, 2), 4) for count, part in ((1, 1), (2, 1), (1, 2))
    )
    everything = machine.idle
    assert placed(machine, half, everything) == [2, 0, 0]
    # On the node that others have begun, so that whole ones stay.
    begun = everything & ~0b11_0000
    assert placed(machine, half, begun) == [0, 2, 0]
    assert placed(machine, two_halves, begun) == [2, 2, 0]
    assert placed(machine, whole, begun) == [4, 0, 0]
    # Two nodes are two nodes: four parts of one are not.
    assert placed(machine, two_halves, 0b1111) == [0, 0, 0]
    # Four parts on three nodes are no node.
    assert placed(machine, whole, 0b0001_0011_0001) == [0, 0, 0]


def test_neighbours_are_neighbouring_nodes() -> None:
    machine = empty_machine(node_names(4), parts=2)
    entry = in_parts(sharing(rigid("a", 2, 10.0), 1, 2), 2)
    entry = msgspec.structs.replace(entry, contiguous=True)
    assert placed(machine, entry, 0b01_00_01_01) == [1, 1, 0, 0]
    assert placed(machine, entry, 0b01_00_01_00) == [0, 0, 0, 0]


def play(
    entries: list[MapEntry], nodes: int, parts: int, **batch: Any
) -> tuple[Pair, list[Sent], list[MachineState]]:
    """Run both parties; return the messages and every state of the machine."""
    arrivals = tuple(Arrival(time_s=10.0 * place, job=entry) for place, entry in enumerate(entries))
    sent: list[Sent] = []
    seen: list[MachineState] = []
    both = Pair(
        BatchState(settings=BatchSettings(ends_when_done=True, **batch), arrivals=arrivals),
        {
            "": RuntimeState(
                settings=RuntimeSettings(parts=parts), machine=empty_machine(node_names(nodes), parts=parts)
            )
        },
        sent.append,
        lambda _, machine: seen.append(machine),
    )
    both.run()
    return both, sent, seen


def check_parts(machine: MachineState) -> None:
    check_machine(machine)
    mask = (1 << machine.parts) - 1
    for job in machine.running.values():
        held = [
            (job.nodes >> place & mask).bit_count() for place in range(0, len(machine.names), machine.parts)
        ]
        if job.entry.type is not JobKind.MALLEABLE:
            assert set(held) <= {0, job.entry.parts}, "a job of nodes has as much of each"


@pytest.mark.parametrize("mapper", ["greedy", "auction"])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_all_run_once_on_parts_of_their_own(mapper: str, data: st.DataObject) -> None:
    """Nagendra: sharing of a node by cores and sockets (4.1.2, 4.2.1)."""
    nodes, parts = data.draw(st.integers(1, 4)), data.draw(st.integers(2, 4))
    entries = []
    for number in range(data.draw(st.integers(1, 9))):
        least = data.draw(st.integers(1, nodes))
        most = data.draw(st.integers(least, nodes))
        seconds, priority = float(data.draw(st.integers(5, 300))), 100 - number
        match data.draw(st.sampled_from(["rigid", "moldable", "malleable"])):
            case "rigid":
                entry = rigid(f"j{number}", least, seconds, priority=priority)
            case "moldable":
                entry = moldable(f"j{number}", least, most, seconds, priority=priority)
            case _:
                entry = malleable(f"j{number}", least, most, seconds, priority=priority)
        whole = data.draw(st.integers(1, 8))
        entries.append(sharing(entry, data.draw(st.integers(1, whole)), whole))
    both, sent, seen = play(entries, nodes, parts, mapper=mapper)
    for machine in seen:
        check_parts(machine)
    done = seen[-1].done
    assert set(done) == {entry.job for entry in entries} == set(both.batch.done)
    for entry in entries:
        each = in_parts(entry, parts).parts / parts
        work = entry.min_nodes * each * entry.time_at_min_s
        assert done[entry.job].node_s == pytest.approx(work, rel=1e-6, abs=1e-3)
    for one in sent:
        # What the batch scheduler hears and says is of whole nodes, and may go over a wire.
        assert decode_message(encode_message(one.message)) == one.message
        if isinstance(one.message, ResourceOffer):
            named = [node for each in one.message.reservations for node in each.nodes]
            assert len(named) == len(set(named))
        if isinstance(one.message, StatusReport):
            assert all(report.node_count <= nodes for report in one.message.reports)


def test_one_part_a_node_is_as_without_parts() -> None:
    entries = [sharing(rigid("a", 2, 50.0), 1, 2), malleable("b", 1, 3, 90.0, priority=99)]
    _, sent, _ = play(entries, 3, 1)
    _, plain, _ = play([rigid("a", 2, 50.0), entries[1]], 3, 1)
    text = [encode_message(one.message).replace(b',"node_share":[1,2]', b"") for one in sent]
    assert text == [encode_message(one.message) for one in plain]


def workload(folder: Path) -> Path:
    quarter = {"priority": 9, "nodes": 1, "cores_per_node": 4, "arrival_s": 0, "run_time_s": 100}
    jobs = [
        *({"id": f"q{number}", **quarter} for number in range(8)),
        {"id": "m", "priority": 8, "nodes": 1, "cores_per_node": 16, "exclusive": True, "kind": "malleable",
         "min_nodes": 1, "max_nodes": 2, "arrival_s": 5, "run_time_s": 300},
    ]  # fmt: skip
    document = {
        "format": "aucsched-workload/1",
        "name": "quarters",
        "nodes": [{"name": "n[1-2]", "cores": 16, "memory_mib": 64000}],
        "jobs": jobs,
    }
    path = folder / "quarters.json"
    path.write_text(json.dumps(document))
    return path


def test_the_command_shares_nodes_and_replays(tmp_path: Path) -> None:
    path = workload(tmp_path)
    options = ("negotiate", path, "--format", "json")
    whole = aucsched(*options, cwd=tmp_path)
    shared = aucsched(*options, "--parts", "4", "--trace", "t.jsonl", "--jobs-out", "jobs.csv", cwd=tmp_path)
    assert (whole.returncode, shared.returncode) == (0, 0), whole.stderr + shared.stderr
    before, after = (json.loads(one.stdout)["metrics"] for one in (whole, shared))
    # Eight jobs of a quarter of two nodes: at once, where whole nodes take four turns.
    waits = {row.split(",")[0]: row.split(",")[7] for row in (tmp_path / "jobs.csv").read_text().splitlines()}
    assert {waits[f"q{number}"] for number in range(8)} == {"0"}
    assert after["makespan_s"] < 300
    assert before["makespan_s"] > 400
    assert after["work_bound_s"] == (8 * 100 / 4 + 300) / 2
    assert after["utilization"] <= 1
    assert after["makespan_s"] >= after["work_bound_s"]
    again = in_a_process("negotiate", "--replay", "t.jsonl", "--format", "json", cwd=tmp_path)
    assert json.loads(again.stdout)["metrics"] == after


def test_memory_and_gres_bound_who_shares(tmp_path: Path) -> None:
    """A job of one core and three quarters of the memory leaves no room for another one."""
    document = json.loads(workload(tmp_path).read_text())
    one = {"priority": 9, "nodes": 1, "cores_per_node": 1, "arrival_s": 0, "run_time_s": 100}
    document["jobs"] = [
        {"id": f"j{number}", **one, "memory_mib_per_node": memory}
        for number, memory in enumerate([48000, 48000, 48000, 8000])
    ]  # fmt: skip
    (tmp_path / "m.json").write_text(json.dumps(document))
    done = aucsched("negotiate", "m.json", "--parts", "4", "--jobs-out", "-", "-o", "m.txt", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    starts = {row.split(",")[0]: float(row.split(",")[5]) for row in done.stdout.splitlines()[1:]}
    assert sorted(starts[f"j{number}"] for number in range(3)) == [0, 0, 100]
    assert starts["j3"] == 0


def test_no_parts_are_refused(tmp_path: Path) -> None:
    assert "--parts" in refused("negotiate", "esp", "--parts", "0", cwd=tmp_path)
