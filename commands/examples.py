"""``aucsched examples``: the inputs that the pages use, wherever aucsched was installed."""

from collections.abc import Mapping
from pathlib import Path

import click

from ..cluster.errors import OptionError, system_errors
from .built_options import OUTPUT
from .instances import KINDS, LISTED, bundled, snapshot_bytes

#: File below examples/ -> what it is.
EXAMPLES = LISTED.files


@click.command(short_help="List or copy the bundled examples; make the benchmarks' snapshots.")
@click.argument("folder", required=False, type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--instance",
    "kind",
    type=click.Choice(list(KINDS)),
    metavar="KIND",
    help="Write a snapshot of the benchmarks' set instead; the list of examples names the kinds.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    metavar="N",
    help="Which instance of the kind; default: 0. Kinds that are an example are the same for every seed.",
)
@click.option("-o", "--output", type=OUTPUT, help="File for the instance instead of standard output.")
def examples(folder: Path | None, kind: str | None, seed: int | None, output: Path | None) -> None:
    """List the examples, or copy them all into FOLDER; it overwrites no file.

    With --instance, write a snapshot of the set that the benchmarks solve; a seed gives the same
    bytes every time.
    """
    if kind is not None:
        from ..formats.writing import write_bytes

        if folder is not None:
            raise OptionError("--instance writes one file, -o FILE: give no FOLDER")
        write_bytes(output or "-", snapshot_bytes(kind, seed or 0))
        return
    for option, value in (("--seed", seed), ("--output", output)):
        if value is not None:
            raise OptionError(f"{option} is for --instance KIND")
    if folder is None:
        _list()
        return
    from ..cluster.text import plural

    done = sum(_copy(name, folder / name) for name in EXAMPLES)
    click.echo(f"{plural(done, 'file')} copied to {folder}")


def _list() -> None:
    _table(EXAMPLES)
    click.echo("\naucsched examples FOLDER copies them\n")
    _table({name: kind.line for name, kind in KINDS.items()})
    click.echo(
        "\naucsched examples --instance KIND --seed N -o FILE makes a snapshot, to schedule under those caps"
    )


def _table(lines: Mapping[str, str]) -> None:
    wide = max(map(len, lines))
    for name, text in lines.items():
        click.echo(f"{name:<{wide}}  {text}".rstrip())


def _copy(name: str, target: Path) -> bool:
    from ..formats.writing import write_bytes

    with system_errors(target.parent):
        if target.exists():
            return False
        target.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(target, bundled(name).read_bytes())
    return True
