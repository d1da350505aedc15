"""Every reader under hostile input: a result or one line and exit 2, in bounded time; never a traceback.

Times are the process's own, so that a busy machine does not matter.
"""

from __future__ import annotations

import gzip
import re
import time
from pathlib import Path

import pytest
from mutants import mutants
from support.readers import READERS
from support.run import refused

from aucsched import InputError
from aucsched.cli import run
from aucsched.cluster.snapshot import Snapshot
from aucsched.formats.hostlist import MOST_NAMES, expand, fold
from aucsched.formats.jsontext import decode
from aucsched.formats.native.cluster_file import SNAPSHOT_FILE, parse_snapshot
from aucsched.formats.notes import Notes
from aucsched.formats.reading import LIMIT_VARIABLE, numbered_lines, read_document, unpacked
from aucsched.slurm.answers.topology_conf import parse_topology

#: Of the process, in seconds: what may be needed for any input of a megabyte.
MOST_S = 2.0
SEED = 13
LONG = 60_000


def outcome(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Run the command in this process; check what every run must keep."""
    began = time.process_time()
    code = run(arguments)
    took = time.process_time() - began
    said = capfd.readouterr().err
    assert code in {0, 2}, said
    assert code == 0 or said.count("\n") == 1, said
    assert took < MOST_S, (took, said[:200])
    return code, said


@pytest.mark.parametrize("name", READERS)
def test_mutants_are_read_or_refused_in_one_line(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    written = READERS[name].prepared(tmp_path)
    assert outcome(written(READERS[name].good), capfd)[0] == 0
    codes = [
        outcome(written(content), capfd)[0] for _, content in mutants(READERS[name].good, seed=SEED, count=60)
    ]
    # A mutator that left everything as it was, or a reader that took everything, would test nothing.
    assert codes.count(2) > len(codes) // 10


#: What made patterns backtrack, and what costs by its repeats.
RUNS = (
    "a",
    "0",
    " ",
    "\n",
    ",",
    "\\",
    '"',
    "=",
    "[",
    "a ",
    "a= ",
    "\\\n",
    "n1,",
    "[1-9]",
    "a=b ",
    "JobName=",
)


@pytest.mark.parametrize(
    "name", [name for name, reader in READERS.items() if not reader.good.startswith((b"{", b"\x1f"))]
)
def test_long_runs_take_time_by_their_length(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    good = READERS[name].good
    written = READERS[name].prepared(tmp_path)
    for run_of in RUNS:
        text = (run_of * LONG)[:LONG].encode()
        for place in {0, good.find(b"\n") + 1, good.find(b"=") + 1, len(good)}:
            outcome(written(good[:place] + text + good[place:]), capfd)


@pytest.mark.parametrize("name", ["snapshot", "workload", "log", "events", "squeue", "alibaba-pods"])
def test_a_megabyte_that_unpacks_to_a_gigabyte_is_refused(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    bomb = gzip.compress(b"\n" * 2**24, mtime=0) * 64
    assert len(bomb) < 1_200_000
    code, said = outcome(READERS[name].prepared(tmp_path)(bomb), capfd)
    assert code == 2
    assert "unpacks to more than" in said
    assert READERS[name].name in said


def test_the_limit_is_of_what_is_unpacked_and_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    content = bytes(range(256)) * 5000
    assert unpacked(gzip.compress(content)) == content
    monkeypatch.setenv(LIMIT_VARIABLE, "1")
    with pytest.raises(InputError, match="more than 1 MiB"):
        unpacked(gzip.compress(content))
    assert unpacked(gzip.compress(content[:1_000_000])) == content[:1_000_000]


def test_several_packed_parts_are_one_file() -> None:
    assert unpacked(gzip.compress(b"one ") + gzip.compress(b"two")) == b"one two"


@pytest.mark.parametrize("command", [("check",), ("workload", "describe"), ("sweep", "-o", "x.csv")])
def test_an_endless_device_is_refused(command: tuple[str, ...], tmp_path: Path) -> None:
    assert "/dev/zero: it is a device" in refused(*command, "/dev/zero", cwd=tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        b'{"format":1, oops',
        b'{"format":1, "time":',
        b'{"format":1, "jobs":[}',
        b'{"nodes":{}, "a\\',
        b'{"format":1}}',
    ],
)
def test_a_wrong_type_before_a_syntax_error_is_one_line(text: bytes) -> None:
    with pytest.raises(InputError, match="not JSON: "):
        decode(text, SNAPSHOT_FILE.struct)


def test_a_member_named_as_messages_are_written_is_named() -> None:
    with pytest.raises(InputError) as caught:
        decode(b'{"x - at `$.jobs[5].y": 1}', SNAPSHOT_FILE.struct)
    assert "unknown member" in str(caught.value)


def test_messages_show_the_ends_of_long_values_only() -> None:
    with pytest.raises(InputError) as caught:
        decode(b'{"' + b"x" * 100_000 + b'": 1}', SNAPSHOT_FILE.struct)
    assert len(str(caught.value)) < 1100


LAUGHS = "- &a [x, x]\n" + "".join(
    f"- &{name} [*{below}, *{below}]\n" for below, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LAUGHS, r"the alias \*a is not read"),
        ("- " + "[" * 500, "more than 20 levels deep"),
        # PyYAML 6.0.4 refuses 1 000 levels before it tells of the first.
        ("- " + "[" * LONG, "more than 20 levels deep|maximum nesting depth"),
        ("- a: 1\n  a: 2\n", "'a' is listed twice"),
        ("- ? [a]\n  : 1\n", "a key is a list or a mapping"),
        ("- a: b\n---\n- c\n", "a second document"),
    ],
)
def test_yaml_that_means_more_than_it_holds_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_topology(text, Notes())
    assert re.search(message, str(caught.value))


def test_hostlists_of_one_file_hold_so_many_names_together() -> None:
    def snapshot(partitions: int) -> Snapshot:
        rows = ",".join(f'{{"name":"p{number}","nodes":"n[1-100000]"}}' for number in range(partitions))
        nodes = '{"name":"n[1-100000]","cores":1}'
        text = f'{{"format":"aucsched-snapshot/1","nodes":[{nodes}],"partitions":[{rows}]}}'
        return parse_snapshot(text.encode())

    assert len(snapshot(2).partitions) == 2
    with pytest.raises(InputError, match=f"more than {MOST_NAMES} names"):
        snapshot(1000)


def test_a_long_plain_hostlist_takes_time_by_its_length() -> None:
    names = [f"n{number}" for number in range(90_000)]
    began = time.process_time()
    assert expand(",".join(names)) == tuple(names)
    assert expand(",".join([*names, "m[1-3,5]", "x"]))[-5:] == ("m1", "m2", "m3", "m5", "x")
    assert time.process_time() - began < MOST_S


@pytest.mark.parametrize("text", ["n" + "[1-9]" * 50_000, "n" + "0" * LONG + "[1-2]", "n[1-9]" * 11])
def test_hostlists_of_no_cluster_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        expand(text)


def test_lines_are_numbered_whatever_ends_them() -> None:
    assert list(numbered_lines("\n\n a\r\n\rb \x0b c\n")) == [(3, "a"), (5, "b \x0b c")]


def test_a_chain_of_switches_takes_time_by_its_length() -> None:
    took = {}
    for length in (2_000, 20_000):
        rows = [f"SwitchName=s{number} Switches=s{number + 1}" for number in range(length)]
        began = time.process_time()
        full = parse_topology("\n".join([*rows, f"SwitchName=s{length} Nodes=n1"]), Notes())
        switches = full.fitted(["n1"], Notes()).switches
        assert switches is not None
        assert len(switches) == length + 1
        assert parse_topology("\n".join(rows), Notes()).fitted(["n1"], Notes()).switches is None
        took[length] = time.process_time() - began
    # By the square of its length it would be a hundred times.
    assert took[20_000] < 40 * took[2_000]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none: No such file"):
        read_document(tmp_path / "none", bytes)


@pytest.mark.parametrize(
    "number", ["1e-9999999999999999999", "-1e-99999999999999999999", "2e99999999999999999999"]
)
def test_numbers_that_no_decimal_holds_are_refused(number: str) -> None:
    text = '{"format":"aucsched-snapshot/1","nodes":[{"name":"n1","cores":4}],'
    text += f'"jobs":[{{"id":"a","cores":1,"priority":{number}}}]}}'
    with pytest.raises(InputError, match="priority"):
        parse_snapshot(text.encode())


def test_names_of_thousands_of_digits_are_written_as_they_are() -> None:
    names = ["n" + "7" * 5001, "n" + "7" * 5000 + "8"]
    assert fold(names) == names
    with pytest.raises(InputError, match="not a hostlist"):
        expand(f"n[{'7' * 5001}-{'7' * 5000}8]")
