"""One auction looked at from Python: ``explain`` and ``compare``."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ParamSpec, Protocol, overload

from ..auction.explain.comparison import Comparison, first_fit_by_priority
from ..auction.explain.comparison import compare as compared
from ..auction.explain.explanation import Explanation
from ..auction.explain.explanation import explain as explained
from ..auction.explain.overview import Overview, overview
from ..auction.options import options_with_preset
from ..auction.step import run_step, takes
from ..cluster.errors import OptionError
from ..cluster.jobs import may_start
from ..cluster.keywords import checked, of_type, with_keywords
from ..cluster.option_fields import Option
from ..cluster.option_table import StepKeywords, WithinOption
from ..cluster.schedule import Schedule
from ..cluster.snapshot import Snapshot
from ..formats.native.cluster_file import snapshot_of
from ..formats.native.schedule_file import load_schedule

_Keywords = ParamSpec("_Keywords")
_Source = Snapshot | str | Path


@dataclass(kw_only=True)
class ExplainKeywords(StepKeywords):
    """What ``explain`` takes as keywords."""

    award: Option[Schedule | str | Path | None] = Option(
        "An earlier schedule of the snapshot to explain instead of a new one, or its file."
    )


@dataclass(kw_only=True)
class CompareKeywords(WithinOption, StepKeywords):
    """What ``compare`` takes as keywords."""


class _Explains(Protocol[_Keywords]):
    """``explain``: of one job, or the prices of nodes."""

    @overload
    def __call__(
        self, snapshot: _Source, job: str | int, *args: _Keywords.args, **options: _Keywords.kwargs
    ) -> Explanation: ...
    @overload
    def __call__(
        self, snapshot: _Source, job: None = None, *args: _Keywords.args, **options: _Keywords.kwargs
    ) -> Overview: ...


def _explains(
    keywords: Callable[_Keywords, object],
) -> Callable[[Callable[..., Explanation | Overview]], _Explains[_Keywords]]:
    return with_keywords(keywords)


@_explains(ExplainKeywords)
def explain(snapshot: _Source, job: str | int | None = None, **options: Any) -> Explanation | Overview:
    """Run the auction and explain why a job starts or waits; without a job, return node prices.

    Args:
        snapshot: the cluster and its queue, or a snapshot file.
        job: id of a pending job; None: the prices of the whole auction.
        options: as ``schedule`` takes them, and ``award``: an earlier schedule of the snapshot to
            explain instead, or its file.

    Returns:
        The job's bids, what each costs and lacks, who holds that, the least change of its request
        that would start it; or prices in units of what is maximised. Times: epoch seconds.

    Raises:
        InputError: no pending job has that id, or the award is of another snapshot or model.
        OptionError: an option's value cannot be used.

    Examples:
        >>> import aucsched as au
        >>> asks = au.Request(cores=8)
        >>> jobs = [au.Job(id=name, priority=ord("z") - ord(name), request=asks) for name in "ab"]
        >>> snapshot = au.Snapshot(nodes=[au.Node(name="n", cores=8)], jobs=jobs)
        >>> explain(snapshot, "b").refusal.reason
        <Reason.OUTBID: 'outbid'>
        >>> explain(snapshot).columns["starts"]
        [True, False]
    """
    explicit = checked(options, ExplainKeywords, "explain")
    given = explicit.pop("award", None)
    chosen = options_with_preset(explicit)
    name = of_type("job", job, str | int | None)
    cluster = snapshot_of(snapshot)
    if name is None:
        if given is not None:
            raise OptionError("award: it explains what became of one job: name it")
        return overview(cluster, chosen)
    made = load_schedule(given) if isinstance(given, (str, Path)) else given
    found = explained(cluster, str(name), chosen, made)
    if found.award or found.alone or not may_start(found.job):
        return found
    from .forecasts import forecast  # noqa: PLC0415 - simulations take long to load, and few jobs need them

    return replace(found, never=forecast(cluster, found.job.id, futures=2).forecasts[0].never)


@takes(CompareKeywords)
def compare(snapshot: _Source, **options: Any) -> Comparison:
    """Compare the auction with first-fit by priority and with Slurm's own plan.

    Both know the same: with ``reserve`` first-fit, too, keeps nodes for the first blocked jobs.

    Args:
        snapshot: the cluster and its queue, or a snapshot file.
        options: as ``schedule`` takes them, and ``within_s``: counts the jobs that Slurm's plan
            starts within this many seconds (60).

    Raises:
        OptionError: an option's value cannot be used.

    Examples:
        >>> import aucsched as au
        >>> wide = au.Job(id="a", priority=3, request=au.Request(cores=5))
        >>> others = [au.Job(id=name, priority=2, request=au.Request(cores=4)) for name in "bc"]
        >>> snapshot = au.Snapshot(nodes=[au.Node(name="n", cores=8)], jobs=[wide, *others])
        >>> found = compare(snapshot, reserve=0)
        >>> found.auction.priority, found.first_fit.priority
        (Fraction(4, 1), Fraction(3, 1))
    """
    explicit = checked(options, CompareKeywords, "compare")
    within = explicit.pop("within_s", CompareKeywords().within_s)
    chosen, cluster = options_with_preset(explicit), snapshot_of(snapshot)
    result = run_step(cluster, chosen)
    baseline = first_fit_by_priority(cluster, chosen.jobs_in_sight, chosen.reservations)
    return compared(cluster, result, baseline, within)
