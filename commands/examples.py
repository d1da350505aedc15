"""``aucsched examples``: the inputs that the pages use, wherever aucsched was installed."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

#: File below examples/ -> what it is.
EXAMPLES = {
    "emulated-1408-full.json": "snapshot: 1408 nodes nearly full, 66 jobs wait for 32 cores",
    "emulated-1408-queue.json": "snapshot: the same queue when three jobs have ended",
    "overtaken.json": "workload: one wide job, and narrow ones that overtake it",
    "days.swf": "log: 600 jobs on 128 processors, made up",
    "own_policy.py": "a policy of your own for simulate --policy",
    "adaptive_jacobi.py": "a program that grows and shrinks while it runs",
    "source/squeue.json.gz": "Slurm's answers that the snapshots were made from",
    "source/sinfo.json.gz": "",
    "source/scontrol_job_d.txt.gz": "",
    "source/topology.conf": "",
}


@click.command()
@click.argument("folder", required=False, type=click.Path(file_okay=False, path_type=Path))
def examples(folder: Path | None) -> None:
    """List the examples, or copy them all into FOLDER; files that stand there already are left alone."""
    if folder is None:
        wide = max(map(len, EXAMPLES))
        for name, text in EXAMPLES.items():
            click.echo(f"{name:<{wide}}  {text}".rstrip())
        click.echo("\naucsched examples FOLDER copies them")
        return
    from ..cluster.text import counted

    done = sum(_copy(_source(name), folder / name) for name in EXAMPLES)
    click.echo(f"{counted(done, 'file')} copied to {folder}")


def _source(name: str) -> Traversable:
    return files("aucsched").joinpath("examples", *name.split("/"))


def _copy(source: Traversable, target: Path) -> bool:
    from ..cluster.errors import InputError
    from ..formats.binary import write_bytes

    if target.exists():
        return False
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(error.strerror or str(error), file=str(target.parent)) from error
    write_bytes(target, source.read_bytes())
    return True
