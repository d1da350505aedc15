"""``aucsched man``: the man pages, from the same options as ``--help``."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.pass_context
def man(context: click.Context, folder: Path) -> None:
    """Write a man page of each command into FOLDER: man FOLDER/aucsched-schedule.1 reads one."""
    from ..cluster.errors import InputError
    from ..cluster.text import plural
    from ..formats.native.write import write_text
    from .reference import man_pages

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(error.strerror or str(error), file=str(folder)) from error
    found = man_pages(context.find_root().command)
    for name, text in found.items():
        write_text(folder / name, text)
    click.echo(f"{plural(len(found), 'page')} written to {folder}")
