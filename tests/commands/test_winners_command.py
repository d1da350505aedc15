"""``aucsched winners`` as a user runs it."""

from __future__ import annotations

import gzip
import json
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from mps import read_mps
from support.run import aucsched

from aucsched import InputError
from aucsched.cli import run
from aucsched.formats.auction_file import parse_cats
from aucsched.models.winners import determine

CATS = """%% a comment
goods 3
bids 5
dummy 1

0\t10.5\t0\t1\t#
1\t4.5\t0\t3\t#
2\t7\t1\t3\t#
7\t2.25\t2\t#
9\t1.75\t2\t#
"""
AUCTION: dict[str, Any] = {
    "format": "aucsched-auction/1",
    "capacities": {"gpu": 2, "cores": 0.5},
    "bids": [
        {"bidder": "ann", "value": 10.25, "items": {"gpu": 2}},
        {"bidder": "ann", "value": 7, "items": {"gpu": 1, "cores": 0.25}},
        {"bidder": "bob", "value": 5.5, "items": {"gpu": 1, "cores": 0.25}},
        {"bidder": "bob", "value": 5.5, "items": {"gpu": 1}, "second": 1},
    ],
}


def answer(file: Path, *options: str) -> dict[str, Any]:
    run = aucsched("winners", str(file), "--format", "json", *options)
    assert run.returncode == 0, run.stderr
    document: dict[str, Any] = json.loads(run.stdout)
    assert list(document) == [
        "format", "status", "value", "bound", "gap", "chosen", "prices", "seconds",
    ]  # fmt: skip
    assert document["format"] == "aucsched-winners/1"
    return document


def test_cats_is_rounded_and_keeps_its_numbers(tmp_path: Path) -> None:
    file = tmp_path / "auction.txt"
    file.write_text(CATS)
    found = answer(file)
    # Halves to even: 10, 4, 7, 2, 2.
    assert (found["status"], found["value"], found["bound"], found["gap"]) == ("optimal", 12, 12, 0)
    assert found["chosen"][0] == 0
    assert len(found["chosen"]) == 2
    note = "note: rounded to integers: 4 values; --no-round keeps them\n"
    said = {
        given: aucsched("winners", str(file), *given).stderr for given in ((), ("--round",), ("--no-round",))
    }
    assert said == {(): note, ("--round",): "", ("--no-round",): ""}
    exact = answer(file, "--no-round")
    assert exact["value"] == 12.75
    assert exact["chosen"] == [0, 7]
    assert set(exact["prices"]) == {"0", "1", "2", "3"}


def test_json_gzip_and_standard_input(tmp_path: Path) -> None:
    file = tmp_path / "auction.json.gz"
    file.write_bytes(gzip.compress(json.dumps(AUCTION).encode()))
    found = answer(file)
    assert found["value"] == 12.5
    assert found["chosen"] == [1, 3]
    assert answer(file, "--round")["value"] == 13
    run = aucsched("winners", "-", stdin=json.dumps(AUCTION | {"groups": "or"}))
    assert run.returncode == 0
    assert "optimal: value 12.5" in run.stdout
    in_one_group = [bid | {"group": "one"} for bid in AUCTION["bids"]]
    run = aucsched("winners", "-", stdin=json.dumps(AUCTION | {"bids": in_one_group}))
    assert "optimal: value 10.25" in run.stdout
    run = aucsched("winners", "-", "--work-limit", "20", stdin=CATS)
    assert "2 winning bids" in run.stdout


