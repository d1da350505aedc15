"""``aucsched explain``: why a job starts or waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from .auction_options import auction_options, output_options, snapshot_argument

if TYPE_CHECKING:
    from rich.console import Console

    from ..auction.options import StepOptions
    from ..cluster.snapshot import Snapshot

    #: The answer as a document and as it is printed.
    _Answer = tuple[Callable[[], dict[str, Any]], Callable[[Console], None]]


@click.command()
@snapshot_argument
@click.argument("job", metavar="[JOB]", required=False)
@auction_options
@output_options
def explain(snapshot: str, job: str | None, form: str, output: str, **options: Any) -> None:
    """Run the auction over SNAPSHOT and say why JOB (its id) starts or waits; without JOB, what nodes cost.

    What the job asks for, its bids, what they cost and lack, which jobs and nodes stand in its way, the
    smallest change of its request that would start it, and when it could start at the latest if running jobs
    end as estimated. Prices are in units of priority: what the jobs of the window bid nodes up to.
    """
    from ..cluster.errors import InputError
    from ..formats.native.read import load_snapshot
    from .auction_options import step_options, write_json, write_rich

    checked = step_options(options)
    loaded = load_snapshot(snapshot)
    try:
        document, render = _prices(loaded, checked) if job is None else _job(loaded, job, checked)
    except InputError as error:
        raise error.in_file(snapshot) from error
    if form == "json":
        write_json(output, document())
        return
    write_rich(output, render)


def _job(snapshot: Snapshot, job: str, options: StepOptions) -> _Answer:
    from ..auction.explain.explain import explain as explained
    from ..auction.render.explain import explanation_document, render_explanation

    found = explained(snapshot, job, options)
    return (
        lambda: explanation_document(found),
        lambda console: render_explanation(found, snapshot.time, console),
    )


def _prices(snapshot: Snapshot, options: StepOptions) -> _Answer:
    from ..auction.explain.overview import overview
    from ..auction.render.overview import overview_document, render_overview

    found = overview(snapshot, options)
    return lambda: overview_document(found), lambda console: render_overview(found, console)
