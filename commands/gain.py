"""``aucsched gain``: a site's history as it was, and as simulations of it are."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from inspect import unwrap
from time import time
from typing import TYPE_CHECKING, Any

import click

from ..cluster.errors import OptionError, errors_in
from ..cluster.option_table import SIMULATE, ValueOptions
from ..simulation.policy_names import split_policies
from .built_options import INPUT, record_options
from .outputs import (
    Output,
    file_name,
    html_option,
    output_options,
    print_table,
    progress_over,
    topology_option,
    with_topology,
)
from .snapshot import parse_time
from .workload_logs import machine_options, read_machine

if TYPE_CHECKING:
    from rich.console import Console

    from ..api.gains import Gain
    from ..cluster.workload import ClusterWorkload

_SLURM = "slurm"
#: The sacct of a month on a busy site takes minutes.
_SACCT_S = 1800
#: How far back a live cluster is asked about.
_BACK_S = 30 * 86_400


@click.command(
    epilog="Save sacct's output with: sacct -a -X -P -S START -E END --format="
    "JobID,User,Account,Partition,QOS,State,Priority,Submit,Eligible,Start,End,ElapsedRaw,"
    "TimelimitRaw,NNodes,NCPUS,ReqMem,ReqTRES,AllocTRES > FILE. Columns may have any order."
)
@click.argument("history", required=False, type=INPUT, metavar="[slurm|WORKLOAD]")
@click.option("--sacct", type=INPUT, metavar="FILE", help="Output of sacct; - is standard input.")
@machine_options
@topology_option
@click.option("--since", metavar="TIME", help="Begin of the history: a date or seconds since 1970.")
@click.option("--until", metavar="TIME", help="End of the history; later submissions are left out.")
@click.option("--conf", type=INPUT, metavar="FILE", help="Output of scontrol show config, for backfill.")
@record_options(ValueOptions, reader=SIMULATE)
@click.option("--policy", "policies", multiple=True, metavar="NAME", help="Compare it, too; repeatable.")
@html_option
@output_options
def gain(history: str | None, out: Output, **options: Any) -> None:
    """Say what you would gain: your own starts, backfill's and the auction's, over the same jobs.

    Give the output of sacct and the nodes; or slurm, to ask the live cluster about the last 30 days
    or since --since; or a workload with started_s.
    """
    from ..api.gains import gain as compare
    from ..reports.run_pages import gain_page

    workload, unfit = _read_history(history, options)
    workload = with_topology(workload, options["topology"])
    window, interval_s = _read_backfill(options["conf"], is_live=history == _SLURM)
    with errors_in(options["sacct"] or history or _SLURM):
        made = unwrap(compare)(  # its errors name no keywords
            workload,
            ("aucsched3", *(one for text in options["policies"] for one in split_policies(text))),
            objective=options["objective"],
            promise=options["promise"],
            window=window,
            backfill_interval_s=interval_s,
            progress=lambda policy: progress_over(len(workload.jobs), policy),
        )
    found = replace(made, unfit=unfit)
    out.write(found.to_dict, lambda console: _render(found, console), lambda: gain_page(found))


def _read_history(history: str | None, options: dict[str, Any]) -> tuple[ClusterWorkload, int]:
    """Return the workload that the arguments name, and how many jobs its machine cannot hold."""
    if (history is None) == (options["sacct"] is None):
        raise OptionError("give one of: --sacct FILE, slurm, a workload file")
    machine = {name: options[name] for name in ("nodes", "cores", "gpus", "switch")}
    window = ((name, options[name]) for name in ("since", "until"))
    since, until = (None if text is None else parse_time(name, text) for name, text in window)
    if history is not None and history != _SLURM:
        from ..formats.native.cluster_file import load_workload

        for name in (*machine, "since", "until"):
            if options[name]:
                raise OptionError(f"--{name} is for sacct's output; a workload has its own")
        return load_workload(history), 0
    from ..formats.delimited import read_table
    from ..formats.reading import read_document
    from ..simulation.workloads.from_table import workload_of_sacct

    if history is None:
        empty, source = read_machine(**machine), options["sacct"]
        content = read_document(source, bytes)
    else:
        empty, source = read_machine(**machine) if machine["nodes"] else _live_nodes(), _SLURM
        since = time() - _BACK_S if since is None else since
        content = ask_sacct(since, until)
    with errors_in(source):
        table, name = read_table(content, "|"), file_name(source)
        made, notes = workload_of_sacct(name, table, empty, since=since, until=until)
    return made, notes.unfit


def ask_sacct(since: float, until: float | None) -> bytes:
    """Return what sacct prints of a window; times on its command line are local."""
    from ..simulation.workloads.from_table import COMMAND
    from ..slurm.answers.live import ask_slurm

    local = [datetime.fromtimestamp(one, UTC).astimezone() for one in (since, until or time())]
    first, last = (one.strftime("%Y-%m-%dT%H:%M:%S") for one in local)
    return ask_slurm((*COMMAND, "-S", first, "-E", last), _SACCT_S)


def _live_nodes() -> ClusterWorkload:
    from ..slurm.answers.live import EACH_NODE, first_answer
    from ..slurm.answers.node_records import empty_machine

    answer = first_answer(EACH_NODE)
    with errors_in(answer.name):
        return empty_machine(answer.content)[0]


def _read_backfill(conf: str | None, *, is_live: bool) -> tuple[int | None, float | None]:
    """Return how many jobs backfilling looks at, and how often in seconds; None: not known."""
    from ..formats.reading import read_document, text_of
    from ..slurm.answers.live import CONFIG, ask_slurm
    from ..slurm.answers.policy import backfill_settings

    if conf is not None:
        return read_document(conf, lambda content: backfill_settings(text_of(content)))
    if is_live:
        return backfill_settings(text_of(ask_slurm(CONFIG)))
    return None, None


def _with_interval(group: dict[str, Any]) -> dict[str, Any]:
    """Return a group with short heads for its last three columns: the change and its interval."""
    *means, (_, change), (_, low), (_, high) = group.items()
    return {**dict(means), "change": change, "95 %": None if low is None else (low, high)}


def _render(made: Gain, console: Console) -> None:
    console.print(made.title())
    print_table(console, "What happened, and what simulations of the same jobs give", made.figures)
    if made.groups:
        title = "Mean waits (s) by group, where they change most"
        print_table(console, title, list(map(_with_interval, made.groups)), leaving="happened")
    for text in made.words:
        console.print(text)
    for text in made.left_out:
        console.print(f"note: {text}")
