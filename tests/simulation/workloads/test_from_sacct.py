"""sacct's output: every odd form of it, and the jobs around a window."""

from __future__ import annotations

import re
import time

import pytest

from aucsched import ClusterWorkload, InputError, Node, Span, parse_workload
from aucsched.formats.delimited import read_table
from aucsched.formats.native.cluster_file import workload_to_json
from aucsched.simulation.workloads.from_table import COLUMNS, logged_jobs, workload_of_sacct

#: As Slurm prints it, in an order of its own and with a column that nobody asked for.
ODD = """\
State|JobID|User|Account|Partition|QOS|Priority|JobName|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|NNodes|NCPUS|ReqMem|ReqTRES|AllocTRES
COMPLETED|10|ann|a|p|high|900|x|1000|1000|1100|1700|600|20|2|16|4Gn|billing=16,cpu=16,node=2|cpu=16,gres/gpu:a100=4,gres/gpu=4,mem=8G,node=2
COMPLETED|10.batch||a|p||900|batch|1100|1100|1100|1700|600||1|8||cpu=8|cpu=8
TIMEOUT|11_3|bob|b|p|normal|800|x|1010|1200|1200|1260|60|1|1|4|2000Mc||cpu=4,mem=8000M,node=1
PENDING|11_[4-9%2]|bob|b|p|normal|1|x|1010|1010|Unknown|Unknown|0|1|1|4|2000Mc|cpu=4|
RUNNING|12|cy|b|p|normal|700|x|1020|1020|1300|Unknown|50|UNLIMITED|1|1|0n||cpu=1
FAILED|13+0|cy|b|p|normal|600|x|1030|Unknown|1400|1400|0|Partition_Limit|1|2|16G||cpu=2,mem=16G
FAILED|13+1|cy|b|p|normal|600|x|1030|1030|1400|1460|60|5|2|2|2.50G||cpu=2
CANCELLED by 1000|14|cy|b|p|normal|500|x|1040|1040|None|1500|0|5|1|1|1G|cpu=1|
CANCELLED by 0|15|cy|b|p|normal|500|x|1040|1040|1500|1500|0|5|1|0|1G|cpu=1|
OUT_OF_MEMORY|16|dee|b|q|normal|400|x|1050|1050|1500|1530|30|5|1|64|0||cpu=64
"""
DATES = """\
JobID|State|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|NNodes|NCPUS|AllocTRES
1|COMPLETED|2026-01-05T08:00:00|2026-01-05T08:00:00|2026-01-05T08:10:00|2026-01-05T09:10:00|3600|120|1|4|gres/gpu=4,gres/gpu:a100=3
"""


def test_dates_of_sacct_are_local_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slurm prints them without a zone; a saved forecast of the same job counts seconds since 1970."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        table = read_table(DATES.encode(), "|")
        with pytest.warns(
            UserWarning, match="times of sacct have no zone: read as this machine's local time"
        ):
            (job,) = logged_jobs(table)
        assert (job.submit_s, job.start_s) == (1767596400, 1767597000)
        assert job.gres == {"gpu:a100": 3, "gpu": 1}, "one GPU is of no type that is told"
        for text, is_noted in ((DATES, True), (DATES.replace("0|", "0-0500|"), False)):
            notes = read(text, since=0).notes
            assert any(note.startswith("times of sacct have no zone") for note in notes) == is_noted
    finally:
        monkeypatch.undo()
        time.tzset()
    assert not any("zone" in note for note in read(ODD).notes)


NODES = [
    Node(name="a1", cores=16, memory_mib=64_000, gres={"gpu:a100": 4}, partitions=("p",)),
    Node(name="a2", cores=16, memory_mib=64_000, gres={"gpu:a100": 4}, partitions=("p",)),
    Node(name="b1", cores=32, partitions=("p", "q")),
]


