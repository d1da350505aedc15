"""Results that somebody keeps elsewhere leave the repository's pages alone; pictures need no matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import board
import evolving_plots
import ischeduler
import marked_part
import negotiation_figures
import pytest
import real
import thesis
import ub_week
from click.testing import CliRunner
from marked_part import page_of
from thesis_tables import TABLES

ROOT = Path(__file__).parents[2]


def test_a_page_is_the_repository_s_only_of_its_own_results(tmp_path: Path) -> None:
    own, page = tmp_path / "own", tmp_path / "docs" / "page.md"
    assert page_of(own, own, page) == page
    assert page_of(tmp_path / "there" / ".." / "own", own, page) == page
    assert page_of(tmp_path / "else", own, page) == tmp_path / "else" / "page.md"


@pytest.fixture
def kept() -> Any:
    """Yield nothing; the repository's pages and pictures are what they were."""
    paths = [ROOT / "benchmarks" / "RESULTS.md", *(ROOT / "benchmarks" / "notes").glob("*.md")]
    paths += [*(ROOT / "benchmarks" / "figures").glob("*.png"), *(ROOT / "docs" / "images").glob("*.png")]
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in paths}
    yield
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in paths} == before


@pytest.fixture(params=[True, False], ids=["matplotlib", "none"])
def draws(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if not request.param:
        monkeypatch.setattr(marked_part, "find_spec", lambda _: None)
    return bool(request.param)


@pytest.mark.usefixtures("kept")
def test_thesis_writes_page_and_figures_among_its_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, draws: bool
) -> None:
    row = TABLES["A.1"][0]
    path = Path("table-A.1-seed-1") / f"{row.key}.json"
    (tmp_path / path).parent.mkdir()
    (tmp_path / path).write_text((ROOT / "benchmarks" / "results" / path).read_text())
    asked = ["--table", "A.1", "--seed", "1", "--method", row.label, "--results", str(tmp_path)]
    done = CliRunner().invoke(thesis.main, [*asked, "--only", row.workload], catch_exceptions=False)
    assert done.exit_code == 0
    text = (tmp_path / "RESULTS.md").read_text()
    assert row.label in text
    assert f"table A.1: 1 runs, 1 of them kept in {tmp_path}, 0 to play" in done.stderr
    assert done.stdout == f"table A.1, of all runs in {tmp_path}, is in {tmp_path / 'RESULTS.md'}\n"
    monkeypatch.setattr(thesis, "run", None)
    whole = ["--table", "A.1", "--results", str(tmp_path), "--report"]
    done = CliRunner().invoke(thesis.main, whole, catch_exceptions=False)
    assert (done.exit_code, "1 of them kept" in done.stderr) == (0, True)
    assert "97 not played" in done.stderr
    assert (tmp_path / "RESULTS.md").read_text() == text
    assert ("](figures/figure-8.1.png)" in text) == draws
    assert (tmp_path / "figures" / "figure-8.1.png").exists() == draws
    assert ("need matplotlib" in done.stderr) != draws


@pytest.mark.usefixtures("kept")
def test_real_writes_page_and_plot_among_its_results(tmp_path: Path, *, draws: bool) -> None:
    for path in (ROOT / "benchmarks" / "results" / "real").glob("KTH*.json"):
        (tmp_path / path.name).write_text(path.read_text())
    done = CliRunner().invoke(real.main, ["--results", str(tmp_path), "--report"], catch_exceptions=False)
    assert done.exit_code == 0
    assert (tmp_path / "real.md").exists()
    assert (tmp_path / "images" / "real.png").exists() == draws
    assert ("needs matplotlib" in done.stderr) != draws


@pytest.mark.usefixtures("kept")
def test_thesis_refuses_a_method_that_a_workload_lacks() -> None:
    lacks = ["--table", "A.5", "--only", "1", "--method", "AUCSCHED3, GPU ranges"]
    done = CliRunner().invoke(thesis.main, lacks)
    assert done.exit_code == 2
    assert "table A.5 has no row of these workloads by these methods" in done.stderr


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize(
    ("benchmark", "line"), [(real, "| fcfs | 353776 |"), (board, "| **conservative** | 89.85 |")]
)
def test_the_repository_s_tables_are_printed_and_written_if_asked(
    benchmark: Any, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmark, "DATA", tmp_path)
    monkeypatch.setattr(board, "published", lambda _: ({}, ""))
    monkeypatch.setattr(board, "FIGURES", tmp_path / "published.json")
    (tmp_path / "published.json").write_text("{}")
    done = CliRunner().invoke(benchmark.main, [], catch_exceptions=False)
    assert done.exit_code == 0
    assert line in done.stdout
    monkeypatch.setattr(benchmark, "PAGE", page := tmp_path / "page.md")
    for name in {"PICTURE", "PICTURES"} & {*vars(benchmark)}:
        monkeypatch.setattr(benchmark, name, tmp_path / f"{name}.png")
    done = CliRunner().invoke(benchmark.main, ["--write"], catch_exceptions=False)
    assert done.exit_code == 0
    assert line in page.read_text()
    assert line not in done.stdout


@pytest.mark.usefixtures("kept")
def test_the_board_keeps_the_published_figures_that_it_cannot_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board, "published", lambda _: ({}, ""))
    monkeypatch.setattr(board, "FIGURES", missing := tmp_path / "published.json")
    done = CliRunner().invoke(board.main, ["--write"])
    assert done.exit_code == 2
    assert f"--write would empty the column published: there is no {missing}" in done.stderr
    done = CliRunner().invoke(board.main, [], catch_exceptions=False)
    assert done.exit_code == 0
    assert done.stderr == f"the column published is empty: there is no {missing}\n"


@pytest.mark.usefixtures("kept")
def test_negotiation_draws_beside_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, draws: bool
) -> None:
    kept = (ROOT / "benchmarks" / "results" / "figures-7.jsonl").read_text()
    (tmp_path / "rows.jsonl").write_text(kept)
    monkeypatch.setattr(negotiation_figures, "made", None)
    done = CliRunner().invoke(
        negotiation_figures.main, ["--rows", str(tmp_path / "rows.jsonl")], catch_exceptions=False
    )
    assert done.exit_code == 0
    assert "| share | text |" in done.stdout
    assert (tmp_path / "figures-7.png").exists() == draws


@pytest.mark.usefixtures("kept")
def test_ub_week_writes_its_part_among_its_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ub_week.EVENTS).write_text("")
    (tmp_path / "ub-week").mkdir()
    for row in ub_week.RUNS:
        (tmp_path / "ub-week" / f"{row}.json").write_text("{}")
    monkeypatch.setattr(ub_week, "week", lambda _: (type("Week", (), {"jobs": ()}), ()))
    monkeypatch.setattr(ub_week, "_is_done", lambda *_: True)
    monkeypatch.setattr(ub_week, "section", lambda *_: ["# UB"])
    done = CliRunner().invoke(
        ub_week.main, [str(tmp_path), "--results", str(tmp_path)], catch_exceptions=False
    )
    assert done.exit_code == 0
    assert "# UB" in (tmp_path / "RESULTS.md").read_text()


@pytest.mark.parametrize("benchmark", [ischeduler, evolving_plots])
def test_figures_are_refused_before_the_run(
    benchmark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(marked_part, "find_spec", lambda _: None)
    monkeypatch.setattr("sys.argv", ["benchmark", "--figures", str(tmp_path / "figures")])
    with pytest.raises(SystemExit, match="2"):
        benchmark.main()
    assert "--figures needs matplotlib" in capsys.readouterr().err
    assert not (tmp_path / "figures").exists()
