"""The four models: the papers' examples, presets, export, and the known faults of the published plugins."""

from __future__ import annotations

import csv
import dataclasses
import json
import random
from pathlib import Path
from typing import Any

import highspy
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from random_snapshots import random_snapshot
from support.build import ALONE, document, figure_4_3, section_1_2, snapshot, tiny, tree
from support.optimum import best_priority_sum
from support.run import aucsched, refused

from aucsched import OptionError, Schedule, Snapshot, Status, schedule
from aucsched.auction.ledger import greedy
from aucsched.auction.options import MODELS, PRESETS, StepOptions, options_with_preset
from aucsched.auction.queue import queue_of
from aucsched.auction.strategies import build_model
from aucsched.bidgen.families.registry import columns_of
from aucsched.bidgen.first_fit import Cluster
from aucsched.bidgen.generate import BidOptions, generate_bids
from aucsched.bidgen.table import BidTable
from aucsched.cluster.resources.demand import Demand, DemandReader
from aucsched.formats.hostlist import expand
from aucsched.models.ipsched import Ipsched
from aucsched.topology.tree import topology_of

EVERY = pytest.mark.parametrize("model", MODELS)


def started(result: Schedule) -> list[str]:
    return sorted(award.job for award in result.started)


def with_presets(model: str) -> list[str | None]:
    return [None, *(preset for preset, models in PRESETS.items() if model in models)]


@EVERY
def test_section_1_2_starts_all_three_jobs(model: Any) -> None:
    preset: Any
    for preset in with_presets(model):
        result = schedule(section_1_2(), model=model, preset=preset, **ALONE, time_limit_s=60)
        assert started(result) == ["J1", "J2", "J3"], preset


@pytest.mark.parametrize("preset", with_presets("aucsched1"))
def test_figure_4_3_starts_all_four_jobs_with_aucsched1(preset: Any) -> None:
    """Soner: AUCSCHED1 (chapter 4).

    Soner: equations (4.1)-(4.8).
    Soner: figure 4.3 four jobs on 144 nodes.
    """
    result = schedule(figure_4_3(), model="aucsched1", preset=preset, **ALONE, time_limit_s=60)
    assert started(result) == ["J1", "J2", "J3", "J4"]
    nodes_of = {award.job: award.nodes for award in result.started}
    assert {frozenset(nodes_of["J2"]), frozenset(nodes_of["J3"])} == {
        frozenset(f"n{place:03d}" for place in block) for block in (range(1, 65), range(81, 145))
    }
    for block, cores in (("J2", 5), ("J3", 3)):
        assert {nodes_of["J1"][name].cores for name in nodes_of[block]} == {cores}
    assert {use.cores for use in nodes_of["J4"].values()} == {1}


def expressible(cluster: Snapshot) -> Snapshot:
    jobs = (job for job in cluster.jobs if not job.request.contiguous and job.request.cores_per_node is None)
    return dataclasses.replace(cluster, jobs=tuple(jobs))


def test_ipsched_equals_free_placement_on_forty_tiny_snapshots() -> None:
    """Soner: equations (3.6), (3.7)."""
    for seed in range(40):
        cluster = expressible(tiny(seed))
        result = schedule(cluster, model="ipsched", **ALONE, time_limit_s=60)
        assert float(result.objective.priority) == best_priority_sum(cluster)


def test_ipsched_equals_free_placement_on_all_it_can_express() -> None:
    """Soner: IPSCHED (chapter 3).

    Soner: equations (3.2)-(3.5).
    """
    for seed in range(60):
        cluster = expressible(random_snapshot(seed))
        lowest = [
            dataclasses.replace(
                job,
                request=dataclasses.replace(
                    job.request,
                    gres_per_node={
                        name: dataclasses.replace(span, maximum=max(1, span.minimum))
                        for name, span in job.request.gres_per_node.items()
                    },
                ),
            )
            for job in cluster.jobs
        ]
        cluster = dataclasses.replace(cluster, jobs=tuple(lowest))
        result = schedule(cluster, model="ipsched", **ALONE, time_limit_s=60)
        assert float(result.objective.priority) == pytest.approx(best_priority_sum(cluster), rel=1e-9)


@pytest.mark.parametrize("options", [ALONE, {}, {"award_alone": True}])
def test_ipsched_packs_jobs_on_few_nodes_in_its_second_stage(options: dict[str, Any]) -> None:
    """Soner: equations (3.2)-(3.5)."""
    nodes = [{"name": "n[1-4]", "cores": 4}]
    result = schedule(snapshot(nodes, [{"cores": 4}, {"cores": 8}]), model="ipsched", **options)
    assert sorted(len(award.nodes) for award in result.started) == [1, 2]
    assert result.status is Status.OPTIMAL
    assert result.objective.preference is None


