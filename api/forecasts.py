"""When jobs will start, from Python: ``forecast``."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any, Literal

from ..auction.queue import pending_job
from ..cluster.errors import InputError, OptionError
from ..cluster.jobs import Job, Span
from ..cluster.keywords import of_type, refuses_unknown, whole
from ..cluster.promises import seconds_of
from ..cluster.snapshot import Snapshot
from ..cluster.tabular import Tabular, rows_of
from ..cluster.text import plural
from ..formats.delimited import read_table
from ..formats.native.cluster_file import snapshot_of
from ..formats.reading import read_document
from ..simulation.forecast.forecaster import FUTURES, StartForecast
from ..simulation.forecast.record import (
    calibrator_of,
    columns_of_record,
    load_record,
    recorded,
    save_forecasts,
    save_starts,
    scores,
)
from ..simulation.forecast.snapshot_queue import SnapshotForecaster, not_played
from ..simulation.workloads.from_table import logged_jobs
from ..simulation.workloads.imported import LoggedJob

FORMAT = "aucsched-forecast/1"
#: Changes of a request that are shown.
SHOWN_CHANGES = 3
#: Changes that ``any`` tries: shares of the time limit and of the cores.
_SHARES = (0.75, 0.5, 0.25)
#: As many as the command plays at most; more takes memory and narrows nothing.
_MOST_FUTURES = 10_000
_MOST_SEED = 2**63 - 1
_ANY = "any"


@dataclass(frozen=True, kw_only=True)
class ChangedForecast:
    """What a change of a job's request, e.g. ``time=2h``, would give."""

    change: str
    forecast: StartForecast


@dataclass(frozen=True, kw_only=True, repr=False)
class Forecasts(Tabular):
    """When jobs of a snapshot will start.

    Attributes:
        time: of the snapshot, seconds since the epoch; 0 where it has none.
        forecasts: in the queue's order.
        by_s: seconds from ``time`` for which probabilities are asked; None: none.
        changes: of one job's request, the best first.
        record: figures of past forecasts; empty without a record.
        notes: what of the snapshot no forecast looks at.

    Examples:
        >>> import aucsched as au
        >>> job = au.Job(id="2", priority=5, request=au.Request(cores=4), time_limit_s=600)
        >>> now = au.Snapshot(nodes=[au.Node(name="n1", cores=8)], jobs=[job], time=0)
        >>> au.forecast(now).columns["p50_s"]
        [0.0]
    """

    time: float
    forecasts: tuple[StartForecast, ...]
    by_s: float | None = None
    changes: tuple[ChangedForecast, ...] = ()
    record: dict[str, Any]
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> dict[str, list[Any]]:
        """A row for each job; times in seconds from the snapshot's, None if it can never start."""
        return _columns([(one.id, one) for one in self.forecasts], "job", self.by_s)

    @property
    def change_columns(self) -> dict[str, list[Any]]:
        """A row for each change."""
        return _columns([(one.change, one.forecast) for one in self.changes], "change", self.by_s)

    def to_dict(self) -> dict[str, Any]:
        """Return the file (``aucsched-forecast/1``) as plain values."""
        return {
            "format": FORMAT,
            "time_s": self.time,
            "by_s": self.by_s,
            "jobs": rows_of(self.columns),
            "changes": rows_of(self.change_columns),
            "notes": list(self.notes),
            "record": self.record
            | {"reliability": {str(k): v for k, v in self.record.get("reliability", {}).items()}},
        }

    def title(self) -> str:
        """Return the forecasts in one line."""
        never = sum(bool(one.never) for one in self.forecasts)
        words = f", {never} of them never" if never else ""
        return f"forecast of {plural(len(self.forecasts), 'job')}{words}"


@refuses_unknown
def forecast(  # noqa: PLR0913 - what a forecast may know
    snapshot: Snapshot | str | Path,
    jobs: str | int | Sequence[str | int] | None = None,
    *,
    history: Sequence[LoggedJob] | str | Path = (),
    record: str | Path | None = None,
    by_s: float | None = None,
    changes: Sequence[str] = (),
    objective: Literal["priority", "response"] = "priority",
    futures: int = FUTURES,
    seed: int = 0,
) -> Forecasts:
    """Say when pending jobs will start: P10, P50 and P90 of each.

    Args:
        snapshot: the cluster and its queue, or a snapshot file.
        jobs: ids of pending jobs; None: all.
        history: a file of sacct's output, from which run times are learnt.
        record: an SQLite file of past forecasts, which calibrates; made where it does not exist,
            and these forecasts are added.
        by_s: seconds from now: the probability that each job has started by then.
        changes: of one job's request, e.g. ``time=2h`` or ``cores=8,time=30m``; ``any`` tries some.
        objective: of the scheduler.
        futures: that are played.
        seed: of their random numbers.

    Raises:
        InputError: a file cannot be read, or a job is not pending.
        OptionError: a change cannot be made, or an option's value cannot be used.

    Examples:
        >>> import aucsched as au
        >>> nodes = [au.Node(name="n1", cores=8, free=au.Resources(cores=0))]
        >>> running = [au.RunningJob(id="1", nodes={"n1": au.Resources(cores=8)}, end_time=3600)]
        >>> waits = au.Job(id="2", priority=5, request=au.Request(cores=4), time_limit_s=600)
        >>> now = au.Snapshot(nodes=nodes, running=running, jobs=[waits], time=0)
        >>> found = au.forecast(now)
        >>> found.columns["job"], found.columns["plan_s"]
        (['2'], [3600.0])
    """
    loaded = snapshot_of(snapshot)
    by_s = of_type("by_s", by_s, float | None)
    if by_s is not None and not 0 <= by_s < inf:
        raise OptionError(f"by_s: {by_s} is not a finite number of at least 0")
    past = of_type("history", history, str | Path | Sequence[LoggedJob])
    past = read_document(past, history_of) if isinstance(past, (str, Path)) else past
    ids = _ids(loaded, jobs)
    record = of_type("record", record, str | Path | None)
    changes = of_type("changes", changes, str | Sequence[str])
    kept = [] if record is None else _known_record(Path(record), past)
    forecaster = SnapshotForecaster(
        loaded,
        past,
        by_worth=of_type("objective", objective, Literal["priority", "response"] | None) == "response",
        futures=whole("futures", futures, 2, _MOST_FUTURES),
        seed=whole("seed", seed, 0, _MOST_SEED),
        calibrator=calibrator_of(kept),
    )
    found = forecaster.forecasts(ids)
    changed = _changed(loaded, forecaster, ids, [changes] if isinstance(changes, str) else changes)
    if record is not None:
        by_id = {job.id: job for job in loaded.jobs}
        save_forecasts(
            Path(record),
            [
                recorded(one, by_id[str(one.id)].partition, by_id[str(one.id)].submit_time or one.asked_s)
                for one in found
                if one.features is not None
            ],
        )
    return Forecasts(
        time=forecaster.now,
        forecasts=tuple(found),
        by_s=by_s,
        changes=changed,
        record=scores(columns_of_record(kept)),
        notes=not_played(loaded),
    )


