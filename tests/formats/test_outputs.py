"""What ``-o`` and every other option writes to: files whole and as they were, links, pipes, devices."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support.run import aucsched, in_a_process, refused

from aucsched import InputError
from aucsched.formats.checked_lines import CheckedLines
from aucsched.formats.writing import remove_leftovers, write_bytes

EXAMPLES = Path(__file__).parents[2] / "examples"
SCHEMA = aucsched("schema", "plan").stdout


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755])
def test_an_existing_file_keeps_its_mode(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text("before")
    path.chmod(mode)
    assert aucsched("schema", "plan", "-o", path).returncode == 0
    assert path.read_text() == SCHEMA
    assert mode_of(path) == mode
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_mode_that_the_umask_leaves(umask: int, tmp_path: Path) -> None:
    script = f"umask {umask:04o}; exec {sys.executable} -m aucsched schema plan -o new.json"
    subprocess.run(["sh", "-c", script], check=True, cwd=tmp_path)
    assert mode_of(tmp_path / "new.json") == 0o666 & ~umask


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_an_existing_file_keeps_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text("before")
    os.chown(path, 1234, 2345)
    path.chmod(0o640)
    write_bytes(path, b"after")
    found = path.stat()
    assert (found.st_uid, found.st_gid, mode_of(path)) == (1234, 2345, 0o640)
    assert path.read_bytes() == b"after"


def test_a_file_whose_owner_cannot_be_kept_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    path = tmp_path / "plan.json"
    path.write_text("before")
    real = os.fstat
    monkeypatch.setattr(os, "fchown", refuse)
    monkeypatch.setattr(
        os, "fstat", lambda handle: os.stat_result((*real(handle)[:4], 4321, *real(handle)[5:]))
    )
    with pytest.raises(InputError, match=r"plan\.json: its owner \(user \d+, group \d+\) cannot be kept"):
        write_bytes(path, b"after")
    monkeypatch.undo()
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target, link, again = tmp_path / "there" / "plan.json", tmp_path / "link", tmp_path / "again"
    target.write_text("before")
    target.chmod(0o600)
    link.symlink_to("there/plan.json")
    again.symlink_to(link)
    assert aucsched("schema", "plan", "-o", again).returncode == 0
    assert again.is_symlink()
    assert link.is_symlink()
    assert (target.read_text(), mode_of(target)) == (SCHEMA, 0o600)
    assert list(target.parent.iterdir()) == [target]


def test_a_link_to_nothing_makes_its_target(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("new.json")
    assert aucsched("schema", "plan", "-o", tmp_path / "link").returncode == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "new.json").read_text() == SCHEMA


def test_a_loop_of_links_is_refused_and_stays(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    line = refused("schema", "plan", "-o", tmp_path / "a")
    assert line == f"{tmp_path}/a: Too many levels of symbolic links"
    assert (tmp_path / "a").is_symlink()


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    assert aucsched("schema", "plan", "-o", pipe).returncode == 0
    reader.join(timeout=60)
    assert got == [SCHEMA]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert list(tmp_path.iterdir()) == [pipe]


def test_process_substitutions_are_written_to(tmp_path: Path) -> None:
    script = f'{sys.executable} -m aucsched schema plan -o >(cat > got); wait $!; echo "$?"'
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=False, cwd=tmp_path, text=True)
    assert (done.stdout, done.stderr) == ("0\n", "")
    assert (tmp_path / "got").read_text() == SCHEMA


def test_an_open_descriptor_is_appended_to(tmp_path: Path) -> None:
    """``-o /dev/stdout >> log``: what stands in the log stays, and nothing is renamed under the shell."""
    script = (
        f"echo first > log; {sys.executable} -m aucsched schema plan -o /dev/stdout >> log; echo last >> log"
    )
    subprocess.run(["bash", "-c", script], check=True, cwd=tmp_path)
    assert (tmp_path / "log").read_text() == f"first\n{SCHEMA}last\n"
    assert [file.name for file in tmp_path.iterdir()] == ["log"]


def test_a_device_is_written_to() -> None:
    """A terminal, as it is the one device that anybody may make: nothing can be renamed over it."""
    ours, theirs = os.openpty()
    name = os.ttyname(theirs)
    before = Path(name).stat()
    write_bytes(name, b"to the terminal\n")
    assert os.read(ours, 100) == b"to the terminal\r\n"
    assert Path(name).stat().st_rdev == before.st_rdev
    os.close(ours)
    os.close(theirs)


@pytest.mark.skipif(os.getuid() != 0, reason="only root makes devices")
def test_a_device_of_roots_stays_one(tmp_path: Path) -> None:
    null = tmp_path / "null"
    try:
        os.mknod(null, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        null.write_text("")
    except OSError:
        pytest.skip("no device can be made here")
    for option in ("-o", "--jobs-out"):
        done = aucsched("simulate", EXAMPLES / "days.swf", option, null)
        assert done.returncode == 0, done
    (tmp_path / "null.png").symlink_to("null")
    assert aucsched("simulate", EXAMPLES / "days.swf", "--gantt", tmp_path / "null.png").returncode == 0
    assert stat.S_ISCHR(null.stat().st_mode)
    assert {file.name for file in tmp_path.iterdir()} == {"null", "null.png"}


def test_a_full_device_is_one_line() -> None:
    none = in_a_process("schema", "plan", "-o", "/dev/fd/3")
    assert (none.returncode, none.stderr) == (2, "/dev/fd/3: No such file or directory\n")
    script = f"{sys.executable} -m aucsched schema plan -o /dev/fd/3 3> /dev/full"
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=False, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "/dev/fd/3: No space left on device\n"


def test_what_fails_in_the_middle_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text("before")
    script = f"ulimit -f 1; exec {sys.executable} -m aucsched schema plan -o plan.json"
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=False, cwd=tmp_path, text=True)
    assert (done.returncode, done.stderr) == (2, "plan.json: File too large\n")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupted_write_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_bytes(tmp_path / "new", b"content")
    assert not list(tmp_path.iterdir())


def test_what_a_kill_left_behind_is_found_beside_a_links_target(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "rows.csv").symlink_to("there/rows.csv")
    kept = (tmp_path / "there" / ".rows.csv.keep", tmp_path / "there" / "rows.csv")
    left = tmp_path / "there" / ".rows.csv.0123abcd"
    for file in (*kept, left):
        file.write_text("")
    remove_leftovers(tmp_path / "rows.csv")
    assert not left.exists()
    assert all(file.exists() for file in kept)


@pytest.mark.parametrize("name", ["x" * 255, "ü" * 127])
def test_the_longest_names_can_be_written(name: str, tmp_path: Path) -> None:
    write_bytes(tmp_path / name, b"1")
    write_bytes(tmp_path / name, b"2")
    assert (tmp_path / name).read_bytes() == b"2"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_name_with_a_nul_is_one_line() -> None:
    with pytest.raises(InputError, match="embedded null"):
        write_bytes("a\0b", b"")


@pytest.mark.parametrize("kind", ["pipe", "link to a device", "folder"])
def test_a_journal_is_a_regular_file(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv.journal"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(InputError, match="it is not a regular file, and not a journal of a sweep"):
        CheckedLines(path, kind="journal of a sweep", owner="sweep")
    line = refused("sweep", EXAMPLES / "days.swf", "--policy", "fcfs", "-o", tmp_path / "rows.csv")
    assert line == f"{path}: it is not a regular file, and not a journal of a sweep"


def test_a_journal_may_be_a_link_to_a_file(tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    (tmp_path / "journal").symlink_to("there")
    with CheckedLines(tmp_path / "journal", kind="journal", owner="sweep") as journal:
        journal.append(b"{}")
    assert (tmp_path / "journal").is_symlink()
    assert (tmp_path / "there").stat().st_size


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a snapshot, also by two links, a log and bids."""
    (tmp_path / "c.json").write_bytes((EXAMPLES / "overtaken.json").read_bytes())
    cluster = '{"format": "aucsched-snapshot/1", "nodes": [{"name": "n", "cores": 4}], "time": 0}'
    (tmp_path / "s.json").write_text(cluster)
    (tmp_path / "hard.json").hardlink_to(tmp_path / "s.json")
    (tmp_path / "soft.json").symlink_to("s.json")
    (tmp_path / "d.swf").write_text("; MaxProcs: 4\n1 0 -1 10 3 -1 -1 3 10\n")
    (tmp_path / "k.toml").write_text("[check]\nstrict = true\n")
    (tmp_path / "w.txt").write_text("goods 1\nbids 1\n0 5 0 #\n")
    return tmp_path


