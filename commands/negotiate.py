"""``aucsched negotiate``: both schedulers on a workload."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..cluster.errors import OptionError
from ..cluster.option_fields import flag_of, taken_from
from ..simulation.negotiated.negotiation_options import NegotiationOptions
from .built_options import SectionCommand
from .negotiate_options import (
    RESULT_OPTIONS,
    batch_options,
    check_result_options,
    keep_runs,
    known_runs,
    play_from,
    play_options,
    result_options,
    runtime_options,
    write_result,
)
from .outputs import progress_over

if TYPE_CHECKING:
    from ..simulation.negotiated.negotiated_run import Negotiated


@click.command(cls=SectionCommand, short_help="Let the batch scheduler and the runtime scheduler negotiate.")
@click.argument("workload", required=False, type=click.Path(allow_dash=True))
@play_options
@batch_options
@runtime_options
@click.option(
    "--runtimes",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="Number of runtime schedulers that share the nodes.",
)
@result_options
@click.option(
    "--replay",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Replay a .jsonl trace instead of WORKLOAD; fail where it differs.",
)
def negotiate(workload: str | None, **options: Any) -> None:
    """Negotiate WORKLOAD: esp (the thesis's 228 jobs), or a workload file (- reads standard input)."""
    check_result_options(options)
    if options["replay"] is not None:
        result = _replayed(workload, options)
    elif workload is None:
        raise click.UsageError("Missing argument 'WORKLOAD'.")
    else:
        result = _run(workload, options)
    write_result(result, options)


def _replayed(workload: str | None, options: dict[str, Any]) -> Negotiated:
    from ..formats.reading import read_document
    from ..simulation.negotiated.trace import replayed

    context = click.get_current_context()
    explicit = [
        name
        for name in options
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        and name not in {"replay", *RESULT_OPTIONS}
    ]
    if workload is not None:
        raise OptionError("--replay runs a trace: WORKLOAD would be ignored")
    if explicit:
        raise OptionError(f"--replay runs a trace: {flag_of(explicit[0])} would be ignored")
    return read_document(options["replay"], replayed)


def _run(workload: str, options: dict[str, Any]) -> Negotiated:
    from dataclasses import replace

    from ..api.negotiations import batch_settings, runtime_settings
    from ..simulation.negotiated.negotiated_run import negotiate as run

    play = replace(play_from(workload, options), runtimes=options["runtimes"])
    chosen = taken_from(NegotiationOptions, options)
    batch = batch_settings(play, chosen)
    runtime = replace(runtime_settings(chosen), max_attempts=chosen.max_attempts, interval_s=chosen.interval)
    with progress_over(len(play.arrivals)) as progress:
        result = run(play, batch, runtime, progress=progress, known=known_runs(options))
    keep_runs(play, result.done, options)
    return result
