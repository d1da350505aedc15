"""What a snapshot's running jobs ask for and give back, and what may be taken from others for it.

The file (``aucsched-requests/1``) stands beside a snapshot::

    {"format": "aucsched-requests/1",
     "requests": [{"job": "A", "cores": 4}, {"job": "B", "nodes": 2, "cores_per_node": 8}],
     "releases": [{"job": "C", "nodes": {"n[3-4]": 8}}],
     "preemptible": ["L"], "malleable": [{"job": "M", "min_nodes": 2}]}
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...cluster.errors import InputError
from ...cluster.snapshot import Snapshot
from ...cluster.value_types import (
    CountMap,
    Entries,
    Integer,
    IntLike,
    IntLikeByName,
    Many,
    Name,
    NameList,
    NameTuple,
    OptionalIntLike,
    coerce_members,
    member,
    value_class,
)
from ...formats.hostlist import expand
from ...formats.jsontext import decode
from ...formats.native.forms import FORMS, FileForm, Form
from ...formats.reading import read_document

FORMAT = "aucsched-requests/1"


@dataclass(frozen=True, slots=True)
class CoresByHost(CountMap):
    """Cores by node; files may write several nodes as a hostlist."""


def _by_node(nodes: dict[str, int], path: str) -> dict[str, int]:
    cores: dict[str, int] = {}
    for names, count in nodes.items():
        for name in expand(names, f"{path}.{names}"):
            if name in cores:
                raise InputError(f"node {name!r} is listed twice", path=f"{path}.{names}")
            cores[name] = count
    return cores


FORMS[CoresByHost] = lambda _: Form(dict[str, int], read=_by_node)


@value_class
class GrowthRequest:
    """A running job asks for more: cores on any nodes, or nodes with that many cores on each.

    Nodes are others than the job has; cores may be on its own.
    """

    job: str = member(Name())
    cores: OptionalIntLike = member(Integer(1), default=None)
    nodes: OptionalIntLike = member(Integer(1), default=None)
    cores_per_node: OptionalIntLike = member(Integer(1), default=None)

    def __post_init__(self) -> None:
        coerce_members(self)
        if (self.cores is None) == (self.nodes is None):
            raise InputError("either cores or nodes are asked for", path="")
        if (self.nodes is None) != (self.cores_per_node is None):
            raise InputError("nodes and cores_per_node need each other", path="")


@value_class
class Release:
    """A running job gives back cores of some of its nodes, which may be all of them."""

    job: str = member(Name())
    cores: IntLikeByName = member(CoresByHost(Integer(1)), file="nodes")

    def __post_init__(self) -> None:
        coerce_members(self)
        if not self.cores:
            raise InputError("nothing is given back", path="cores")


@value_class
class ShrinkLimit:
    """The fewest nodes that a job can shrink to; it holds whole nodes."""

    job: str = member(Name())
    min_nodes: IntLike = member(Integer(1))

    def __post_init__(self) -> None:
        coerce_members(self)


@value_class
class RequestBatch:
    """Everything at one moment.

    Attributes:
        asks: first come first; one of a job.
        releases: made before them.
        preemptible: jobs that may be stopped, those to be stopped first in front.
        malleable: jobs that can shrink.
    """

    asks: Many[GrowthRequest] = member(Entries(GrowthRequest), default=(), file="requests")
    releases: Many[Release] = member(Entries(Release), default=())
    preemptible: NameTuple = member(NameList(), default=())
    malleable: Many[ShrinkLimit] = member(Entries(ShrinkLimit), default=())

    @property
    def least_nodes(self) -> Mapping[str, int]:
        """The fewest nodes of the jobs that can shrink, by name."""
        return {one.job: one.min_nodes for one in self.malleable}

    def check(self, snapshot: Snapshot) -> None:
        """Raise InputError where a job does not run, asks twice, or gives what it has not."""
        running = {job.id: job for job in snapshot.running}
        totals = {node.name: node.total.cores for node in snapshot.nodes}
        self._check_names(set(running))
        for place, release in enumerate(self.releases):
            held = running[release.job].nodes
            for name, count in release.cores.items():
                has = held[name].cores if name in held else 0
                if count > has:
                    message = f"{count} is above the {has} cores that job {release.job} has there"
                    raise InputError(message, path=f"releases[{place}].nodes.{name}")
        for name, least in self.least_nodes.items():
            held = running[name].nodes
            if any(use.cores < totals[node] for node, use in held.items()):
                raise InputError(f"job {name} holds parts of nodes: it cannot shrink", path="malleable")
            if least > len(held):
                raise InputError(f"{least} is above the {len(held)} nodes of job {name}", path="malleable")

    def _check_names(self, running: set[str]) -> None:
        lists: dict[str, Iterable[str]] = {
            "requests": [ask.job for ask in self.asks],
            "releases": [release.job for release in self.releases],
            "preemptible": self.preemptible,
            "malleable": [one.job for one in self.malleable],
        }
        for part, names in lists.items():
            seen: set[str] = set()
            for place, name in enumerate(names):
                path = f"{part}[{place}]{'' if part == 'preemptible' else '.job'}"
                if name not in running:
                    raise InputError(f"{name!r} does not run", path=path)
                if name in seen:
                    why = ": a job has one request at a time" if part == "requests" else " is listed twice"
                    raise InputError(f"{name!r}{why}", path=path)
                seen.add(name)


#: How files hold them.
_FILE = FileForm(RequestBatch, first=("format",), own={"format": (str,)})


def load_requests(path: str | Path, snapshot: Snapshot) -> RequestBatch:
    """Return a file's requests, checked against the snapshot.

    Raises:
        InputError: names file, path and value.
    """

    def parsed(content: bytes) -> RequestBatch:
        found: RequestBatch = _FILE.build(decode(content, _FILE.struct, FORMAT))
        found.check(snapshot)
        return found

    return read_document(path, parsed)
