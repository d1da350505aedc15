"""The small readers: gres texts, ``scontrol -d show job``, and array task lists."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucsched import InputError, Resources
from aucsched.formats.notes import Notes
from aucsched.slurm.answers.consumables import parse_gres, parse_request, settle
from aucsched.slurm.answers.detail import parse_job_detail
from aucsched.slurm.answers.pending_jobs import array_tasks

FOLDER = Path(__file__).parents[2] / "fixtures" / "slurm"


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("", {}),
        ("(null)", {}),
        ("N/A", {}),
        ("gpu:3", {"gpu": 3}),
        ("gpu", {"gpu": 1}),
        ("gpu:a100", {"gpu:a100": 1}),
        ("gpu:a100:4(S:0-1)", {"gpu:a100": 4}),
        ("gpu:a100:2(IDX:0,2),gpu:v100:1(IDX:3),shard:8(S:0)", {"gpu:a100": 2, "gpu:v100": 1, "shard": 8}),
        ("gpu:a100:0(IDX:N/A)", {"gpu:a100": 0}),
        ("gpu:1,gpu:2", {"gpu": 3}),
        ("gpu:(null):3(IDX:0-2),shard:(null):0(N/A)", {"gpu": 3, "shard": 0}),
        ("bandwidth:lustre:no_consume:4G", {"bandwidth:lustre": 4 * 2**30}),
        ("scratch:2K", {"scratch": 2048}),
        ("gpu:1g.5gb:7", {"gpu:1g.5gb": 7}),
    ],
)
def test_gres_texts(text: str, counts: Mapping[str, int]) -> None:
    assert parse_gres(text, "") == counts


@pytest.mark.parametrize("text", ["gpu:a:b:2", ":2", "gpu::2", "2", "gpu:", "g pu:1"])
def test_no_gres_texts(text: str) -> None:
    with pytest.raises(InputError, match="is not a gres"):
        parse_gres(text, "gres")


@pytest.mark.parametrize(
    ("text", "counts", "others"),
    [
        ("gres:gpu:2", {"gpu": 2}, []),
        ("gres:gpu", {"gpu": 1}, []),
        ("gres/gpu=2", {"gpu": 2}, []),
        ("gres/gpu:a100=2,gres/shard=1", {"gpu:a100": 2, "shard": 1}, []),
        ("gres:gpu:a100:1,gres:gpu:v100:1", {"gpu:a100": 1, "gpu:v100": 1}, []),
        ("cpu=4,gres:gpu:1", {"gpu": 1}, ["cpu=4"]),
        ("gres:none", {}, []),
        ("gres/NONE,gres:nonesuch:1", {"nonesuch": 1}, []),
    ],
)
def test_requests(text: str, counts: Mapping[str, int], others: list[str]) -> None:
    assert parse_request(text, "") == (counts, others)


@pytest.mark.parametrize(
    ("use", "totals", "settled", "lost"),
    [
        ({"gpu:a100": 1}, {"gpu:a100": 2}, {"gpu:a100": 1}, {}),
        ({"gpu": 3}, {"gpu:a100": 2, "gpu:v100": 2}, {"gpu:a100": 2, "gpu:v100": 1}, {}),
        ({"gpu:a100": 1, "gpu:v100": 1}, {"gpu": 2}, {"gpu": 2}, {}),
        ({"gpu": 3}, {"gpu": 2}, {"gpu": 2}, {"gpu": 1}),
        ({"gpu:a100": 1}, {"gpu:v100": 2}, {}, {"gpu:a100": 1}),
        ({"gpu": 0}, {}, {}, {}),
        # A type that is counted holds no more than its count.
        (
            {"gpu:a100": 1, "gpu": 2},
            {"gpu:a100": 4, "gpu:v100": 4},
            {"gpu:a100": 1, "gpu:v100": 2},
            {},
        ),
        ({"gpu:a100": 0, "gpu": 2}, {"gpu:a100": 4, "gpu:v100": 4}, {"gpu:v100": 2}, {}),
    ],
)
def test_use_is_charged_to_what_a_node_has(
    use: Mapping[str, int], totals: Mapping[str, int], settled: Mapping[str, int], lost: Mapping[str, int]
) -> None:
    assert settle(use, totals) == (settled, lost)


def test_one_line_and_many_lines_say_the_same() -> None:
    text = (FOLDER / "use" / "job_detail.txt").read_text()
    many = text.replace(" UserId=", "\n   UserId=").replace(" Socks/Node", "\n   Socks/Node")
    many = many.replace("   Nodes=", "\n     Nodes=").replace(" MinCPUsNode", "\n   MinCPUsNode")
    assert parse_job_detail(many.replace("\nJobId", "\n\nJobId")) == parse_job_detail(text)


def test_use_by_node() -> None:
    details = parse_job_detail((FOLDER / "use" / "job_detail.txt").read_text())
    assert details[87].use == {
        "n02": Resources(cores=8, memory_mib=800, gres={"gpu:a100": 2}),
        "n03": Resources(cores=3, memory_mib=300, gres={"gpu:a100": 1}),
    }
    assert details[88].use["n11"].cores == 4
    assert details[99].use == {}
    assert details[94].name == "het"


def test_what_users_write_is_no_field() -> None:
    text = (
        "JobId=7 JobName=x Switches=9@0 Nodes=n1 CPU_IDs=0-9 Mem=1 GRES= UserId=a(1) NumNodes=1 CPUs/Task=2 "
        "Command=/a b Switches=8@0 WorkDir=/c Switches=2@00:05:00"
    )
    detail = parse_job_detail(text)[7]
    assert detail.name == "x Switches=9@0 Nodes=n1 CPU_IDs=0-9 Mem=1 GRES="
    assert detail.numbers["required_switches"] == 2
    assert detail.numbers["cpus_per_task"] == 2
    assert detail.use == {}


def test_a_value_ends_where_another_begins_whose_key_has_colons() -> None:
    text = "JobId=7 JobName=x\n   UserId=a(1)\n   OverSubscribe=NO\n   NtasksPerN:B:S:C=0:0:*:*\n"
    assert parse_job_detail(text)[7].sharing == "NO"


def test_no_jobs() -> None:
    assert parse_job_detail("No jobs in the system\n") == {}
    assert parse_job_detail("") == {}


@pytest.mark.parametrize(
    ("text", "tasks"),
    [
        ("5", [5]),
        ("1-6%2", [1, 2, 3, 4, 5, 6]),
        ("1,5,9", [1, 5, 9]),
        ("1-9:4", [1, 5, 9]),
        ("0-1,7", [0, 1, 7]),
        ("1,3,5...", [1, 3]),
        ("1,3,...", [1, 3]),
        ("9-4", []),
    ],
)
def test_array_tasks(text: str, tasks: list[int]) -> None:
    assert list(array_tasks(text, "")) == tasks


@pytest.mark.parametrize("text", ["a", "1-", "1,,2", "1-4:0", "1 2", "-1"])
def test_no_array_tasks(text: str) -> None:
    with pytest.raises(InputError, match="is not a list of array tasks"):
        list(array_tasks(text, "array_task_string"))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9).map(str)), max_size=40))
def test_a_summary_counts_every_note(entries: list[tuple[str, str]]) -> None:
    notes = Notes()
    for kind, text in entries:
        notes.add(kind, f"{kind} {text}")
    shown = [line for line in notes.summary() if "more, all in" not in line]
    counted = sum(int(line.split()[1]) for line in notes.summary() if "more, all in" in line)
    assert len(shown) + counted == len(notes.texts()) == len(set(entries))


@pytest.mark.parametrize(
    "text", ["JobId=1   Nodes=n1 CPU_IDs={} Mem=0 GRES= ", "JobId=1   Nodes=n[{}-9] CPU_IDs=0 Mem=0 GRES= "]
)
def test_numbers_too_long_for_python_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_job_detail(text.format("9" * 5000))
    with pytest.raises(InputError):
        parse_gres("gpu:" + "9" * 5000, "gres")
    with pytest.raises(InputError):
        list(array_tasks("1-" + "9" * 5000, "array_task_string"))
