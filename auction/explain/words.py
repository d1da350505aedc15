"""Requests, durations, numbers and lists of names in words, the same in every command.

Tasks of an array are one row of a table, named as Slurm names them: ``13_[4-20]``.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

from ...cluster.jobs import Job
from ...cluster.schedule import Reason, Refusal
from ...cluster.text import plural, utc
from ...formats.hostlist import join
from ..impossible import place_words, size_words

#: A hostlist is cut after this many characters.
_LONGEST = 70
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def duration(seconds: float) -> str:
    """Return a duration in its two largest units: ``3 h 20 min``."""
    left = round(seconds)
    parts: list[str] = []
    for unit, size in (("d", _DAY), ("h", _HOUR), ("min", _MINUTE), ("s", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


def moment(time: float, now: float | None) -> str:
    """Return a time in UTC, and how far it is from now where that is known."""
    return utc(time) + ("" if now is None else f" (in {duration(max(0.0, time - now))})")


def number(value: Any) -> str:
    """Return a priority: an integer as it is, a fraction or float as a decimal."""
    if isinstance(value, float):
        return f"{value:.15g}"
    return str(value.numerator) if value.denominator == 1 else f"{value.numerator / value.denominator:.15g}"


def figure(value: float) -> str:
    """Return a price: four digits, or all of a whole number."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"  # noqa: PLR2004 - four digits


def percent(share: float) -> str:
    """Return a share in whole percent, never 0 % or 100 % unless it is."""
    return f"{min(max(round(100 * share), share > 0), 100 - (share < 1)):.0f} %"


def request_words(job: Job) -> list[str]:
    """Return every part of a job's request in words."""
    request = job.request
    licenses = [plural(count, f"{name} licence") for name, count in request.licenses.items()]
    return [*size_words(request), *licenses, *place_words(request), *_where(job)]


def _where(job: Job) -> Iterator[str]:
    request = job.request
    if request.features:
        yield f"features {' and '.join(sorted(request.features))}"
    if request.required_nodes:
        yield f"with {shortened(request.required_nodes)}"
    if request.excluded_nodes:
        yield f"without {shortened(tuple(sorted(request.excluded_nodes)))}"
    if job.partition:
        yield f"partition {job.partition}"
    if job.time_limit_s is not None:
        yield f"for at most {duration(job.time_limit_s)}"


def dealt(counts: Sequence[int]) -> str:
    """Return the counts of nodes in their order, as Slurm writes them: ``4(x3),2``."""
    runs = [(count, len(list(same))) for count, same in groupby(counts)]
    return ",".join(f"{count}(x{times})" if times > 1 else f"{count}" for count, times in runs)


def shortened(nodes: Sequence[str]) -> str:
    """Return nodes as a hostlist, cut where it has many parts."""
    items = join(nodes)
    return items if len(items) <= _LONGEST else f"{items[:_LONGEST].rsplit(',', 1)[0]},… ({len(nodes)} nodes)"


_Found = TypeVar("_Found")
_TASK = re.compile(r"(\d+_)\d+")
#: A list of tasks is cut after this many characters, as squeue cuts it.
_LONGEST_TASKS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRow:
    """A job that does not start, or tasks of one array that wait for the same reason.

    Attributes:
        jobs: their ids, in the order of the queue.
        name: the job's id, or the list of tasks and their count.
        reason: the reason of each.
        detail: the sentence of the first, and a remark where others have other ones.
    """

    jobs: tuple[str, ...]
    name: str
    reason: Reason
    detail: str


def tasks_name(jobs: Sequence[str]) -> str:
    """Return a job's name, or tasks of one array as squeue prints them, and their count."""
    if len(jobs) == 1:
        return jobs[0]
    tasks = join(jobs)
    if len(tasks) > _LONGEST_TASKS:
        tasks = f"{tasks[:_LONGEST_TASKS].rpartition(',')[0]},...]"
    return f"{tasks} ({plural(len(jobs), 'task')})"


def by_array(
    found: Iterable[_Found], job: Callable[[_Found], str], alike: Callable[[_Found], object]
) -> list[list[_Found]]:
    """Return jobs in their order, alike tasks of one array together at the place of the first."""
    groups: dict[object, list[_Found]] = {}
    for one in found:
        task = _TASK.fullmatch(job(one))
        groups.setdefault((task[1] if task else job(one), alike(one)), []).append(one)
    return list(groups.values())


def waiting_rows(
    pending: Iterable[Refusal], alike: Callable[[Refusal], object] = lambda _: None
) -> list[WaitingRow]:
    """Return the rows of waiting jobs; tasks of a row have reason and ``alike`` in common."""
    rows = by_array(pending, lambda one: one.job, lambda one: (one.reason, alike(one)))
    return [_row(tasks) for tasks in rows]


def _row(tasks: list[Refusal]) -> WaitingRow:
    first = tasks[0]
    detail = first.detail
    if any(one.detail != detail for one in tasks):
        detail += f" ({first.job}; the JSON output says it of each task)"
    jobs = tuple(one.job for one in tasks)
    return WaitingRow(jobs=jobs, name=tasks_name(jobs), reason=first.reason, detail=detail)
