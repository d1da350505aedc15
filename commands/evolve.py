"""``aucsched evolve``: one extended iteration over a snapshot and the requests of its running jobs."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

import click

from ..cluster.errors import OptionError, errors_in
from ..cluster.option_fields import taken_from
from ..simulation.evolving.evolving_options import DepthOptions
from .auction_options import output_options, snapshot_argument, write_json
from .evolving_options import depth_options, fairness_options, note_if_any, read_fairness
from .outputs import OUTPUT

if TYPE_CHECKING:
    from ..negotiation.evolving.serving import Evolution


@click.command()
@snapshot_argument
@click.option(
    "--requests",
    type=click.Path(allow_dash=True),
    help="File of the running jobs' requests and releases (aucsched-requests/1); default: none.",
)
@fairness_options
@click.option(
    "--accounts",
    type=OUTPUT,
    help="File of the delays so far: read and updated; created where it does not exist.",
)
@click.option(
    "--serve-by",
    type=click.Choice(["iteration", "auction"]),
    default="iteration",
    show_default=True,
    help="The extended Maui iteration, or one auction of requests and queue, from idle nodes.",
)
@depth_options
@click.option("--snapshot-out", type=OUTPUT, help="The snapshot as it is afterwards.")
@output_options
def evolve(snapshot: str, requests: str | None, form: str, output: str, **options: Any) -> None:
    """Serve the requests of SNAPSHOT's running jobs (a file, or - for standard input), then start its queue.

    Requests are served first come, first served: from what is idle, else by stopping preemptible jobs, else
    by shrinking malleable ones, where no limit on the delay of queued jobs is broken.
    """
    from ..auction.options import StepOptions
    from ..cluster.promises import PLAN
    from ..formats.native.read import load_snapshot
    from ..formats.native.write import save_snapshot, write_text
    from ..negotiation.evolving.fairness import at_start
    from ..negotiation.evolving.fairness_file import load_accounts, save_accounts
    from ..negotiation.evolving.requests import RequestBatch, load_requests
    from ..negotiation.evolving.serving import evolve as evolved

    if options["accounts"] is not None and str(options["accounts"]) == "-":
        raise OptionError("--accounts: the delays are read and written again, which - cannot be")
    if requests == "-" == snapshot:
        raise OptionError("--requests - and the snapshot would both read standard input")
    serve_by = options["serve_by"]
    depths = taken_from(DepthOptions, options).depths(serve_by)
    limits, remark = read_fairness(options["fairness"], options["fairness_decay"])
    loaded = load_snapshot(snapshot)
    asked = RequestBatch() if requests is None else load_requests(requests, loaded)
    if serve_by == "auction" and (asked.preemptible or asked.malleable):
        raise OptionError("--serve-by auction takes from idle nodes only: no preemptible or malleable jobs")
    accounts, snapshot_out = options["accounts"], options["snapshot_out"]
    kept = None if accounts is None else load_accounts(accounts)
    with errors_in(snapshot):
        found = evolved(
            loaded,
            asked,
            fairness=limits,
            accounts=kept or at_start(limits, loaded.time or 0.0),
            depths=depths,
            auction=StepOptions(promise=PLAN, reserve=depths.reservation) if serve_by == "auction" else None,
        )
    note_if_any(remark)
    if accounts is not None:
        # Before anybody hears of a grant: what it costs others must not be forgotten.
        save_accounts(found.accounts, accounts)
    if snapshot_out is not None:
        save_snapshot(found.snapshot, snapshot_out)
    if form == "json":
        write_json(output, found.to_document())
    else:
        write_text(output, _text(found))


def _text(found: Evolution) -> str:
    from ..formats.hostlist import join

    lines = []
    for answer in found.answers:
        name, grant = answer.request.job.id, answer.grant
        if grant is None:
            when = "" if answer.earliest_s == inf else f"; could be there at {answer.earliest_s:g}"
            lines.append(f"refused  {name}: {answer.why}{when}")
            continue
        by = [f"{join([node])}:{use.cores}" for node, use in grant.nodes.items()]
        lines.append(f"granted  {name}: {' '.join(by)}")
        lines += [f"         stops {stopped}" for stopped in grant.preempted]
        lines += [f"         {other} gives {join(nodes)}" for other, nodes in grant.shrunk.items()]
        lines += [
            f"         delays {delay.job} by " + ("ever" if delay.seconds == inf else f"{delay.seconds:g} s")
            for delay in answer.delays
        ]
    lines += [f"starts   {job.id}: {join(job.nodes)}" for job in found.started]
    lines.append(f"{len(found.snapshot.jobs)} jobs wait")
    return "\n".join(lines) + "\n"