def test_blank_lines_end_no_table_and_no_column_is_dropped() -> None:
    """As spreadsheets end their files."""
    table = read_table(b"a,b\n1,2\n\n3,4\n\n")
    assert [row.values for row in table.rows] == [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]
    for content, message in (
        (b"a,b,a\n1,2,3\n", "line 1: the column 'a' is listed twice"),
        (b"", "line 1: there is no header"),
        (b"\n1,2\n", "line 1: there is no header"),
        (b"a,b\n1\n", "line 2: 1 fields where the header has 2"),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            read_table(content)


def read(text: str, since: float | None = None, until: float | None = None) -> ClusterWorkload:
    machine = ClusterWorkload(name="", nodes=NODES)
    table = read_table(text.encode(), "|")
    return workload_of_sacct("site", table, machine, since=since, until=until)[0]


def test_every_odd_form_is_read_and_what_is_left_out_is_counted() -> None:
    made = read(ODD, since=1000)
    assert [one.job.id for one in made.jobs] == ["10", "12", "13+0", "13+1", "11_3"]
    ten, twelve, het, part, array = made.jobs
    assert (ten.arrival_s, ten.started_s, ten.run_time_s, ten.job.time_limit_s) == (0, 100, 600, 1200)
    owner = (ten.job.user, ten.job.account, ten.job.partition, ten.job.qos, ten.job.priority)
    assert owner == ("ann", "a", "p", "high", 900)
    request = ten.job.request
    assert (request.cores, request.nodes, request.memory_mib_per_node) == (16, Span.exactly(2), 4096)
    assert {name: span.minimum for name, span in request.gres_per_node.items()} == {"gpu:a100": 2}
    # 12 still runs: for its limit, which is the longest of its partition. 0n is all of a node's memory.
    assert (twelve.started_s, twelve.run_time_s, twelve.job.time_limit_s) == (300, 1200, 1200)
    assert twelve.job.request.memory_mib_per_node is None
    # 13+0 ran less than a second; its memory is the job's, 13+1's are two nodes' shares.
    assert (het.run_time_s, het.job.time_limit_s, het.job.request.memory_mib_per_node) == (1, 1200, 16_384)
    assert part.job.request.memory_mib_per_node == 1280
    # 11_3 waits from 1200 on, when it became eligible.
    assert (array.arrival_s, array.started_s, array.job.request.memory_mib_per_core) == (200, 200, 2000)
    assert array.job.time_limit_s == 60
    for text in (
        "the column JobName is not read",
        "1 row named a step of a job: left out",
        "1 job had not started when sacct was asked: left out",
        "1 job became eligible after submission: waits from then on",
        "2 jobs belonged to a heterogeneous job: each part may start alone",
        "2 jobs had no limit: the longest that is asked for in the partition",
        "1 job still ran: taken to run for the time limit",
        "1 job ran less than 1 s: taken as 1 s",
        "2 jobs (first 14) did not run: left out",
        "1 job (first 16) larger than the machine: left out",
    ):
        assert text in made.notes
    assert parse_workload(workload_to_json(made).encode()) == made


def test_jobs_around_the_window() -> None:
    row = "{}|{}|{}|{}|{}|60|1|1"
    jobs = [
        row.format("gone", 0, 10, 90, 80),
        row.format("runs", 0, 50, 250, 200),
        row.format("waits", 40, 150, 160, 10),
        row.format("inside", 120, 130, 140, 10),
        row.format("after", 300, 310, 320, 10),
    ]
    header = "JobID|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|NCPUS"
    made = read("\n".join([header, *jobs]), since=100, until=299)
    found = [(one.job.id, one.arrival_s, one.started_s, one.run_time_s) for one in made.jobs]
    # At 100 s: "runs" has 150 s to go and no start of its own, "waits" comes now.
    assert found == [("runs", 0, None, 150), ("waits", 0, 50, 10), ("inside", 20, 30, 10)]
    assert made.jobs[0].job.time_limit_s == 3600 - 50
    assert made.jobs[0].job.priority > made.jobs[1].job.priority
    for text in (
        "1 job ended before the history: left out",
        "1 job came after the history: left out",
        "1 job ran when the history began: not compared",
        "1 job waited when the history began: waits from then on",
    ):
        assert text in made.notes
    # Where nobody says, the history begins when the first job ended.
    assert read("\n".join([header, *jobs])).jobs[0].run_time_s == 160


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("JobID|Start\n", "no column Submit: sacct -a -X -P --format=JobID"),
        ("JobID|Submit\n", "no column ElapsedRaw: sacct"),
        ("JobID|Submit|ElapsedRaw|ReqMem\n1|5|5|lots\n", "line 2: ReqMem: 'lots' is not an amount of memory"),
        ("JobID|Submit|ElapsedRaw|Eligible\n1|5|5|soon\n", "line 2: Eligible: 'soon' is neither"),
        ("JobID|Submit|ElapsedRaw\n", "no job is left"),
    ],
)
def test_what_cannot_be_read_names_line_and_column(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read(text)
    assert message in str(caught.value)


def test_the_columns_of_the_command_are_all_read() -> None:
    row = "1|u|a|p|q|COMPLETED|7|0|0|5|10|5|1|1|1|1G|cpu=1|cpu=1"
    made = read("|".join(COLUMNS) + f"\n{row}\n2{row[1:]}", since=0)
    assert not [text for text in made.notes if "not read" in text]


def test_where_no_job_can_be_read_steps_and_waiting_jobs_hide_no_reason() -> None:
    rows = "JobID|State|Submit|Start|ElapsedRaw|ReqMem\n1|FAILED|5|6|5|16?\n1.0|FAILED|5|6|5|\n"
    with pytest.raises(InputError, match=r"job 1, line 2: ReqMem: '16.' is not an amount of memory"):
        read(f"{rows}2|PENDING|5||0|1G\n", since=0)


def test_a_row_that_cannot_be_read_is_left_out_and_its_job_named() -> None:
    rows = "JobID|Submit|Start|ElapsedRaw|ReqMem\n1|5|6|5|1G\n2|5||0|16?\n3|7|8|5|1G\n4|x|||1G\n"
    words = "cannot be read: left out (job 2, line 3: ReqMem: '16?' is not an amount of memory)"
    made = read(rows, since=0)
    assert f"2 rows {words}" in made.notes
    assert [one.job.id for one in made.jobs] == ["1", "3"]
    with pytest.warns(UserWarning, match=re.escape(f"2 rows of sacct {words}")):
        assert [job.id for job in logged_jobs(read_table(rows.encode(), "|"))] == ["1", "3"]


@pytest.mark.parametrize("nodes", ["Unknown", "1.0", ""])
def test_memory_of_a_job_whose_node_count_is_odd_is_of_one_node(nodes: str) -> None:
    made = read(f"JobID|Submit|Start|ElapsedRaw|NNodes|NCPUS|ReqMem\n1|5|6|5|{nodes}|1|4G\n", since=5)
    assert [one.job.request.memory_mib_per_node for one in made.jobs] == [4096]


def test_times_beyond_every_calendar_are_told_in_seconds() -> None:
    row = "JobID|Submit|Start|ElapsedRaw\n1|500000000000|500000000000|100\n"
    with pytest.raises(InputError, match=r"from 5e\+11 s to 5e\+11 s"):
        read(row, until=5.0)


def test_a_requeued_job_has_a_row_for_each_of_its_runs() -> None:
    """As ``sacct -D`` prints them: only the last run goes on, and one that was requeued ran as well."""
    head = "JobID|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|NCPUS|AllocTRES|Partition\n"
    rows = [
        "7|NODE_FAIL|1000|1000|1100|100|600|1|16|cpu=16,node=1|p",
        "7|REQUEUED|1100|1110|1160|50|600|1|16|cpu=16,node=1|p",
        "7|RUNNING|1200|1300|Unknown|50|600|1|16|cpu=16,node=1|p",
    ]
    made = read(head + "\n".join(rows), since=1000)
    assert [one.run_time_s for one in made.jobs] == [100, 50, 36_000]


def test_types_of_gpus_of_which_no_node_has_one_are_any_type_with_the_others_of_the_job() -> None:
    head = "JobID|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|NCPUS|AllocTRES|Partition\n"
    row = "2|COMPLETED|1000|1000|1100|100|10|1|4|cpu=4,gres/gpu=3,gres/gpu:a100=2,gres/gpu:h100=1,node=1|p"
    (one,) = read(head + row, since=1000).jobs
    assert {name: span.minimum for name, span in one.job.request.gres_per_node.items()} == {"gpu": 3}
