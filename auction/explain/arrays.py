"""Tasks of an array as one row of a table, named as Slurm names them: ``13_[4-20]``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ...cluster.schedule import Reason, Refusal
from ...cluster.text import plural
from ...formats.hostlist import join

_TASK = re.compile(r"\d+_\d+")
#: A list of tasks is cut after this many characters, as squeue cuts it.
_LONGEST = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRow:
    """A job that does not start, or tasks of one array that wait for the same reason.

    Attributes:
        jobs: their names, in the order of the queue.
        reason: the reason of each.
        detail: the sentence of the first, and a remark where others have other ones.
    """

    jobs: tuple[str, ...]
    reason: Reason
    detail: str

    @property
    def name(self) -> str:
        """The job's name, or the list of tasks and their count."""
        if len(self.jobs) == 1:
            return self.jobs[0]
        tasks = join(self.jobs)
        if len(tasks) > _LONGEST:
            tasks = f"{tasks[:_LONGEST].rpartition(',')[0]},...]"
        return f"{tasks} ({plural(len(self.jobs), 'task')})"


def waiting_rows(
    pending: Iterable[Refusal], alike: Callable[[Refusal], object] = lambda _: None
) -> list[WaitingRow]:
    """Return the rows of a table of waiting jobs, each at the place of its first job.

    Args:
        pending: the jobs that do not start, in the order of the queue.
        alike: what tasks of a row have in common besides their array and reason.
    """
    groups: dict[object, list[Refusal]] = {}
    for one in pending:
        array = one.job.partition("_")[0] if _TASK.fullmatch(one.job) else None
        key = one.job if array is None else (array, one.reason, alike(one))
        groups.setdefault(key, []).append(one)
    return [_row(tasks) for tasks in groups.values()]


def _row(tasks: list[Refusal]) -> WaitingRow:
    first = tasks[0]
    detail = first.detail
    if any(one.detail != detail for one in tasks):
        detail += f" ({first.job}; the JSON output says it of each task)"
    return WaitingRow(jobs=tuple(one.job for one in tasks), reason=first.reason, detail=detail)
