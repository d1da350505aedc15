"""Command lines: random ones, built from the commands' own table of options, with hostile values.

Every command of the table is called with options that are its own, repeated, misspelt or another's; values
are good, extreme or hostile, inputs good or absent, outputs files, a device, a link, a file that nobody else
may read. Beside what is promised of every command: devices and links stay what they are, and modes stay.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import shutil
import stat
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import click
from attack_cases import Outcome, Section
from attack_inputs import READERS, Files
from attack_readers import check_command
from mutants import NUMBERS, TEXTS

from aucsched.cli import cli

#: Addresses of other machines are none of a test's business.
_LEFT_OUT = ("--dask",)
#: They ask a live Slurm, again and again where none answers; tests/slurm/live has one that does.
_LIVE = {("slurm", name) for name in ("shadow", "run", "doctor", "gate", "status")}
#: What ends the two parties of a negotiation, which wait for each other: given last.
_ENDS = {"ibsched": ("--wait", "0", "--timeout", "0.3"), "irtsched": ("--wait", "0", "--timeout", "0.3")}
#: Texts that no file and no process can be called by are left out: a command line cannot hold NUL.
_WORDS = (
    *(text for text in TEXTS if "\x00" not in text),
    *("easy,fcfs", "1,2,3", "1-5", "unix:socket", "127.0.0.1:0", "gpu=1", "3,60", "1,2,", ",", "-", "--"),
    *("\udcff\udcfe", "\x1b]0;title\x07", "a" * 5000, "on", "esp", "II", "18:1", "2026-11-20T09:30:00Z"),
)
_OUTPUTS = (
    *("out.json", "out.png", "out.csv", "out.swf", "out.lp", "out.mps", "out.txt", "out.jsonl", "-"),
    *("null", "link.json", "private.json", "folder", "absent/out.json", "", " ", "é.json", "a" * 300),
)
_INPUTS = {
    "snapshot": ("snapshot.json",),
    "workload": ("workload.json", "log.swf", "w.json"),
    "source": ("snapshot.json", "workload.json", "log.swf"),
    "events": ("week.events",),
    "conf": ("conf",),
    "replay": ("t.jsonl",),
    "secret_file": ("private.json", "secret"),
    "journal": ("j",),
    "cluster": ("workload.json", "snapshot.json"),
    "nodes": ("sinfo.json", "nodes.csv"),
    "jobs": ("squeue.json",),
    "pods": ("pods.csv",),
    "topology": ("topology.conf", "topology.yaml"),
    "job_detail": ("job_detail.txt",),
    **{name: (f"{name}.json", f"{name}.txt") for name in ("partitions", "licenses", "reservations")},
}


def leaves(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Give every command that does something, with the words that call it."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from leaves(found, (*path, name))
    else:
        yield path, command


@cache
def _commands() -> tuple[tuple[tuple[str, ...], click.Command], ...]:
    return tuple(leaf for leaf in leaves(cli) if leaf[0][:2] not in _LIVE)


@cache
def _files() -> Files:
    """Return one good file of every kind."""
    files: dict[str, bytes] = {}
    for reader in READERS:
        files |= reader.files(4)
    files["secret"] = b"a secret\n"
    return files


def command_line(seed: int) -> list[str]:
    """Return a random command line."""
    rng = random.Random(f"command line {seed}")  # noqa: S311 - not a secret
    path, command = _commands()[seed % len(_commands())]
    hostility = rng.choice([0.0, 0.05, 0.3])
    words: list[str] = []
    for param in command.params:
        if isinstance(param, click.Argument):
            words += _argument(rng, param, hostility)
        elif not {*param.opts} & {*_LEFT_OUT} and rng.random() < (0.97 if param.required else 0.18):
            words += _option(rng, param, hostility)
    if rng.random() < hostility:
        words.insert(rng.randint(0, len(words)), rng.choice([*_WORDS, *_foreign(rng)]))
    return [*path, *words, *_ENDS.get(path[0], ())]


def _foreign(rng: random.Random) -> list[str]:
    """Return options of other commands, whole and misspelt."""
    _, command = rng.choice(_commands())
    options = [param.opts[0] for param in command.params if isinstance(param, click.Option)] or ["--help"]
    chosen = rng.choice(options)
    return [chosen, chosen[:-1], f"{chosen}=", chosen.upper()]


def _argument(rng: random.Random, param: click.Argument, hostility: float) -> list[str]:
    if rng.random() < hostility / 3 or (not param.required and rng.random() < 0.4):
        return []
    return [_value(rng, param, hostility)]


def _option(rng: random.Random, param: click.Parameter, hostility: float) -> list[str]:
    name = rng.choice([*param.opts, *param.secondary_opts])
    if getattr(param, "is_flag", False):
        return [name]
    times = rng.randint(1, 3) if param.multiple or rng.random() < hostility else 1
    return [word for _ in range(times) for word in (name, _value(rng, param, hostility))]


def _value(rng: random.Random, param: click.Parameter, hostility: float) -> str:
    """Return a value for a parameter: mostly one of its kind."""
    if rng.random() < hostility:
        return rng.choice(rng.choice([_WORDS, NUMBERS, _OUTPUTS]))[:20_000]
    kind = param.type
    if isinstance(kind, click.Choice):
        return str(rng.choice(kind.choices))
    name = param.name or ""
    if isinstance(kind, (click.Path, click.File)) or name in ("output", "export"):
        return rng.choice(_INPUTS.get(name, _OUTPUTS if rng.random() < 0.5 else _OUTPUTS[:8]))
    if isinstance(kind, (type(click.INT), type(click.FLOAT))):
        return _number(rng, kind)
    return rng.choice(_WORDS)


def _number(rng: random.Random, kind: Any) -> str:
    """Return a small number in a type's range, or its ends."""
    low = getattr(kind, "min", None)
    high = getattr(kind, "max", None)
    small = max(low or 0, rng.choice([0, 1, 2, 3, 0.5 if isinstance(kind, type(click.FLOAT)) else 4]))
    return str(rng.choice([small, small, small, small, low if low is not None else -1, min(high or 64, 64)]))


