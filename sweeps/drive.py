"""A sweep from its plan to its files: runs in the journal are skipped, the others are run and recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..cluster.errors import InputError
from ..formats.binary import is_stream, remove_leftovers
from .axes import Row
from .journal import Journal, grow
from .result_table import write_table
from .run_plan import FAILED, Run, RunPlan, Subject, versions

#: Runs an input's runs and yields their rows in any order.
Executor = Callable[[Subject, Sequence[Run]], Generator[Row, None, None]]

#: The share of its time that a sweep may spend on writing the tables while it goes on.
_SHARE_FOR_TABLES = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepStart:
    """The state of a sweep when it starts.

    Attributes:
        done: how many of its rows exist already.
        runs: how many it has in all.
        versions: those with which the first rows were made.
    """

    done: int
    runs: int
    versions: Mapping[str, Any]


def sweep(
    plan: RunPlan,
    outputs: Sequence[Path],
    executor: Executor,
    *,
    retry_failed: bool = False,
    on_start: Callable[[SweepStart], None] | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Row]:
    """Run what is not done yet, keep each row as it comes, and return all in the grid's order.

    Args:
        plan: the runs.
        outputs: tables to write; the journal stands beside the first.
        executor: runs them.
        retry_failed: run those again whose row holds an error.
        on_start: called once, before the first run.
        progress: called with the number of rows that there are, at the beginning and after each.

    Raises:
        InputError: a file cannot be written, is another sweep's, or is in use by one.
    """
    with _journal(plan, outputs) as journal:
        rows = {
            number: row
            for number, row in journal.rows.items()
            if not (retry_failed and row["status"] == FAILED)
        }
        if on_start is not None:
            on_start(SweepStart(done=len(rows), runs=len(plan.runs), versions=journal.begun_with))
        show = progress or (lambda _: None)
        show(len(rows))
        tables = _Tables(plan, outputs)
        waiting = [run for run in plan.runs if run.number not in rows]
        with closing(executor(plan.subject, waiting)) as results:
            for row in results:
                journal.add(row)
                rows[int(str(row["run"]))] = row
                show(len(rows))
                tables.refresh(rows)
        return tables.write(rows)


def journal_of(output: Path) -> Path:
    """Return where the journal of a sweep stands whose first output this is."""
    return output.with_name(f"{output.name}.journal")


def _journal(plan: RunPlan, outputs: Sequence[Path]) -> Journal:
    path = journal_of(outputs[0])
    for output in outputs:
        if not path.exists() and output.exists() and output.stat().st_size:
            message = f"there is no {path.name} to go on from: remove the file, or give another -o"
            raise InputError(message, file=str(output))
    options = [run.options for run in plan.runs]
    grow(path, plan.identity(), options)
    return Journal(path, plan.identity(), options, versions())


class _Tables:
    """The output files, kept up to date: each is whole and in the grid's order at any moment."""

    def __init__(self, plan: RunPlan, outputs: Sequence[Path]) -> None:
        self._outputs = outputs
        self._source: Row = {"input": plan.subject.name, "input_sha256": plan.subject.digest}
        self._not_before = 0.0
        for output in outputs:
            remove_leftovers(output)

    def refresh(self, rows: Mapping[int, Row]) -> None:
        """Write the rows there are, unless that would take too much of the time."""
        if time.monotonic() >= self._not_before:
            self._write(rows, [output for output in self._outputs if not is_stream(output)])

    def write(self, rows: Mapping[int, Row]) -> list[Row]:
        """Write the rows there are, and return them; what reads a pipe gets them here, once."""
        return self._write(rows, self._outputs)

    def _write(self, rows: Mapping[int, Row], outputs: Sequence[Path]) -> list[Row]:
        began = time.monotonic()
        ordered = [{"run": number, **self._source, **rows[number]} for number in sorted(rows)]
        for output in outputs:
            write_table(output, ordered)
        ended = time.monotonic()
        self._not_before = ended + (ended - began) / _SHARE_FOR_TABLES
        return ordered
