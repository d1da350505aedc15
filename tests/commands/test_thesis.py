"""The command that runs the thesis's tables: what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
import thesis
from click.testing import CliRunner


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--table", "A.2", "--nodes", "40"], "--nodes 40: workload IV:"),
        (["--table", "A.5", "--nodes", "64"], "A.5 names its machine"),
        (["--table", "A.4", "--only", "1", "--only", "7"], "--only 7: table A.4 has 1, 2,"),
    ],
)
def test_what_cannot_run_is_refused_before_anything_does(
    options: list[str], said: str, tmp_path: Path
) -> None:
    results = tmp_path / "results"
    done = CliRunner().invoke(thesis.main, [*options, "--results", str(results)])
    assert done.exit_code == 2
    assert said in done.stderr
    assert not results.exists()