def described(seed: int, folder: Path) -> Outcome:
    """Return a case without running it; its files are the same for all."""
    del folder
    return Outcome(replay=shlex.join(["aucsched", *command_line(seed)]))


def run_case(seed: int, folder: Path) -> Outcome:
    """Run one command line in a folder with a good file of every kind."""
    outcome = described(seed, folder)
    place = folder / "case"
    shutil.rmtree(place, ignore_errors=True)
    arguments = command_line(seed)
    files = _files()
    if arguments[0] == "dynsched":  # it serves until nothing runs and nothing waits
        snapshot = json.loads(files["snapshot.json"]) | {"jobs": [], "running": []}
        files = {**files, "snapshot.json": json.dumps(snapshot).encode()}
    for name, content in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
    had_device = _targets(place)
    # Two parties that do not find each other have failed, and say that they listened.
    check_command(arguments, place, outcome, b"aucsched" if arguments[0] in _ENDS else b"")
    if had_device and not stat.S_ISCHR((place / "null").lstat().st_mode):
        outcome.fail("device", "a device that was to be written to is replaced")
    if not (place / "link.json").is_symlink():
        outcome.fail("link", "a link that was to be written to is replaced")
    mode = stat.S_IMODE((place / "private.json").stat().st_mode)
    if mode != 0o600:
        outcome.fail("mode", f"a file of mode 0600 has {mode:04o} after it was written to")
    return outcome


def _targets(place: Path) -> bool:
    """Make what outputs may be written to; return whether a device could be made."""
    (place / "folder").mkdir()
    (place / "linked.json").write_bytes(b"before")
    (place / "link.json").symlink_to("linked.json")
    (place / "private.json").write_bytes(b"before")
    (place / "private.json").chmod(0o600)
    try:
        os.mknod(place / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except OSError:
        return False
    return True


def section() -> Section:
    """Return the section."""
    return Section(
        name="lines",
        count=1000,
        quick=120,
        run=run_case,
        describe=described,
        prepare=_files,
        hangs_after_s=30.0,
    )
