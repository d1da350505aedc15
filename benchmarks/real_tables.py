"""Tables of real.py's page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import exp, log
from typing import Any

Row = dict[str, Any]
#: What each log's policies are set beside.
_BASE = ("easy",)
OURS, _DEFAULT, _PEER = "aucsched3 response", "aucsched3", "backfill-slurm"
_GATES = (
    ("mean wait", "wait_mean", 0.75, 0.9),
    ("longest wait", "wait_max", None, 1.1),
    ("mean bounded slowdown", "slowdown_mean", 0.6, 0.9),
)


def _at(rows: Sequence[Row], log_name: str, policy: str, doubt: str = "") -> Row | None:
    found = (one for one in rows if (one["log"], one["policy"], one["doubt"]) == (log_name, policy, doubt))
    return next(found, None)


def base_of(rows: Sequence[Row], log_name: str, doubt: str = "") -> Row | None:
    """Return the run that a log's policies are set beside: backfill-slurm on nodes, EASY on counts."""
    return _at(rows, log_name, "backfill-slurm", doubt) or _at(rows, log_name, "easy", doubt)


def logs_of(rows: Sequence[Row]) -> list[str]:
    """Return the logs that were played as they are, in order."""
    return list(dict.fromkeys(one["log"] for one in rows if not one["doubt"]))


def has_queue(rows: Sequence[Row], log_name: str) -> bool:
    """Return whether jobs wait for others there: longer on average than for the next pass."""
    base = base_of(rows, log_name)
    return base is None or float(base["wait_mean"]) > float(base["options"].get("interval_s", 0.0))


def _ratio(row: Row, base: Row, name: str) -> float:
    return float(row[name] / base[name]) if base[name] else 1.0 if not row[name] else float("inf")


def verdicts(rows: Sequence[Row]) -> list[str]:
    """Return for each gate whether it holds, by log, and on nodes also by how often and whether they fail."""
    lines = ["## Gates", ""]
    same = tuple((what, name, None, 1.02) for what, name, *_ in _GATES)
    as_they_are = [(one, "") for one in logs_of(rows) if has_queue(rows, one)]
    on_nodes = [(one["log"], one["doubt"]) for one in rows if one["doubt"] and one["policy"] == _PEER]
    for policy, base, limits, some in (
        (OURS, "", _GATES, as_they_are),
        (OURS, _PEER, _GATES, on_nodes),
        (_DEFAULT, "easy", same, as_they_are),
        (_DEFAULT, "easy", same, on_nodes),
        (_DEFAULT, _PEER, same, on_nodes),
    ):
        cases = [one for one in some if _at(rows, one[0], policy, one[1]) is not None]
        if not cases:
            continue
        lines += [f"`{policy}` beside {base or f'EASY (on nodes beside {_PEER})'}:", ""]
        names = [", ".join(filter(None, one)) for one in cases]
        lines += ["| gate | " + " | ".join(names) + " | geometric mean | holds |"]
        lines += ["|---|" + "--:|" * (len(cases) + 2)]
        lines += [_gate(rows, cases, policy, base, *limit) for limit in limits]
        lines.append("")
    return [*lines, *_idle(rows, OURS), *_idle(rows, _DEFAULT)]


def _idle(rows: Sequence[Row], policy: str) -> list[str]:
    """Return how a policy stands on logs without a queue, where it is to be equal within 1 %."""
    lines = []
    for log_name in logs_of(rows):
        row, base = _at(rows, log_name, policy), base_of(rows, log_name)
        if has_queue(rows, log_name) or row is None or base is None:
            continue
        ratios = [_ratio(row, base, name) for _, name, *_ in _GATES]
        said = ", ".join(f"{what} {ratio:.3f}" for (what, *_), ratio in zip(_GATES, ratios, strict=True))
        holds = "yes" if all(abs(ratio - 1) <= 0.01 for ratio in ratios) else "no"
        lines += [f"{log_name} has no queue: {said}; equal within 1 %: {holds}.", ""]
    return lines