def test_ipsched_says_what_it_cannot_express() -> None:
    """Soner: table 8.2 features."""
    jobs = [{"nodes": 1, "cores_per_node": 1}, {"cores": 1, "contiguous": True}, {"cores": 1}]
    result = schedule(snapshot([{"name": "n1", "cores": 8}], jobs), model="ipsched")
    assert {refusal.job: refusal.reason for refusal in result.pending} == {
        "J1": "not_expressible",
        "J2": "not_expressible",
    }


@pytest.mark.parametrize(
    ("model", "counts"), [("ipsched", {1}), ("aucsched1", {1, 2, 3}), ("aucsched2", {3}), ("aucsched3", {3})]
)
def test_a_range_of_gpus_where_table_8_2_has_no_tick(model: Any, counts: set[int]) -> None:
    """Soner: table 8.2 features. Only (5.7) and (6.5) prefer more GPUs; IPSCHED takes the least."""
    nodes = [{"name": "n1", "cores": 4, "gres": {"gpu": 3}}]
    result = schedule(
        snapshot(nodes, [{"nodes": 1, "cores": 2, "gres_per_node": {"gpu": [1, 3]}}]), model=model
    )
    assert result.started[0].nodes["n1"].gres["gpu"] in counts


def test_ipsched_refuses_a_window_that_is_too_large_and_names_one_that_fits() -> None:
    with pytest.raises(OptionError, match="--window 212 would fit"):
        Ipsched.check_size(213, 9408)
    Ipsched.check_size(212, 9408)


@EVERY
@pytest.mark.parametrize("weights", ["lexicographic", "paper"])
@pytest.mark.parametrize("objective", ["priority", "priority_cores"])
def test_every_combination_gives_valid_awards(model: Any, weights: Any, objective: Any) -> None:
    for seed in range(12):
        cluster = random_snapshot(seed)
        result = schedule(cluster, model=model, weights=weights, objective=objective)
        bound = result.objective.bound
        assert bound is None or bound >= float(result.objective.priority) - 1e-6


# Presets.


@given(seed=st.integers(0, 10**6), model=st.sampled_from(MODELS))
@settings(max_examples=150, deadline=None)
@example(seed=3633, model="ipsched")
@example(seed=91340, model="ipsched")
def test_quick_awards_are_solutions_of_the_program_that_starts_from_them(seed: int, model: str) -> None:
    cluster = random_snapshot(seed)
    columns, topology = columns_of(cluster), topology_of(cluster)
    window = queue_of(cluster, DemandReader(cluster, columns), StepOptions(model=model)).window  # type: ignore[arg-type]
    table = generate_bids(window, Cluster(columns, topology), BidOptions()).table
    built = build_model(table, Cluster(columns=columns, topology=topology), StepOptions(model=model))  # type: ignore[arg-type]
    award = greedy(table, Cluster(columns, topology))
    values, program = built.start(np.array(award, np.int64)), built.program
    rows = np.repeat(np.arange(program.rows), np.diff(program.indptr))
    sums = np.bincount(rows, weights=program.value * values[program.index], minlength=program.rows)
    assert (sums >= program.row_lower).all()
    assert (sums <= program.row_upper).all()
    assert ((program.lower <= values) & (values <= program.upper)).all()
    answer = built.answer(values)
    started = {int(answer.table.job[bid]) for bid in answer.chosen}
    assert started == {int(table.job[bid]) for bid in award}


def test_presets_are_overridden_by_what_is_explicit() -> None:
    """Soner: Slurm plug-ins (3.2, 4.3, 5.2, 6.1), their constants."""
    options = options_with_preset({"preset": "plugin", "model": "aucsched1", "max_bids": 99})
    assert (options.window, options.max_bids, options.max_bids_per_job) == (100, 99, 15)
    assert (options.weights, options.bid_order, options.on_timeout) == ("paper", "figure-4.5", "incumbent")
    large = options_with_preset({"preset": "plugin"})
    assert (large.window, large.bids_in_all, large.bids_per_job, large.objective) == (
        250,
        25_000,
        500,
        "priority_cores",
    )
    assert options_with_preset({}) == StepOptions(clock=options.clock)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("model", ["aucsched1", "aucsched2", "aucsched3"])
