"""What running jobs of a snapshot ask for and give back, and what may be taken from others for them.

The file (``aucsched-requests/1``) stands beside a snapshot::

    {"format": "aucsched-requests/1",
     "requests": [{"job": "A", "cores": 4}, {"job": "B", "nodes": 2, "cores_per_node": 8}],
     "releases": [{"job": "C", "nodes": {"n[3-4]": 8}}],
     "preemptible": ["L"], "malleable": [{"job": "M", "min_nodes": 2}]}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ...cluster.checks import at_least, named
from ...cluster.errors import InputError
from ...cluster.snapshot import Snapshot
from ...formats.hostlist import expand
from ...formats.jsontext import decode
from ...formats.reading import read_document

FORMAT = "aucsched-requests/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthRequest:
    """A running job asks for more: cores on any nodes, or nodes with that many cores on each.

    Nodes are others than the job has; cores may be on its own.
    """

    job: str
    cores: int | None = None
    nodes: int | None = None
    cores_per_node: int | None = None

    def __post_init__(self) -> None:
        named(self.job, "job")
        for name in ("cores", "nodes", "cores_per_node"):
            at_least(getattr(self, name), 1, name)
        if (self.cores is None) == (self.nodes is None):
            raise InputError("either cores or nodes are asked for", path="")
        if (self.nodes is None) != (self.cores_per_node is None):
            raise InputError("nodes and cores_per_node need each other", path="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A running job gives back cores of some of its nodes, which may be all of them."""

    job: str
    cores: Mapping[str, int]

    def __post_init__(self) -> None:
        named(self.job, "job")
        if not self.cores:
            raise InputError("nothing is given back", path="nodes")
        for name, count in self.cores.items():
            at_least(count, 1, f"nodes.{name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestBatch:
    """Everything at one moment.

    Attributes:
        asks: first come first; one of a job.
        releases: made before them.
        preemptible: jobs that may be stopped, those to be stopped first in front.
        malleable: the fewest nodes that a job can shrink to; it holds whole nodes.
    """

    asks: tuple[GrowthRequest, ...] = ()
    releases: tuple[Release, ...] = ()
    preemptible: tuple[str, ...] = ()
    malleable: Mapping[str, int] = field(default_factory=dict)

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
        for name, least in self.malleable.items():
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
            "malleable": self.malleable,
        }
        for member, names in lists.items():
            seen: set[str] = set()
            for place, name in enumerate(names):
                if name not in running:
                    raise InputError(f"{name!r} does not run", path=f"{member}[{place}]")
                if name in seen:
                    why = (
                        "a job has one request at a time" if member == "requests" else "it stands there twice"
                    )
                    raise InputError(f"{name!r}: {why}", path=f"{member}[{place}]")
                seen.add(name)


class _Wire(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    pass


class _AskWire(_Wire):
    job: str
    cores: int | None = None
    nodes: int | None = None
    cores_per_node: int | None = None


class _ReleaseWire(_Wire):
    job: str
    nodes: dict[str, int]


class _MalleableWire(_Wire):
    job: str
    min_nodes: int


class _RequestsWire(_Wire):
    format: str
    requests: list[_AskWire] = []
    releases: list[_ReleaseWire] = []
    preemptible: list[str] = []
    malleable: list[_MalleableWire] = []


def load_requests(path: str | Path, snapshot: Snapshot) -> RequestBatch:
    """Return a file's requests, checked against the snapshot.

    Raises:
        InputError: names file, path and value.
    """

    def parsed(content: bytes) -> RequestBatch:
        found = parse_requests(content)
        found.check(snapshot)
        return found

    return read_document(path, parsed)


def parse_requests(content: bytes) -> RequestBatch:
    """Return the requests in a file's text."""
    document = decode(content, _RequestsWire)
    if document.format != FORMAT:
        raise InputError(f"{document.format!r} is not {FORMAT!r}", path="format")
    asks, releases = [], []
    for place, ask in enumerate(document.requests):
        try:
            asks.append(
                GrowthRequest(
                    job=ask.job, cores=ask.cores, nodes=ask.nodes, cores_per_node=ask.cores_per_node
                )
            )
        except InputError as error:
            raise error.under(f"requests[{place}]") from error
    for place, release in enumerate(document.releases):
        try:
            releases.append(Release(job=release.job, cores=_by_node(release.nodes)))
        except InputError as error:
            raise error.under(f"releases[{place}]") from error
    least: dict[str, int] = {}
    for place, one in enumerate(document.malleable):
        at_least(one.min_nodes, 1, f"malleable[{place}].min_nodes")
        if one.job in least:
            raise InputError(f"{one.job!r}: it stands there twice", path=f"malleable[{place}]")
        least[one.job] = one.min_nodes
    return RequestBatch(
        asks=tuple(asks),
        releases=tuple(releases),
        preemptible=tuple(document.preemptible),
        malleable=least,
    )


def _by_node(nodes: dict[str, int]) -> dict[str, int]:
    cores: dict[str, int] = {}
    for names, count in nodes.items():
        for name in expand(names, f"nodes.{names}"):
            if name in cores:
                raise InputError(f"node {name!r} stands twice", path=f"nodes.{names}")
            cores[name] = count
    return cores
