"""``aucsched schema``: the JSON Schemas of the files."""

from __future__ import annotations

import click


@click.command()
@click.argument(
    "name", metavar="snapshot|workload|schedule", type=click.Choice(["snapshot", "workload", "schedule"])
)
@click.option("-o", "--output", default="-", help="File to write instead of standard output.")
def schema(name: str, output: str) -> None:
    """Print the JSON Schema (2020-12) of a snapshot, a workload or a schedule file."""
    from .schema import schema_json
    from .write import write_text

    write_text(output, schema_json(name))
