"""Figures of the loops beside Slurm for Prometheus: OpenMetrics text over HTTP, on loopback only.

A dashboard shows them, as Grafana imports it. With Slurm's short answers they say how the cluster,
the gate and the loops stand.
"""

import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

from ...cluster.errors import InputError, OptionError, system_errors
from ...negotiation.transport.link import is_loopback
from ..answers.answer_text import answered
from ..answers.live import Ask
from ..answers.reservation_records import ReservationFigures
from .actions import gates

_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
#: An address; of a request's Host the port may be left out.
_HOST = re.compile(r"(?:\[(?P<six>[0-9a-fA-F:]+)\]|(?P<host>[\w.-]+))(?::(?P<port>\d{1,5}))?", re.ASCII)
_LARGEST_PORT = 65535


#: What each figure that may be told says, a sentence by its name.
FIGURES: Mapping[str, str] = {
    "aucsched_passes": "Passes that were made.",
    "aucsched_failures": "Passes that failed: Slurm did not answer, say.",
    "aucsched_phase_seconds": "Wall time of the passes by phase: read, decide, place, verify.",
    "aucsched_pass_timestamp_seconds": "When the last pass that did not fail began.",
    "aucsched_last_phase_seconds": "Wall time of the last pass by phase.",
    "aucsched_gap_ratio": "How far the last award may be from the best, over the bids made.",
    "aucsched_awards": "Jobs that the last pass would start, or placed.",
    "aucsched_starts": ("Started jobs: slurm, by Slurm itself; auction, on nodes that the auction chose."),
    "aucsched_put_back": "Placed jobs that did not start and were put back.",
    "aucsched_changes": "Commands that changed a job or the gate.",
    "aucsched_jobs": "Jobs by state: waiting, running, gated, pinned.",
    "aucsched_cores": "Cores of nodes that take jobs, by state: all, used.",
    "aucsched_gate_age_seconds": "Seconds since this loop last moved the gate's end on.",
    "aucsched_gate_left_seconds": "Seconds until the gate ends by itself; 0 where it has ended.",
    "aucsched_forecasts": "The last forecasts whose jobs have started, at most 500.",
    "aucsched_forecast_coverage_ratio": "Starts from P10 to P90 of those forecasts; 0.8 is right.",
    "aucsched_forecast_miss_seconds": "Median distance of those forecasts' P50 from the start.",
    "aucsched_unread_rules": "Rules of the site that are not looked at.",
}
#: Those that only grow: their samples end in ``_total``. All others are gauges.
COUNTERS = {
    *("aucsched_passes", "aucsched_failures", "aucsched_phase_seconds"),
    *("aucsched_starts", "aucsched_put_back", "aucsched_changes"),
}
#: OpenMetrics' words for units, with which a figure's name ends; another one counts.
_UNITS = {"seconds", "ratio"}


class Metrics:
    """The figures of one process; safe between the loop and those who ask."""

    def __init__(self, *, now: Callable[[], float] = time.time, **labels: str) -> None:
        self._now = now
        self._labels = labels
        #: Gauges that go on by themselves: the moment that each counts from, or down to.
        self._moments: dict[str, tuple[float, float]] = {}
        self._values: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
        self._lock = threading.Lock()

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        """Let a counter grow."""
        with self._lock:
            values, key = self._place(name, labels, is_counter=True)
            values[key] = values.get(key, 0.0) + amount

    def set(self, name: str, value: float | None, **labels: str) -> None:
        """Set a gauge; None: it is not known any more."""
        with self._lock:
            values, key = self._place(name, labels, is_counter=False)
            if value is None:
                values.pop(key, None)
            else:
                values[key] = float(value)

    def of_states(self, name: str, **counts: float) -> None:
        """Set a gauge for each state."""
        for state, count in counts.items():
            self.set(name, count, state=state)

    def run(self, name: str, moment: float, *, down: bool = False) -> None:
        """Let a gauge give the seconds since a moment, or ``down`` to it, whenever it is read."""
        with self._lock:
            self._moments[name] = (-1.0 if down else 1.0, moment)

    def spend(self, **seconds: float) -> None:
        """Tell what the last pass spent by phase."""
        for phase, amount in seconds.items():
            self.add("aucsched_phase_seconds", amount, phase=phase)
            self.set("aucsched_last_phase_seconds", amount, phase=phase)

    def text(self) -> str:
        """Return all figures as OpenMetrics text."""
        now = self._now()
        for name, (sign, moment) in list(self._moments.items()):
            self.set(name, max(0.0, sign * (now - moment)))
        with self._lock:
            return "".join(self._lines()) + "# EOF\n"

    def _place(
        self, name: str, labels: Mapping[str, str], *, is_counter: bool
    ) -> tuple[dict[tuple[tuple[str, str], ...], float], tuple[tuple[str, str], ...]]:
        if name not in FIGURES or is_counter != (name in COUNTERS):
            raise ValueError(f"{name} is not a {'counter' if is_counter else 'gauge'}")
        return self._values.setdefault(name, {}), tuple(sorted({**self._labels, **labels}.items()))

    def _lines(self) -> Iterator[str]:
        for name, sentence in FIGURES.items():
            if name not in self._values:
                continue
            yield f"# TYPE {name} {'counter' if name in COUNTERS else 'gauge'}\n"
            if (unit := name.rpartition("_")[2]) in _UNITS:
                yield f"# UNIT {name} {unit}\n"
            yield f"# HELP {name} {sentence}\n"
            end = "_total" if name in COUNTERS else ""
            for key, value in sorted(self._values[name].items()):
                labels = ",".join(f'{label}="{_escaped(text)}"' for label, text in key)
                yield f"{name}{end}{{{labels}}} {value!r}\n" if labels else f"{name}{end} {value!r}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def loopback(address: str) -> tuple[str, int]:
    """Return the host and port of ``127.0.0.1:9123``.

    Raises:
        OptionError: it is none, or no address of this host alone: figures are told to nobody else.
    """
    match = _HOST.fullmatch(address)
    host = "" if match is None else (match["six"] or match["host"])
    if match is None or int(match["port"] or _LARGEST_PORT + 1) > _LARGEST_PORT:
        raise OptionError(f"--metrics: {address!r} is not ADDRESS:PORT, as in 127.0.0.1:9123")
    host = "127.0.0.1" if host == "localhost" else host
    if not is_loopback(host):
        raise OptionError(f"--metrics: {host} is not a loopback address: put a proxy in front of 127.0.0.1")
    return host, int(match["port"])