def history_of(content: bytes) -> list[LoggedJob]:
    """Return the jobs of sacct's output."""
    return logged_jobs(read_table(content, "|"))


def _known_record(path: Path, past: Sequence[LoggedJob]) -> list[Any]:
    """Return the record, with the starts that the history knows."""
    found = load_record(path)
    starts = {job.id: job.start_s for job in past if job.start_s is not None}
    return load_record(path) if save_starts(path, starts, found) else found


def _ids(snapshot: Snapshot, jobs: str | int | Sequence[str | int] | None) -> set[str] | None:
    asked = of_type("jobs", () if jobs is None else jobs, str | int | Iterable)
    asked = [asked] if isinstance(asked, (str, int)) else asked
    return {pending_job(snapshot, str(one)).id for one in asked} or None


def _changed(
    snapshot: Snapshot, forecaster: SnapshotForecaster, ids: set[str] | None, changes: Sequence[str]
) -> tuple[ChangedForecast, ...]:
    """Return the best changes of one job's request, those that start it first before the others."""
    if not changes:
        return ()
    if ids is None or len(ids) != 1:
        raise OptionError("a change is of one job's request: name one job")
    [job] = [job for job in snapshot.jobs if job.id in ids]
    texts = [text for one in changes for text in (_tried(job) if one == _ANY else [one])]
    found = []
    for text in dict.fromkeys(texts):
        [made] = forecaster.forecasts(ids, changed={job.id: changed_job(job, text)})
        found.append(ChangedForecast(change=text, forecast=made))
    found.sort(key=lambda one: (bool(one.forecast.never), one.forecast.quantiles[8:9]))
    return tuple(found[:SHOWN_CHANGES])


def _tried(job: Job) -> list[str]:
    """Return changes that may let a job start earlier: less time, fewer cores, or both."""
    times = [] if job.time_limit_s is None else [max(int(job.time_limit_s * one), 1) for one in _SHARES]
    found = [f"time={one}s" for one in times]
    if job.request.cores is not None and job.request.nodes is None and job.request.cores > 1:
        counts = dict.fromkeys(max(int(job.request.cores * one), 1) for one in _SHARES)
        found += [f"cores={one}" for one in counts]
    return found


def changed_job(job: Job, change: str) -> Job:
    """Return a job with another request: ``time=2h,cores=8``, ``nodes=2`` or ``partition=short``.

    Raises:
        OptionError: the change cannot be read, or made.
    """
    for part in change.split(","):
        name, _, value = (text.strip() for text in part.partition("="))
        try:
            if name == "time":
                job = replace(job, time_limit_s=max(round(seconds_of(value)), 1), limits_by_nodes_s={})
            elif name == "partition":
                job = replace(job, partition=value)
            elif name == "cores":
                job = replace(job, request=replace(job.request, cores=int(value)))
            elif name == "nodes":
                job = replace(job, request=replace(job.request, nodes=Span.exactly(int(value))))
            else:
                raise OptionError(f"{change!r}: {name!r} is none of time, cores, nodes, partition")
        except (ValueError, InputError) as error:
            raise OptionError(f"{change!r} cannot be asked for: {error}") from error
    return job


def _columns(
    rows: Sequence[tuple[Any, StartForecast]], first: str, by_s: float | None
) -> dict[str, list[Any]]:
    def numbers(name: str) -> list[float | None]:
        return [None if not one.quantiles else getattr(one, name) for _, one in rows]

    found: dict[str, list[Any]] = {
        first: [name for name, _ in rows],
        "cores": [one.cores for _, one in rows],
        "p10_s": numbers("p10_s"),
        "p50_s": numbers("p50_s"),
        "p90_s": numbers("p90_s"),
        "plan_s": [one.plan_s if one.plan_s < float("inf") else None for _, one in rows],
    }
    if by_s is not None:
        found["probability"] = [one.probability_by(by_s) for _, one in rows]
    return found | {"never": [one.never for _, one in rows]}
