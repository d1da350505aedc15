"""`aucsched examples`: what the pages use is there wherever aucsched is installed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.run import aucsched

from aucsched.cli import run
from aucsched.commands.examples import EXAMPLES, KINDS, snapshot_bytes

ROOT = Path(__file__).parents[2] / "examples"


def test_the_list_names_every_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["examples"]) == 0
    out = capsys.readouterr().out
    assert all(name in out and (ROOT / name).is_file() for name in EXAMPLES)


def test_they_are_copied_once_and_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "here"
    assert run(["examples", str(folder)]) == 0
    assert capsys.readouterr().out == f"{len(EXAMPLES)} files copied to {folder}\n"
    for name in EXAMPLES:
        assert (folder / name).read_bytes() == (ROOT / name).read_bytes()
    (folder / "days.swf").write_text("mine")
    assert run(["examples", str(folder)]) == 0
    assert capsys.readouterr().out.startswith("0 files")
    assert (folder / "days.swf").read_text() == "mine"
    assert run(["check", str(folder / "emulated-1408-full.json")]) == 0
    capsys.readouterr()


def test_every_example_that_a_page_names_is_copied() -> None:
    pages = [ROOT.parent / "README.md", *(ROOT.parent / "docs").glob("*.md")]
    named = {name for page in pages for name in re.findall(r"\bexamples/([\w./-]+\.\w+)", page.read_text())}
    assert len(named) > 5
    assert not named - set(EXAMPLES)


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert run(["examples", str(tmp_path / "file" / "below")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_list_names_every_kind_and_its_caps(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["examples"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line}
    for name, kind in KINDS.items():
        caps = f"--window {kind.window} --max-bids {kind.max_bids} --max-bids-per-job {kind.max_bids_per_job}"
        assert lines[name].endswith(caps)


def test_an_instance_is_written_and_is_a_snapshot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tiny.json"
    assert run(["examples", "--instance", "tiny", "--seed", "3", "-o", str(file)]) == 0
    assert capsys.readouterr() == ("", "")
    assert file.read_bytes() == snapshot_bytes("tiny", 3)
    assert run(["check", str(file)]) == 0
    capsys.readouterr()


@pytest.mark.parametrize("kind", ["tiny", "queue"])
def test_an_instance_goes_to_standard_output_and_is_the_first_without_a_seed(
    kind: str, tmp_path: Path
) -> None:
    printed = aucsched("examples", "--instance", kind, cwd=tmp_path)
    assert (printed.returncode, printed.stdout.encode(), printed.stderr) == (0, snapshot_bytes(kind, 0), "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--instance", "tsubami"], "'tsubami' is not one of 'tsubame'"),
        (["--instance", "tiny", "--seed", "-1"], "--seed"),
        (["--instance", "tiny", "here"], "FOLDER"),
        (["--seed", "0"], "--seed is for --instance KIND"),
        (["-o", "file.json", "here"], "--output is for --instance KIND"),
        (["--instance", "tiny", "-o", "missing/file.json"], "missing/file.json"),
    ],
)
def test_what_does_not_go_together_is_one_line(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["examples", *arguments]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert said in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["man", "examples"])
def test_the_name_of_the_folder_reaches_no_terminal_as_it_is(command: str, tmp_path: Path) -> None:
    done = aucsched(command, "\x1b]0;title\x07", cwd=tmp_path)
    assert (done.returncode, done.stdout.rstrip("\n").isprintable()) == (0, True)
    assert (tmp_path / "\x1b]0;title\x07").is_dir()


@pytest.mark.parametrize("command", ["man", "examples"])
def test_a_folder_may_have_the_name_that_is_standard_input_elsewhere(command: str, tmp_path: Path) -> None:
    said = aucsched(command, "-", cwd=tmp_path).stdout
    assert said.endswith(" to -\n")
    assert (tmp_path / "-").is_dir()
