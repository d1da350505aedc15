"""The Standard Workload Format in and out, and what a simulation makes of its rows."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucsched.cluster.errors import InputError
from aucsched.formats.swf import SwfField, SwfLog, load_swf, parse_swf, swf_text, write_swf
from aucsched.simulation.log_columns import (
    Dropped,
    Requests,
    Workload,
    describe_dropped,
    machine_size,
    workload_from_swf,
)
from aucsched.simulation.workloads.application_traces import fit

FIXTURES = Path(__file__).parents[1] / "fixtures" / "swf"
DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "swf"
needs_data = pytest.mark.skipif(not DATA.exists(), reason="the shared data are not here")
ROW = "1 0 -1 10 2 -1 -1 2 20 -1 1 1 1 1 1 1 -1 -1"


def test_rows_and_headers_are_read_as_they_stand() -> None:
    log = load_swf(FIXTURES / "small.swf")
    assert log.table.shape == (5, 18)
    assert log.column(SwfField.SUBMIT).tolist() == [100, 101, 102, 103, 103]
    assert log.header("Computer") == "A made-up machine"
    assert log.header("installation") == "aucsched's tests"
    assert log.header("Queue") is None
    assert log.header_count("MaxProcs") == 4


@pytest.mark.parametrize(
    ("text", "count"),
    [("128", 128), ("9216 (1152 * 8)", 9216), ("1,024", 1024), ("-1", None), ("many", None)],
)
def test_header_counts_are_read_as_people_write_them(text: str, count: int | None) -> None:
    log = parse_swf(f"; MaxProcs:   {text}\n; MaxProcs: 7\n{ROW}\n".encode())
    assert log.header_count("MaxProcs") == count


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"])
def test_ends_of_lines_and_gzip_do_not_matter(ending: bytes, tmp_path: Path) -> None:
    plain = (FIXTURES / "small.swf").read_bytes()
    for name, content in {
        "a.swf": plain,
        "b.swf.gz": gzip.compress(plain),
        "c.swf": gzip.compress(plain),
    }.items():
        raw = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
        raw = raw.replace(b"\n", ending)
        (tmp_path / name).write_bytes(gzip.compress(raw) if name != "a.swf" else raw)
        log = load_swf(tmp_path / name)
        assert swf_text(log).encode() == plain


def test_fields_left_out_of_every_row_are_unknown() -> None:
    log = parse_swf(b"1 0 -1 10 2 -1 -1 2 20\n2 1 -1 10 2 -1 -1 2 20\n")
    assert log.table[:, 9:].tolist() == [[-1.0] * 9] * 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file holds no job"),
        (b"; MaxProcs: 4\n", "the file holds no job"),
        (f"{ROW}\n{ROW[:20]}".encode(), "line 2: 8 fields where the log has 18"),
        (f"; a\n{ROW}\n{ROW[:-1]}".encode(), "line 3: '-' is not a number of an SWF row"),
        (b"id,submit,run\n1,2,3\n", "line 1: 'id,submit,run' is not a number of an SWF row"),
        (b"1 2 3\n", "line 1: 3 fields where SWF has 18"),
        (f"{ROW} 4\n".encode(), "line 1: 19 fields where SWF has 18"),
        (
            f"; a\n\n{ROW}\n; b\n{ROW.replace('20', 'nan')}".encode(),
            f"line 5: field {ROW.split().index('20') + 1} (requested_time): nan is not finite",
        ),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "line 1: '�PNG' is not a number of an SWF row"),
        (f"{ROW}\n{ROW.replace('20', '2_0')}".encode(), "line 2: '2_0' is not a number of an SWF row"),
        (ROW.replace("20", "2_0").encode(), "line 1: '2_0' is not a number of an SWF row"),
        (b"x" * 1000, f"line 1: '{'x' * 57}...' is not a number of an SWF row"),
    ],
)
def test_what_is_no_log_is_refused_in_one_line(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_bytes(content)
    with pytest.raises(InputError) as refusal:
        load_swf(path)
    assert str(refusal.value) == f"{path}: {message}"


@pytest.mark.parametrize("said", ["0", "-4", "many"])
def test_a_machine_s_size_that_is_none_is_named(said: str) -> None:
    log = parse_swf(f"; MaxProcs: {said}\n{ROW}".encode())
    with pytest.raises(InputError, match=f"^MaxProcs: '{said}' is not a number above 0"):
        workload_from_swf(log)
    log = parse_swf(f"; MaxProcs: {said}\n; MaxNodes: 8\n{ROW}".encode())
    assert workload_from_swf(log).requests.processors == 8


def test_gzip_cut_short_or_damaged_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress((FIXTURES / "small.swf").read_bytes())
    path = tmp_path / "log.swf.gz"
    for content in (whole[:-20], whole[:40], whole[:20] + b"\xff" * 40 + whole[60:]):
        path.write_bytes(content)
        with pytest.raises(InputError, match="the gzip file is cut short or damaged"):
            load_swf(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.swf: No such file"):
        load_swf(tmp_path / "nowhere.swf")


@given(
    st.lists(
        st.lists(
            st.one_of(st.integers(-1, 10**12), st.floats(-1e6, 1e6, allow_nan=False)),
            min_size=18,
            max_size=18,
        ),
        min_size=1,
        max_size=5,
    )
)
def test_written_logs_read_back_equal(rows: list[list[float]]) -> None:
    log = SwfLog(comments=(" Version: 2.2", ""), table=np.array(rows, dtype=np.float64))
    again = parse_swf(swf_text(log).encode())
    assert again.comments == log.comments
    assert np.array_equal(again.table, log.table)


def test_a_written_file_reads_back_also_as_gzip(tmp_path: Path) -> None:
    log = load_swf(FIXTURES / "dirty.swf")
    for name in ("a.swf", "a.swf.gz"):
        write_swf(tmp_path / name, log)
        assert np.array_equal(load_swf(tmp_path / name).table, log.table)
    first = (tmp_path / "a.swf.gz").read_bytes()
    write_swf(tmp_path / "a.swf.gz", log)
    assert (tmp_path / "a.swf.gz").read_bytes() == first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.swf", "a.swf.gz"]
    with pytest.raises(InputError, match="No such file"):
        write_swf(tmp_path / "no" / "a.swf", log)


# Rows to jobs -----------------------------------------------------------------------------------------


def test_dirty_rows_are_dropped_and_counted_and_the_rest_sorted() -> None:
    jobs = workload_from_swf(load_swf(FIXTURES / "dirty.swf"))
    assert jobs.requests.processors == 8, "MaxProcs −1 says nothing: MaxNodes"
    assert [*jobs.ids] == [1, 2, 3, 8], "equal submissions in file order"
    assert [*jobs.requests.submit] == [0, 0, 20, 20]
    assert [*jobs.requests.size] == [2, 4, 2, 1], "the allocated where none are requested"
    assert [*jobs.requests.estimate] == [10, 20, 20, 7], "the run time where none is requested"
    assert [*jobs.run] == [10, 20, 10, 7], "at most the estimate"
    assert jobs.killed == {1}
    assert {reason: count for reason, count in jobs.dropped.items() if count} == {
        Dropped.NO_PROCESSORS: 1,
        Dropped.NO_RUN_TIME: 2,
        Dropped.ABOVE_MACHINE: 1,
    }
    assert jobs.rows == len(jobs) + sum(jobs.dropped.values())
    assert describe_dropped(jobs.dropped, jobs.rows) == (
        "dropped 4 of 8 rows: 1 without processors, 2 with run time 0 or missing, 1 larger than the machine"
    )


def test_a_job_of_several_rows_is_its_summary_row_and_a_row_without_a_submission_is_none() -> None:
    rows = ((1, -1, 1), (2, 30, 5), (2, 30, 2), (2, 60, 3), (3, 30, 2), (3, 60, 4), (3, 30, 0), (4, 40, 1))
    text = "".join(
        f"{job} {submit} -1 10 {1 + (1 < status < 5)} -1 -1 -1 10 -1 {status}\n"
        for job, submit, status in rows
    )
    jobs = workload_from_swf(parse_swf(f"; MaxProcs: 4\n{text}".encode()))
    assert [*zip(jobs.ids, jobs.row, jobs.requests.submit, strict=True)] == [(2, 1, 0), (3, 6, 0), (4, 7, 10)]
    assert describe_dropped(jobs.dropped, jobs.rows) == (
        "dropped 5 of 8 rows: 4 of partial executions (status 2 to 4), 1 without a submit time"
    )
    assert fit(parse_swf(text.replace("30 -1 10", "30 -1 20").encode()), "").sizes == {1: 1}


def test_the_machine_is_as_large_as_given_else_as_the_header_says() -> None:
    log = load_swf(FIXTURES / "small.swf")
    assert machine_size(log) == 4
    assert machine_size(log, 3) == 3
    assert workload_from_swf(log, processors=3).dropped[Dropped.ABOVE_MACHINE] == 1
    with pytest.raises(InputError, match="give processors"):
        machine_size(SwfLog(comments=(" MaxProcs: many",), table=log.table))


def test_queues_may_have_weights() -> None:
    jobs = workload_from_swf(load_swf(FIXTURES / "small.swf"), queue_weights={2: 0.5})
    assert [*jobs.requests.weight] == [1, 0.5, 1, 1, 0.5]


def test_fractions_of_seconds_are_kept() -> None:
    rows = f"{ROW}\n{ROW.replace('1 0 -1 10', '2 0.5 -1 10.25')}\n"
    jobs = workload_from_swf(parse_swf(rows.encode()), processors=4)
    assert [*jobs.requests.submit] == [0, 0.5]
    assert [*jobs.run] == [10, 10.25]
    later = rows.replace("1 0 ", "1 0.791 ").replace("2 0.5 ", "2 1 ")
    assert workload_from_swf(parse_swf(later.encode()), processors=4).requests.submit == (0, 0.209)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (ROW.replace(" 2 20", " 1.5 20"), "job 1: 1.5 is not a whole number of processors"),
        (ROW.replace("1 0 -1 10", "1 0 -1 0.0001"), "job 1 run: 0.0001 is not within 0.001 and 1e\\+15"),
        (ROW.replace(" 20 ", " 1e300 "), "job 1: 1e\\+300 is not a time"),
        (
            ROW.replace("1 0 -1 10", "1 0 -1 0"),
            "no job is left: dropped 1 of 1 rows: 1 with run time 0 or missing",
        ),
    ],
)
def test_numbers_no_job_can_have_are_refused(row: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        workload_from_swf(parse_swf(row.encode()), processors=4)


def test_estimates_and_run_times_are_checked() -> None:
    columns: dict[str, tuple[int, ...]] = {"submit": (0, 0), "size": (1, 1), "user": (1, 1), "weight": (1, 1)}
    with pytest.raises(InputError, match="estimate: 0 is not within"):
        Requests(processors=4, estimate=(5, 0), **columns)
    requests = Requests(processors=4, estimate=(5, 5), **columns)
    with pytest.raises(InputError, match="job 2 run: 0 is not within"):
        Workload(requests=requests, run=(5, 0), ids=(1, 2), row=(0, 1), rows=2)


@needs_data
@pytest.mark.parametrize(
    ("name", "jobs", "dropped"),
    [
        ("KTH-SP2-1996-2", 28_481, (0, 8, 0)),
        ("SDSC-SP2-1998-4-first5k", 4_606, (0, 355, 0)),
        ("theta_2023", 8_393, (0, 0, 8)),
        ("lublin_256", 10_000, (0, 0, 0)),
    ],
)
def test_public_logs_drop_what_their_readme_says(name: str, jobs: int, dropped: tuple[int, ...]) -> None:
    workload = workload_from_swf(load_swf(DATA / f"{name}.swf"))
    assert len(workload) == jobs
    assert tuple(workload.dropped.values()) == (0, 0, *dropped)
