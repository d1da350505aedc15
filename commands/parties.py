"""``aucsched ibsched`` and ``aucsched irtsched``: one party of a negotiation each, each in a process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..cluster.errors import OptionError
from ..cluster.option_fields import taken_from
from ..cluster.text import one_line
from ..simulation.negotiated.negotiation_options import NegotiationOptions
from .built_options import SectionCommand
from .negotiate_options import (
    batch_options,
    keep_runs,
    known_runs,
    play_from,
    play_options,
    result_options,
    runtime_options,
)
from .outputs import OUTPUT
from .party_links import identity_of, journal_in, link_of, link_options, runtime_side, tell


@click.command(
    cls=SectionCommand, short_help="Run the batch scheduler of a negotiation with an irtsched process."
)
@click.argument("workload", type=click.Path(allow_dash=True))
@play_options
@batch_options
@link_options
@click.option("--jobs-out", type=OUTPUT, help="CSV with one row for each job.")
def ibsched(workload: str, **options: Any) -> None:
    """Hold WORKLOAD's queue (esp, or a workload file) and map it to what irtsched offers.

    Both processes read the same WORKLOAD.
    """
    from ..api.negotiations import batch_settings
    from ..formats.native.write import write_text
    from ..negotiation.batch import ibsched as machine
    from ..negotiation.transport.party import Party
    from ..negotiation.transport.serve import serve_batch
    from ..simulation.negotiated.negotiated_report import job_columns_of
    from ..simulation.negotiated.negotiated_run import batch_notes, batch_of, settings_text
    from ..simulation.report import csv_of

    play = play_from(workload, options)
    settings = batch_settings(play, taken_from(NegotiationOptions, options))
    identity = identity_of("ibsched", play, options, batch_notes(settings))
    known = known_runs(options)
    begun_with = settings_text(settings) + (f" and {known!r}" if known else "")
    with journal_in(identity, begun_with, options) as journal:
        party = Party(batch_of(play, settings, known), machine.step, journal, tell=tell)
        is_new = not party.has_ended
        with link_of(identity, options) as link:
            serve_batch(party, link, tell)
    done = party.state.done
    if is_new:
        keep_runs(play, done, options)
    if options["jobs_out"] is not None:
        write_text(options["jobs_out"], csv_of(job_columns_of(play, done)))
    write_text("-", f"{one_line(play.name)}: {len(done)} of {len(play.arrivals)} jobs are done\n")


@click.command(
    cls=SectionCommand, short_help="Run the runtime scheduler of a negotiation with an ibsched process."
)
@click.argument("workload", type=click.Path(allow_dash=True), required=False)
@click.option(
    "--clusters",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help='TOML with a table of options for each of several clusters, WORKLOAD as workload = "..."; '
    "options in front of the tables are for all of them.",
)
@play_options
@runtime_options
@link_options
@result_options
@click.pass_context
def irtsched(
    context: click.Context, /, *, workload: str | None, clusters: Path | None, **options: Any
) -> int | None:
    """Hold WORKLOAD's nodes and its running jobs, offer what is idle to ibsched, and print the metrics.

    Both processes read the same WORKLOAD. The simulated clock is kept here. With --clusters one process
    holds several clusters, each with an ibsched, a clock and a journal of its own.
    """
    if clusters is not None:
        from .clusters import only_option, serve_clusters

        only_option(context, "clusters")
        return serve_clusters(clusters, irtsched)
    if workload is None:
        raise OptionError("WORKLOAD or --clusters is needed")
    with runtime_side(workload, options, tell) as side:
        side.serve()
    side.write()
    return None
