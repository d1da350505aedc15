"""``job_resources``: what a running job holds on each node, in every shape that Slurm's JSON has had.

21.08 writes an object of nodes by their place in ``nodes``, with a count of CPUs; 22.05 to 23.02 a list with
the state of each core by socket; 24.05 and later the same below ``nodes.allocation``, sockets and cores as
lists and a core's state as a list of words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...cluster.checks import all_plain
from ...cluster.errors import InputError
from ...cluster.nodes import Resources
from ...formats.hostlist import expand
from .gres import parse_gres
from .nodes import NodeFigures
from .record import Record

_PLACE = re.compile(r"[0-9]{1,9}")
#: A core's states, lower case: ``unassigned`` is allocated and in no step's use.
_HELD = ("allocated", "unassigned", "in_use")
_FREE = ("unallocated",)


@dataclass(frozen=True, slots=True, kw_only=True)
class _NodeUse:
    """What one node gives to a job; ``cpus`` is None where cores are counted."""

    name: str
    cores: int
    cpus: int | None
    memory_mib: int | None


def read_allocation(record: Record, nodes: Mapping[str, NodeFigures]) -> dict[str, Resources]:
    """Return what a job holds by node; empty when its record does not say.

    ``allocated_cores`` is what was asked for; what is held are the cores of the sockets, each as many
    CPUs as it has threads. ``gres_detail`` has one text for each node, in the same order.

    Raises:
        InputError: the shape is none that a Slurm version is known to write.
    """
    gres = record.texts("gres_detail")
    use: dict[str, Resources] = {}
    for index, entry in enumerate(_uses(record)):
        threads = nodes[entry.name].threads if entry.name in nodes else 1
        place = record.place(f"gres_detail[{index}]")
        held = parse_gres(gres[index], place) if index < len(gres) else {}
        all_plain(held, place)
        use[entry.name] = Resources(
            cores=entry.cores * threads if entry.cpus is None else entry.cpus,
            memory_mib=entry.memory_mib or None,
            gres=held,
        )
    return use


def _uses(record: Record) -> Iterator[_NodeUse]:
    resources = record.child("job_resources")
    if resources is None or not resources.members:
        return
    allocated = resources.members.get("allocated_nodes")
    if isinstance(allocated, list):
        yield from _listed(resources)
    elif isinstance(allocated, dict):
        yield from _by_place(resources)
    elif isinstance(resources.members.get("nodes"), dict) and "allocation" in resources.members["nodes"]:
        yield from _structured(resources)
    else:
        raise record.unknown("job_resources", "a job's resources as Slurm 21.08 to 25.05 write them")


def _by_place(resources: Record) -> Iterator[_NodeUse]:
    names = expand(resources.text("nodes"), resources.place("nodes"))
    allocated = resources.child("allocated_nodes")
    for place in allocated.members if allocated else ():
        entry = allocated.child(place) if allocated else None
        if entry is None or not _PLACE.fullmatch(place) or int(place) >= len(names):
            raise InputError(f"{place!r} is no place in nodes", path=resources.place("allocated_nodes"))
        yield _NodeUse(
            name=names[int(place)], cores=0, cpus=entry.count("cpus"), memory_mib=entry.number("memory")
        )


def _listed(resources: Record) -> Iterator[_NodeUse]:
    for entry in resources.children("allocated_nodes"):
        entry.require("nodename", "sockets")
        memory = entry.number("memory_allocated")
        yield _NodeUse(name=entry.text("nodename"), cores=_cores(entry), cpus=None, memory_mib=memory)


def _structured(resources: Record) -> Iterator[_NodeUse]:
    nodes = resources.child("nodes")
    for entry in nodes.children("allocation") if nodes else ():
        entry.require("name", "sockets")
        memory = entry.child("memory")
        yield _NodeUse(
            name=entry.text("name"),
            cores=_cores(entry),
            cpus=None,
            memory_mib=memory.number("allocated") if memory else None,
        )


def _cores(entry: Record) -> int:
    """Count the cores that the job holds on a node's sockets."""
    return sum(_is_held(words, path) for words, path in _core_states(entry))


def _core_states(entry: Record) -> Iterator[tuple[tuple[str, ...], str]]:
    for socket in entry.entries("sockets"):
        cores = socket.members.get("cores")
        if isinstance(cores, dict):
            place = Record(cores, socket.place("cores"))
            yield from ((place.texts(core), socket.path) for core in cores)
        else:
            yield from ((core.texts("status"), core.path) for core in socket.children("cores"))


def _is_held(words: tuple[str, ...], path: str) -> bool:
    states = [word.lower() for word in words]
    if states and all(state.startswith(_HELD) for state in states):
        return True
    if states and all(state in _FREE for state in states):
        return False
    raise InputError(f"{', '.join(words)!r} is not a core's state", path=path)
