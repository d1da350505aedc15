"""``aucsched.sweep``: every combination of options over one input, from Python."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..auction.parts.workers import end_if_spawned
from ..cluster.errors import OptionError
from ..cluster.keywords import of_type, whole, with_names
from ..cluster.option_fields import numbers_text
from ..cluster.snapshot import Snapshot
from ..cluster.tabular import Tabular, chart, rows_of
from ..cluster.text import did_you_mean, plural, shown
from ..cluster.workload import ClusterWorkload
from ..formats.native.cluster_file import snapshot_to_json, workload_to_json
from ..formats.swf import SwfLog, swf_text
from ..reports.table_files import SUFFIXES, check_suffix
from ..simulation.own_policy import Factory, name_of
from .axes import AXES, Row, Value
from .drive import run_here, run_locally
from .drive import sweep as drive
from .results import check_panels, columns_of, write_table
from .run_plan import FAILED, Run, RunPlan, Subject, make_plan, plan_over

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMAT = "aucsched-sweep-table/1"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Sweep(Tabular):
    """A finished sweep: a row for each run, in the grid's order.

    Attributes:
        plan: the grid and its runs; ``plan.notes`` says what was left out.
        rows: by column; a run's options, its result, its seconds, and the versions that made it.

    Examples:
        >>> import aucsched
        >>> snapshot = aucsched.Snapshot(nodes=[aucsched.Node(name="n", cores=8)])
        >>> found = aucsched.sweep(snapshot, window=[10, 20])
        >>> found.columns["window"], found.columns["status"]
        ([10, 20], ['optimal', 'optimal'])
    """

    plan: RunPlan
    rows: tuple[Row, ...]

    @property
    def columns(self) -> dict[str, list[Any]]:
        """A row for each run: columns of the CSV and Parquet files, None where one is missing."""
        return columns_of(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the rows as plain values."""
        return {"format": FORMAT, "rows": rows_of(self.columns)}

    def save(self, path: str | Path) -> None:
        """Write the table as the command does (``.csv``, ``.parquet``), or as results are saved."""
        if Path(path).suffix.lower() in SUFFIXES:
            write_table(Path(path), self.rows)
        else:
            Tabular.save(self, path)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the runs: quality first, time last.

        Args:
            path: file to write, ``.png``, ``.pdf`` or ``.svg``; None: none.

        Raises:
            OptionError: matplotlib is missing, the file type is unknown, or too much was swept.
        """
        draw = chart(path, "sweeps.results", "draw_sweep")
        check_panels(self.plan)
        figure: Figure = draw(self.plan, self.rows)
        return figure

    def title(self) -> str:
        """Return the sweep in one line."""
        failed = sum(row["status"] == FAILED for row in self.rows)
        told = f"{plural(len(self.rows), 'run')} over {self.plan.subject.name}, {failed} of them failed"
        return "; ".join((told, *self.plan.notes))


@with_names({name: axis.help for name, axis in AXES.items()})
def sweep(
    source: Snapshot | ClusterWorkload | SwfLog | str | Path,
    *,
    repeat: int = 1,
    seed: int | None = None,
    workers: int = 1,
    output: str | Path | None = None,
    progress: Callable[[int], None] | None = None,
    **axes: Any,
) -> Sweep:
    r"""Run every combination of options over a snapshot, a log or a workload of nodes.

    Args:
        source: what ``load_snapshot``, ``load_workload`` or ``load_swf`` returns, or its file.
        repeat: runs at each point, each with a seed of its own where there is one.
        seed: of the first.
        workers: number of processes; 1: this one. The command takes one a processor. A script
            with its own policy needs ``if __name__ == "__main__"`` for more: each process loads it.
        output: table to write (``.csv``, ``.parquet``); the same call resumes it after a stop.
        progress: called with the number of rows.
        axes: a value or a list of values by option, with the names of ``aucsched sweep --help`` and
            underscores: ``window=[25, 50]``, ``policy=["easy", MyPolicy]``.

    Raises:
        InputError: the source cannot be read.
        OptionError: no such option, or values that exclude each other.
        AucschedError: processes cannot start.

    Examples:
        >>> import aucsched
        >>> log = b"; MaxProcs: 4\n1 0 -1 10 3 -1 -1 3 10\n2 1 -1 10 2 -1 -1 2 10\n"
        >>> sweep(aucsched.parse_swf(log), policy=["fcfs", "easy"]).columns["wait_mean_s"]
        [4.5, 4.5]
    """
    values = {name: _values(name, value) for name, value in axes.items() if value is not None}
    repeat, seed = whole("repeat", repeat, 1), seed if seed is None else whole("seed", seed, 0)
    if whole("workers", workers, 1) > 1:
        end_if_spawned("sweep")
    if isinstance(source, (str, Path)):
        plan = make_plan(str(source), values, repeat=repeat, seed=seed)
    else:
        plan = plan_over(_subject(source), values, repeat=repeat, seed=seed)
    outputs = [] if output is None else [_table(output)]
    progress = of_type("progress", progress, Callable | None)

    def run(subject: Subject, runs: Sequence[Run]) -> Generator[Row, None, None]:
        return run_here(subject, runs) if workers == 1 else run_locally(subject, runs, workers)

    return Sweep(plan=plan, rows=tuple(drive(plan, outputs, run, progress=progress)))


def _table(output: Any) -> Path:
    path = Path(of_type("output", output, str | Path))
    check_suffix("output", path, SUFFIXES)
    return path


def _values(name: str, given: Any) -> tuple[Value, ...]:
    if name not in AXES:
        raise OptionError(f"{name}: a sweep has no such option{did_you_mean(name, AXES)}")
    if isinstance(given, str) and name != "policy":
        return AXES[name].values(given, name)
    is_list = isinstance(given, Iterable) and not isinstance(given, str | Mapping)
    several = list(given) if is_list else [given]
    values = tuple(_value(name, one) for one in several)
    if not values:
        raise OptionError(f"{name}: an empty list has no run")
    if len(set(values)) < len(values):
        raise OptionError(f"{name}: {max(values, key=values.count)} is given twice")
    return values


def _value(name: str, one: Any) -> Value:
    if name == "policy":
        policy: str | Factory = one
        return name_of(policy)
    text = ("off", "on")[one] if isinstance(one, bool) else numbers_text(one)
    return AXES[name].values(text, name)[0]


def _subject(source: Snapshot | ClusterWorkload | SwfLog) -> Subject:
    if isinstance(source, Snapshot):
        return Subject(name="snapshot", kind="snapshot", content=snapshot_to_json(source).encode())
    if isinstance(source, ClusterWorkload):
        return Subject(name=source.name, kind="workload", content=workload_to_json(source).encode())
    if isinstance(source, SwfLog):
        return Subject(name="log", kind="trace", content=swf_text(source).encode())
    raise OptionError(f"source: {shown(source)} is neither a snapshot, a workload, a log nor a file")
