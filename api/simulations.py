"""A simulation from Python: a log or a workload of nodes under a policy, ours or somebody's own.

The board of a log sets published policies and ours beside each other: slowdown and longest wait,
with 95 % intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, ParamSpec, Protocol

import numpy as np

from ..cluster.errors import OptionError, errors_in
from ..cluster.keywords import checked, of_type, with_keywords
from ..cluster.option_fields import options_in
from ..cluster.promises import DEFAULT
from ..cluster.text import shown
from ..cluster.workload import ClusterWorkload
from ..formats.file_kinds import is_json
from ..formats.native.cluster_file import load_failures, parse_workload
from ..formats.reading import read_document
from ..formats.swf import SwfLog, parse_swf
from ..simulation.log_columns import Workload, workload_from_swf
from ..simulation.logs.hours import QueueLimits, moment_of_week
from ..simulation.logs.orderings import FlexiblePriorities, MultifactorWeights
from ..simulation.logs.plan_constraints import StartRule, read_advance
from ..simulation.logs.policies import play_log, weights_by_queue
from ..simulation.logs.reservations import class_limits
from ..simulation.nodes.node_policies import NodeOptions, play
from ..simulation.own_policy import Factory, name_of
from ..simulation.policy_names import naming_as_typed, policy_with_parameters, with_parameters
from ..simulation.report import bounded_slowdown
from ..simulation.result import Simulation
from ..simulation.simulate_options import (
    READ_ON_LOGS,
    OrderOptions,
    PolicyName,
    PolicyOptions,
    SimulateKeywords,
    check_read,
    current_name,
    is_read,
)
from ..simulation.waits import Resampling

#: What can be simulated: a log, a workload of nodes, or a file of either, plain or gzip.
Source = SwfLog | ClusterWorkload | str | Path


_Keywords = ParamSpec("_Keywords")


class _Simulates(Protocol[_Keywords]):
    """``simulate``: the options are a record's."""

    def __call__(
        self,
        workload: Source,
        policy: PolicyName | str | Factory = "easy",
        *args: _Keywords.args,
        **options: _Keywords.kwargs,
    ) -> Simulation: ...


def _simulates(
    keywords: Callable[_Keywords, object],
) -> Callable[[Callable[..., Simulation]], _Simulates[_Keywords]]:
    return with_keywords(keywords)


@_simulates(SimulateKeywords)
def simulate(workload: Source, policy: PolicyName | str | Factory = "easy", **options: Any) -> Simulation:
    r"""Simulate a log or a workload of nodes under a policy.

    Args:
        workload: what ``load_swf`` or ``load_workload`` returns, or a file of either.
        policy: a name (docs/policies.md), a class with ``step`` (``Policy``), or ``module:Class``.
        options: ``order``, ``processors``, ``checked``, ``progress``, and what the policy reads,
            with the names of ``aucsched simulate --help`` and underscores (seconds end in ``_s``);
            one it would ignore is refused.

    Raises:
        InputError: the file cannot be read, or holds neither.
        OptionError: no such policy or option, or one that would be ignored.
        PolicyError: a policy of your own raised.
        AwardError: it broke a rule.

    Examples:
        >>> import aucsched
        >>> rows = "1 0 -1 10 3 -1 -1 3 10\n2 1 -1 10 2 -1 -1 2 10\n3 2 -1 5 1 -1 -1 1 5\n"
        >>> log = aucsched.parse_swf(("; MaxProcs: 4\n" + rows).encode())
        >>> [simulate(log, policy).columns["start_s"] for policy in ("fcfs", "easy")]
        [[0.0, 10.0, 10.0], [0.0, 10.0, 2.0]]
    """
    given = checked(options, SimulateKeywords, "simulate")
    typed = name_of(of_type("policy", policy, str | Factory))
    named, own = policy_with_parameters(typed)
    for member in own.keys() & given.keys():
        raise OptionError(f"{member}: the policy's name says it, too")
    with naming_as_typed(typed):
        return _simulated(workload, named, {**given, **own})


