"""Figures for Prometheus: OpenMetrics text, on loopback only; and what stands on them."""

from __future__ import annotations

import json
import re
from http.client import HTTPConnection
from importlib.resources import files

import pytest

from aucsched.cli import run
from aucsched.cluster.errors import InputError, OptionError
from aucsched.slurm.answers.live import Command
from aucsched.slurm.live.loop_metrics import (
    COUNTERS,
    FIGURES,
    Metrics,
    cluster_status,
    figures_of,
    loopback,
    served,
)


def cells(line: str) -> list[str]:
    """Return what stands between the bars of a table's line."""
    return [cell.strip() for cell in re.split("[│|]", line) if cell.strip()]


def filled() -> Metrics:
    metrics = Metrics(loop="shadow")
    metrics.add("aucsched_passes")
    metrics.add("aucsched_passes")
    metrics.spend(read=0.5, decide=0.25)
    metrics.spend(read=0.5, decide=1.0)
    metrics.set("aucsched_gap_ratio", 0.01)
    metrics.set("aucsched_jobs", 7, state='odd "one"\\\n')
    return metrics


def test_the_text_is_openmetrics() -> None:
    text = filled().text()
    assert text.endswith("# EOF\n")
    assert 'aucsched_passes_total{loop="shadow"} 2.0\n' in text
    assert 'aucsched_phase_seconds_total{loop="shadow",phase="decide"} 1.25\n' in text
    assert 'aucsched_last_phase_seconds{loop="shadow",phase="decide"} 1.0\n' in text
    assert "# UNIT aucsched_gap_ratio ratio\n" in text
    assert 'state="odd \\"one\\"\\\\\\n"' in text
    names = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)
    assert len(names) == len(dict(names))
    # A family's lines stand together, and each sample belongs to the family above it.
    family = ""
    for line in text.splitlines()[:-1]:
        if line.startswith("# TYPE"):
            family = line.split()[2]
        else:
            assert line.startswith(
                (f"# UNIT {family} ", f"# HELP {family} ", f"{family}_total{{", f"{family}{{")
            )
    units = re.findall(r"^# UNIT (\S+) (\S+)$", text, re.MULTILINE)
    assert units
    assert all(name.endswith(f"_{unit}") for name, unit in units)


def test_a_figure_that_is_not_known_any_more_goes() -> None:
    metrics = filled()
    metrics.set("aucsched_gap_ratio", None)
    assert "\naucsched_gap_ratio{" not in metrics.text()
    with pytest.raises(ValueError, match="is not a counter"):
        metrics.add("aucsched_gap_ratio")


def get(port: int, path: str) -> tuple[int, str, str]:
    """Ask for a page; return its status, type and text."""
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request("GET", path)
    answer = connection.getresponse()
    found = answer.status, answer.headers["Content-Type"], answer.read().decode()
    connection.close()
    return found


def test_figures_are_served_on_loopback() -> None:
    metrics = filled()
    with served(metrics, "127.0.0.1:0") as where:
        assert where is not None
        port = int(where.split(":")[2].split("/")[0])
        status, kind, text = get(port, "/metrics")
        assert (status, text) == (200, metrics.text())
        assert kind.startswith("application/openmetrics-text")
        assert get(port, "/other")[0] == 404
        taken = f"127.0.0.1:{port}"
        with pytest.raises(InputError, match="Address already in use"), served(metrics, taken):
            pass
    with served(metrics, None) as nowhere:
        assert nowhere is None


@pytest.mark.parametrize(
    "address", ["0.0.0.0:9123", "10.0.0.1:1", "[::]:9123", "example.org:80", "9123", "127.0.0.1:70000"]
)
def test_no_other_address_is_listened_on(address: str) -> None:
    with pytest.raises(OptionError, match=r"^--metrics: "):
        loopback(address)


def test_addresses_of_loopback() -> None:
    assert loopback("localhost:9123") == ("127.0.0.1", 9123)
    assert loopback("[::1]:9123") == ("::1", 9123)


