"""TOML of options: what no option takes is refused in one line that names the place."""

from __future__ import annotations

from pathlib import Path

import pytest

from aucsched import InputError
from aucsched.cli import run
from aucsched.formats.settings_text import toml_tables

EXAMPLES = Path(__file__).parents[2] / "examples"
HOSTILE = [
    ("[schedule]\ntime-limit = 1e400", "schedule.time-limit: inf is not a finite number"),
    ("[schedule]\nwindow = [1, nan]", "schedule.window[1]: nan is not a finite number"),
    ("[schedule]\nwindow = " + "[" * 50_000, "levels deep"),
    ("[schedule]\nwindow = " + "[" * 30 + "]" * 30, "schedule.window[0]"),
    ("[schedule]\n" + "a." * 100_000 + "b = 1", "levels deep"),
    ("[schedule]\nwindow = " + "9" * 5000, "line 2: an integer is beyond"),
    ("[schedule]\nwindow = " + "9" * 400, "schedule.window: an integer is beyond"),
    ("[schedule]\nwindow = 2026-01-01", "schedule.window: 2026-01-01 is a date"),
    ("[schedule]\nwindow = 1\nwindow = 2", "not TOML: "),
    ("[schedule]\n" + "#" * 2**20, "more than 1048576 bytes"),
    ("schedule = 5", "schedule: 5 is not a table"),
]


@pytest.mark.parametrize(("text", "message"), HOSTILE)
def test_what_no_option_takes_is_one_line(
    text: str, message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "site.toml"
    path.write_text(text, encoding="utf-8")
    assert run(["--config", str(path), "schedule", "none.json"]) == 2
    told = capfd.readouterr().err
    assert told.startswith(f"{path}: ")
    assert message in told
    assert told.count("\n") == 1
    assert len(told) < 500


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (
            'order = "multifactor"\nmultifactor = {foo = 1}',
            "simulate.multifactor: --multifactor: 'foo' is n",
        ),
        ('order = "flexible"\npriorities = {foo = 1}', "simulate.priorities: --priorities: 'foo' is none of"),
        ('policy = "slack:foo=1"', "simulate.policy: slack:foo=1: 'foo' is not one of factor"),
    ],
)
def test_a_name_in_a_table_that_no_option_knows_names_the_file(
    table: str, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "site.toml"
    path.write_text(f"[simulate]\n{table}\n")
    assert run(["--config", str(path), "simulate", str(EXAMPLES / "days.swf")]) == 2
    told = capfd.readouterr().err
    assert told.startswith(f"{path}: {said}")
    assert told.count("\n") == 1


def test_tables_are_read_as_they_stand() -> None:
    text = b'top = "a"\n[one]\nlist = [1, -2.5, true]\ninline = {x = 1}\n'
    assert toml_tables(text) == {"top": "a", "one": {"list": [1, -2.5, True], "inline": {"x": 1}}}
    with pytest.raises(InputError, match="not UTF-8"):
        toml_tables(b"\xff")
