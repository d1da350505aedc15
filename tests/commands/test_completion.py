"""Shell completion: the scripts, and what the command answers when a script asks it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.run import aucsched, refused

from aucsched.cli import COMMANDS


def answers(line: str, shell: str = "bash") -> list[str]:
    """Return what completes the last word of a command line, asked as the shells' scripts ask."""
    words = line.split(" ")
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    if shell == "fish":
        asked = {"COMP_WORDS": line, "COMP_CWORD": words[-1]}
    environment = {**os.environ, **asked, "_AUCSCHED_COMPLETE": f"{shell}_complete"}
    command = [sys.executable, "-m", "aucsched"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


def words(line: str) -> set[str]:
    return {answer.partition(",")[2] for answer in answers(line)}


def test_command_names() -> None:
    assert words("aucsched ") == {place.replace(":", ".").rpartition(".")[2] for place in COMMANDS}
    assert words("aucsched sc") == {"schedule", "schema"}


@pytest.mark.parametrize("command", ["schedule", "explain", "compare"])
def test_options_and_their_choices(command: str) -> None:
    assert {"--model", "--max-bids", "--max-bids-per-job", "--format"} <= words(f"aucsched {command} --")
    assert words(f"aucsched {command} --max") == {"--max-bids", "--max-bids-per-job"}
    assert words(f"aucsched {command} --model auc") == {"aucsched1", "aucsched2", "aucsched3"}


def test_a_list_of_policies_goes_on_behind_its_comma() -> None:
    assert words("aucsched simulate x --policy eas") == {"easy"}
    assert words("aucsched simulate x --policy easy,fc") == {"easy,fcfs"}


def test_arguments() -> None:
    assert words("aucsched schema ") == {"snapshot", "workload", "schedule", "plan"}
    assert words("aucsched completion ") == {"bash", "zsh", "fish"}
    # The shell completes file names itself when it is asked to.
    assert answers("aucsched check ") == ["file,"]
    assert answers("aucsched check -o ex") == ["file,ex"]


def test_subcommands() -> None:
    assert "slurm" in words("aucsched snapshot ")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_are_answered_too(shell: str) -> None:
    text = "\n".join(answers("aucsched sched", shell))
    assert "schedule" in text
    assert COMMANDS["commands.schedule"].split(maxsplit=1)[0] in text


@pytest.mark.parametrize(
    ("shell", "sign"), [("bash", "complete -o"), ("zsh", "#compdef"), ("fish", "--command")]
)
def test_the_scripts(shell: str, sign: str) -> None:
    done = aucsched("completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert sign in done.stdout
    assert f"_AUCSCHED_COMPLETE={shell}_complete" in done.stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_with_the_script(tmp_path: Path) -> None:
    shim = tmp_path / "aucsched"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m aucsched "$@"\n')
    shim.chmod(0o755)
    asks = 'COMP_WORDS=(aucsched expl); COMP_CWORD=1; _aucsched_completion aucsched; echo "${COMPREPLY[@]}"'
    code = f"{aucsched('completion', 'bash').stdout}\n{asks}"
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "--norc", "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["explain"], done


def test_completion_loads_no_numpy() -> None:
    code = """
import os, sys
os.environ |= {"_AUCSCHED_COMPLETE": "bash_complete", "COMP_WORDS": "aucsched ", "COMP_CWORD": "1"}
from aucsched.cli import run
try:
    run([])
except SystemExit:
    print(sorted({"numpy", "pulp", "highspy", "networkx", "matplotlib"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_shell_that_is_none_is_refused() -> None:
    assert "bash" in refused("completion", "tcsh")
