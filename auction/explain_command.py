"""``aucsched explain``: why a job starts or waits."""

from __future__ import annotations

from typing import Any

import click

from .shared_command import auction_options, output_options, snapshot_argument


@click.command()
@snapshot_argument
@click.argument("job", metavar="JOB")
@auction_options
@output_options
def explain(snapshot: str, job: str, form: str, output: str, **options: Any) -> None:
    """Run the auction over SNAPSHOT and say why JOB (its id) starts or waits.

    What it asks for, its bids and what they lack, which jobs and nodes stand in its way, and when it could
    start at the latest if running jobs end as estimated.
    """
    from ..cluster.errors import InputError
    from ..formats.native import load_snapshot
    from .explain import explain as explained
    from .explain_text import explanation_document, render_explanation
    from .shared_command import step_options, write_json, write_rich

    checked = step_options(options)
    loaded = load_snapshot(snapshot)
    try:
        found = explained(loaded, job, checked)
    except InputError as error:
        raise error.in_file(snapshot) from error
    if form == "json":
        write_json(output, explanation_document(found))
        return
    write_rich(output, lambda console: render_explanation(found, loaded.time, console))
