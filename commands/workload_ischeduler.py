"""``aucsched workload ischeduler`` and ``fit``: traces of applications, and their parameters from a log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..cluster.errors import OptionError, errors_in
from .outputs import output_option, read_log, shown

#: Options of one kind of trace only.
_SYSTEM, _USER = ("load", "model", "max_size"), ("beta", "ge_p4_s", "block_bytes")
_ABOVE_0 = click.FloatRange(0, 10**9, min_open=True)


@click.command("ischeduler")
@click.argument("kind", type=click.Choice(["system", "STEN", "GE", "CL", "MIXED"]))
@click.option("--jobs", type=click.IntRange(1, 10**6), default=10_000, show_default=True)
@click.option(
    "--processors",
    type=click.IntRange(1, 10**6),
    help="Processors of the machine; default: 128 for system, 64 for a user.",
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of everything drawn."
)
@click.option(
    "--load", type=click.FloatRange(0, 100, min_open=True), help="For system: offered load; default 0.7."
)
@click.option(
    "--model",
    type=click.Path(),
    help="For system: model that `workload fit` wrote; default: SDSC SP2's first rows.",
)
@click.option(
    "--max-size", type=click.IntRange(1), help="For system: largest size of a job; default: half the machine."
)
@click.option("--beta", type=_ABOVE_0, help="For a user: factor on the time between arrivals; default 0.5.")
@click.option("--ge-p4-s", type=_ABOVE_0, help="Run time of GE's P4; default 22300 (table 1 prints 3857).")
@click.option("--block-bytes", type=_ABOVE_0, help="SeqBlockSize of CL; default 1000.")
@output_option
def ischeduler(kind: str, output: Path, **options: Any) -> None:
    """Make a trace of applications (SWF): of a system's jobs, or of one user's (Weissman, 4.1 and 4.2).

    What a job asks for are its ideal processors, its run time is the one on those. A file with the
    ending .gz is compressed.
    """
    from ..formats.reading import read_document
    from ..formats.swf import write_swf
    from ..simulation.workloads.application_traces import SDSC_SP2, model_of, system_trace, user_trace

    foreign = _USER if kind == "system" else _SYSTEM
    for name in foreign:
        if options[name] is not None:
            raise OptionError(f"--{name.replace('_', '-')} is not of a {kind} trace")
    own = _SYSTEM if kind == "system" else _USER
    given = {name: options[name] for name in own if options[name] is not None and name != "model"}
    if options["processors"] is not None:
        given["processors"] = options["processors"]
    given |= {"jobs": options["jobs"], "seed": options["seed"]}
    model = SDSC_SP2 if options["model"] is None else read_document(options["model"], model_of)
    made = system_trace(model, **given) if kind == "system" else user_trace(kind, **given)
    write_swf(output, made)


@click.command("fit")
@click.argument("log", type=click.Path(allow_dash=True))
@output_option
def fit_log(log: str, output: Path) -> None:
    """Fit a model of system-centric traces to a log (SWF): JSON that ``ischeduler --model`` reads."""
    from ..cluster.text import one_line
    from ..formats.writing import write_text
    from ..simulation.report import to_json
    from ..simulation.workloads.application_traces import fit

    rows = read_log(log)
    source = rows.header("Computer")
    name = shown(log) if source is None else f"{one_line(source)} ({shown(log)})"
    with errors_in(log):
        model = fit(rows, name)
    write_text(output, to_json(model.to_document()))