@pytest.mark.parametrize("ending", ["mps", "lp"])
def test_the_export_is_the_program(tmp_path: Path, ending: str) -> None:
    file, program = tmp_path / "auction.txt", tmp_path / f"program.{ending}"
    file.write_text(CATS)
    answer(file, "--no-round", "--export", str(program))
    assert "bid7" in program.read_text()
    if ending == "mps":
        read = read_mps(program)
        assert abs(dict(zip(read.names, read.objective.tolist(), strict=True))["bid7"]) == 2.25


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no CATS file: the count of goods is missing"),
        ("goods 1\nbids 1\n", "bids: 0 bids instead of 1"),
        ("goods x\n", "line 1: 'x' is not a count"),
        ("goods 1\nbids 1\n0 nan 0 #\n", "line 3: 'nan' is not a price"),
        ("goods 1\nbids 1\n0 -5 0 #\n", "line 3: the price -5 is below 0"),
        ("goods 1\nbids 1\n0 5 1 #\n", "line 3: 1 is not one of the 1 goods"),
        ("goods 1\nbids 1\n0 5 0 0 #\n", "line 3: the good 0 is listed twice"),
        ("goods 1\nbids 1\n0 5 0\n", "line 3: a bid is its number, its price, its goods and #"),
        ("goods 1\nbids 2\n0 5 0 #\n0 6 0 #\n", "line 4: bid 0 is on line 3 already"),
        ("goods 1\ngoods 1\n", "line 2: 'goods 1' is not one count of goods"),
        ("0 5 0 #\n", "line 1: a bid comes before the counts of goods and bids"),
        ('{"format": "aucsched-auction/2", "capacities": {}, "bids": []}', "format: 'aucsched-auction/2'"),
        ('{"format": "aucsched-auction/1", "bids": []}', "capacities"),
        (json.dumps(AUCTION | {"groups": "and"}), "groups: 'and' is not one of xor, or"),
        (json.dumps(AUCTION | {"goups": "or"}), "unknown member 'goups'"),
        (json.dumps(AUCTION | {"bids": [{"value": -1, "items": {}}]}), "bids[0].value: -1 is below 0"),
        (json.dumps(AUCTION | {"bids": [{"value": "1", "items": {}}]}), "bids[0].value: '1' is not a number"),
        (
            json.dumps(AUCTION | {"bids": [{"value": 1, "items": {"x": 1}}]}),
            "bids[0].items: 'x' is not among",
        ),
        (
            json.dumps(AUCTION | {"bids": [{"value": True, "items": {}}]}),
            "bids[0].value: True is not a number",
        ),
        (json.dumps(AUCTION | {"capacities": {"gpu": -1, "cores": 1}}), "capacities.gpu: -1 is below 0"),
        ('{"format": "aucsched-auction/1", "capacities": {}, "bids": [{"value": NaN, "items": {}}]}', "NaN"),
    ],
)
def test_bad_files_are_one_line_and_exit_2(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "auction"
    file.write_text(content)
    run = aucsched("winners", str(file), "-o", str(tmp_path / "out"))
    assert run.returncode == 2
    assert run.stdout == ""
    assert str(file) in run.stderr
    assert message in run.stderr
    assert run.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_what_steers_the_search_is_spelled_as_in_schedule_and_named(tmp_path: Path) -> None:
    (tmp_path / "auction.json").write_text(json.dumps(AUCTION))
    given = [str(tmp_path / "auction.json"), "--search-parameters", "moves=50:near=0.01"]
    found = aucsched("winners", *given, "--format", "json")
    assert json.loads(found.stdout)["parameters"] == {"moves": 50}
    for more, says in (
        (["--strategy", "exact"], "search_parameters: only strategy anytime searches"),
        (["--search-parameters", "move=1"], "the search has no parameter move: did you mean moves?"),
    ):
        found = aucsched("winners", *given, *more)
        assert (found.returncode, says in found.stderr) == (2, True)


def test_bad_options_exit_2(tmp_path: Path) -> None:
    file = tmp_path / "auction.txt"
    file.write_text(CATS)
    for options in (
        ["--export", "x.txt"],
        ["--time-limit", "0"],
        ["--work-limit", "-1"],
        ["--workers", "0"],
        ["--seed", "x"],
        # What a strategy would ignore.
        ["--strategy", "greedy", "--time-limit", "1"],
        ["--strategy", "greedy", "--work-limit", "1"],
        ["--strategy", "exact", "--workers", "2"],
    ):
        run = aucsched("winners", str(file), *options)
        assert run.returncode == 2
        assert run.stderr.count("\n") == 1


def test_more_goods_than_any_auction_are_refused_before_they_are_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "goods.txt"
    path.write_text("goods 100000000\nbids 1\ndummy 0\n0 1 5 #\n")
    tracemalloc.start()
    try:
        assert run(["winners", str(path)]) == 2
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()
    assert "line 1: 100000000 goods are more than 1000000" in capsys.readouterr().err


def test_reading_counts_towards_the_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bids.txt"
    path.write_text("goods 2\nbids 2\ndummy 0\n0 5 0 #\n1 7 1 #\n")
    given: dict[str, Any] = {}
    kept = determine.winners_of

    def found(lot: Any, **options: Any) -> Any:
        given.update(options)
        return kept(lot, **options)

    monkeypatch.setattr(determine, "winners_of", found)
    assert run(["winners", str(path), "--time-limit", "5"], time.perf_counter() - 60.0) == 0
    told = capsys.readouterr()
    assert "of the time limit of 5 s: the search hardly began" in told.err
    assert "value 12" in told.out
    assert given["began"] < time.perf_counter() - 59
    assert run(["winners", str(path), "--time-limit", "5"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("good", ["00", "01"])
def test_a_good_with_zeros_before_it_is_the_good(good: str) -> None:
    read = parse_cats(f"goods 2\nbids 1\n0 5 {good} #\n".encode())
    assert read.bids[0][2] == {good[1:]: 1}
    with pytest.raises(InputError, match="is listed twice"):
        parse_cats(f"goods 2\nbids 1\n0 5 {good} {good[1:]} #\n".encode())
