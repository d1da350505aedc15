"""The pages: their code runs, and what is made from the code is as the code makes it."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
import yaml
from command_options import command_options
from reference import MEANINGS, STATUS_MEANINGS, pages

import aucsched
from aucsched.cli import cli, run
from aucsched.cluster import errors
from aucsched.cluster.schedule import Reason, Status
from aucsched.commands.shell import man_pages
from aucsched.negotiation.messages import FromBatchBase, Message
from aucsched.negotiation.transport.handshake import Hello, Proof

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SCRIPTS = sorted((DOCS / "scripts").glob("*.py"))


def test_the_reference_is_as_the_code_makes_it() -> None:
    """Soner: tables 3.1, 4.1, 5.1, 6.1 symbols."""
    command_options("irtsched", ["small.json"])  # who parses in this process changes no page
    for name, text in pages(cli).items():
        again = "python .ci/reference.py"
        assert (DOCS / "reference" / name).read_text() == text, again


def test_every_reason_has_a_meaning() -> None:
    assert set(MEANINGS) == set(Reason)


def test_every_status_has_a_meaning() -> None:
    assert set(STATUS_MEANINGS) == set(Status)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return tmp_path


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_stranger_s_script_is_short_and_runs(script: Path, place: Path) -> None:
    assert len(script.read_text().splitlines()) <= 25
    done = subprocess.run(
        [sys.executable, "-W", "error", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=place,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("page", ["python.md", "continual.md", "solver-users.md", "winners.md"])
def test_a_page_s_python_runs(page: str, place: Path) -> None:
    blocks = (DOCS / page).read_text().split("```python\n")[1:]
    (place / "page.py").write_text("\n".join(block.split("```")[0] for block in blocks))
    done = subprocess.run(
        [sys.executable, "-W", "error", "page.py"],
        capture_output=True,
        text=True,
        check=False,
        cwd=place,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_page_of_winners_shows_what_the_command_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bids, shown = re.findall(r"```json\n(.*?)```", (DOCS / "winners.md").read_text(), re.DOTALL)
    (tmp_path / "bids.json").write_text(bids)
    assert run(["winners", str(tmp_path / "bids.json"), "--format", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert {**printed, "seconds": 0} == {**json.loads(shown), "seconds": 0}


def test_the_table_of_messages_has_every_member() -> None:
    kinds = {kind.__struct_config__.tag: kind for kind in (*get_args(Message), Hello, Proof)}
    assert {"message"} == {kind.__struct_config__.tag_field for kind in kinds.values()}
    page = (DOCS / "negotiate.md").read_text()
    rows = re.findall(r"^\| `([A-Z_]+)`, \w+ \| (.+) \|$", page, re.MULTILINE)
    assert len(rows) == 6
    common = set(FromBatchBase.__struct_fields__)
    for name, members in rows:
        assert set(kinds[name].__struct_fields__) - common <= set(re.findall(r"`(\w+)`", members)), name
    assert all(f"`{member}`" in page for member in common)
    assert b"NEGOTIATION_START" in msgspec.json.encode(msgspec.json.schema(Message))


@pytest.mark.parametrize(
    ("loop", "pages_of_it"), [("run", ("slurm", "rollback")), ("shadow", ("shadow", "rollback"))]
)
def test_pages_name_the_unit_as_the_command_does(
    loop: str, pages_of_it: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["slurm", "unit", loop, "--program", "/bin/aucsched"]) == 0
    unit = capsys.readouterr().out.splitlines()[0].split()[1].removesuffix(",")
    name = Path(unit).stem
    for page in pages_of_it:
        text = (DOCS / f"{page}.md").read_text()
        assert unit in text
        assert "systemctl daemon-reload" in text
        assert f"systemctl disable --now {name}" in text
        told = re.findall(r"systemctl (?:start|stop|(?:enable|disable) --now) ([\w-]+)", text)
        assert {*told} <= {"aucsched-run", "aucsched-shadow"}


def test_the_reference_of_the_python_api_names_what_there_is() -> None:
    names = re.findall(r"^::: aucsched\.(\S+)$", (DOCS / "python.md").read_text(), re.MULTILINE)
    assert len(names) > 40
    for name in names:
        module, _, own = f"aucsched.{name}".rpartition(".")
        if name != "cluster.errors":
            assert hasattr(importlib.import_module(module), own), name
    shown = {name.rpartition(".")[2] for name in names} | {"plan", "__version__", *vars(errors)}
    assert set(aucsched.__all__) <= shown, "every public name"


def test_there_are_five_of_them() -> None:
    assert len(SCRIPTS) == 5


def test_notebooks_are_their_pages() -> None:
    spec = importlib.util.spec_from_file_location("notebook", ROOT / ".ci" / "notebook.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert len(module.PAGES) == 6
    for page in module.PAGES:
        text = page.with_suffix(".ipynb").read_text()
        assert text == module.notebook(page.read_text()), "python .ci/notebook.py"
        code = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        assert len(code) >= 4
        assert all(cell["outputs"] == [] for cell in code)


@pytest.mark.parametrize("page", ["tutorial.md", "tutorial-policy.md"])
def test_a_tutorial_shows_what_its_code_prints(
    page: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (DOCS / page).read_text()
    blocks = re.findall(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", text, re.DOTALL)
    assert any(shown for _, shown in blocks)
    monkeypatch.chdir(place)
    shared: dict[str, Any] = {"__name__": "__main__"}
    for code, shown in blocks:
        exec(compile(code, page, "exec"), shared)  # noqa: S102 - our own page
        assert capsys.readouterr().out == shown


@pytest.mark.parametrize(
    ("page", "count"),
    [
        ("docs/tutorial-history.md", 3),
        ("README.md", 1),
        ("docs/index.md", 1),
        ("docs/when.md", 1),
        ("docs/write-policy.md", 1),
        ("docs/failures.md", 1),
        ("docs/shadow.md", 1),
    ],
)
def test_a_page_shows_what_its_commands_print(page: str, count: int, place: Path) -> None:
    text = (ROOT / page).read_text()
    blocks = re.findall(r"```sh\n([^`]*)```\n\n```text\n([^`]*)```", text)
    assert len(blocks) == count
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for commands, shown in blocks:
        done = subprocess.run(
            ["bash", "-c", commands],
            capture_output=True,
            text=True,
            check=True,
            cwd=place,
            env=os.environ | {"PATH": path, "COLUMNS": "100"},
        )
        lines = iter(done.stdout.splitlines())
        for line in shown.splitlines():
            assert line == "..." or line in lines, line


def test_the_citation_and_the_recipe_can_be_read() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0"
    assert {"title", "authors", "version", "license"} <= set(citation)


def test_every_decision_has_its_status_in_the_index() -> None:
    index = (DOCS / "decisions" / "README.md").read_text()
    for file in sorted((DOCS / "decisions").glob("0*.md")):
        title, status = re.match(r"# \d+\. (.+)\n\nStatus: (.+)\.\n", file.read_text()).groups()  # type: ignore[union-attr]
        assert f"| [{file.name[:4]}]({file.name}) {title} | {status} |" in index
        assert status.split()[0].strip(";") in {"in", "superseded", "experiment"}, file.name


def test_decisions_in_force_name_files_that_exist() -> None:
    tops = [top for top in ROOT.iterdir() if top.name not in {".git", ".venv"}]
    files = [f"/{file.relative_to(ROOT)}" for top in tops for file in (top, *top.rglob("*"))]
    for page in sorted((DOCS / "decisions").glob("0*.md")):
        text = page.read_text()
        if "\nStatus: in force" not in text:
            continue
        for name in re.findall(r"`([\w./-]+\.(?:py|toml|json|js|css|md))`", text):
            assert any(file.endswith(f"/{name}") for file in files), f"{page.name}: {name}"


def test_a_readme_of_120_lines_at_most() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_man_pages_name_every_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["man", str(tmp_path / "man")]) == 0
    capsys.readouterr()
    found = man_pages(cli)
    assert sorted(os.listdir(tmp_path / "man")) == sorted(found)  # noqa: PTH208
    page = (tmp_path / "man" / "aucsched-schedule.1").read_text()
    assert page.startswith('.TH "AUCSCHED-SCHEDULE" "1"')
    for word in ("\\-\\-work\\-limit", "\\-\\-html", ".SH SYNOPSIS", "Run one auction"):
        assert word in page
    assert "\b" not in page


CONFIG = """
[schedule]
window = 5
work-limit = 2
format = "json"
[sweep]
policy = ["fcfs", "easy"]
[workload.esp]
nodes = 16
cores = 8
"""


def test_options_may_stand_in_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, full = tmp_path / "site.toml", str(ROOT / "examples" / "emulated-1408-full.json")
    file.write_text(CONFIG)
    assert run(["--config", str(file), "schedule", full]) == 0
    assert json.loads(capsys.readouterr().out)["window"]["size"] == 5
    assert run(["--config", str(file), "schedule", full, "--window", "4"]) == 0
    assert json.loads(capsys.readouterr().out)["window"]["size"] == 4
    table = tmp_path / "sweep.csv"
    days = str(ROOT / "examples" / "days.swf")
    assert run(["--config", str(file), "sweep", days, "-o", str(table), "--workers", "1"]) == 0
    assert len(table.read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[shedule]\n", "shedule: no command: did you mean schedule"),
        ("[schedule]\nwindw = 3\n", "schedule.windw: no option: did you mean window or window-from?"),
        ("[xyzzy]\n", "xyzzy: no command of "),
        ("[schedule]\nxyzzy = 3\n", "schedule.xyzzy: no option of "),
        ("[schedule]\nxyzzy = 3\n", ", window,"),
        ("schedule = 3\n", "schedule: 3 is not a table of options"),
        ("[workload]\nesp = 1\n", "workload.esp: 1 is not a table"),
        ("[schedule]\nwindow = true\n", "schedule.window: True is not a value of --window"),
        ("[schedule]\nbalance = 3\n", "schedule.balance: 3 is neither true nor false"),
        ("[schedule\n", "not TOML"),
        ("[schedule]\nwindow = 'ten'\n", "site.toml: schedule.window: 'ten' is not a valid integer"),
        ("[schedule]\nwindow = 0\n", "site.toml: schedule.window: 0 is not in the range 1<=x<=10000000."),
        ("[schedule]\nwindow = 2.5\n", "site.toml: schedule.window: '2.5' is not a valid integer"),
        ("[explain]\npromise = 'x'\n", "site.toml: explain.promise: "),
        (
            "[simulate]\nprocessors = 0\n",
            "site.toml: simulate.processors: 0 is not in the range 1<=x<=10",
        ),
        ("[simulate]\npolicy = ['easy', 'eazy']\n", "site.toml: simulate.policy: 'eazy' is not a policy"),
        (
            "[sweep]\npolicy = 'easy'\nwindow = [5, 'x']\n",
            "site.toml: sweep.window: --window 5,x: 'x' is not",
        ),
        ("[slurm.shadow]\ntime-limit = -1\n", "site.toml: slurm.shadow.time-limit: -1"),
    ],
)
def test_a_file_that_says_nothing_clear_is_one_line(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "site.toml"
    file.write_text(text)
    assert run(["--config", str(file), "schedule", "absent.json"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err


DAYS, FULL = (str(ROOT / "examples" / name) for name in ("days.swf", "emulated-1408-full.json"))


@pytest.mark.parametrize(
    ("text", "command", "message"),
    [
        ("[simulate]\nlog-begins = 'x'\npolicy = 'planning'", f"simulate {DAYS}", "simulate.log-begins: "),
        ("[sweep]\nwindow = [0]", f"sweep {FULL} -o t.csv", "sweep.window: --window 0: 0 is below 1"),
        ("[simulate]\npromise = 'x'\npolicy = 'promised'", f"simulate {DAYS}", "simulate.promise: "),
        (
            "[workload.'table-8.4']\ndivisors = 'x'",
            "workload table-8.4 --id 5",
            "workload.table-8.4.divisors: ",
        ),
    ],
)
def test_what_a_command_reads_late_names_the_file_too(
    text: str,
    command: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "site.toml"
    file.write_text(f"{text}\n")
    monkeypatch.chdir(tmp_path)
    assert run(["--config", str(file), *command.split()]) == 2
    assert capsys.readouterr().err.startswith(f"{file}: {message}")


@pytest.mark.parametrize(
    ("text", "typed", "said"),
    [
        ("window = 5", ("--window", "0"), "Invalid value for '--window': 0 is not in the range 1<="),
        ("time_limit = 5", ("--time-limit", "-5"), "Invalid value for '--time-limit': -5.0 is not"),
    ],
)
def test_what_is_typed_is_not_the_files_fault(
    text: str, typed: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "site.toml"
    file.write_text(f"[schedule]\n{text}\n")
    assert run(["--config", str(file), "schedule", FULL, *typed]) == 2
    assert capsys.readouterr().err.startswith(f"aucsched: {said}")


def test_a_whole_number_of_a_file_may_be_written_as_a_fraction(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "site.toml"
    file.write_text("[schedule]\nwindow = 5.0\nwork_limit = 3e1\nformat = 'json'\n")
    assert run(["--config", str(file), "schedule", FULL]) == 0
    assert json.loads(capsys.readouterr().out)["window"]["size"] == 5