def _simulated(workload: Source, named: str, given: dict[str, Any]) -> Simulation:
    """Simulate under a policy without parameters in its name."""
    played, path = _loaded(workload)
    name = Path(path).name
    progress, order = given.pop("progress", None), given.pop("order", "fcfs")
    of_logs = {member: given.pop(member) for member in ("processors", "checked") if member in given}
    if isinstance(played, ClusterWorkload):
        if "processors" in of_logs or of_logs.get("checked"):
            raise OptionError("processors and checked are for logs; this workload has nodes of its own")
        return _on_nodes(played, name or played.name, named, {"order": order, **given}, progress)
    named = current_name(named)
    check_read(named, order, given)
    given = parsed(given)
    weights = given.pop("queue_weights", None)
    choice, settings = chosen_on_log(named, order, given)
    with errors_in(path) if path else nullcontext():
        jobs = workload_from_swf(played, processors=of_logs.get("processors"), queue_weights=weights)
    is_checked = of_logs.get("checked", False)
    result = play_log(jobs, named, order=order, options=choice, checked=is_checked, progress=progress)
    return replace(result, settings=settings, name=name)


def _loaded(workload: Source) -> tuple[SwfLog | ClusterWorkload, str | Path]:
    if isinstance(workload, (SwfLog, ClusterWorkload)):
        return workload, ""
    if not isinstance(workload, (str, Path)):
        raise OptionError(f"workload: {shown(workload)} is neither a log, a workload of nodes nor a file")

    def parse(content: bytes) -> SwfLog | ClusterWorkload:
        return parse_workload(content) if is_json(content) else parse_swf(content)

    return read_document(workload, parse), workload


