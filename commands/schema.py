"""``aucsched schema``: the JSON Schemas of the files."""

from pathlib import Path

import click

from .outputs import output_option

_FILES = ("snapshot", "workload", "schedule", "plan")


@click.command()
@click.argument("name", metavar="|".join(_FILES), type=click.Choice(_FILES))
@output_option
def schema(name: str, output: Path) -> None:
    """Print the JSON Schema (2020-12) of a snapshot, a workload, a schedule or a plan file."""
    from ..cluster.tabular import indented_json
    from ..formats.native.json_schema import schema_of
    from ..formats.writing import write_text

    write_text(output, indented_json(schema_of(name)))
