"""A row of the thesis's tables is named for what ran; a table has one set of options for all workloads."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import thesis
from thesis_cells import cells_of
from thesis_orderings import held
from thesis_plots import draw_figures
from thesis_report import write_results
from thesis_tables import IN_TABLE_8_3, MODELS, ORDERINGS, TABLES, Row, name_of, reading_of

from aucsched.simulation.nodes.node_policies import NodeOptions, play, step_options


def bare(row: Row) -> str:
    reading = reading_of(row.cores_per_gpu, on_a_line=row.on_a_line)
    return row.label.split(": ")[-1].removesuffix(reading)


@pytest.mark.parametrize("table", TABLES)
def test_a_model_s_name_alone_is_the_model_with_solver_or_search(table: str) -> None:
    for row in TABLES[table]:
        assert bare(row) == name_of(row.policy, row.options, ranges=row.ranges)
        options = NodeOptions(policy=row.policy, **row.options)
        if row.policy not in MODELS:
            assert bare(row).split(",")[0] == "Backfill"
            continue
        step = step_options(options)
        first = bare(row).split(",")[0]
        assert first.split()[0] == row.policy.upper()
        assert ("greedy" in first) == step.is_greedy
        assert ("balanced" in first) == step.balance
        if first == row.policy.upper():
            assert step.chosen_strategy in ("exact", "anytime")
            assert step.work_limit
            assert not step.balance
        if options.preset:
            # The name stands for all that the published plug-in's preset says.
            assert (step.objective, step.bid_order) == ("priority_cores", "figure-4.5")
            continue
        assert ("P·R" in bare(row)) == (step.objective == "priority_cores")
        assert ("multifactor" in bare(row)) == (options.order == "multifactor")
        assert ("GPU ranges" in bare(row)) == row.ranges
        assert ("bids of figure 4.5" in bare(row)) == (step.bid_order == "figure-4.5")
        assert ("award alone" in bare(row)) == step.award_alone
        assert ("discard" in bare(row)) == (options.on_timeout == "discard")
        assert ("plug-in" in bare(row)) == (options.preset == "plugin")


@pytest.mark.parametrize("table", TABLES)
def test_rows_of_a_table_differ_in_what_they_are_called_for_only(table: str) -> None:
    """Soner: seven repetitions (8.2, 8.4.2).

    Soner: tables A.1, A.2, A.3, A.4, A.5.
    """
    told: dict[str, set[str]] = {}
    for row in TABLES[table]:
        told.setdefault(row.label, set()).add(str(sorted(row.options.items())))
        # The same pass interval and as many jobs in sight, whatever the method.
        sight = 250 if "plug-in" in row.label else 100_000 if "whole queue" in row.label else 100
        options = NodeOptions(policy=row.policy, **row.options)
        looked = step_options(options).window if row.policy in MODELS else options.window
        assert (options.interval_s, looked) == (3.0, sight)
        # Slurm's backfill looks in every pass, as the auctions do.
        assert row.options.get("backfill_interval_s", 0.0) == 0.0
    assert all(len(options) == 1 for options in told.values()), told


def test_models_of_a_3_that_are_compared_differ_in_nothing_else() -> None:
    rows = {row.label: row for row in TABLES["A.3"] if row.workload == "1"}
    one, two = rows["AUCSCHED1"], rows["AUCSCHED2, 150 bids"]
    assert dict(one.options) == dict(two.options)
    assert (one.policy, two.policy) == ("aucsched1", "aucsched2")


@pytest.mark.parametrize("table", TABLES)
def test_every_workload_has_the_same_methods(table: str) -> None:
    rows = TABLES[table]
    methods: dict[str, set[str]] = {}
    for row in rows:
        if row.ranges or row.cores_per_gpu or row.on_a_line:
            continue
        if not row.workload.endswith("'"):
            methods.setdefault(row.workload, set()).add(row.label)
    assert len({frozenset(names) for names in methods.values()}) == 1
    keys = [row.key for row in TABLES[table]]
    assert len(keys) == len(set(keys))


def test_experiments_of_a_1_are_numbered_against_table_8_3() -> None:
    """Soner: table 8.3 experiments."""
    # Table 8.3: plug-ins in order, basic before multifactor for each.
    plugins = ("Backfill", "IPSCHED", "IPSCHED, P·R", "AUCSCHED1")
    printed = {
        2 * place + 1 + multifactor: plugin + (", multifactor" if multifactor else "")
        for place, plugin in enumerate(plugins)
        for multifactor in (0, 1)
    }
    for row in (*TABLES["A.1"], *TABLES["A.2"]):
        number, name = row.label.split(": ")
        # The thesis's bids alone, and awards alone, are no experiments of their own.
        plain = name.replace(", bids of figure 4.5", "").replace(", award alone", "").replace(", discard", "")
        assert printed[IN_TABLE_8_3[int(number)]] == plain


def test_a_row_counts_what_its_starts_were() -> None:
    (row,) = (one for one in TABLES["A.1"] if one.label == "4: AUCSCHED1, award alone")
    (complete,) = (one for one in TABLES["A.1"] if one.label == "4: AUCSCHED1")
    workload = thesis.make("A.1", row, 1, 8)
    few = replace(workload, jobs=workload.jobs[:40])
    for one, kinds in ((row, {"awards"}), (complete, {"awards", "completions"})):
        with thesis.counted_starts() as counts:
            play(few, NodeOptions(policy=one.policy, **one.options))
        assert set(counts) <= kinds | ({"behind the window"} if one is complete else set())
        assert counts.total() == len(few.jobs)
        assert counts["awards"]


def test_a_row_on_a_line_has_the_jobs_of_the_others_and_no_switches() -> None:
    rows = {row.label: row for row in TABLES["A.3"] if row.workload == "7"}
    line, tree = (thesis.make("A.3", rows[name], 1) for name in ("Backfill, on a line", "Backfill"))
    assert (line.jobs, line.nodes) == (tree.jobs, tree.nodes)
    assert (line.switches, bool(tree.switches)) == (None, True)


@pytest.mark.parametrize("ordering", ORDERINGS)
def test_orderings_compare_two_methods_of_their_table(ordering: Any) -> None:
    names = {bare(row) for row in TABLES[ordering.table]}
    assert {ordering.first, ordering.second} <= names
    assert ordering.first != ordering.second


def test_an_ordering_compares_the_seeds_that_both_have() -> None:
    rows = {row.label: row for row in TABLES["A.5"] if row.workload == "1"}
    runs = [made_up(rows["Backfill"], "A.5", seed) for seed in (1, 2)] + [
        made_up(rows["AUCSCHED3"], "A.5", 2)
    ]
    for run, used in zip(runs, (0.9, 0.5, 0.6), strict=True):
        run["metrics"]["cpu_utilization"] = used
    (ordering,) = (
        one
        for one in ORDERINGS
        if (one.table, one.metric, one.first) == ("A.5", "cpu_utilization", "AUCSCHED3")
    )
    # Less than backfill's mean of both seeds, more than in the one that it has.
    assert "1 of 1 (yes: 1;" in held(ordering, cells_of(runs))


@pytest.mark.parametrize("ordering", ORDERINGS)
def test_orderings_of_two_auctions_are_of_the_models_alone(ordering: Any) -> None:
    told = {bare(row): row for row in TABLES[ordering.table]}
    pair = told[ordering.first], told[ordering.second]
    if ordering.as_run or any(row.policy not in MODELS for row in pair):
        return
    # IPSCHED, which has no bids, reads nothing of how they are made.
    one, other = ({name: value for name, value in row.options.items() if name != "bid_order"} for row in pair)
    assert one == other
    assert pair[0].policy != pair[1].policy


def made_up(row: Row, table: str, seed: int) -> dict[str, Any]:
    share = 0.1 * (seed + len(row.label) % 7)
    names = ("cpu_utilization", "wait_h", "slowdown_mean", "packing_factor_mean", "fragmentation_mean")
    more = ("spread_mean", "level_mean", "span_mean", "makespan_h", "wait_mean_s", "wait_max_s")
    metrics: dict[str, Any] = dict.fromkeys((*names, *more, "gpu_utilization"), share)
    metrics |= {"level_job_shares": {"0": 0.5, "1": 0.5}, "level_time_shares": {"0": 0.5, "1": 0.5}}
    return {
        "table": table,
        "workload": row.workload,
        "policy": row.policy,
        "label": row.label,
        "contiguity": row.contiguity,
        "ranges": row.ranges,
        "options": dict(row.options),
        "seed": seed,
        "nodes": 32,
        "jobs": 5,
        "fluid": 0.9,
        "printed": dict(row.printed),
        "metrics": metrics,
    }


def test_every_figure_of_chapter_8_is_drawn_of_its_table(tmp_path: Path) -> None:
    """Soner: figures 8.1-8.9 waits, utilisation, packing, fragmentation, spread.

    Soner: figures 8.10-8.19.
    """
    runs = [
        made_up(row, table, seed)
        for table, rows in TABLES.items()
        for row in rows
        for seed in (1, 2)
        if row.workload in {"esp-gpu", "I", "1", "5"}
    ]
    drawn = draw_figures(runs, tmp_path)
    assert [path.name for _, path in drawn] == [f"figure-8.{number}.png" for number in range(1, 20)]


def test_results_are_means_over_seeds_with_their_error() -> None:
    row = TABLES["A.1"][0]
    runs = [made_up(row, "A.1", seed) for seed in (1, 2, 3)]
    (cell,) = cells_of(runs)
    mean = cell.mean("wait_h")
    assert mean is not None
    values = [run["metrics"]["wait_h"] for run in runs]
    assert mean.value == pytest.approx(sum(values) / 3)
    # Values 0.1 apart: a standard deviation of 0.1 over the root of three.
    assert mean.error == pytest.approx(0.1 / 3**0.5)


def test_a_command_that_was_stopped_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = TABLES["A.1"][0]
    asked: list[int] = []

    def run(table: str, row: Row, seed: int, _: int | None) -> dict[str, Any]:
        asked.append(seed)
        return {**made_up(row, table, seed), "cpu_s": float(seed), "passes": 100}

    monkeypatch.setattr(thesis, "run", run)
    monkeypatch.setattr(thesis, "ProcessPoolExecutor", ThreadPoolExecutor)
    command = ["--table", "A.1", "--method", row.label, "--results", str(tmp_path / "results")]
    command += ["--workers", "1"]
    thesis.main(["--seed", "1", "--seed", "2", *command], standalone_mode=False)
    assert "mean of 2 rows: 15.0 ms of processor time a pass" in capsys.readouterr().err
    thesis.main([*command], standalone_mode=False)
    assert sorted(asked) == list(range(1, 8))
    text = (tmp_path / "results" / "RESULTS.md").read_text()
    assert "| esp-gpu | 1: Backfill | 7 | 100 |" in text
    assert "± " in text


def test_write_results_says_in_how_many_workloads_an_ordering_holds(tmp_path: Path) -> None:
    folder = tmp_path / "results" / "table-A.1-seed-1"
    folder.mkdir(parents=True)
    for row in TABLES["A.1"]:
        run = made_up(row, "A.1", 1)
        run["metrics"]["cpu_utilization"] = {"backfill-slurm": 0.8, "ipsched": 0.9}.get(row.policy, 0.7)
        (folder / f"{row.key}.json").write_text(json.dumps(run))
    write_results(tmp_path / "results", tmp_path / "RESULTS.md", tmp_path / "figures")
    text = (tmp_path / "RESULTS.md").read_text()
    assert "IPSCHED has more `cpu_utilization` than Backfill: 1 of 1 (yes: esp-gpu;" in text
    assert "AUCSCHED1 has more `cpu_utilization` than IPSCHED: 0 of 1 (yes: –; no: esp-gpu;" in text
    assert "Not run: `python benchmarks/thesis.py --table A.3`." in text
