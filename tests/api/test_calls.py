"""Calls from Python: files by their paths, options by real keywords, one line for what is wrong."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pandas as pd
import pytest

import aucsched
from aucsched.api.run_keywords import OrderName, PolicyName, SimulateKeywords, SweepKeywords
from aucsched.auction.options import StepOptions
from aucsched.auction.step_keywords import StepKeywords
from aucsched.cluster.option_table import OPTIONS_BY_NAME, SIMULATE, STEP, SWEEP, read_by
from aucsched.simulation.logs.policies import ORDERS, POLICIES, PolicyOptions
from aucsched.simulation.nodes.node_policies import NODE_POLICIES, NodeOptions
from aucsched.sweeps.axes import AXES

EXAMPLES = Path(__file__).parents[2] / "examples"
FULL, OVERTAKEN, DAYS = (
    EXAMPLES / name for name in ("emulated-1408-full.json", "overtaken.json", "days.swf")
)
SNAPSHOT = aucsched.Snapshot(
    nodes=[aucsched.Node(name="n", cores=8)],
    jobs=[aucsched.Job(id=name, priority=9, request=aucsched.Request(cores=5)) for name in ("64", "x")],
    time=0.0,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    aucsched.save_snapshot(SNAPSHOT, tmp_path / "now.json")
    return tmp_path / "now.json"


@pytest.mark.parametrize("kind", [str, Path])
def test_a_file_s_path_is_taken_wherever_a_file_is_read(file: Path, kind: Callable[[Path], Any]) -> None:
    path = kind(file)
    made = aucsched.schedule(path)
    assert made.started == aucsched.schedule(SNAPSHOT).started
    assert aucsched.compare(path).columns == aucsched.compare(SNAPSHOT).columns
    assert aucsched.plan(path) == aucsched.plan(SNAPSHOT)
    assert aucsched.explain(path).columns == aucsched.explain(SNAPSHOT).columns
    file.with_name("award.json").write_text(made.to_json())
    found = aucsched.explain(path, "x", award=kind(file.with_name("award.json")))
    assert found == aucsched.explain(SNAPSHOT, "x", award=made)
    assert aucsched.simulate(kind(DAYS)).columns == aucsched.simulate(aucsched.load_swf(DAYS)).columns
    assert aucsched.sweep(kind(DAYS), policy="fcfs").columns["policy"] == ["fcfs"]


def test_an_id_may_be_a_number() -> None:
    assert aucsched.explain(SNAPSHOT, 64) == aucsched.explain(SNAPSHOT, "64")
    assert aucsched.explain(SNAPSHOT, np.int64(64)).job.id == "64"  # type: ignore[call-overload]


def test_numbers_and_lists_of_libraries_are_taken() -> None:
    assert aucsched.schedule(SNAPSHOT, window=np.int64(1)).window == 1  # type: ignore[arg-type]
    aucsched.schedule(SNAPSHOT, time_limit_s=np.float32(0.5))  # type: ignore[arg-type]
    found = aucsched.simulate(DAYS, "partitioned", class_limits_s=[60.0, 3600.0])
    assert found.settings["class_limits_s"] == (60.0, 3600.0)


#: As somebody writes it who checks no types.
A: Any = aucsched


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: A.simulate(123), "workload: 123 is neither a log, a workload of nodes nor a file"),
        (lambda: A.simulate(pd.DataFrame()), "workload: a DataFrame is neither a log"),
        (lambda: A.simulate(SNAPSHOT), "workload: a Snapshot is neither a log"),
        (lambda: A.simulate(DAYS, processors="many"), "processors: 'many' is not an integer"),
        (lambda: A.simulate(OVERTAKEN, interval_s="x"), "interval_s: 'x' is not a number"),
        (lambda: A.simulate(DAYS, "eazy"), "did you mean easy?"),
        (lambda: A.simulate(OVERTAKEN, "eazy"), "did you mean easy?"),
        (lambda: A.simulate(DAYS, 7), "policy: 7 is not a text or a class"),
        (lambda: A.simulate(DAYS, order="fcsf"), "order: 'fcsf' is not one of .*: did you mean fcfs?"),
        (lambda: A.simulate(OVERTAKEN, "aucsched3", winow=3), "winow: simulate has no such option: did you"),
        (lambda: A.schedule(3), "snapshot: 3 is neither a Snapshot nor a file's name"),
        (lambda: A.schedule(SNAPSHOT, modle="x"), "modle: schedule has no such option: did you mean model?"),
        (lambda: A.schedule(SNAPSHOT, model="aucsched4"), "model: 'aucsched4' is not one of .*: did you"),
        (lambda: A.schedule(SNAPSHOT, window="5"), "window: '5' is not an integer"),
        (lambda: A.schedule(SNAPSHOT, window=True), "window: True is not an integer"),
        (lambda: A.schedule(SNAPSHOT, balance=1), "balance: 1 is not True or False"),
        (lambda: A.explain(SNAPSHOT, 3.5), "job: 3.5 is not a text or an integer"),
        (lambda: A.explain(SNAPSHOT, "x", award=3), "award: 3 is not"),
        (lambda: A.explain(SNAPSHOT, "x", wndow=3), "wndow: explain has no such option"),
        (lambda: A.compare([]), "snapshot: a list is neither"),
        (lambda: A.compare(SNAPSHOT, within_s="a"), "within_s: 'a' is not an integer"),
        (lambda: A.plan(None), "snapshot: a NoneType is neither"),
        (lambda: A.plan(SNAPSHOT, jobs="a"), "jobs: 'a' is not an integer"),
        (lambda: A.sweep(3), "source: 3 is neither"),
        (lambda: A.sweep(DAYS, polcy="easy"), "polcy: a sweep has no such option: did you mean policy?"),
        (lambda: A.sweep(DAYS, policy="eazy"), "did you mean easy?"),
        (lambda: A.sweep(DAYS, policy="easy", repeat="a"), "repeat: 'a' is not an integer"),
        (
            lambda: A.winners([], {}, strategy="exakt"),
            "strategy: 'exakt' is not one of .*: did you mean exact",
        ),
    ],
)
def test_what_is_wrong_is_one_line_that_names_it(call: Callable[[], object], message: str) -> None:
    with pytest.raises(aucsched.OptionError, match=message.replace("?", r"\?")) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_a_sweep_takes_all_values_of_a_text() -> None:
    assert aucsched.sweep(SNAPSHOT, window="5,10", work_limit=1).columns["window"] == [5, 10]  # type: ignore[arg-type]


def literals(hint: Any) -> set[str]:
    if get_origin(hint) is Literal:
        return set(get_args(hint))
    return {one for part in get_args(hint) for one in literals(part)}


def types(hint: Any) -> set[Any]:
    if get_origin(hint) in (Union, UnionType, Iterable.__class__):
        return {one for part in get_args(hint) for one in types(part)}
    if isinstance(get_origin(hint), type) and issubclass(get_origin(hint), Iterable):
        return {one for part in get_args(hint) for one in types(part)}
    return {hint}


@pytest.mark.parametrize(
    ("keywords", "reader", "besides"),
    [
        (StepKeywords, STEP, {"export", "clock"}),
        (SweepKeywords, SWEEP, None),
        (SimulateKeywords, SIMULATE, None),
    ],
)
def test_keywords_have_the_names_choices_and_types_of_the_table(
    keywords: type, reader: str, besides: set[str] | None
) -> None:
    hints = get_type_hints(keywords)
    table = {option.name: option for option in read_by(reader)}
    table.pop("seed" if reader == SWEEP else "", None)
    assert table.keys() <= hints.keys()
    if besides is not None:
        assert hints.keys() == table.keys() | besides
    for name, option in table.items():
        assert literals(hints[name]) == set(option.choices), name
        kind = bool if option.is_switch else int if option.is_whole else float
        if option.is_switch or option.is_number:
            assert types(hints[name]) - {type(None)} == {kind}, name


def test_keywords_of_a_step_are_its_options() -> None:
    hints = get_type_hints(StepKeywords)
    assert hints.keys() - {"preset"} == {entry.name for entry in fields(StepOptions)} - {"began"}


def test_keywords_of_simulations_are_what_policies_read() -> None:
    known = {entry.name for kind in (PolicyOptions, NodeOptions) for entry in fields(kind)}
    assert get_type_hints(SimulateKeywords).keys() == known - {"policy", "order"} | {"queue_weights"}
    assert set(get_args(PolicyName)) == {*POLICIES, *NODE_POLICIES}
    assert set(get_args(OrderName)) == set(ORDERS)


def test_keywords_of_sweeps_are_its_axes() -> None:
    hints = get_type_hints(SweepKeywords)
    assert hints.keys() == AXES.keys()
    for name, axis in AXES.items():
        if name not in OPTIONS_BY_NAME and axis.what.startswith(("an integer", "a number", "on or off")):
            kind = {"an i": int, "a nu": float, "on o": bool}[axis.what[:4]]
            assert types(hints[name]) == {kind}, name


def test_winners_takes_the_strategies_of_the_table() -> None:
    hint = get_type_hints(aucsched.winners)["strategy"]
    assert set(get_args(hint)) == set(OPTIONS_BY_NAME["strategy"].choices)


@pytest.mark.parametrize(
    ("name", "keywords"),
    [
        ("schedule", StepKeywords),
        ("explain", StepKeywords),
        ("compare", StepKeywords),
        ("simulate", SimulateKeywords),
        ("sweep", SweepKeywords),
    ],
)
def test_help_and_editors_see_real_keywords(name: str, keywords: type) -> None:
    call = getattr(aucsched, name)
    shown = inspect.signature(call).parameters
    assert {one for one in shown if one in keywords.__annotations__} == keywords.__annotations__.keys()
    assert all(one.kind is not one.VAR_KEYWORD for one in shown.values())
    # What a type checker reads.
    assert f"Unpack[{keywords.__name__}]" in inspect.getsource(call)


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    snapshot = aucsched.load_snapshot(FULL)
    return {
        "snapshot": snapshot,
        "workload": aucsched.load_workload(OVERTAKEN),
        "schedule": aucsched.schedule(snapshot, work_limit=1),
        "explain": aucsched.explain(snapshot, 64, work_limit=1),
        "prices": aucsched.explain(snapshot, work_limit=1),
        "compare": aucsched.compare(snapshot, work_limit=1),
        "plan": aucsched.plan(snapshot, jobs=5),
        "log": aucsched.simulate(DAYS),
        "nodes": aucsched.simulate(OVERTAKEN, "aucsched3"),
        "sweep": aucsched.sweep(OVERTAKEN, policy=["fcfs", "easy"]),
    }


def test_a_repr_is_a_line_and_print_a_summary(results: dict[str, Any]) -> None:
    for name, result in results.items():
        assert "\n" not in repr(result), name
        assert len(repr(result)) <= 150, name
        lines = str(result).splitlines()
        assert len(lines) <= 10, name
        assert all(len(line) <= 150 for line in lines), name
    assert (
        repr(results["snapshot"])
        == "<Snapshot: 1408 nodes, 32 of 16896 cores free, 66 jobs waiting, 55 running>"
    )
    assert repr(results["schedule"]) == f"<Schedule: {results['schedule'].title()}>"
    assert f"wait_mean_s            {results['log'].metrics['wait_mean_s']:.6g}" in str(results["log"])
    assert "wait: outbid" in str(results["schedule"])
    assert str(results["sweep"]).splitlines()[1].startswith("run  input")


def plots(results: dict[str, Any]) -> dict[str, Callable[..., Any]]:
    return {
        "schedule": lambda *path: results["schedule"].plot(results["snapshot"], *path),
        "plan": lambda *path: results["plan"].plot(results["snapshot"], *path),
        "log": results["log"].plot,
        "nodes": lambda *path: results["nodes"].plot(*path, chart="gantt"),
        "sweep": results["sweep"].plot,
    }


@pytest.mark.parametrize("name", ["schedule", "plan", "log", "nodes", "sweep"])
def test_results_draw_themselves(name: str, results: dict[str, Any], tmp_path: Path) -> None:
    plot = plots(results)[name]
    figure = plot(tmp_path / "chart.svg")
    assert (tmp_path / "chart.svg").read_text().startswith("<?xml")
    assert figure.axes
    assert plot(str(tmp_path / "chart.png")).axes
    with pytest.raises(aucsched.OptionError, match="ends in none of"):
        plot(tmp_path / "chart.txt")


def test_without_a_path_nothing_is_written(
    results: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert results["sweep"].plot().axes
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_a_plot_names_the_extra(
    results: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aucsched.formats.drawing.find_spec", lambda _: None)
    for plot in plots(results).values():
        with pytest.raises(
            aucsched.OptionError, match=r"plot needs matplotlib: pip install 'aucsched\[plot\]'"
        ):
            plot()


def test_there_is_no_other_chart(results: dict[str, Any]) -> None:
    with pytest.raises(aucsched.OptionError, match="chart: 'gant' is not one of use, gantt"):
        results["log"].plot(chart="gant")
