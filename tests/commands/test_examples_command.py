"""`aucsched examples`: what the pages use is there wherever aucsched is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from aucsched.cli import run
from aucsched.commands.examples import EXAMPLES

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


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert run(["examples", str(tmp_path / "file" / "below")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