def test_no_preset_narrows_the_nodes_of_a_job(preset: str, model: str) -> None:
    if model not in PRESETS[preset]:
        return
    nodes = [{"name": f"n{place}", "cores": 4, "gres": {"gpu": place % 3}} for place in range(6)]
    cluster = snapshot(
        nodes, [{"nodes": 1, "cores": 2}, {"nodes": 1, "cores": 2, "gres_per_node": {"gpu": 2}}]
    )
    options = options_with_preset({"preset": preset, "model": model})
    assert not options.balance
    columns = columns_of(cluster)
    window = queue_of(cluster, DemandReader(cluster, columns), options).window
    table = generate_bids(window, Cluster(columns, topology_of(cluster)), options.bids).table
    # Who asks for no GPU bids beside free ones too.
    assert set(table.node[: table.indptr[np.searchsorted(table.job, 1)]].tolist()) == set(range(6))


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_runs_with_every_model_it_knows(preset: Any) -> None:
    model: Any
    for model in PRESETS[preset]:
        cluster = random_snapshot(5)
        result = schedule(cluster, preset=preset, model=model)
        assert len(result.started) + len(result.pending) == len(cluster.jobs)


@pytest.mark.parametrize(("preset", "model"), [("plugin", "aucsched2"), ("thesis", "aucsched3")])
def test_presets_that_do_not_exist_are_named(preset: Any, model: Any) -> None:
    with pytest.raises(OptionError, match="preset"):
        schedule(random_snapshot(5), preset=preset, model=model)


# Export.


def read_back(path: Path) -> tuple[float, bool, list[str]]:
    """Return the optimum of a file as HiGHS reads it, whether it minimises, and the columns that are 1."""
    highs = highspy.Highs()  # type: ignore[no-untyped-call]
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("mip_rel_gap", 0.0)
    assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
    highs.run()
    sense = highs.getObjectiveSense()[1]
    values = highs.getSolution().col_value
    won = [highs.getColName(place)[1] for place, value in enumerate(values) if round(value) == 1]
    return highs.getInfo().objective_function_value, sense == highspy.ObjSense.kMinimize, won


@EVERY
@pytest.mark.parametrize("ending", ["mps", "lp"])
def test_the_exported_program_has_the_schedules_optimum(model: Any, ending: str, tmp_path: Path) -> None:
    for seed in (0, 3, 8):
        file = tmp_path / f"window{seed}.{ending}"
        result = schedule(tiny(seed), model=model, **ALONE, export=str(file), time_limit_s=60)
        value, minimises, won = read_back(file)
        assert minimises == (ending == "mps")
        assert abs(value) == pytest.approx(float(result.objective.priority))
        assert (value <= 0) == minimises
        assert ".csv says what its columns are" in file.read_text().partition("\n")[0]
        rows = csv.DictReader(Path(f"{file}.csv").read_text().splitlines())
        described = {row["column"]: row for row in rows}
        starts = [described[name] for name in won if name[0] in "bs"]
        weights = {job.id: job.priority for job in tiny(seed).jobs}
        assert sum(weights[row["job"]] for row in starts) == result.objective.priority
        if model != "ipsched":
            assert all(expand(row["nodes"]) and int(row["cores"]) for row in described.values())


def test_halved_attempts_leave_the_exported_window_alone(tmp_path: Path) -> None:
    rng = random.Random(5)
    nodes = [{"name": f"n{place:03d}", "cores": 12, "free_cores": rng.randint(0, 12)} for place in range(120)]
    jobs = [{"nodes": rng.randint(2, 9), "cores_per_node": rng.randint(2, 7)} for _ in range(40)]
    for on_timeout in ("incumbent", "halve"):
        file = str(tmp_path / f"{on_timeout}.lp")
        options: dict[str, Any] = {"strategy": "exact", "work_limit": 0, "on_timeout": on_timeout}
        result = schedule(snapshot(nodes, jobs), **ALONE, **options, export=file)
    assert len(result.attempts) > 1
    assert (tmp_path / "halve.lp").read_bytes() == (tmp_path / "incumbent.lp").read_bytes()


def test_export_refuses_another_ending(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="neither"):
        schedule(tiny(0), export=str(tmp_path / "window.txt"))
    assert not list(tmp_path.iterdir())


def test_a_table_that_the_model_does_not_read_is_refused_and_the_preset_does_not_ask_for_it() -> None:
    for model in ("ipsched", "aucsched1", "aucsched3"):
        with pytest.raises(OptionError, match="preference_table"):
            schedule(tiny(0), model=model, preference_table="printed")
        assert options_with_preset({"preset": "paper", "model": model}).preference_table == "corrected"
    assert options_with_preset({"preset": "paper", "model": "aucsched2"}).preference_table == "printed"


