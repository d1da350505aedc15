"""The auction beside other solvers, each on the same exported program, in one run.

    python benchmarks/compare.py tsubame regions --seed 0 1 --ours 1 3 10 --seconds 60
    python benchmarks/compare.py --all --update --journal runs.jsonl --output table.md

Every solver runs in a process of its own on one thread, begins with the same solution, if there is one, and
is killed when it is far over its time. Before a value counts, its solution is checked against the program
(mps.py), which no solver has a part in. A gap is (bound - value) / value; a bound in brackets lies below a
checked value, so it is none. Seconds are of the processor, those of the search or solve alone; CPU seconds
those of the whole process, reading included. With a journal, runs that stand in it are not made again: stop
it and go on at any time.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import NoReturn

from instances.families import FAMILIES
from instances.generate import KINDS
from journal import OURS, done, write_run
from known import FILE, Known, best_known, update
from mps import Program, read_mps
from peers import installed, read_answer
from rows import Row, holds, judged, table

#: Wall seconds that a process may take beside forty times its solver's seconds of the processor, which others
#: use too: it reads and states the program besides.
GRACE_S, PATIENCE = 60.0, 40.0
#: Solvers' processes, and whether all are to end.
_RUNNING: set[subprocess.Popen[str]] = set()
_STOPPED = Event()
#: What --all runs.
PUBLISHED = tuple(
    (kind, seed)
    for seed in range(10)
    for kind in ("tsubame", "tsubame-even", "exclusive", *FAMILIES, "frontier", "frontier-exclusive")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a comparison runs: seconds of the auction, one run each, and of each peer; how many run at once.

    ``journal`` holds runs that are not made again, of the auction those at ``commit``.
    """

    ours: tuple[float, ...]
    seconds: float
    strategy: str
    solvers: tuple[str, ...]
    parallel: int = 1
    journal: Path | None = None
    commit: str = ""

    def runs(self) -> list[tuple[str, float]]:
        """Return each run's solver and seconds."""
        limits = {OURS: self.ours}
        return [(solver, limit) for solver in self.solvers for limit in limits.get(solver, (self.seconds,))]


