"""Which JSON is asked of which release, and what is said of a release that nobody knows."""

from __future__ import annotations

import pytest

from aucsched.cluster.errors import InputError
from aucsched.commands.slurm.loops import say_unknown_release
from aucsched.slurm.answers.live import Command, collect, release_here
from aucsched.slurm.answers.slurm_files import SlurmFiles
from aucsched.slurm.answers.versions import SlurmRelease, parse_release


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("slurm-wlm 22.05.8\n", SlurmRelease(22, 5, 8)),
        ("slurm 26.05.0-rc1", SlurmRelease(26, 5)),
        ("slurm 25.11.12", SlurmRelease(25, 11, 12)),
        ("slurm 24.05", SlurmRelease(24, 5)),
        ("slurm of tomorrow", None),
        ("slurm 2605", None),
    ],
)
def test_a_release_is_read(text: str, release: SlurmRelease | None) -> None:
    assert parse_release(text) == release


class Commands:
    """Slurm's commands of one release, which serve these versions of JSON and their own default."""

    def __init__(self, version: str, served: range) -> None:
        self.asked: list[Command] = []
        self._version = version
        self._options = {"--json", *(f"--json=v0.0.{number}" for number in served)}

    def __call__(self, command: Command) -> bytes:
        """Answer a command."""
        self.asked.append(command)
        if command == ("scontrol", "--version"):
            return self._version.encode()
        for word in command:
            if word.startswith("--json") and word not in self._options:
                raise InputError("data_parser plugin not found", file=" ".join(command))
        return b"{}"

    @property
    def of_jobs(self) -> list[Command]:
        """Return the commands that asked for jobs."""
        return [command for command in self.asked if command[0] == "squeue"]


#: Each release with what it serves, and what is asked of it.
SERVED = {
    "22.05.8": (range(0), "--json"),
    "23.11.11": (range(38, 41), "--json"),
    "24.05.3": (range(39, 42), "--json=v0.0.41"),
    "24.11.5": (range(40, 43), "--json=v0.0.42"),
    "25.05.4": (range(40, 44), "--json=v0.0.43"),
    "25.11.2": (range(41, 45), "--json=v0.0.44"),
    "26.05.3": (range(42, 46), "--json=v0.0.44"),
}


@pytest.mark.parametrize("version", SERVED)
def test_json_of_a_known_version_is_asked_for(version: str) -> None:
    served, option = SERVED[version]
    ask = Commands(f"slurm {version}", served)
    sources, notes = collect(SlurmFiles(), ask=ask)
    assert ask.of_jobs == [("squeue", option)]
    assert sources.nodes.name == f"scontrol show nodes {option}"
    assert sources.reservations is not None
    assert sources.reservations.name == f"scontrol show reservations {option}"
    # Before 26.05 only text tells whose jobs are stopped.
    assert sources.partitions is not None
    assert sources.partitions.name == "scontrol -o show partitions"
    assert not notes.texts()


def test_a_release_that_serves_it_no_more_is_asked_for_its_own() -> None:
    ask = Commands("slurm 28.05.0", range(46, 49))
    _, notes = collect(SlurmFiles(), ask=ask)
    assert ask.of_jobs == [("squeue", "--json=v0.0.44"), ("squeue", "--json")]
    (text,) = notes.texts()
    assert text.startswith("Slurm 28.05.0 is newer than 26.05, the newest whose answers are known: ")


def test_commands_that_do_not_tell_their_release_are_asked_for_their_own_json() -> None:
    def ask(command: Command) -> bytes:
        if command[1] == "--version":
            raise InputError("the command is not installed here", file=" ".join(command))
        return b"{}"

    assert release_here(ask) is None
    assert collect(SlurmFiles(), ask=ask)[0].jobs.name == "squeue --json"


def test_saved_answers_ask_nothing() -> None:
    asked: list[Command] = []

    def ask(command: Command) -> bytes:
        asked.append(command)
        return b""

    files = SlurmFiles(jobs=__file__, nodes=__file__, topology="torus:2x2x2", job_detail=__file__)
    collect(files, ask=ask)
    assert asked == []


@pytest.mark.parametrize(("version", "lines"), [("26.05.9", 0), ("26.11.0", 1)])
def test_the_loop_says_a_newer_release_once(
    version: str, lines: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    release = parse_release(version)
    monkeypatch.setattr("aucsched.slurm.answers.live.release_here", lambda: release)
    say_unknown_release()
    said = capsys.readouterr().err.splitlines()
    assert len(said) == lines
    assert all(line.startswith(f"note: Slurm {version} is newer than 26.05") for line in said)
