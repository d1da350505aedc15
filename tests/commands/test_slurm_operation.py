"""What operation beside Slurm needs, as a user has it printed: configuration, unit, dashboard, status."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
from support.run import aucsched, refused

from aucsched.cli import cli
from aucsched.cluster.errors import InputError
from aucsched.commands.groups import read_config
from aucsched.commands.slurm.operate import _of_cluster
from aucsched.slurm.answers.reservation_records import read_reservations
from aucsched.slurm.live.live_forecasts import LiveForecasts
from aucsched.slurm.live.loop_metrics import ClusterStatus
from aucsched.slurm.live.loop_options import Settings

FIXTURES = Path(__file__).parents[1] / "fixtures" / "slurm" / "use"


def group() -> tuple[click.Context, click.Group]:
    context = click.Context(cli)
    found = cli.get_command(context, "slurm")
    assert isinstance(found, click.Group)
    return context, found


def test_the_configuration_names_every_option_and_changes_nothing(tmp_path: Path) -> None:
    text = aucsched("slurm", "config").stdout
    path = tmp_path / "slurm.toml"
    path.write_text(text)
    context, commands = group()
    defaults: dict[str, Any] = read_config(cli, context, str(path))["slurm"]
    tables = text.split("\n[slurm.")[1:]
    for table in tables:
        name = table.partition("]")[0]
        command = commands.get_command(context, name)
        assert command is not None
        for option in command.params:
            if isinstance(option, click.Option) and option.name not in ("help", "once", "passes", "dry_run"):
                key = (
                    option.opts[0].removeprefix("--")
                    if option.opts[0].startswith("--")
                    else option.opts[1][2:]
                )
                assert re.search(rf"^(# )?{key} =", table, re.MULTILINE), (name, key)
        # What stands without a mark is what the command does anyway.
        for key, value in defaults[name].items():
            option = next(one for one in command.params if one.name == key)
            assert str(option.default) == str(value), (name, key)


def test_a_gate_whose_clock_is_a_little_ahead_is_up() -> None:
    """Slurmctld's clock may be ahead: all others take the gate as up, and so does status."""
    shut = (
        b"ReservationName=auction_h StartTime=1795180020 EndTime=1795180300 Nodes=(null) Licenses=auction:9\n"
    )
    gates = read_reservations(shut, "auction")
    said = dict(_of_cluster(ClusterStatus(gates=gates), 1795180000.0))
    assert said["gate"] == "auction_h: up, ends in 300 s"


def test_forecasts_that_cannot_be_made_end_no_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(*_: object) -> None:
        raise InputError("no", path="job 7")

    monkeypatch.setattr(LiveForecasts, "look", look)
    files = ("--jobs", FIXTURES / "squeue.json", "--nodes", FIXTURES / "sinfo.json")
    done = aucsched("slurm", "shadow", "--once", "--forecasts", *files)
    assert (done.returncode, done.stdout.count("\n")) == (0, 1)
    assert "note: no forecasts: job 7: no\n" in done.stderr


def test_lines_of_the_configuration_are_in_force_without_their_mark(tmp_path: Path) -> None:
    text = aucsched("slurm", "config").stdout
    path = tmp_path / "slurm.toml"
    path.write_text(re.sub(r"^# ([a-z-]+ = .+)$", r"\1", text, flags=re.MULTILINE))
    assert "window = 100" in path.read_text()
    context, _ = group()
    found = read_config(cli, context, str(path))["slurm"]["shadow"]
    assert (found["window"], found["time_limit_s"], found["balance"]) == (100, 3.0, False)
    tomllib.loads(path.read_text())


def test_a_unit_for_each_loop(tmp_path: Path) -> None:
    made = aucsched("slurm", "unit", "shadow", "--user", "watch", "--program", "/usr/bin/env")
    assert made.returncode == 0
    assert "User=watch\n" in made.stdout
    assert "ExecStart=/usr/bin/env --config /etc/aucsched/slurm.toml slurm shadow\n" in made.stdout
    assert made.stderr == ""
    root = aucsched("slurm", "unit", "run", "--user", "root")
    assert "User=root\n" in root.stdout
    assert root.stderr.startswith("note: the loop does not need root: ")
    # SIGTERM is for the loop alone, and its lock is in the /tmp of those who start a second one by hand.
    assert "KillMode=mixed\n" in root.stdout
    assert "ReadWritePaths=/tmp\n" in root.stdout
    assert "PrivateTmp" not in root.stdout
    if analyze := shutil.which("systemd-analyze"):
        file = tmp_path / "aucsched-shadow.service"
        file.write_text(made.stdout)
        checked = subprocess.run([analyze, "verify", str(file)], capture_output=True, check=False, text=True)
        assert "aucsched-shadow" not in checked.stderr, checked.stderr


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--user", "a b"),
        ("--user", "-x"),
        ("--program", "/a b"),
        ("--config", "x.toml"),
        ("--config", "/a\n[x]"),
    ],
)
def test_a_unit_takes_no_value_that_would_be_read_otherwise(option: str, value: str) -> None:
    declined = aucsched("slurm", "unit", "shadow", option, value)
    assert (declined.returncode, declined.stdout) == (2, "")
    assert declined.stderr.startswith(f"aucsched: {option}: ")


def test_status_where_slurm_is_not() -> None:
    shown = aucsched("slurm", "status", "--metrics", "127.0.0.1:1", env={"PATH": "/nonexistent"})
    assert shown.returncode == 2
    assert "sinfo -h -o %C: the command is not installed here" in shown.stdout
    assert "127.0.0.1:1: " in shown.stdout
    assert "gate" not in shown.stdout
    public = aucsched("slurm", "status", "--metrics", "10.0.0.1:80")
    assert (public.returncode, public.stdout) == (2, "")


def test_the_panel_is_printed() -> None:
    assert '"title": "aucsched beside Slurm"' in aucsched("slurm", "panel").stdout


def test_a_gate_that_would_end_between_passes_is_refused() -> None:
    said = refused("slurm", "run", "--interval", "60", "--gate-for", "60")
    assert said == "aucsched: --gate-for 60 is not above --interval 60: the gate would end between passes"


def test_a_single_pass_may_have_a_short_gate() -> None:
    assert Settings(host="h", user="u", interval=60, gate_for=60, once=True).gate_for == 60