def kept(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("command", "output"),
    [
        *(("schedule s.json --html s.json", "--html s.json"), ("check s.json -o ./s.json", "-o ./s.json")),
        *(("check s.json -o hard.json", "-o hard.json"), ("check -o soft.json s.json", "-o soft.json")),
        ("schedule s.json --topology d.swf --plot d.swf.png -o d.swf", "-o d.swf"),
        ("evolve s.json --snapshot-out s.json", "--snapshot-out s.json"),
        ("evolve s.json --fairness d.swf -o d.swf", "-o d.swf"),
        ("winners w.txt -o w.txt", "-o w.txt"),
        ("winners w.txt --export w.txt", "--export w.txt"),
        ("simulate d.swf --swf-out d.swf", "--swf-out d.swf"),
        ("simulate c.json --failures d.swf --jobs-out d.swf", "--jobs-out d.swf"),
        ("workload from-swf d.swf --nodes 1 --cores 4 -o d.swf", "-o d.swf"),
        ("slurm shadow --jobs d.swf --log d.swf --once", "--log d.swf"),
        ("sweep d.swf -o d.swf", "-o d.swf"),
        ("board d.swf -o d.swf", "-o d.swf"),
        ("negotiate --replay d.swf -o d.swf", "-o d.swf"),
        ("--config k.toml check s.json -o k.toml", "-o k.toml"),
    ],
)
def test_no_output_overwrites_an_input(command: str, output: str, folder: Path) -> None:
    before = kept(folder)
    assert refused(*command.split(), cwd=folder) == f"aucsched: {output}: this file is the input"
    assert kept(folder) == before


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("schedule s.json --html o.x -o o.x", "--html and -o both write o.x"),
        ("schedule s.json --export o.lp -o o.lp.csv", "--export and -o both write o.lp.csv"),
        ("simulate d.swf --swf-out o.x --jobs-out ./o.x", "--swf-out and --jobs-out both write o.x"),
        ("sweep d.swf -o o.csv -o o.csv", "-o and -o both write o.csv"),
    ],
)
def test_two_outputs_are_two_files(command: str, said: str, folder: Path) -> None:
    before = kept(folder)
    assert refused(*command.split(), cwd=folder) == f"aucsched: {said}"
    assert kept(folder) == before


