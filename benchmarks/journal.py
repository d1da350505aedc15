"""Runs of a comparison that are done, a line of JSON each: what was stopped goes on from there.

A run counts again where its instance's program, its solver and its seconds are the same; the auction's only
at the same commit.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from rows import Row

#: The auction's own name among solvers.
OURS = "aucsched"


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A row, and what it is of."""

    instance: str
    program: str
    commit: str
    solver: str
    limit: float
    value: float | None
    bound: float | None
    seconds: float | None
    cpu: float | None
    jobs: int | None
    note: str

    def row(self) -> Row:
        """Return the row."""
        return Row(
            solver=self.solver,
            note=self.note,
            value=self.value,
            bound=self.bound,
            seconds=self.seconds,
            cpu=self.cpu,
            jobs=self.jobs,
            limit=self.limit,
        )


def runs_in(file: Path) -> list[Run]:
    """Return the runs of a journal; a last line that was cut off is none."""
    runs: list[Run] = []
    for line in file.read_bytes().splitlines() if file.exists() else []:
        try:
            runs.append(msgspec.json.decode(line, type=Run))
        except msgspec.DecodeError:
            continue
    return runs


def done(file: Path | None, program: str, commit: str) -> dict[tuple[str, float], Row]:
    """Return the rows that a journal has of a program, by solver and seconds."""
    runs = [] if file is None else runs_in(file)
    mine = [run for run in runs if run.program == program and (run.solver != OURS or run.commit == commit)]
    return {(run.solver, run.limit): run.row() for run in mine}


def write_run(file: Path, instance: str, program: str, commit: str, row: Row) -> None:
    """Add a run to a journal."""
    run = Run(
        instance=instance,
        program=program,
        commit=commit,
        solver=row.solver,
        limit=row.limit or 0.0,
        value=row.value,
        bound=row.bound,
        seconds=None if row.seconds is None else round(row.seconds, 2),
        cpu=None if row.cpu is None else round(row.cpu, 2),
        jobs=row.jobs,
        note=row.note,
    )
    with file.open("ab") as journal:
        journal.write(msgspec.json.encode(run) + b"\n")
