"""Malformed snapshots and options: each one clear line that names the place, exit 2, nothing written."""

from __future__ import annotations

import copy
import json
import time
from pathlib import Path

import pytest
from support.run import aucsched, refused
from support.spoiled import MALFORMED, Spoil
from support.spoiled import SNAPSHOT as GOOD

from aucsched import InputError, load_snapshot
from aucsched.formats.native.cluster_file import parse_snapshot


def test_the_good_one_is_good() -> None:
    snapshot = parse_snapshot(json.dumps(GOOD).encode())
    assert len(snapshot.nodes) == 17
    assert snapshot.nodes[16].free.cores == 3


#: (what is spoilt, where the line says it is, what it says)


@pytest.mark.parametrize(("spoil", "path", "message"), MALFORMED)
def test_a_malformed_snapshot_is_one_line_with_file_path_and_value(
    spoil: Spoil, path: str, message: str, tmp_path: Path
) -> None:
    document = copy.deepcopy(GOOD)
    spoil(document)
    file = tmp_path / "snapshot.json"
    file.write_text(json.dumps(document))
    with pytest.raises(InputError) as caught:
        load_snapshot(file)
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith(f"{file}: {path}")
    assert message in line


#: What the command itself is asked, beside a few of the above.
OPTIONS: list[tuple[tuple[str, ...], str]] = [
    (("schedule",), "SNAPSHOT"),
    (("schedule", "absent.json"), "absent.json: No such file or directory"),
    (("schedule", "good.json", "--window", "0"), "'--window': 0 is not in the range 1<=x"),
    (("schedule", "good.json", "--window", "ten"), "--window"),
    (("schedule", "good.json", "--model", "aucsched9"), "--model"),
    (("schedule", "good.json", "--time-limit", "nan"), "'--time-limit': nan is not a number"),
    (("schedule", "good.json", "--time-limit", "-1"), "'--time-limit': -1.0 is not in the range x>0"),
    (("schedule", "good.json", "--max-bids-per-job", "0"), "'--max-bids-per-job': 0 is not"),
    (("schedule", "good.json", "--seed", "-3"), "'--seed': -3 is not in the range 0<=x"),
    (("schedule", "good.json", "--windows", "3"), "--windows"),
    (("schedule", "good.json", "--format", "xml"), "--format"),
    (("schedule", "good.json", "-o", "no/such/folder/out.json"), "no/such/folder/out.json"),
    (("shedule", "good.json"), "shedule"),
    (("schedule", "truncated.json"), "truncated.json: not JSON"),
    (("schedule", "empty.json"), "empty.json: not JSON"),
    (("schedule", "list.json"), "list.json: "),
    (("schedule", "binary.json"), "binary.json: not JSON"),
    (("schedule", "twice.json"), "twice.json: the member 'cores' is listed twice"),
    (("schedule", "nan.json"), "nan.json: jobs[0].priority: NaN is not a finite number"),
    (("schedule", "huge.json", "--weights", "paper"), "huge.json: jobs: the window's weights sum to"),
    (("schedule", "keys.json"), 'keys.json: jobs[0].limits_by_nodes_s: "a" is not an integer'),
    (("schedule", "."), ".: Is a directory"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("malformed")
    text = json.dumps(GOOD)
    (place / "good.json").write_text(text)
    (place / "truncated.json").write_text(text[:300])
    (place / "empty.json").write_text("")
    (place / "list.json").write_text("[]")
    (place / "binary.json").write_bytes(b"\xff\xfe\x00snapshot")
    (place / "twice.json").write_text(text.replace('"cores": 64', '"cores": 64, "cores": 6'))
    (place / "nan.json").write_text(text.replace('"priority": 100', '"priority": NaN'))
    (place / "huge.json").write_text(text.replace('"priority": 100', '"priority": 10000000000000001'))
    keys = '"limits_by_nodes_s": {"1": 60, "a": 60}, "priority": 100'
    (place / "keys.json").write_text(text.replace('"priority": 100', keys))
    return place


@pytest.mark.parametrize(("arguments", "message"), OPTIONS)
def test_the_command_refuses_in_one_line(arguments: tuple[str, ...], message: str, folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    assert message in refused(*arguments, cwd=folder)
    assert sorted(folder.rglob("*")) == before


def test_standard_input_is_named_when_it_is_wrong() -> None:
    assert refused("schedule", "-", stdin="{}").startswith("standard input: ")


def test_a_huge_hostlist_is_refused_at_once() -> None:
    document = copy.deepcopy(GOOD)
    document["nodes"][0]["name"] = "n[1-999999999]"
    began = time.perf_counter()
    with pytest.raises(InputError):
        parse_snapshot(json.dumps(document).encode())
    # Expanding it would take minutes and the memory of the machine.
    assert time.perf_counter() - began < 20


def test_an_unwritable_output_leaves_nothing_behind(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "schedule.json"
    target.mkdir()
    done = aucsched("schedule", folder / "good.json", "-o", target)
    assert done.returncode == 2
    assert sorted(tmp_path.iterdir()) == [target]