@pytest.mark.parametrize(
    "command",
    [
        *("evolve s.json --accounts a.json --snapshot-out", "forecast s.json --record r.db -o"),
        *("schedule s.json --export e.mps -o", "explain s.json --html h.html -o", "check s.json -o"),
    ],
)
@pytest.mark.parametrize(
    ("target", "said"),
    [("no/x", "no such file or directory"), ("d.swf/x", "not a directory"), (".", "is a directory")],
)
def test_nothing_is_written_where_one_output_cannot_be(
    command: str, target: str, said: str, folder: Path
) -> None:
    before = kept(folder)
    message = refused(*command.split(), target, cwd=folder)
    assert target in message
    assert said in message.lower()
    assert kept(folder) == before


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("schedule - --window-from -", "--window-from and SNAPSHOT"),
        ("evolve --requests - -", "--requests and SNAPSHOT"),
        ("explain - 1 --award -", "--award and SNAPSHOT"),
        ("forecast - --history -", "--history and SNAPSHOT"),
        ("simulate - --failures -", "--failures and WORKLOAD"),
        ("workload alibaba --nodes - --pods -", "--nodes and --pods"),
    ],
)
def test_one_input_is_standard_input(command: str, names: str) -> None:
    assert refused(*command.split()) == f"aucsched: only one of {names} can be standard input"


def test_what_is_read_and_written_by_design_may_exist(folder: Path) -> None:
    for _ in range(2):
        assert aucsched("evolve", "s.json", "--accounts", "a.json", cwd=folder).returncode == 0
    assert aucsched("check", "s.json", "-o", "/dev/null", cwd=folder).returncode == 0


def test_standard_input_is_an_input(folder: Path) -> None:
    script = f"{sys.executable} -m aucsched check - -o s.json < s.json"
    done = subprocess.run(["sh", "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "aucsched: -o s.json: this file is the input\n")