@contextmanager
def served(metrics: Metrics, address: str | None) -> Iterator[str | None]:
    """Answer ``GET /metrics`` while the context lasts; yield where, None where no address is given.

    Raises:
        OptionError: the address is not a loopback address.
        InputError: it cannot be listened on.
    """
    if address is None:
        yield None
        return
    host, port = loopback(address)

    class Handler(_Handler):
        figures = metrics
        hosts = frozenset({host, "localhost"})

    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        daemon_threads = True

    with system_errors(f"--metrics {address}"):
        server = Server((host, port), Handler)
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    shown = f"[{host}]" if ":" in host else host
    try:
        yield f"http://{shown}:{server.server_address[1]}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    """Answers with the figures; says nothing on stderr.

    A page of another site may make a browser on this host ask here under that site's name (DNS
    rebinding): only this host's own names are answered.
    """

    figures: ClassVar[Metrics]
    hosts: ClassVar[frozenset[str]]
    server_version = "aucsched"
    sys_version = ""
    timeout = 10

    def do_GET(self) -> None:
        """Answer /metrics; 421 to a request for another host, 404 to everything else."""
        asked = _HOST.fullmatch(self.headers.get("Host", ""))
        if asked is None or (asked["six"] or asked["host"]).lower() not in self.hosts:
            self.send_error(421)
            return
        if self.path.partition("?")[0] != "/metrics":
            self.send_error(404)
            return
        body = self.figures.text().encode()
        self.send_response(200)
        self.send_header("Content-Type", _TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Say nothing."""


_CORES: tuple[str, ...] = ("sinfo", "-h", "-o", "%C")
_JOBS: tuple[str, ...] = ("squeue", "-h", "-o", "%T|%r")
_FOUR = re.compile(r"(\d{1,12})/(\d{1,12})/(\d{1,12})/(\d{1,12})", re.ASCII)
_SAMPLE = re.compile(r"(?P<name>[a-z_]+?)(?:_total)?(?:\{(?P<labels>[^}]*)\})? (?P<value>\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_TIMEOUT_S = 5

#: A figure's samples by the values of their labels, the loop's left out.
Samples = Mapping[tuple[str, ...], float]


@dataclass(slots=True, kw_only=True)
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

    has_answered: bool = False
    cores: tuple[int, int, int, int] | None = None
    states: Mapping[str, int] = field(default_factory=dict)
    gates: tuple[ReservationFigures, ...] = ()
    loops: dict[str, Mapping[str, Samples]] = field(default_factory=dict)
    trouble: list[str] = field(default_factory=list)


def cluster_status(ask: Ask, licence: str, addresses: tuple[str, ...]) -> ClusterStatus:
    """Ask Slurm and the loops how they stand; what does not answer is named in ``trouble``.

    Raises:
        OptionError: an address is not a loopback address.
    """
    found, states = ClusterStatus(), Counter[str]()
    try:
        match = _FOUR.search(answered(ask(_CORES)))
        if match is not None:
            found.cores = (int(match[1]), int(match[2]), int(match[3]), int(match[4]))
        for line in answered(ask(_JOBS)).splitlines():
            state, _, reason = line.partition("|")
            states[f"pending: {reason}" if state == "PENDING" else state.lower()] += 1
        found.gates = gates(ask, licence)
        found.has_answered = True
    except InputError as error:
        found.trouble.append(str(error))
    found.states = dict(states.most_common())
    for address in addresses:
        try:
            found.loops |= figures_of(_fetched(address))
        except (OSError, HTTPException, InputError) as error:
            found.trouble.append(f"{address}: {error}")
    return found


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