def parsed(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of policies over logs and of ``OrderOptions`` as a log's policies have them.

    Texts become values; ``log_begins`` is in those it shifts, priorities are in ``flexible``.

    Raises:
        OptionError: a text cannot be read.
    """
    texts = {name: given.get(name) for name in options_in(OrderOptions)}
    begin = texts.pop("log_begins")
    begins = 0 if begin is None else moment_of_week(begin)
    readers: dict[str, Callable[[Any], Any]] = {
        "class_limits_s": class_limits,
        "candidates": lambda text: tuple(text.split(",")),
        "advance": read_advance,
        "start_rule": lambda texts: tuple(StartRule.from_text(one, begins) for one in texts),
        "queue": lambda texts: tuple(QueueLimits.from_text(one, begins) for one in texts),
        "multifactor": MultifactorWeights.from_text,
        "flexible": lambda text: FlexiblePriorities.from_text(text, None),
        "queue_weights": weights_by_queue,
    }

    def is_read(name: str, value: Any) -> bool:
        one = value[0] if value and options_in(SimulateKeywords)[name].is_multiple else value
        return name in readers and isinstance(one, (str, Mapping))

    found = {
        name: readers[name](value) if is_read(name, value) else value
        for name, value in given.items()
        if name not in options_in(OrderOptions)
    }
    if set(texts.values()) != {None}:
        if "flexible" in found:
            raise OptionError("flexible says what priorities and user_priorities say")
        found["flexible"] = FlexiblePriorities.from_text(*texts.values())
    return found


def chosen_on_log(policy: str, order: str, given: Mapping[str, Any]) -> tuple[PolicyOptions, dict[str, Any]]:
    """Return the options of a policy over a log, and those of them that this run reads.

    Raises:
        OptionError: the policy or the order would ignore one.
    """
    known = options_in(PolicyOptions)
    for name in given:
        if name not in known:
            raise OptionError(f"{name}: a log's policies have no such option")
    check_read(policy, order, given)
    if {"test_run_s", "speculation"} <= given.keys():
        raise OptionError("--speculation is the share that a bet needs: none with --test-run")
    if given.get("release_unused_s") is not None and not given.get("advance"):
        raise OptionError("--release-unused needs --advance")
    choice = PolicyOptions(**given)
    settings = {
        name: getattr(choice, name) for name in READ_ON_LOGS if is_read(name, policy, choice.candidates)
    }
    if "promise" in settings:
        settings["promise"] = choice.promise or DEFAULT[choice.objective]
    if "advance" in settings:
        settings["advance"] = [one.settings() for one in choice.advance]
        settings["start_rule"] = [rule.text for rule in choice.start_rule]
    if "queue" in settings:
        settings["queue"] = [one.text for one in choice.queue]
    if order == "multifactor":
        settings["multifactor"] = asdict(choice.multifactor or MultifactorWeights())
    if order == "flexible":
        settings["flexible"] = (choice.flexible or FlexiblePriorities()).settings()
    return choice, settings


def _on_nodes(
    workload: ClusterWorkload,
    name: str,
    policy: str,
    given: Mapping[str, Any],
    progress: Callable[[int], None] | None,
) -> Simulation:
    known = {"order", *options_in(NodeOptions)}
    for option in given:
        if option not in known:
            raise OptionError(f"{option}: a machine of nodes has no such option")
    if isinstance(given.get("failures"), (str, Path)):
        given = {**given, "failures": load_failures(given["failures"])}
    chosen = NodeOptions(policy=policy, **given)
    return replace(play(workload, chosen, progress), settings=chosen.settings(), name=name)


OURS, EASY = "response", "EASY"
#: As the table calls it -> what ``simulate`` plays.
BOARD_POLICIES: Mapping[str, Mapping[str, Any]] = {
    "FCFS": {"policy": "fcfs"},
    EASY: {"policy": "easy"},
    "EASY, shortest first behind the head": {"policy": "predicted", "predictor": "estimate"},
    "EASY++": {"policy": "predicted", "predictor": "last-two"},
    "EASY, SC'15's regression": {"policy": "predicted", "predictor": "regression"},
    "EASY, learnt median": {"policy": "predicted", "predictor": "median"},
    "conservative": {"policy": "conservative"},
    "SJF": {"policy": "easy", "order": "sjf"},
    "Smith": {"policy": "easy", "order": "smith"},
    "WFP3": {"policy": "easy", "order": "wfp3"},
    "UNICEP": {"policy": "easy", "order": "unicep"},
    "F1": {"policy": "easy", "order": "f1"},
    "F2": {"policy": "easy", "order": "f2"},
    "F3": {"policy": "easy", "order": "f3"},
    "F4": {"policy": "easy", "order": "f4"},
    OURS: {"policy": "promised", "objective": "response"},
    "response, no promises": {"policy": "promised", "objective": "response", "promise": "none"},
}
BoardRow = dict[str, Any]
#: Of fewer days or weeks of submissions a mean has no interval: it would say nothing.
FEWEST_BLOCKS = 5
#: Gives the progress of a policy over so many jobs.
Progress = Callable[[int, str], AbstractContextManager[Callable[[int], None] | None]]


def board(jobs: Workload, own: Sequence[str] = (), *, progress: Progress) -> list[BoardRow]:
    """Play a log under every policy of the board and other policies; return a row each.

    ``own``: other policies, by name, with parameters (``slack:factor=0.5``), or as FILE.py:CLASS.
    """
    rows = []
    for name, told in {**{one: with_parameters({}, one) for one in own}, **BOARD_POLICIES}.items():
        given = {key: told[key] for key in told.keys() - {"policy", "order"}}
        with naming_as_typed(name), progress(len(jobs), name) as report:
            order, options = told.get("order", "fcfs"), PolicyOptions(**parsed(given))
            result = play_log(jobs, told["policy"], order=order, options=options, progress=report)
        if not len(result.started):
            raise OptionError(f"--policy {name} starts no job: there is nothing to compare")
        rows.append(row_of(name, [result]))
    return rows


def row_of(policy: str, results: Sequence[Simulation]) -> BoardRow:
    """Return a policy's figures: means over results; of one, also 95 % intervals over blocks."""
    found = [one.metrics for one in results]
    row: BoardRow = {"policy": policy}
    for name in ("bounded_slowdown_mean", "wait_mean_s", "cpu_utilization"):
        row[name] = float(np.mean([one[name] for one in found]))
    row["never_started"] = sum(len(one.never_started) for one in results)
    row["wait_max_s"] = max(float(one["wait_max_s"] or 0) for one in found)
    if len(results) == 1:
        one = results[0]
        drawn, everybody = Resampling(one.submit), np.ones(len(one.submit), bool)
        slowdown = bounded_slowdown(one.wait, one.run)
        row["blocks"] = drawn.blocks
        intervals = {"bounded_slowdown_interval": (slowdown, 1.0), "wait_interval_s": (one.wait, 0.0)}
        for name, (values, least) in intervals.items():
            ends = drawn.of_means(values, everybody) if drawn.blocks >= FEWEST_BLOCKS else None
            row[name] = ends and (max(least, ends[0]), ends[1])
    return row


def on_edge(rows: Sequence[BoardRow]) -> list[BoardRow]:
    """Return the rows of whole logs that no other dominates, by their longest waits.

    A row dominates another if it has both figures at least as low, and one of them lower.
    """
    figures = itemgetter("wait_max_s", "bounded_slowdown_mean")
    whole = sorted((row for row in rows if not row.get("never_started")), key=figures)
    at = np.array([figures(row) for row in whole])
    is_dominated = [bool(((at <= mine).all(1) & (at < mine).any(1)).any()) for mine in at]
    return [row for row, is_off in zip(whole, is_dominated, strict=True) if not is_off]
