"""One auction looked at from Python: ``explain`` and ``compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack, overload

from ..auction.baseline import first_fit_by_priority
from ..auction.explain.comparison import Comparison
from ..auction.explain.comparison import compare as compared
from ..auction.explain.explanation import Explanation
from ..auction.explain.explanation import explain as explained
from ..auction.explain.overview import Overview, overview
from ..auction.step import options_of, run_step
from ..auction.step_keywords import StepKeywords
from ..cluster.errors import OptionError
from ..cluster.keywords import of_type, with_keywords
from ..cluster.schedule import Schedule
from ..cluster.snapshot import Snapshot
from ..formats.native.read import snapshot_of
from ..formats.native.read_schedule import load_schedule


@overload
def explain(
    snapshot: Snapshot | str | Path,
    job: str | int,
    *,
    award: Schedule | str | Path | None = None,
    **options: Unpack[StepKeywords],
) -> Explanation: ...


@overload
def explain(
    snapshot: Snapshot | str | Path, job: None = None, **options: Unpack[StepKeywords]
) -> Overview: ...


@with_keywords(StepKeywords)
def explain(
    snapshot: Snapshot | str | Path,
    job: str | int | None = None,
    *,
    award: Schedule | str | Path | None = None,
    **options: Unpack[StepKeywords],
) -> Explanation | Overview:
    """Run the auction and explain why a job starts or waits; without a job, return the prices of nodes.

    Args:
        snapshot: the cluster and its queue, or a snapshot file.
        job: id of a pending job; None: the prices of the whole auction.
        award: an earlier schedule of the snapshot to explain instead, or its file.
        options: as ``schedule`` takes them.

    Returns:
        The job's bids, what each costs and lacks, who holds that, and the smallest change of its request
        that would start it; or prices in units of what is maximised. Times in seconds since the epoch.

    Raises:
        InputError: no pending job has that id, or the award is not for this snapshot.
        OptionError: an option's value cannot be used.

    Examples:
        >>> import aucsched
        >>> asks = aucsched.Request(cores=8)
        >>> jobs = [aucsched.Job(id=name, priority=ord("z") - ord(name), request=asks) for name in "ab"]
        >>> snapshot = aucsched.Snapshot(nodes=[aucsched.Node(name="n", cores=8)], jobs=jobs)
        >>> explain(snapshot, "b").refusal.reason
        <Reason.OUTBID: 'outbid'>
        >>> explain(snapshot).columns["starts"]
        [True, False]
    """
    chosen = options_of(options, "explain")
    name = of_type("job", job, str | int | None)
    given = of_type("award", award, Schedule | str | Path | None)
    cluster = snapshot_of(snapshot)
    if name is None:
        if given is not None:
            raise OptionError("award: it explains what became of one job: name it")
        return overview(cluster, chosen)
    made = load_schedule(given) if isinstance(given, (str, Path)) else given
    return explained(cluster, str(name), chosen, made)


@with_keywords(StepKeywords)
def compare(
    snapshot: Snapshot | str | Path, *, within_s: int = 60, **options: Unpack[StepKeywords]
) -> Comparison:
    """Compare the auction with first-fit by priority and with Slurm's own plan.

    Both get the same information: with ``reserve`` first-fit, too, keeps nodes for the first blocked jobs.

    Args:
        snapshot: the cluster and its queue, or a snapshot file.
        within_s: counts the jobs that Slurm's plan starts within this many seconds.
        options: as ``schedule`` takes them.

    Raises:
        OptionError: an option's value cannot be used.

    Examples:
        >>> import aucsched
        >>> wide = aucsched.Job(id="a", priority=3, request=aucsched.Request(cores=5))
        >>> others = [aucsched.Job(id=name, priority=2, request=aucsched.Request(cores=4)) for name in "bc"]
        >>> snapshot = aucsched.Snapshot(nodes=[aucsched.Node(name="n", cores=8)], jobs=[wide, *others])
        >>> found = compare(snapshot, reserve=0)
        >>> found.auction.priority, found.first_fit.priority
        (Fraction(4, 1), Fraction(3, 1))
    """
    chosen, cluster = options_of(options, "compare"), snapshot_of(snapshot)
    within = of_type("within_s", within_s, int)
    result = run_step(cluster, chosen)
    baseline = first_fit_by_priority(cluster, chosen.window, chosen.reservations)
    return compared(cluster, result, baseline, within)
