"""``aucsched slurm status``, ``doctor``, ``unit``, ``config``, ``panel``: how to run a loop.

The state of cluster, gate, loops; whether a loop works; a service's unit, options, dashboard.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...cluster.errors import OptionError
from ...cluster.option_fields import Option
from ...cluster.option_table import STEP, read_by
from ...cluster.text import one_line
from ..built_options import filled_options
from ..outputs import note, write_rich
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
    up = [gate for gate in found.gates if gate.is_up(now)]
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
    """Check whether the loop works with this Slurm.

    It checks versions, clock, rights, topology, settings, licences, nodes and gate; exit 1 if any
    fail. It only reads, and changes nothing.
    """
    from ...slurm.answers.live import ask_slurm
    from ...slurm.live.actions import own_user
    from ...slurm.live.findings import Severity, examine

    failed = False
    for finding in examine(ask_slurm, licence, own_user(), time.time):
        failed |= finding.level is Severity.FAIL
        click.echo(f"{finding.level.value:5}{finding.what:12}{one_line(finding.text)}")
    return 1 if failed else 0


_WHAT = {
    "shadow": "what the auction would start, nothing is changed",
    "run": "starts the jobs behind the gate",
}
_USER = re.compile(r"[a-z_][a-z0-9_-]{0,30}", re.ASCII)
_PATH = re.compile(r"/[\w./+@-]*", re.ASCII)


@click.command()
@click.argument("loop", type=click.Choice(sorted(_WHAT)))
@click.option("--user", default="aucsched", show_default=True, help="User of the service; not root.")
@click.option(
    "--config",
    default="/etc/aucsched/slurm.toml",
    show_default=True,
    help="The service's options, in the form of aucsched slurm config.",
)
@click.option("--program", help="Path of aucsched. Default: this program's.")
def unit(*, loop: str, user: str, config: str, program: str | None) -> None:
    """Print the systemd unit of a loop."""
    program = str(Path(sys.argv[0]).resolve()) if program is None else program
    if not _USER.fullmatch(user):
        raise OptionError(f"--user: {user!r} is not a user's name")
    for option, path in (("--config", config), ("--program", program)):
        if not _PATH.fullmatch(path):
            raise OptionError(f"{option}: {path!r} is not a plain absolute path")
    if user == "root":
        note("the loop does not need root: give it a user of its own (useradd --system aucsched)")
    template = files("aucsched.slurm.live").joinpath("aucsched.service").read_text("utf-8")
    text = template.format(loop=loop, what=_WHAT[loop], user=user, config=config, program=program)
    click.echo(text, nl=False)


_WIDTH = 100
_HEAD = """\
# Options of aucsched's Slurm commands, with their defaults. Use:
#   aucsched --config THIS_FILE slurm shadow
# Options on the command line override this file. An option on a line "# name =" has no fixed
# default: remove the mark to set it.
"""
#: Commands of the group that have options worth keeping.
_KEPT = ("shadow", "run", "status", "doctor")
#: Options that say what one run is for.
_OF_ONE_RUN = {"once", "passes", "dry_run"}


@click.command()
@click.pass_context
def config(context: click.Context) -> None:
    """Print a configuration file with every option's default."""
    group = context.parent.command if context.parent else None
    if not isinstance(group, click.Group):
        raise TypeError("config belongs in a group")
    click.echo(_HEAD, nl=False)
    for name in _KEPT:
        command = group.get_command(context, name)
        click.echo(f"\n[slurm.{name}]")
        for option in command.params if command is not None else ():
            if isinstance(option, click.Option) and option.name not in _OF_ONE_RUN:
                click.echo("".join(_lines(option)), nl=False)


def _lines(option: click.Option) -> Iterator[str]:
    key = next(name for name in option.opts if name.startswith("--")).removeprefix("--")
    for line in textwrap.wrap(option.help or "", _WIDTH - 2):
        yield f"# {line}\n"
    default = option.to_info_dict()["default"]
    if default is not None and not option.multiple:
        yield f"{key} = {_value(default)}\n"
        return
    known = _OF_THE_TABLE.get(option.name or "")
    choices = option.type.choices if isinstance(option.type, click.Choice) else ()
    typed = isinstance(known, (bool, int, float)) or known in choices
    yield f"# {key} = {_value(known)}\n" if typed else f"# {key} =\n"


#: The auction's defaults, which its options resolve themselves.
_OF_THE_TABLE = {one.name: one.default_of(STEP) for one in read_by(STEP)}


def _value(value: Any) -> str:
    """Return a value as TOML, which has numbers, texts, true and false as JSON does."""
    return json.dumps(value, default=str, ensure_ascii=False)


@click.command()
def panel() -> None:
    """Print a Grafana dashboard of the figures that --metrics serves."""
    # Grafana asks for the Prometheus data source at its import.
    click.echo(files("aucsched.slurm.live").joinpath("dashboard.json").read_text("utf-8"), nl=False)
