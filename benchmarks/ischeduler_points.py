"""The simulations of the iScheduler benchmark, by the name of their row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from aucsched.negotiation.malleable.malleable_policies import BASELINES, IschedulerPolicy

#: What is kept of a point: means over its traces, times in seconds.
COLUMNS = ("wait", "execution", "total", "success", "events", "no_worse", "per_hour", "longest_wait")
LOADS = (0.5, 0.6, 0.7, 0.8, 0.9)
SHARES = (0.5, 0.4, 0.3, 0.2, 0.1)
LIMITS = (3, 6, 9, 12, None)
BETAS = (0.25, 0.5, 0.75, 1.0)
TABLE_3_SHARES = (0.5, 0.3, 0.1)
PAPERS = {
    "Even-H-FR": ("even", "favor_running"),
    "Even-H-FQ": ("even", "favor_queued"),
    "Low-Imp-FR": ("low_impact", "favor_running"),
    "Low-Imp-FQ": ("low_impact", "favor_queued"),
}
#: Beside the paper's four: the policies that it names and does not measure, and ours.
OTHERS = {
    "Never-FR": ("never", "favor_running"),
    "Fair-FR": ("fair", "favor_running"),
    "Long-FR": ("long", "favor_running"),
    "Short-FR": ("short", "favor_running"),
    "Priced-FR": ("priced", "favor_running"),
    "Priced-trade": ("priced", "trade"),
}


class Point(NamedTuple):
    """One simulation of each trace of a kind.

    Attributes:
        kind: ``system``, or a template of user-centric traces.
        load: offered load, or beta.
        model: of execution.
        policy: a baseline's name, or one of PAPERS and OTHERS.
        limit: M, None without.
        share: min_%_of_ideal.
    """

    kind: str
    load: float
    model: str
    policy: str
    limit: int | None
    share: float


def policy_of(point: Point) -> IschedulerPolicy:
    """Return the policy of a point."""
    if point.policy in BASELINES:
        return BASELINES[point.policy]
    harvest, distribution = {**PAPERS, **OTHERS}[point.policy]
    return IschedulerPolicy(admission=point.limit, harvest=harvest, distribution=distribution)


def system_points(load: float, model: str) -> Iterator[Point]:
    """Return the paper's grid at one load: four policies by M and min_%, and baselines."""
    for share in SHARES:
        yield Point("system", load, model, "moldable", None, share)
        for name in PAPERS:
            for limit in LIMITS:
                yield Point("system", load, model, name, limit, share)
    yield from _rigid("system", load, model)


def _rigid(kind: str, load: float, model: str) -> Iterator[Point]:
    for name in ("ideal-only", "ideal-backfill"):
        yield Point(kind, load, model, name, None, 1.0)


def sweep_points() -> Iterator[Point]:
    """Return what the sweep of loads compares at min 30 % without a limit on M, and all min_% for three."""
    for load in LOADS:
        for model in ("linear", "parabolic"):
            yield from _rigid("system", load, model)
            for name in ("moldable", *PAPERS, *OTHERS):
                yield Point("system", load, model, name, None, 0.3)
        for share in SHARES:
            for name in ("moldable", "Low-Imp-FR", "Even-H-FQ"):
                yield Point("system", load, "linear", name, None, share)


def user_points(kind: str) -> Iterator[Point]:
    """Return table 3's, and figures 15's and 16's."""
    for beta in BETAS:
        yield from _rigid(kind, beta, "parabolic")
        for share in TABLE_3_SHARES:
            for name in ("moldable", "Low-Imp-FR", "Priced-FR", "Priced-trade"):
                yield Point(kind, beta, "parabolic", name, None, share)


#: A point's mean of one of COLUMNS.
Reader = Callable[[Point, str], float]
