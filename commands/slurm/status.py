"""``aucsched slurm status`` and ``doctor``: how cluster, gate and loops stand; whether a loop works."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from ...cluster.option_fields import Option
from ...cluster.text import one_line
from ..built_options import filled_options
from .loops import licence_option, no_rest_options

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ...slurm.live.loop_metrics import ClusterStatus, Samples

#: Reasons for waiting that are listed; the others are counted.
_REASONS = 6


@dataclass(kw_only=True)
class StatusOptions:
    """Which loops are asked, and how often."""

    addresses: Option[tuple[str, ...]] = Option(
        "Where a loop serves its figures; repeatable, once for each loop.",
        is_multiple=True,
        spelling="metrics",
        unit="ADDRESS:PORT",
    )
    interval: Option[float] = Option(
        "Between two looks.", default=5, low=0.5, includes_low=True, unit="SECONDS"
    )
    once: Option[bool] = Option("Look once (as without a terminal); exit 2: no answer.", default=False)


@click.command()
@licence_option
@filled_options(StatusOptions)
def status(*, licence: str, addresses: tuple[str, ...], interval: float, once: bool) -> int:
    """Show the state of the cluster, the gate and the loops; Ctrl-C ends it."""
    from ...slurm.answers.live import ask_slurm
    from ...slurm.live.loop_metrics import cluster_status, loopback
    from ..outputs import write_rich

    for address in addresses:
        loopback(address)

    found = cluster_status(ask_slurm, licence, addresses)
    if once or not sys.stdout.isatty():
        write_rich("-", lambda console: console.print(_table(found)))
        return 0 if found.has_answered else 2
    from rich.live import Live

    from ...reports.console_tables import LiteralConsole

    with Live(_table(found), console=LiteralConsole(), auto_refresh=False, screen=False) as shown:
        while True:
            time.sleep(interval)
            shown.update(_table(cluster_status(ask_slurm, licence, addresses)), refresh=True)


def _table(found: ClusterStatus) -> RenderableType:
    from rich.table import Table

    now, table = time.time(), Table("", "", show_header=False)
    for name, text in _of_cluster(found, now) if found.has_answered else ():
        table.add_row(name, one_line(text))
    for loop, figures in sorted(found.loops.items()):
        for name, text in _of_loop(figures, now):
            table.add_row(one_line(f"{loop}: {name}"), one_line(text))
    for text in found.trouble:
        table.add_row("no answer", one_line(text))
    return table


def _of_cluster(found: ClusterStatus, now: float) -> Iterator[tuple[str, str]]:
    """Yield what Slurm says, by name."""
    if found.cores is not None:
        used, idle, other, total = found.cores
        yield "cores", f"{used} used, {idle} free, {other} not available, {total} in all"
    counts = list(found.states.items())
    yield "jobs", ", ".join(f"{count} {state}" for state, count in counts[:_REASONS]) or "none"
    if len(counts) > _REASONS:
        yield "", f"{sum(count for _, count in counts[_REASONS:])} others"
    up = [gate for gate in found.gates if gate.start <= now < gate.end]
    yield from (("gate", f"{gate.name}: up, ends in {gate.end - now:.0f} s") for gate in up)
    if not up:
        yield "gate", "down: Slurm starts the jobs itself"


def _of_loop(known: Mapping[str, Samples], now: float) -> list[tuple[str, str]]:
    """Return what a loop's figures say, by name."""

    def one(name: str) -> float | None:
        samples = known.get(name)
        return None if not samples else sum(samples.values())

    def by(name: str, shown: str = "{:.0f} {}") -> str:
        return ", ".join(shown.format(value, *key) for key, value in sorted(known.get(name, {}).items()))

    last, gap = one("aucsched_pass_timestamp_seconds"), one("aucsched_gap_ratio")
    rows = [
        ("passes", f"{one('aucsched_passes') or 0:.0f}, {one('aucsched_failures') or 0:.0f} failed"),
        ("last pass", "none yet" if last is None else f"{max(now - last, 0):.0f} s ago"),
        ("seconds", by("aucsched_last_phase_seconds", "{:.3f} {}")),
        ("gap", "" if gap is None else f"{100 * gap:.2f} %"),
        ("jobs", by("aucsched_jobs")),
        ("cores", by("aucsched_cores")),
        ("awards", by("aucsched_awards", "{:.0f}")),
        ("starts", by("aucsched_starts", "{:.0f} by {}")),
        ("put back", by("aucsched_put_back", "{:.0f}")),
        ("rules not looked at", by("aucsched_unread_rules", "{:.0f}")),
    ]
    return [(name, text) for name, text in rows if text]


@click.command()
@licence_option
@no_rest_options
def doctor(*, licence: str) -> int:
    """Check versions, clock, rights, topology, settings, licences, nodes and gate; exit 1 if one fails.

    It only reads, and changes nothing.
    """
    from ...slurm.answers.live import ask_slurm
    from ...slurm.live.findings import Severity, examine
    from ...slurm.live.license_gate import own_user

    failed = False
    for finding in examine(ask_slurm, licence, own_user(), time.time):
        failed |= finding.level is Severity.FAIL
        click.echo(f"{finding.level.value:5}{finding.what:12}{one_line(finding.text)}")
    return 1 if failed else 0
