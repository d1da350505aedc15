"""What a site would gain: its own starts, and what backfill and auctions would have done."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cluster.errors import InputError
from ..cluster.keywords import of_type, refuses_unknown
from ..cluster.option_table import MODEL_NAMES
from ..cluster.tabular import Tabular
from ..cluster.text import plural
from ..cluster.workload import ClusterWorkload
from ..formats.native.cluster_file import load_workload
from ..simulation.events import DAY_S
from ..simulation.nodes.node_policies import NodeOptions, play
from ..simulation.nodes.node_result import NodeSimulation
from ..simulation.report import bounded_slowdown
from ..simulation.waits import (
    STATISTICS,
    UTILISATION,
    Difference,
    Floats,
    Resampling,
    duration,
    size_class,
    used_between,
)

FORMAT = "aucsched-gain/1"
#: What happened, as a column; and the yardstick.
HAPPENED, BACKFILL = "happened", "backfill-slurm"
#: A history of fewer jobs or days says nothing of a gain, a group of fewer jobs nothing of its own.
LEAST_JOBS, LEAST_DAYS, LEAST_OF_GROUP = 100, 2, 20
_MOST_GROUPS = 10
_MEAN_WAIT, _SLOWDOWN = "mean wait (s)", "mean bounded slowdown"
#: Statistics of waits whose differences have an interval, and the percentile that each is.
_PERCENTILES = {"median wait (s)": 50.0, "95th percentile of the wait (s)": 95.0}


@dataclass(frozen=True, kw_only=True)
class Gain(Tabular):
    """A site's history, with simulations of it under backfilling and under auctions.

    Figures are over the jobs whose own start is known and that every simulation starts. Differences
    are paired: the same jobs, drawn again by days or weeks (``Resampling``).

    Attributes:
        workload: the history; it lacks ``unfit`` jobs, which the machine cannot hold.
        results: the simulations by policy, ``backfill-slurm`` first.
        options: of the auctions, each with its value.

    Examples:
        >>> import aucsched as au
        >>> one = au.Job(id="1", priority=2, request=au.Request(cores=4), time_limit_s=60)
        >>> jobs = [au.ArrivingJob(job=one, arrival_s=0, run_time_s=30, started_s=7)]
        >>> week = au.ClusterWorkload(name="tiny", nodes=[au.Node(name="n1", cores=8)], jobs=jobs)
        >>> found = au.gain(week)
        >>> {name: waits.tolist() for name, waits in found.waits.items()}
        {'happened': [7.0], 'backfill-slurm': [0.0], 'aucsched3': [0.0]}
    """

    workload: ClusterWorkload
    results: Mapping[str, NodeSimulation]
    unfit: int = 0
    options: tuple[str, ...] = ()

    @cached_property
    def starts(self) -> dict[str, Floats]:
        """Start of every job by column, in seconds after the beginning; nan where it has none."""
        own = [np.nan if job.started_s is None else job.started_s for job in self.workload.jobs]
        found = {HAPPENED: np.array(own, np.float64)}
        for policy, result in self.results.items():
            starts = found[policy] = np.full(len(own), np.nan)
            for one in result.played:
                starts[one.demand.index] = one.start_s
        return found

    @cached_property
    def compared(self) -> NDArray[np.intp]:
        """Which jobs are compared, by number."""
        return np.flatnonzero(~np.isnan(np.sum(list(self.starts.values()), axis=0)))

    @cached_property
    def waits(self) -> dict[str, Floats]:
        """Waits of the compared jobs in seconds, by column."""
        arrival = self._arrival[self.compared]
        return {name: starts[self.compared] - arrival for name, starts in self.starts.items()}

    @cached_property
    def _arrival(self) -> Floats:
        return np.array([job.arrival_s for job in self.workload.jobs], np.float64)

    @cached_property
    def _run(self) -> Floats:
        return np.array([job.run_time_s for job in self.workload.jobs], np.float64)

    @cached_property
    def cores(self) -> Floats:
        """Cores of every job as backfilling gave them; 0 of one that never starts."""
        found = np.zeros(len(self.workload.jobs))
        for one in self.results[BACKFILL].played:
            found[one.demand.index] = one.allocation.held.cores.sum()
        return found

    @cached_property
    def _drawn(self) -> Resampling:
        return Resampling(self._arrival[self.compared])

    @property
    def days(self) -> float:
        """Days from the first job's coming to the last one's."""
        return float(np.ptp(self._arrival[self.compared])) / DAY_S

    @property
    def is_too_short(self) -> bool:
        """Whether the history is too short to say what a site would gain."""
        return len(self.compared) < LEAST_JOBS or self.days < LEAST_DAYS

    def use(self, edges: Floats) -> dict[str, Floats]:
        """Return the mean share of all cores in use between neighbouring edges, by column."""
        whole = sum(node.total.cores for node in self.workload.nodes) * np.diff(edges)
        # What ran before the beginning has no start of its own: it holds its cores from then on.
        return {
            name: used_between(
                edges, np.where(np.isnan(starts), self._arrival, starts), self._run, self.cores
            )
            / whole
            for name, starts in self.starts.items()
        }

    @cached_property
    def _slowdowns(self) -> dict[str, Floats]:
        run = self._run[self.compared]
        return {name: bounded_slowdown(waits, run) for name, waits in self.waits.items()}

    @cached_property
    def figures(self) -> list[dict[str, Any]]:
        """A row for each figure: ``figure``, ``happened``, and each policy."""
        edges = self._drawn.edges
        spans = np.diff(edges)
        use = {who: float(np.average(one, weights=spans)) for who, one in self.use(edges).items()}
        rows: list[dict[str, Any]] = [
            {"figure": f"{name} wait (s)"} | {who: of(one.tolist()) for who, one in self.waits.items()}
            for name, of in STATISTICS.items()
        ]
        slow = {who: float(one.mean()) for who, one in self._slowdowns.items()}
        return [
            *rows,
            {"figure": _SLOWDOWN} | slow,
            {"figure": UTILISATION} | {k: 100 * v for k, v in use.items()},
        ]

    def differences(self, of: str, than: str) -> list[Difference]:
        """Return how each figure of a column differs from another's."""
        found = []
        for row in self.figures:
            figure = row["figure"]
            low, high = self._interval(figure, of, than) or (None, None)
            value, base = row[of] - row[than], row[than]
            found.append(
                Difference(figure=figure, of=of, than=than, base=base, value=value, low=low, high=high)
            )
        return found

    def _interval(self, figure: str, of: str, than: str) -> tuple[float, float] | None:
        if self.is_too_short:
            return None
        if figure in _PERCENTILES:
            share = _PERCENTILES[figure]
            return self._drawn.of_percentiles(self.waits[of], self.waits[than], share)
        everybody = np.ones(len(self.compared), np.bool_)
        if figure == _MEAN_WAIT:
            return self._drawn.of_means(self.waits[of] - self.waits[than], everybody)
        if figure == _SLOWDOWN:
            return self._drawn.of_means(self._slowdowns[of] - self._slowdowns[than], everybody)
        if figure == UTILISATION:
            edges = self._drawn.edges
            use, spans = self.use(edges), np.diff(edges)
            return self._drawn.of_ratios(100 * (use[of] - use[than]) * spans, spans)
        return None

    @cached_property
    def groups(self) -> list[dict[str, Any]]:
        """Mean waits by size, partition and users, where they change most; at most ten rows."""
        auction = next(iter(self.policies), BACKFILL)
        rows = [row for names in self._classes() for row in self._grouped(names, auction)]
        rows = [row for row in rows if row[auction] != row[BACKFILL]]
        rows.sort(key=lambda row: -row["jobs"] * abs(row[auction] - row[BACKFILL]))
        return rows[:_MOST_GROUPS]

    def _classes(self) -> Iterator[list[str]]:
        """Yield the name of each compared job's group, for each way to group them."""
        jobs = [self.workload.jobs[number].job for number in self.compared]
        yield [size_class(int(cores)) for cores in self.cores[self.compared]]
        yield [f"partition {job.partition}" if job.partition else "no partition" for job in jobs]
        work: dict[str, float] = {}
        for job, area in zip(jobs, (self._run * self.cores)[self.compared].tolist(), strict=True):
            work[job.user] = work.get(job.user, 0.0) + area
        heavy, held, half = set[str](), 0.0, sum(work.values()) / 2
        for user, area in sorted(work.items(), key=lambda pair: -pair[1]):
            if held < half:
                heavy.add(user)
                held += area
        names = {
            True: f"{plural(len(heavy), 'user')} with half of all core time",
            False: "the other users",
        }
        yield [names[job.user in heavy] for job in jobs]

    def _grouped(self, names: Sequence[str], auction: str) -> Iterator[dict[str, Any]]:
        column = np.array(names)
        if len(set(names)) < 2:  # noqa: PLR2004 - one group is everybody
            return
        change = self.waits[auction] - self.waits[BACKFILL]
        for name in dict.fromkeys(names):
            members = column == name
            count = int(members.sum())
            enough = count >= LEAST_OF_GROUP and not self.is_too_short
            low, high = (self._drawn.of_means(change, members) if enough else None) or (None, None)
            means = {who: float(waits[members].mean()) for who, waits in self.waits.items()}
            yield {
                "group": name,
                "jobs": count,
                **means,
                f"{auction} less backfill": float(change[members].mean()),
                "95 % from": low,
                "to": high,
            }

    @property
    def policies(self) -> list[str]:
        """The policies that are compared with backfilling."""
        return [name for name in self.results if name != BACKFILL]

    @cached_property
    def words(self) -> list[str]:
        """What the figures say, a sentence each."""
        if self.is_too_short:
            size = f"{plural(len(self.compared), 'job')} in {duration(self.days * DAY_S)}"
            least = f"{LEAST_JOBS} jobs in {LEAST_DAYS} days"
            return [f"This history is too short to say what you would gain: {size}; {least} are enough"]
        said = [one.words() for name in self.policies for one in self.differences(name, BACKFILL)]
        return [*said, *self._trust()]

    def _trust(self) -> Iterator[str]:
        """Yield how well simulated backfilling reproduces what happened, and what follows."""
        (error, *_) = self.differences(BACKFILL, HAPPENED)
        miss = float(np.median(np.abs(self.waits[BACKFILL] - self.waits[HAPPENED])))
        simulated, own = (duration(float(self.waits[name].mean())) for name in (BACKFILL, HAPPENED))
        yield (
            f"model error: the mean wait is {simulated} in simulated {BACKFILL} and {own} at the "
            f"site; half of the jobs start within {duration(miss)} of their own start"
        )
        for name in self.policies:
            (change, *_) = self.differences(name, BACKFILL)
            if abs(change.value) <= abs(error.value):
                yield f"{name}: the change of the mean wait is below that error: it means little"

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The compared jobs by column; waits in seconds, None for none."""
        jobs = [self.workload.jobs[number] for number in self.compared]
        owners = ("id", "user", "account", "partition", "qos")
        found: dict[str, list[Any]] = {name: [getattr(one.job, name) for one in jobs] for name in owners}
        found["cores"] = self.cores[self.compared].astype(int).tolist()
        found["submit_s"] = self._arrival[self.compared].tolist()
        return found | {f"wait_s {name}": waits.tolist() for name, waits in self.waits.items()}

    def title(self) -> str:
        """Return the history in one line."""
        whole = len(self.workload.jobs) + self.unfit
        found = f"{len(self.compared)} of {plural(whole, 'job')} compared"
        return f"{self.workload.name}: {', '.join((found, *self.options))}"

    @cached_property
    def left_out(self) -> list[str]:
        """Which jobs are not compared, and what the workload's notes say."""
        texts = []
        unknown = int(np.isnan(self.starts[HAPPENED]).sum())
        if unknown:
            texts.append(f"jobs without a start of their own, not compared: {unknown}")
        for policy, result in self.results.items():
            never = result.record.never
            if never:
                number, reason = min(never.items())
                first = f"the first {self.workload.jobs[number].job.id}: {reason}"
                texts.append(f"jobs that {policy} can never start: {len(never)}, {first}")
        return [*texts, *self.workload.notes]

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain dicts, lists, numbers and text."""
        pairs = [(name, BACKFILL) for name in self.policies] + [(BACKFILL, HAPPENED)]
        return {
            "format": FORMAT,
            "name": self.workload.name,
            "jobs": len(self.compared),
            "total": len(self.workload.jobs) + self.unfit,
            "days": self.days,
            "options": list(self.options),
            "too_short": self.is_too_short,
            "words": self.words,
            "figures": self.figures,
            "differences": [asdict(one) for pair in pairs for one in self.differences(*pair)],
            "groups": self.groups,
            "notes": self.left_out,
            "columns": self.columns,
        }


@refuses_unknown
def gain(
    workload: ClusterWorkload | str | Path,
    policies: str | Sequence[str] = ("aucsched3",),
    *,
    objective: str | None = None,
    promise: str | None = None,
    window: int | None = None,
    backfill_interval_s: float | None = None,
    progress: Callable[[str], AbstractContextManager[Callable[[int], None] | None]] | None = None,
) -> Gain:
    """Compare a site's own starts with what backfilling and auctions would have done there.

    Args:
        workload: a history or its file: jobs have ``started_s`` (``aucsched workload from-sacct``).
        policies: compared with ``backfill-slurm``.
        objective: of the auctions among them; None: as ``simulate`` has it by default.
        promise: the same.
        window: jobs that backfilling looks at (bf_max_job_test).
        backfill_interval_s: seconds between its looks (bf_interval).
        progress: for a policy, the context of its simulation; it gives what is called with the
            number of jobs that are done. None: nothing is called.

    Raises:
        InputError: the file cannot be read, or no job has a start of its own.
        OptionError: no such policy.

    Examples:
        >>> import aucsched as au
        >>> one = au.Job(id="1", priority=2, request=au.Request(cores=4), time_limit_s=60)
        >>> jobs = [au.ArrivingJob(job=one, arrival_s=0, run_time_s=30, started_s=7)]
        >>> week = au.ClusterWorkload(name="tiny", nodes=[au.Node(name="n1", cores=8)], jobs=jobs)
        >>> gain(week).words
        ['This history is too short to say what you would gain: 1 job in 0 s; 100 jobs in 2 days are enough']
    """
    history = workload if isinstance(workload, ClusterWorkload) else load_workload(workload)
    several = [policies] if isinstance(policies, str) else policies
    policies = of_type("policies", several, Sequence[str] | None) or ()
    if all(job.started_s is None for job in history.jobs):
        raise InputError("no job says when it started (sacct's column Start)", path="jobs")
    slurm = NodeOptions(policy=BACKFILL, window=window, backfill_interval_s=backfill_interval_s)
    asked = {"objective": objective, "promise": promise} if set(policies) & set(MODEL_NAMES) else {}
    given: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    own = {name: given if name in MODEL_NAMES else {} for name in policies if name != BACKFILL}
    results = {}
    for one in (slurm, *(NodeOptions(policy=name, **more) for name, more in own.items())):
        with progress(one.policy) if progress is not None else nullcontext() as done:
            results[one.policy] = play(history, one, done)
    options = tuple(f"{name} {value}" for name, value in given.items())
    made = Gain(workload=history, results=results, options=options)
    if not len(made.compared):
        raise InputError("no job with a start of its own fits this machine", path="jobs")
    return made