def compare(kind: str, seed: int, settings: Settings) -> tuple[Program, list[Row]]:
    """Run every solver on one instance; return its program and a row for each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        instance, exported, start = (folder / one for one in ("instance", "program.mps", "start.json"))
        _ours("export", kind, str(seed), str(instance), str(exported), str(start))
        program = read_mps(exported)
        digest = program.digest()
        before = done(settings.journal, digest, settings.commit)

        def row(run: tuple[str, float]) -> Row:
            if run in before:
                return before[run]
            found = _row(run, kind, program, folder, settings)
            if settings.journal is not None:
                write_run(settings.journal, f"{kind}/{seed}", digest, settings.commit, found)
            return found

        with ThreadPoolExecutor(settings.parallel) as pool:
            return program, list(pool.map(row, settings.runs()))


def _ours(*arguments: str) -> None:
    subprocess.run([sys.executable, _beside("ours.py"), *arguments], check=True)  # noqa: S603 - ourselves


def _beside(name: str) -> str:
    return str(Path(__file__).with_name(name))


def _row(run: tuple[str, float], kind: str, program: Program, folder: Path, settings: Settings) -> Row:
    solver, seconds = run
    answer = folder / f"{solver} {seconds:g}.json"
    instance, exported, start = (str(folder / one) for one in ("instance", "program.mps", "start.json"))
    if solver == OURS:
        arguments = ["ours.py", "schedule", kind, instance, str(seconds), settings.strategy, str(answer)]
    else:
        arguments = ["peers.py", solver, exported, str(seconds), str(answer), start]
    failure = run_limited([sys.executable, _beside(arguments[0]), *arguments[1:]], seconds)
    row = Row(solver=solver, note=failure) if failure else judged(solver, program, read_answer(answer))
    return replace(row, limit=seconds)


def run_limited(command: Sequence[str], seconds: float) -> str:
    """Run a process; kill it and all it started when it is far over its seconds. Return what failed."""
    with subprocess.Popen(  # noqa: S603 - ourselves
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        _RUNNING.add(process)
        try:
            if _STOPPED.is_set():
                os.killpg(process.pid, signal.SIGKILL)
            _, errors = process.communicate(timeout=seconds * PATIENCE + GRACE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return "killed"
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            _RUNNING.discard(process)
    if _STOPPED.is_set():
        raise SystemExit  # what was killed stands in no journal
    lines = errors.strip().splitlines() or [f"exit {process.returncode}"]
    return f"failed: {lines[-1]}" if process.returncode else ""


def _stop(number: int, _: object) -> NoReturn:
    """Kill every solver that runs, each in a session of its own, and end."""
    _STOPPED.set()
    for process in tuple(_RUNNING):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    raise SystemExit(128 + number)


def found(program: Program, rows: Iterable[Row]) -> Known | None:
    """Return the best value and bound of a run; a bound below a value of the same program does not count."""
    inside = [row for row in rows if row.in_program]
    solved = [row for row in inside if row.value is not None and row.columns]
    if not solved:
        return None
    best = max(solved, key=lambda row: row.value or 0.0)
    least = best.value or 0.0
    bounds = [(max(row.bound or 0.0, least), row.name) for row in inside if holds(row.bound, least)]
    bound, by = min(bounds, default=(None, ""))
    return Known(
        value=least,
        by=best.name,
        bound=bound,
        bound_by=by,
        program=program.digest(),
        columns=" ".join(map(str, best.columns)),
    )


def main() -> int:
    """Run what is asked for; print each table as soon as it is there."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    arguments = _arguments()
    settings = Settings(
        ours=tuple(arguments.ours),
        seconds=arguments.seconds,
        strategy=arguments.strategy or "default",
        solvers=tuple(arguments.solvers.split(",")),
        parallel=arguments.parallel,
        journal=arguments.journal,
        commit=_commit(),
    )
    chosen = (
        PUBLISHED if arguments.all else [(kind, seed) for seed in arguments.seed for kind in arguments.kinds]
    )
    text = _heading()
    print(text)
    for kind, seed in chosen:
        name = f"{kind}/{seed}"
        program, rows = compare(kind, seed, settings)
        text += (part := "\n" + table(name, program, rows, best_known().get(name)))
        print(part, flush=True)
        entry = found(program, rows)
        if arguments.update and entry is not None:
            update({name: entry})
        if arguments.output:
            arguments.output.write_text(text, encoding="utf-8")
    return 0


def _commit() -> str:
    shown = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],  # noqa: S607 - the reader's git
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return shown or "unknown"


def _heading() -> str:
    command = shlex.join(["python", "benchmarks/compare.py", *sys.argv[1:]])
    return f"`{command}`, commit {_commit()}, {os.cpu_count()} cores\n"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join([*KINDS, *FAMILIES]))
    parser.add_argument("--seed", type=int, nargs="+", default=[0])
    parser.add_argument("--all", action="store_true", help="the published set instead of some kinds")
    parser.add_argument("--ours", type=float, nargs="+", default=[3.0], help="seconds of the auction (3)")
    parser.add_argument("--seconds", type=float, default=60.0, help="seconds of each other solver (60)")
    parser.add_argument("--strategy", choices=["exact", "anytime"], help="of the auction; its own default")
    parser.add_argument("--solvers", default=",".join([OURS, *installed()]), help="default: all installed")
    parser.add_argument("--parallel", type=int, default=1, help="solvers at once, a core each (1)")
    parser.add_argument("--journal", type=Path, help="file of runs that are done; go on from there")
    parser.add_argument("--update", action="store_true", help=f"write what is better to {FILE.name}")
    parser.add_argument("--output", type=Path, help="file for the tables, beside standard output")
    arguments = parser.parse_args()
    if bool(arguments.kinds) == arguments.all:
        parser.error("give kinds, or --all")
    for kind in arguments.kinds:
        if kind not in KINDS and kind not in FAMILIES:
            parser.error(f"no such kind: {kind}")
    unknown = set(arguments.solvers.split(",")) - {OURS, *installed()}
    if unknown:
        parser.error(f"not installed: {', '.join(sorted(unknown))}")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
