"""Parts of logs are logs of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from real_parts import part_of, ratios

from aucsched.formats.swf import load_swf
from aucsched.simulation.log_columns import Workload, workload_from_swf

#: Job, submission, run time, processors and time limit of a machine of four; each row of a log of 18 columns.
_ROWS = ((1, 0, 9, 4, 10), (2, 50, 20, 4, 20), (3, 60, 30, 2, 20), (4, 61, 5, 2, 5), (5, 99, 1, 1, 1))


@pytest.fixture
def log(tmp_path: Path) -> Workload:
    path = tmp_path / "log.swf"
    path.write_text(
        "; MaxProcs: 4\n"
        + "".join(
            f"{job} {submit} -1 {run} {size} -1 -1 {size} {limit} -1 1 1 1 1 1 1 -1 -1\n"
            for job, submit, run, size, limit in _ROWS
        )
    )
    return workload_from_swf(load_swf(path))


def test_a_part_begins_with_its_first_job(log: Workload) -> None:
    part = part_of(log, 1, 3)
    assert list(part.ids) == [2, 3, 4]
    assert list(part.requests.submit) == [0, 10, 11]
    assert list(part.requests.size) == [4, 2, 2]
    # The third ran into its limit.
    assert part.killed == {1}
    assert list(part.run) == [20, 20, 5]


def test_a_part_without_a_queue_is_played_alike(log: Workload) -> None:
    assert ratios(part_of(log, 4, 1))[-1] == 1