def test_without_jobs_or_bids_the_export_is_written_or_said_not_to_be(tmp_path: Path) -> None:
    for name, jobs in (("empty", []), ("none_fits", [{"cores": 99}])):
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps(document([{"name": "n1", "cores": 1}], jobs)))
        target = tmp_path / f"{name}.lp"
        done = aucsched("schedule", file, "--export", target)
        assert done.returncode == 0, done.stderr
        assert target.exists() != ("is not written" in done.stderr)


def test_the_command_knows_models_presets_reserve_and_export(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "emulated-1408-full.json"
    file = tmp_path / "window.mps"
    done = aucsched("schedule", example, "--model", "ipsched", "--reserve", "1", "--export", file)
    assert done.returncode == 0, done.stderr
    assert "minimises" in done.stderr
    assert file.stat().st_size > 1000
    assert "window: ipsched needs 1000 jobs" not in done.stderr
    assert "'--reserve': -1" in refused("schedule", example, "--reserve", "-1")
    assert "plugin are not known here" in refused(
        "schedule", example, "--preset", "plugin", "--model", "aucsched2"
    )


# Known faults of the published plugins, each with a test that fails with it.


def table_of(cluster: Snapshot, **options: Any) -> BidTable:
    columns = columns_of(cluster)
    reader = DemandReader(cluster, columns)
    read = (reader.read(job, place) for place, job in enumerate(cluster.jobs))
    demands = tuple(demand for demand in read if isinstance(demand, Demand))
    return generate_bids(demands, Cluster(columns, topology_of(cluster)), BidOptions(**options)).table


@EVERY
@pytest.mark.parametrize("weights", ["lexicographic", "paper"])
def test_no_gpus_are_no_zero_over_zero(model: Any, weights: Any) -> None:
    result = schedule(
        snapshot([{"name": "n[1-2]", "cores": 4}], [{"cores": 4}]), model=model, weights=weights
    )
    assert started(result) == ["J1"]
    assert result.started[0].bid.preference is None or np.isfinite(result.started[0].bid.preference)


def test_equal_priorities_leave_topology_in_force() -> None:
    names = [f"n{place}" for place in range(8)]
    nodes = [{"name": name, "cores": 1, "free_cores": int(name not in {"n0", "n5"})} for name in names]
    jobs = [{"nodes": 2, "cores": 2, "priority": 5} for _ in range(2)]
    result = schedule(snapshot(nodes, jobs, topology=tree(names, 2)), model="aucsched3", **ALONE)
    assert [award.bid.level for award in result.started] == [0, 0]


def test_few_bids_are_the_best_ones_not_the_worst() -> None:
    names = [f"n{place:02d}" for place in range(40)]
    nodes = [{"name": name, "cores": 1} for name in names]
    cluster = snapshot(nodes, [{"nodes": 4, "cores": 4}], topology=tree(names, 4))
    for cap in (1, 2, 5):
        # One place is kept for a bid of class C, which joins two leaves here.
        assert (table_of(cluster, max_bids_per_job=cap).level == 0).sum() >= min(cap, max(2, cap - 1))


def test_duplicate_bids_take_no_slots() -> None:
    cluster = snapshot([{"name": "n[1-3]", "cores": 2}], [{"cores": 4}])
    table = table_of(cluster, max_bids_per_job=5)
    contents = {
        (table.node[table.entries(bid)].tobytes(), table.cores[table.entries(bid)].tobytes())
        for bid in range(len(table))
    }
    assert len(contents) == len(table) == 5


def test_contiguous_bids_skip_no_busy_node() -> None:
    """Soner: bids of class A, B, C, job types 1 to 3 (4.1)."""
    nodes = [{"name": f"n{place}", "cores": 2, "free_cores": 0 if place == 2 else 2} for place in range(6)]
    table = table_of(snapshot(nodes, [{"nodes": 3, "cores": 6, "contiguous": True}]))
    assert [table.node[table.entries(bid)].tolist() for bid in range(len(table))] == [[3, 4, 5]]


def test_late_jobs_get_a_bid_except_under_figure_4_5() -> None:
    """Soner: figure 4.5 bid generation."""
    cluster = snapshot([{"name": "n[1-9]", "cores": 2}], [{"cores": 2}] * 8)
    caps = {"max_bids": 12, "max_bids_per_job": 6}
    assert (np.bincount(table_of(cluster, **caps).job, minlength=8) > 0).all()
    assert (np.bincount(table_of(cluster, order="figure-4.5", **caps).job, minlength=8) > 0).sum() == 2
