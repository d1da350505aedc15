"""``aucsched examples``: the inputs that the pages use, and the benchmarks' snapshots.

An instance is made from a kind and a seed: the same bytes every time, which the benchmarks solve.
A kind names a machine, how its running jobs fragment it, its queue, and the caps of its auction.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ..cluster.errors import OptionError, system_errors
from ..cluster.text import one_line, plural
from ..formats.writing import write_bytes
from .built_options import OUTPUT, WholeRange

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


def bundled(name: str) -> Traversable:
    """Return the file of that name, with slashes, below the package's examples/."""
    return files("aucsched").joinpath("examples", *name.split("/"))


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceKind:
    """What instances of one name have in common.

    Attributes:
        nodes, cores, gpus: how many nodes, and what each has.
        fans: nodes of a leaf switch, leaves of a switch above, and so on; a root is above the last.
        busy: share of all cores that running jobs hold.
        held: cores that a running job holds on each of its nodes.
        spans: nodes of a running job.
        sizes: nodes of a pending job.
        per_node: cores on each of its nodes; none given: as ``held``.
        priorities: the least and the greatest.
        exclusive: whether jobs want nodes whole.
        window, max_bids, max_bids_per_job: the auction's options; as many jobs as ``window`` wait.
        example: file of the examples to take instead.
    """

    nodes: int = 0
    cores: int = 0
    gpus: int = 0
    fans: tuple[int, ...] = ()
    busy: float = 0.6
    held: tuple[int, ...] = ()
    spans: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    sizes: tuple[int, ...] = ()
    per_node: tuple[int, ...] = ()
    priorities: tuple[int, int] = (1, 100_000)
    exclusive: bool = False
    window: int = 100
    max_bids: int = 6_000
    max_bids_per_job: int = 60
    example: str = ""

    @property
    def line(self) -> str:
        """What it is and the caps of the auction over it, on one line."""
        machine = self.example or f"{self.nodes} nodes of {self.cores} cores, {self.gpus} GPUs"
        caps = f"--window {self.window} --max-bids {self.max_bids} --max-bids-per-job {self.max_bids_per_job}"
        return f"{machine}; {caps}"


class ExampleTable(msgspec.Struct):
    """What examples.json lists: files below examples/ with what they are, and kinds of instances.

    The kinds are Soner's TSUBAME 2.0 (with fewer bids, with priorities near each other, where the
    number of jobs decides and going by priority is weak; with whole nodes; with 400 jobs waiting,
    for sweeps over windows), a full tree of 1024 nodes, a Frontier-like machine.
    """

    files: dict[str, str]
    kinds: dict[str, InstanceKind]


LISTED = msgspec.json.decode(files(__package__).joinpath("examples.json").read_bytes(), type=ExampleTable)
KINDS = LISTED.kinds

#: Shares of the pending jobs that want GPUs, and consecutive nodes.
_WITH_GPUS, _CONTIGUOUS = 0.4, 0.3


def snapshot_bytes(kind: str, seed: int) -> bytes:
    """Return an instance's snapshot file; the examples are the same for every seed."""
    chosen = KINDS[kind]
    if chosen.example:
        return bundled(chosen.example).read_bytes()
    return msgspec.json.encode(_document(chosen, seed)) + b"\n"


def _document(kind: InstanceKind, seed: int) -> dict[str, Any]:
    rng = random.Random(seed)  # noqa: S311 - not a secret
    free_cores, free_gpus = _fragments(rng, kind)
    width = len(str(kind.nodes - 1))
    nodes = [
        {
            "name": f"n{place:0{width}d}",
            "cores": kind.cores,
            "free_cores": cores,
            "gres": {"gpu": kind.gpus},
            "free_gres": {"gpu": gpus},
            "state": "idle" if cores == kind.cores else "mixed" if cores else "allocated",
        }
        for place, (cores, gpus) in enumerate(zip(free_cores, free_gpus, strict=True))
    ]
    return {
        "format": "aucsched-snapshot/1",
        "time": "2026-11-20T09:30:00Z",
        "nodes": nodes,
        "topology": {"kind": "tree", "switches": _switches(kind.nodes, width, kind.fans)},
        "jobs": _queue(rng, kind),
    }


