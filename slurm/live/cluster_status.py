"""How the cluster, the gate and the loops stand: from Slurm's short answers and from the loops' figures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException

from ...cluster.errors import InputError
from ..answers.live import Ask
from .license_gate import Gate, gates
from .loop_metrics import FIGURES, loopback

_CORES: tuple[str, ...] = ("sinfo", "-h", "-o", "%C")
_JOBS: tuple[str, ...] = ("squeue", "-h", "-o", "%T|%r")
_FOUR = re.compile(r"(\d{1,12})/(\d{1,12})/(\d{1,12})/(\d{1,12})", re.ASCII)
_SAMPLE = re.compile(r"(?P<name>[a-z_]+?)(?:_total)?(?:\{(?P<labels>[^}]*)\})? (?P<value>\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_TIMEOUT_S = 5

#: A figure's samples by the values of their labels, the loop's left out.
Samples = Mapping[tuple[str, ...], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStatus:
    """The cluster at one moment.

    Attributes:
        has_answered: Slurm did; otherwise nothing is known of the cluster and the gate.
        cores: allocated, idle, other (down, drained) and all.
        states: jobs by state, pending ones by why they wait.
        gates: the gates that are up or will be.
        loops: figures by loop and name.
        trouble: what could not be asked.
    """

    has_answered: bool
    cores: tuple[int, int, int, int] | None
    states: Mapping[str, int]
    gates: tuple[Gate, ...]
    loops: Mapping[str, Mapping[str, Samples]]
    trouble: tuple[str, ...]


def cluster_status(ask: Ask, licence: str, addresses: tuple[str, ...]) -> ClusterStatus:
    """Ask Slurm and the loops how they stand; what does not answer is named in ``trouble``.

    Args:
        ask: answers a command of Slurm's.
        licence: the gate's.
        addresses: of the loops' figures.

    Raises:
        OptionError: an address is not a loopback address.
    """
    trouble: list[str] = []
    cores: tuple[int, int, int, int] | None = None
    states: Counter[str] = Counter()
    found: tuple[Gate, ...] = ()
    try:
        match = _FOUR.search(ask(_CORES).decode(errors="replace"))
        if match is not None:
            cores = (int(match[1]), int(match[2]), int(match[3]), int(match[4]))
        for line in ask(_JOBS).decode(errors="replace").splitlines():
            state, _, reason = line.partition("|")
            states[f"pending: {reason}" if state == "PENDING" else state.lower()] += 1
        found = gates(ask, licence)
    except InputError as error:
        trouble.append(str(error))
    has_answered = not trouble
    loops: dict[str, Mapping[str, Samples]] = {}
    for address in addresses:
        try:
            loops |= figures_of(_fetched(address))
        except (OSError, HTTPException, InputError) as error:
            trouble.append(f"{address}: {error}")
    return ClusterStatus(
        has_answered=has_answered,
        cores=cores,
        states=dict(states.most_common()),
        gates=found,
        loops=loops,
        trouble=tuple(trouble),
    )


def _fetched(address: str) -> str:
    host, port = loopback(address)
    connection = HTTPConnection(host, port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        text = answer.read(2**20).decode(errors="replace")
    finally:
        connection.close()
    if not text.endswith("# EOF\n"):
        raise InputError("no figures of a loop")
    return text


def figures_of(text: str) -> dict[str, dict[str, Samples]]:
    """Return the figures in OpenMetrics text, by loop and name."""
    found: dict[str, dict[str, dict[tuple[str, ...], float]]] = {}
    for line in text.splitlines():
        match = _SAMPLE.fullmatch(line)
        if match is None or match["name"] not in FIGURES:
            continue
        labels = dict(_LABEL.findall(match["labels"] or ""))
        loop = labels.pop("loop", "")
        key = tuple(labels[name] for name in sorted(labels))
        found.setdefault(loop, {}).setdefault(match["name"], {})[key] = float(match["value"])
    return {loop: dict(figures) for loop, figures in found.items()}