def test_the_dashboard_asks_for_figures_that_there_are() -> None:
    document = json.loads(files("aucsched.slurm.live").joinpath("dashboard.json").read_text())
    asked = " ".join(target["expr"] for panel in document["panels"] for target in panel["targets"])
    names = set(re.findall(r"aucsched_[a-z_]+", asked))
    known = {f"{name}_total" if name in COUNTERS else name for name in FIGURES}
    assert names <= known
    assert len(names) >= 12
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in document["panels"]}
    assert len(places) == len(document["panels"])


ANSWERS: dict[Command, bytes] = {
    ("sinfo", "-h", "-o", "%C"): b"12/34/6/52\n",
    ("squeue", "-h", "-o", "%T|%r"): b"RUNNING|None\nPENDING|Priority\nPENDING|Licenses\nPENDING|Licenses\n",
    ("scontrol", "-o", "show", "reservations"): (
        b"ReservationName=auction-h StartTime=1000 EndTime=1120 Nodes=(null) Licenses=auction:1000000 "
        b"Flags=LICENSE_ONLY Users=root\n"
    ),
}


def test_how_things_stand() -> None:
    with served(filled(), "127.0.0.1:0") as where:
        assert where is not None
        address = where.removeprefix("http://").removesuffix("/metrics")
        found = cluster_status(ANSWERS.__getitem__, "auction", (address, "127.0.0.1:1"))
    assert found.cores == (12, 34, 6, 52)
    assert found.states == {"pending: Licenses": 2, "running": 1, "pending: Priority": 1}
    assert [(gate.name, gate.end) for gate in found.gates] == [("auction-h", 1120)]
    assert found.loops["shadow"]["aucsched_passes"] == {(): 2.0}
    assert found.loops["shadow"]["aucsched_last_phase_seconds"] == {("read",): 0.5, ("decide",): 1.0}
    assert len(found.trouble) == 1
    assert found.trouble[0].startswith("127.0.0.1:1: ")
    assert figures_of(filled().text()) == found.loops


def test_status_shows_the_cluster_the_gate_and_each_loop(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("aucsched.slurm.answers.live.ask_slurm", ANSWERS.__getitem__)
    with served(filled(), "127.0.0.1:0") as where:
        assert where is not None
        address = where.removeprefix("http://").removesuffix("/metrics")
        assert run(["slurm", "status", "--once", "--metrics", address]) == 0
    shown = {row[0]: row[1] for row in map(cells, capfd.readouterr().out.splitlines()) if len(row) > 1}
    assert shown["cores"] == "12 used, 34 free, 6 not available, 52 in all"
    assert shown["jobs"] == "2 pending: Licenses, 1 running, 1 pending: Priority"
    assert shown["gate"] == "down: Slurm starts the jobs itself"
    assert shown["shadow: passes"] == "2, 0 failed"
    assert shown["shadow: gap"] == "1.00 %"
    assert shown["shadow: seconds"] == "1.000 decide, 0.500 read"


def test_a_slurm_that_does_not_answer_is_not_a_gate_that_is_down() -> None:
    def ask(command: Command) -> bytes:
        raise InputError("no answer", file=command[0])

    found = cluster_status(ask, "auction", ())
    assert (found.has_answered, found.trouble) == (False, ["sinfo: no answer"])


@pytest.mark.parametrize("host", ["evil.example", "evil.example:9123", "127.0.0.1.evil.example", "", "[::1"])
def test_only_this_host_s_own_names_are_answered(host: str) -> None:
    with served(filled(), "127.0.0.1:0") as where:
        assert where is not None
        for name, status in ((host, 421), ("localhost", 200), ("127.0.0.1:1", 200)):
            address = where.removeprefix("http://").removesuffix("/metrics")
            connection = HTTPConnection(address, timeout=10)
            connection.request("GET", "/metrics", headers={"Host": name})
            found = connection.getresponse().status
            connection.close()
            assert found == status