def _gate(
    rows: Sequence[Row],
    cases: Sequence[tuple[str, str]],
    policy: str,
    base_policy: str,
    what: str,
    name: str,
    mean: float | None,
    each: float,
) -> str:
    ratios: dict[tuple[str, str], float] = {}
    for log_name, doubt in cases:
        row = _at(rows, log_name, policy, doubt)
        base = _at(rows, log_name, base_policy, doubt) if base_policy else base_of(rows, log_name, doubt)
        if row is not None and base is not None:
            ratios[log_name, doubt] = _ratio(row, base, name)
    known = [one for one in ratios.values() if 0 < one < float("inf")]
    average = exp(sum(map(log, known)) / len(known)) if known else float("nan")
    holds = all(one <= each for one in ratios.values()) and (mean is None or average <= mean)
    limit = f"each ≤ {each}" + ("" if mean is None else f", mean ≤ {mean}")
    cells = [f"{ratios[one]:.3f}" if one in ratios else "-" for one in cases]
    return f"| {what} ({limit}) | {' | '.join(cells)} | {average:.3f} | {'yes' if holds else 'no'} |"


_COLUMNS: tuple[tuple[str, Callable[[Row], str]], ...] = (
    ("mean wait (s)", lambda row: f"{row['wait_mean']:.0f}"),
    ("P95", lambda row: f"{row['wait_p95']:.0f}"),
    ("longest", lambda row: f"{row['wait_max']:.0f}"),
    ("mean bounded slowdown", lambda row: f"{row['slowdown_mean']:.2f}"),
    ("P95", lambda row: f"{row['slowdown_p95']:.1f}"),
    ("utilisation", lambda row: f"{row['utilisation']:.4f}"),
    ("loss of capacity", lambda row: f"{row['loss']:.4f}"),
    ("level", lambda row: f"{row['level_mean']:.3f}" if "level_mean" in row else ""),
    ("span", lambda row: f"{row['span_mean']:.1f}" if "span_mean" in row else ""),
    ("run (s)", lambda row: f"{row['seconds']:.1f}"),
)


def main_tables(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a table a log."""
    for log_name in logs_of(rows):
        here = [one for one in rows if one["log"] == log_name and not one["doubt"]]
        yield from (f"## {log_name}", "", f"{here[0]['jobs']} jobs.", "")
        yield "| policy | " + " | ".join(name for name, _ in _COLUMNS) + " |"
        yield "|---|" + "--:|" * len(_COLUMNS)
        for row in here:
            yield f"| {row['policy']} | " + " | ".join(show(row) for _, show in _COLUMNS) + " |"
        yield ""


def group_tables(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what quarters of the jobs by size, and users, get."""
    yield from ("## By size and by user", "")
    yield "Mean wait in s / mean bounded slowdown; quarters of the jobs by size, up to so many processors."
    yield ""
    for log_name in logs_of(rows):
        here = [one for one in rows if one["log"] == log_name and not one["doubt"]]
        edges = [f"≤ {edge:.0f}" for edge, *_ in here[0]["by_size"]]
        yield f"| {log_name} | {' | '.join(edges)} | mean of users | worst user |"
        yield "|---|" + "--:|" * (len(edges) + 2)
        for row in here:
            cells = [f"{wait:.0f} / {slowdown:.1f}" for _, _, wait, slowdown in row["by_size"]]
            _, wait, most_wait, slowdown, most_slowdown = row["by_user"]
            cells += [f"{wait:.0f} / {slowdown:.1f}", f"{most_wait:.0f} / {most_slowdown:.1f}"]
            yield f"| {row['policy']} | {' | '.join(cells)} |"
        yield ""


def doubt_tables(rows: Sequence[Row]) -> Iterator[str]:
    """Yield ratios under doubt, beside EASY under the same doubt."""
    yield from ("## Under doubt", "")
    yield "Ratios to EASY under the same doubt: mean wait / longest wait / mean bounded slowdown."
    yield ""
    doubted = [one for one in rows if one["doubt"]]
    logs = list(dict.fromkeys(one["log"] for one in doubted))
    for log_name in logs:
        here = [one for one in doubted if one["log"] == log_name]
        policies = [one for one in dict.fromkeys(row["policy"] for row in here) if one not in _BASE]
        yield f"| {log_name} | {' | '.join(policies)} |"
        yield "|---|" + "--:|" * len(policies)
        doubts = dict.fromkeys(
            [*([""] if _at(rows, log_name, "easy") else []), *(one["doubt"] for one in here)]
        )
        for doubt in doubts:
            base = _at(rows, log_name, "easy", doubt)
            found = [_at(rows, log_name, policy, doubt) for policy in policies]
            cells = [
                " / ".join(f"{_ratio(row, base, name):.2f}" for _, name, *_ in _GATES) if row and base else ""
                for row in found
            ]
            yield f"| {doubt or 'as it is'} | {' | '.join(cells)} |"
        yield ""