def _fragments(rng: random.Random, kind: InstanceKind) -> tuple[list[int], list[int]]:
    """Start running jobs at random places up to the share of busy cores; return what is free.

    Where a job does not fit on a node of its place, it leaves the node as it is.
    """
    cores, gpus = [kind.cores] * kind.nodes, [kind.gpus] * kind.nodes
    to_hold = int(kind.busy * kind.nodes * kind.cores)
    while to_hold > 0:
        span, use, gpu = rng.choice(kind.spans), rng.choice(kind.held), rng.randint(0, kind.gpus // 2)
        start = rng.randrange(kind.nodes - span + 1)
        for node in range(start, start + span):
            if use <= min(cores[node], to_hold) and gpu <= gpus[node]:
                cores[node] -= use
                gpus[node] -= gpu
                to_hold -= use
        if to_hold < min(kind.held):
            break
    return cores, gpus


def _switches(nodes: int, width: int, fans: tuple[int, ...]) -> list[dict[str, Any]]:
    """Return the tree, leaves first, root last."""
    leaf = fans[0]
    below = [
        {
            "name": f"s0-{start // leaf:04d}",
            "nodes": f"n[{start:0{width}d}-{min(start + leaf, nodes) - 1:0{width}d}]",
        }
        for start in range(0, nodes, leaf)
    ]
    switches = list(below)
    for level, fan in enumerate((*fans[1:], len(below)), start=1):
        below = [
            {
                "name": f"s{level}-{start // fan:04d}",
                "switches": ",".join(one["name"] for one in below[start : start + fan]),
            }
            for start in range(0, len(below), fan)
        ]
        switches += below
    return switches


def _queue(rng: random.Random, kind: InstanceKind) -> list[dict[str, Any]]:
    """Return the pending jobs; each seed deals each size equally often: demand differs little."""
    sizes = _dealt(rng, kind.sizes, kind.window)
    per_node = _dealt(rng, kind.per_node or kind.held, kind.window)
    return [
        {"id": str(place), "priority": rng.randint(*kind.priorities), "time_limit_s": 3600}
        | _request(rng, size, cores, kind.gpus)
        | ({"exclusive": True} if kind.exclusive else {})
        for place, (size, cores) in enumerate(zip(sizes, per_node, strict=True), start=1)
    ]


def _dealt(rng: random.Random, values: tuple[int, ...], count: int) -> list[int]:
    dealt = [values[place % len(values)] for place in range(count)]
    rng.shuffle(dealt)
    return dealt


def _request(rng: random.Random, size: int, per_node: int, gpus: int) -> dict[str, Any]:
    """Return a request of one of the papers' three types; some want GPUs or consecutive nodes."""
    request: dict[str, Any] = rng.choice(
        [
            {"cores": size * per_node},
            {"nodes": size, "cores": size * per_node},
            {"nodes": size, "cores_per_node": per_node},
        ]
    )
    if rng.random() < _WITH_GPUS:
        request["gres_per_node"] = {"gpu": rng.randint(1, gpus)}
    if rng.random() < _CONTIGUOUS:
        request["contiguous"] = True
    return request


#: File below examples/ -> what it is.
EXAMPLES = LISTED.files


@click.command()
@click.argument("folder", required=False, type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--instance",
    "kind",
    type=click.Choice(list(KINDS)),
    metavar="KIND",
    help="Write a snapshot of this kind instead; without options the command lists the kinds.",
)
@click.option(
    "--seed",
    type=WholeRange(0),
    metavar="N",
    help="Which instance of the kind; default: 0. Some kinds are the same for every seed.",
)
@click.option("-o", "--output", type=OUTPUT, help="File for the instance instead of standard output.")
def examples(folder: Path | None, kind: str | None, seed: int | None, output: Path | None) -> None:
    """List or copy the bundled examples; make the benchmarks' snapshots.

    The copies in FOLDER overwrite no file. With --instance, write a snapshot of the set that the
    benchmarks solve; a seed gives the same bytes every time.
    """
    if kind is not None:
        if folder is not None:
            raise OptionError("--instance writes one file, -o FILE: give no FOLDER")
        write_bytes(output or "-", snapshot_bytes(kind, seed or 0))
        return
    for option, value in (("--seed", seed), ("--output", output)):
        if value is not None:
            raise OptionError(f"{option} is for --instance KIND")
    if folder is None:
        _table(EXAMPLES)
        click.echo("\naucsched examples FOLDER copies them\n")
        _table({name: kind.line for name, kind in KINDS.items()})
        makes = "makes a snapshot, to schedule under those caps"
        click.echo(f"\naucsched examples --instance KIND --seed N -o FILE {makes}")
        return
    done = sum(_copy(name, folder / name) for name in EXAMPLES)
    click.echo(f"{plural(done, 'file')} copied to {one_line(str(folder))}")


def _table(lines: Mapping[str, str]) -> None:
    wide = max(map(len, lines))
    for name, text in lines.items():
        click.echo(f"{name:<{wide}}  {text}".rstrip())


def _copy(name: str, target: Path) -> bool:
    with system_errors(target.parent):
        if target.exists():
            return False
        target.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(target, bundled(name).read_bytes())
    return True
