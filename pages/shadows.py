"""The page of a shadow's log: Slurm's starts beside the auction's offers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ..cluster.text import counted
from ..live.report import CAVEATS, ShadowReport
from .page import Section, facts, page_of, table


def shadow_page(report: ShadowReport, name: str) -> str:
    """Return the page of a report."""
    document = report.to_dict()
    span = f"{_moment(document['from'])} to {_moment(document['to'])}"
    verdicts = {verdict: count for verdict, count in document["verdicts"].items() if count}
    sections: list[Section] = [
        facts(
            "What this log can and cannot say",
            [(f"({number})", text) for number, text in enumerate(CAVEATS, 1)],
        ),
        table("Slurm and the auction", _columns(document["figures"])),
        facts("Jobs: the auction's first offer beside Slurm's start", list(verdicts.items())),
        _use(report),
    ]
    for what, rows in report.groups.items():
        sections.append(table(f"Who gains and who loses, by {what}", _columns(rows)))
    if document["unread"]:
        sections.append(table("Rules of the site that are not looked at", {"rule": document["unread"]}))
    sections.append(table("Jobs", report.columns, "times in seconds since 1970; waits in seconds"))
    passes = counted(len(report.entries), "pass").replace("passs", "passes")
    return page_of(
        f"Shadow beside Slurm, {name}", f"{span}; {passes}; {counted(len(report.jobs), 'job')}", sections
    )


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def _use(report: ShadowReport) -> Section:
    entries = report.entries
    first = entries[0].time
    times = [entry.time - first for entry in entries]
    cores = max(1, *(entry.cores for entry in entries))
    offers = [sum(offer.cores for offer in entry.would) for entry in entries]
    series = [
        (f"cores in use, of {cores}", [entry.used for entry in entries], cores),
        (
            f"cores in use with the pass's offers, of {cores}",
            [min(entry.used + more, entry.cores) for entry, more in zip(entries, offers, strict=True)],
            cores,
        ),
        ("jobs waiting", [entry.waiting for entry in entries], None),
    ]
    return {
        "kind": "lines",
        "title": "The machine and the queue, pass by pass",
        "times": [*times, times[-1] + entries[-1].interval_s],
        "series": [{"label": label, "values": values, "most": most} for label, values, most in series],
    }
