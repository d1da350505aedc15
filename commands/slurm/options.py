"""Options that the commands beside a live Slurm share."""

from __future__ import annotations

import click

licence_option = click.option(
    "--license",
    "licence",
    metavar="NAME",
    default="auction",
    show_default=True,
    help="The licence that keeps jobs behind the gate.",
)
