"""One auction looked at from Python: ``explain`` and ``compare``."""

from __future__ import annotations

from typing import Any, overload

from ..auction.baseline import first_fit_by_priority
from ..auction.explain.comparison import Comparison
from ..auction.explain.comparison import compare as compared
from ..auction.explain.explain import Explanation
from ..auction.explain.explain import explain as explained
from ..auction.explain.overview import Overview, overview
from ..auction.options import StepOptions, options_with_preset
from ..auction.step import run_step
from ..cluster.errors import OptionError
from ..cluster.schedule import Schedule
from ..cluster.snapshot import Snapshot


@overload
def explain(
    snapshot: Snapshot, job: str, *, award: Schedule | None = None, **options: Any
) -> Explanation: ...


@overload
def explain(snapshot: Snapshot, job: None = None, **options: Any) -> Overview: ...


def explain(
    snapshot: Snapshot, job: str | None = None, *, award: Schedule | None = None, **options: Any
) -> Explanation | Overview:
    """Run the auction and explain why a job starts or waits; without a job, return the prices of nodes.

    Args:
        snapshot: the cluster and its queue.
        job: id of a pending job; None: the prices of the whole auction.
        award: an earlier schedule of the snapshot to explain instead.
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
    checked = _checked(options)
    if job is None:
        if award is not None:
            raise OptionError("award: it explains what became of one job: name it")
        return overview(snapshot, checked)
    return explained(snapshot, job, checked, award)


def compare(snapshot: Snapshot, *, within_s: int = 60, **options: Any) -> Comparison:
    """Compare the auction with first-fit by priority and with Slurm's own plan.

    Both get the same information: with ``reserve`` first-fit, too, keeps nodes for the first blocked jobs.

    Args:
        snapshot: the cluster and its queue.
        within_s: counts the jobs that Slurm's plan starts within this many seconds.
        options: as ``schedule`` takes them.

    Raises:
        OptionError: an option's value cannot be used.

    Examples:
        >>> import aucsched
        >>> wide = aucsched.Job(id="a", priority=3, request=aucsched.Request(cores=5))
        >>> others = [aucsched.Job(id=name, priority=2, request=aucsched.Request(cores=4)) for name in "bc"]
        >>> snapshot = aucsched.Snapshot(nodes=[aucsched.Node(name="n", cores=8)], jobs=[wide, *others])
        >>> found = compare(snapshot)
        >>> found.auction.priority, found.first_fit.priority
        (Fraction(4, 1), Fraction(3, 1))
    """
    checked = _checked(options)
    result = run_step(snapshot, checked)
    baseline = first_fit_by_priority(snapshot, checked.window, checked.reserve)
    return compared(snapshot, result, baseline, within_s)


def _checked(options: dict[str, Any]) -> StepOptions:
    preset = options.pop("preset", None)
    return options_with_preset(preset, {name: value for name, value in options.items() if value is not None})
