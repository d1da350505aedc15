"""Calls from Python: files by their paths, options by real keywords, one line for what is wrong."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pandas as pd
import pytest
from support.run import aucsched as command

import aucsched
from aucsched.api.auctions import CompareKeywords, ExplainKeywords
from aucsched.auction.options import StepOptions
from aucsched.auction.step import ScheduleKeywords
from aucsched.cluster.option_fields import options_in
from aucsched.cluster.option_table import OPTIONS_BY_NAME, SIMULATE, STEP, SWEEP, read_by
from aucsched.simulation.logs.orderings import MultifactorWeights
from aucsched.simulation.logs.policies import ORDERS, POLICIES
from aucsched.simulation.nodes.node_policies import NODE_POLICIES, NodeOptions
from aucsched.simulation.simulate_options import OrderName, PolicyName, PolicyOptions, SimulateKeywords
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


@pytest.mark.parametrize(("objective", "promise"), [("priority", "backfill"), ("response", "auto")])
def test_the_promise_of_a_run_is_named_where_none_was_given(objective: str, promise: str) -> None:
    found = aucsched.simulate(DAYS, "promised", objective=objective)  # type: ignore[arg-type]
    assert found.settings["promise"] == promise


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
        (lambda: A.simulate(DAYS, "queues", queue=[5]), "queue: 5 is not a text"),
        (lambda: A.simulate(DAYS, "queues", queue=["a: x=1"]), "queue: 'x' is none of processors"),
        (lambda: A.simulate(DAYS, "planning", advance=5), "advance: 5 is not a list or a text"),
        (lambda: A.simulate(DAYS, "planning", start_rule=[None]), "start_rule: None is not a text"),
        (lambda: A.simulate(DAYS, order="multifactor", multifactor={"age": 1}), "a dict is not a text"),
        (lambda: A.simulate(DAYS, order="flexible", flexible={"admin": 1}), "a dict is not a text"),
        (
            lambda: A.simulate(DAYS, order="flexible", flexible="admin=1", priorities="admin=2"),
            "flexible says what priorities and user_priorities say",
        ),
        (lambda: A.simulate(OVERTAKEN, failures=["x"]), "failures: 'x' is not what it takes"),
        (lambda: A.simulate(DAYS, "partitioned", class_limits_s=["x"]), "class_limits_s: 'x' is not a num"),
        (lambda: A.simulate(DAYS, "partitioned", class_limits_s=[None]), "class_limits_s: None is not a num"),
        (lambda: A.simulate(DAYS, order="weight", queue_weights={1: "x"}), "'1=x' is not QUEUE=WEIGHT"),
        (lambda: A.sweep(DAYS, window="a\nb"), r"window: 'a\\nb' is not an integer"),
        (
            lambda: A.simulate(DAYS, "planning", log_begins="wed 25:00"),
            "log_begins: 'wed 25:00' is not a DAY",
        ),
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
        (lambda: A.explain(SNAPSHOT, award="a.json"), "award: it explains what became of one job"),
        (lambda: A.explain(SNAPSHOT, "x", wndow=3), "wndow: explain has no such option"),
        (lambda: A.compare([]), "snapshot: a list is neither"),
        (lambda: A.compare(SNAPSHOT, within_s="a"), "within_s: 'a' is not an integer"),
        (lambda: A.plan(None), "snapshot: None is neither"),
        (lambda: A.plan(SNAPSHOT, jobs="a"), "jobs: 'a' is not an integer"),
        (lambda: A.plan(SNAPSHOT, progress=5), "progress: 5 is not a class or function"),
        (lambda: A.sweep(3), "source: 3 is neither"),
        (lambda: A.sweep(DAYS, polcy="easy"), "polcy: a sweep has no such option: did you mean policy?"),
        (lambda: A.sweep(DAYS, policy="eazy"), "did you mean easy?"),
        (lambda: A.sweep(DAYS, policy="easy", repeat="a"), "repeat: 'a' is not an integer"),
        (lambda: A.sweep(DAYS, policy="easy", processors=True), "processors: 'on' is not an integer"),
        (lambda: A.sweep(DAYS, policy="easy", progress=5), "progress: 5 is not a class or function"),
        (lambda: A.sweep(DAYS, policy="easy", output=5), "output: 5 is not"),
        (
            lambda: A.winners([], {}, strategy="exakt"),
            "strategy: 'exakt' is not one of .*: did you mean exact",
        ),
        *(
            (lambda call=call, wrong=wrong: call(**wrong), f"{next(iter(wrong))}: {said}?")
            for call, wrong, said in (
                (partial(A.winners, [], {}), {"time_limit": 3}, "winners .*mean time_limit_s"),
                (partial(A.forecast, SNAPSHOT), {"by": 3}, "forecast .*mean by_s"),
                (partial(A.plan, SNAPSHOT), {"job": 5}, "plan .*mean jobs"),
                (partial(A.gain, "week.json"), {"polices": 5}, "gain .*mean policies"),
                (A.snapshot_from_slurm, {"jbs": "x"}, "snapshot_from_slurm .*mean jobs"),
                (partial(A.schedule, SNAPSHOT), {"time_limit": 3}, "schedule .*mean time_limit_s"),
                (partial(A.compare, SNAPSHOT), {"within": 60}, "compare .*mean within_s"),
                (partial(A.workload_from_swf, DAYS), {"node": 3}, "workload_from_swf .*mean nodes"),
                (partial(A.Auction, SNAPSHOT), {"windw": 3}, "Auction .*mean window"),
            )
        ),
    ],
)
def test_what_is_wrong_is_one_line_that_names_it(call: Callable[[], object], message: str) -> None:
    with pytest.raises(aucsched.OptionError, match=message.replace("?", r"\?")) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("call", [A.simulate, A.sweep, A.load_swf, A.load_workload, A.load_snapshot, A.gain])
def test_a_name_that_no_system_has_is_an_error_of_one_line(call: Any) -> None:
    with pytest.raises(aucsched.InputError, match=r"^a\\u0000b: embedded null byte$"):
        call("a\0b")


@pytest.mark.parametrize("call", [A.simulate, A.sweep])
def test_what_a_log_of_a_file_lacks_names_the_file(call: Any, tmp_path: Path) -> None:
    (path := tmp_path / "small.swf").write_text("1 0 -1 10 3 -1 -1 3 10\n")
    with pytest.raises(aucsched.InputError) as caught:
        call(path)
    assert str(caught.value).startswith(f"{path}: the header has neither MaxProcs nor MaxNodes")


def test_a_sweep_takes_all_values_of_a_text() -> None:
    assert aucsched.sweep(SNAPSHOT, window="5,10", work_limit=1).columns["window"] == [5, 10]


def test_keywords_are_the_fields_of_records() -> None:
    steps = options_in(ScheduleKeywords).keys()
    assert {option.name for option in read_by(STEP)} | {"export", "clock", "window_from"} == steps
    assert {"began", *steps} - {"preset", "window_from"} == {entry.name for entry in fields(StepOptions)}
    assert options_in(SimulateKeywords).keys() >= {option.name for option in read_by(SIMULATE)}
    assert AXES.keys() >= {option.name for option in read_by(SWEEP)} - {"seed"}


def test_keywords_of_simulations_are_what_policies_read() -> None:
    known = {entry.name for kind in (PolicyOptions, NodeOptions) for entry in fields(kind)}
    of_the_call = {"queue_weights", "order", "processors", "checked", "progress"}
    of_the_call |= {"priorities", "user_priorities", "log_begins"}
    assert options_in(SimulateKeywords).keys() == known - {"policy"} | of_the_call
    assert set(get_args(PolicyName)) == {*POLICIES, *NODE_POLICIES}
    assert set(get_args(OrderName)) == set(ORDERS)


@pytest.mark.parametrize(
    ("given", "as_typed", "settings"),
    [
        (
            {"policy": "queues", "queue": ["a: estimate=500", "b"], "log_begins": "wed 08:30"},
            ("--queue", "a: estimate=500", "--queue", "b", "--log-begins", "wed 08:30"),
            {"queue": ["a: estimate=500", "b"]},
        ),
        (
            {"policy": "planning", "advance": "100,50,2", "start_rule": ["processors>=1: 1"]},
            ("--advance", "100,50,2", "--start-rule", "processors>=1: 1"),
            {"start_rule": ["processors>=1: 1"]},
        ),
        (
            {"order": "multifactor", "multifactor": "age=1"},
            ("--order", "multifactor", "--multifactor", "age=1"),
            {"multifactor": {**asdict(MultifactorWeights()), "age": 1}},
        ),
        (
            {"order": "flexible", "priorities": "admin=2", "user_priorities": "7=3"},
            ("--order", "flexible", "--priorities", "admin=2", "--user-priorities", "7=3"),
            {"flexible": {"admin": 2, "user": 1, "scheduler": 1, "user_7": 3}},
        ),
        (
            {"policy": "partitioned", "class_limits_s": "60,3600"},
            ("--class-limits", "60,3600"),
            {"class_limits_s": (60, 3600)},
        ),
        (
            {"policy": "adaptive", "candidates": ["easy", "fcfs"]},
            ("--candidates", "easy,fcfs"),
            {"candidates": ("easy", "fcfs")},
        ),
    ],
)
def test_python_takes_the_texts_of_the_command_line(
    given: dict[str, Any], as_typed: tuple[str, ...], settings: dict[str, Any], tmp_path: Path
) -> None:
    found = aucsched.simulate(DAYS, **given)
    assert {name: found.settings[name] for name in settings} == settings
    typed = ("--policy", given.get("policy", "easy"), *as_typed, "--jobs-out", str(tmp_path / "jobs.csv"))
    assert command("simulate", DAYS, *typed).returncode == 0
    assert found.jobs_csv() == (tmp_path / "jobs.csv").read_text()


def test_outages_may_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "failures.json"
    path.write_text(
        '{"format": "aucsched-failures/1", "failures": [{"nodes": "n1", "down_s": 5, "up_s": 9}]}'
    )
    for kind in (str, Path):
        found = aucsched.simulate(OVERTAKEN, failures=kind(path))
        assert found.to_dict()["node_failures"] == 1


def test_winners_takes_the_strategies_of_the_table() -> None:
    hint = get_type_hints(aucsched.winners)["strategy"]
    assert set(get_args(hint)) == set(OPTIONS_BY_NAME["strategy"].choices)


@pytest.mark.parametrize(
    ("name", "keywords"),
    [
        ("schedule", options_in(ScheduleKeywords)),
        ("explain", options_in(ExplainKeywords)),
        ("compare", options_in(CompareKeywords)),
        ("simulate", options_in(SimulateKeywords)),
        ("sweep", AXES),
    ],
)
def test_help_and_editors_see_real_keywords(name: str, keywords: Mapping[str, Any]) -> None:
    call = getattr(aucsched, name)
    shown = inspect.signature(call).parameters
    assert shown.keys() >= keywords.keys()
    assert all(one.kind is not one.VAR_KEYWORD for one in shown.values())
    assert all(f"\n    {one}: " in call.__doc__ for one in keywords)


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
    monkeypatch.setattr("aucsched.reports.canvas.find_spec", lambda _: None)
    for plot in plots(results).values():
        with pytest.raises(
            aucsched.OptionError, match=r"plot needs matplotlib: pip install 'aucsched\[plot\]'"
        ):
            plot()


def test_there_is_no_other_chart(results: dict[str, Any]) -> None:
    with pytest.raises(aucsched.OptionError, match="chart: 'gant' is not one of use, gantt"):
        results["log"].plot(chart="gant")


def test_each_public_function_with_keywords_refuses_others_by_name() -> None:
    """A function of keywords that is added later is one of these, too."""
    source = {"simulate": DAYS, "sweep": DAYS, "workload_from_swf": DAYS, "gain": OVERTAKEN, "winners": []}
    checked = []
    for name in aucsched.__all__:
        call = getattr(aucsched, name)
        parameters = inspect.signature(call).parameters.values() if inspect.isfunction(call) else ()
        if inspect.Parameter.KEYWORD_ONLY not in [one.kind for one in parameters]:
            continue
        first = () if name == "snapshot_from_slurm" else (source.get(name, SNAPSHOT),)
        with pytest.raises(aucsched.OptionError, match=r"^wrng: (a )?\w+ has no such option"):
            call(*first, wrng=1)
        checked.append(name)
    assert {"schedule", "simulate", "gain", "workload_from_swf"} < set(checked)


LOG_TEXT = "; MaxProcs: 4\n1 0 -1 10 3 -1 -1 3 10\n"
LOG = aucsched.parse_swf(LOG_TEXT.encode())
HISTORY = aucsched.ClusterWorkload(
    name="week",
    nodes=[aucsched.Node(name="n", cores=8)],
    jobs=[aucsched.ArrivingJob(job=SNAPSHOT.jobs[0], arrival_s=0, run_time_s=3, started_s=1)],
)
WAITING = aucsched.Snapshot(
    nodes=SNAPSHOT.nodes,
    jobs=[aucsched.Job(id="1", priority=9, request=aucsched.Request(cores=9))],
    time=0.0,
)
OTHER = aucsched.Snapshot(nodes=[aucsched.Node(name="m", cores=8)], jobs=SNAPSHOT.jobs)


class Idle:
    """A policy that starts nothing."""

    def step(self, now: float, machine: aucsched.MachineView) -> None:
        """Do nothing."""


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: A.plan(SNAPSHOT, jobs=0), "jobs: 0 is below 1"),
        (lambda: A.simulate(LOG, processors=0), "processors: 0 is below 1"),
        (lambda: A.simulate(LOG, processors=10**12), "processors: 1000000000000 is above 1000000000"),
        (lambda: A.compare(SNAPSHOT, within_s=-5), "within_s: -5 is below 0"),
        (lambda: A.forecast(SNAPSHOT, by_s=-1), "by_s: -1 is not a finite number of at least 0"),
        (lambda: A.sweep(LOG, repeat=0), "repeat: 0 is below 1"),
        (lambda: A.sweep(LOG, policy=[]), "policy: an empty list has no run"),
        (lambda: A.sweep(LOG, policy=["easy", "easy"]), "policy: easy is given twice"),
        (
            lambda: A.sweep(LOG, output="s.txt"),
            "output s.txt: the name ends in none of .csv, .parquet",
        ),
        (lambda: A.workload_from_swf(LOG, nodes=10**12, cores=4), "is not from 1 to 100000"),
        (lambda: A.workload_from_swf(LOG, nodes="x", cores=4), "nodes: 'x' is not an integer"),
        (
            lambda: A.workload_from_swf(LOG, nodes=4, cores=4, leaf_nodes=0),
            "leaf_nodes: 0 is not from",
        ),
        (lambda: A.gain(HISTORY, policies=[5]), "policies: 5 is not a text"),
        (lambda: A.gain(HISTORY, policies=["slack"]), "policy slack counts processors"),
        (lambda: A.gain(HISTORY, promise="x"), "promise 'x' is not plan, auto"),
        (lambda: A.gain(HISTORY, backfill_interval_s=-1), "backfill_interval_s -1 is below 0"),
        (lambda: A.gain(HISTORY, window=0), "window: 0 is below 1"),
        (lambda: A.simulate(LOG, "slack", slack=-1), "slack: -1 is below 0"),
        (lambda: A.simulate(LOG, "planning", release_unused_s=5), "release_unused_s needs advance"),
        (
            lambda: A.simulate(LOG, "planning", advance="0,10,0"),
            "advance: '0,10,0' is neither a file nor a reservation: processors: 0 is below 1",
        ),
        (lambda: A.simulate(HISTORY, mtbf_s=5), "mtbf_s needs mttr_s"),
        (lambda: A.simulate(LOG, slack=3), "slack needs policy slack, not easy"),
        (lambda: A.schedule(SNAPSHOT, promise="x"), "promise 'x' is not plan, auto"),
        (lambda: A.Auction(None), "cluster: None is neither a Snapshot nor a file's name"),
    ],
)
def test_python_refuses_what_the_command_refuses_by_its_own_names(
    call: Callable[[], object], message: str
) -> None:
    with pytest.raises(aucsched.OptionError) as caught:
        call()
    assert message in str(caught.value)
    assert "--" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: A.save_workload(SNAPSHOT, "x"),
            "workload: a Snapshot is not a ClusterWorkload",
        ),
        (
            lambda: A.save_snapshot(HISTORY, "x"),
            "snapshot: a ClusterWorkload is not a Snapshot",
        ),
        (
            lambda: A.schedule(SNAPSHOT).plot(OTHER),
            "snapshot: another one: it has other jobs or nodes",
        ),
        (
            lambda: A.schedule(WAITING).plot(SNAPSHOT),
            "snapshot: another one: it has other jobs or nodes",
        ),
        (lambda: A.plan(WAITING).plot(SNAPSHOT), "snapshot: another one: it has other jobs or nodes"),
        (lambda: A.schedule(SNAPSHOT).plot("m.png"), "snapshot: 'm.png' is not a Snapshot"),
        (lambda: A.plan(SNAPSHOT).plot("p.png"), "snapshot: 'p.png' is not a Snapshot"),
        (lambda: A.plan(SNAPSHOT).plot(OTHER), "snapshot: another one"),
        (lambda: A.save_workload(HISTORY, None), "None is not a file's name"),
        (lambda: A.simulate(LOG).plot(1.5), "1.5 is not a file's name"),
        (lambda: A.save_workload(HISTORY, "\0"), "embedded null"),
        (lambda: A.schedule(SNAPSHOT).save(5), "5 is not a file's name"),
        (lambda: A.forecast(SNAPSHOT, ["64"], futures=2, record="\0"), "embedded null"),
        (lambda: A.parse_swf(None), "None is not a file's text"),
        (lambda: A.parse_snapshot(None), "None is not a file's text"),
        (lambda: A.load_snapshot(None), "None is not a file's name"),
        (lambda: A.load_swf(5), "5 is not a file's name"),
        (lambda: A.load_schedule(None), "None is not a file's name"),
        (lambda: A.gain(None), "None is not a file's name"),
        (lambda: A.winners(None, {"g": 2}), "bids: None is not a list of bids"),
        (lambda: A.winners("w1.json", {"g": 2}), "bids: 'w1.json' is not a list of bids"),
        (
            lambda: A.winners([("a", 1, {"g": 1})], [2]),
            "bids[0].items: 'g' is not among the capacities; in a list they are called 0, 1, …",
        ),
    ],
)
def test_a_value_of_another_kind_is_refused_in_one_line(call: Callable[[], object], message: str) -> None:
    with pytest.raises(aucsched.InputError) as caught:
        call()
    assert message in str(caught.value)
    assert not Path("x").exists()


def test_texts_are_parsed_as_their_bytes_are() -> None:
    snapshot = '{"format": "aucsched-snapshot/1", "nodes": [{"name": "n", "cores": 8}], "jobs": []}'
    assert aucsched.parse_snapshot(snapshot) == aucsched.parse_snapshot(snapshot.encode())
    workload = snapshot.replace("snapshot/1", 'workload/1", "name": "w')
    assert aucsched.parse_workload(workload) == aucsched.parse_workload(workload.encode())
    assert aucsched.parse_swf(LOG_TEXT).table.tolist() == LOG.table.tolist()
    assert aucsched.parse_swf(LOG_TEXT).comments == LOG.comments


def test_one_policy_may_be_a_text() -> None:
    assert (
        aucsched.gain(HISTORY, policies="easy").waits.keys() == aucsched.gain(HISTORY, ["easy"]).waits.keys()
    )


@pytest.mark.parametrize(("workload", "left"), [(LOG, 1), (HISTORY, 1)])
def test_a_title_counts_the_jobs_that_start(workload: Any, left: int) -> None:
    assert aucsched.simulate(workload, Idle).title().endswith(f"Idle, 0 jobs, {left} never started")
    assert aucsched.simulate(workload, "easy").title().count("1 job,") == 1


def test_help_names_keywords_and_functions_as_python_does() -> None:
    assert aucsched.plan.__name__ == "plan"
    told = inspect.getdoc(aucsched.schedule) or ""
    assert "time_limit_s and no work_limit" in " ".join(told.replace("With ", "").split())
    assert "needs mttr_s." in (inspect.getdoc(aucsched.simulate) or "")


def test_who_does_not_come_is_an_error_of_the_tree() -> None:
    client = aucsched.EvolvingClient("A", "unix:/nowhere/x", wait_s=0)
    with pytest.raises(aucsched.NobodyError, match="No such file"):
        client.request(cores=2)
    assert issubclass(aucsched.NobodyError, aucsched.AucschedError)
