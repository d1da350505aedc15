"""What the decision function works on: running applications as columns, and the rules it follows.

Everything in this file and harvesting.py is plain Python over arrays that numba
compiles as it stands: the simulator plays a million jobs with the functions by which a live
scheduler decides. An entry of a column is one application; entries from 0 to the number that run
are in use, in order of their starts.
"""

from typing import Any, NamedTuple

import numpy as np

from ...cluster.kernels.harness import Floats, Ints, kernel

#: An admission policy without a limit, and a job that may be harvested without end.
NO_LIMIT = 2**62

#: Places of a tally.
ATTEMPTS, SUCCESSES, EVENTS, RESIZES, LOGGED, TALLIED = 0, 1, 2, 3, 4, 5


class Active(NamedTuple):
    """The running applications (AA).

    Attributes:
        job: which one.
        held: processors.
        least, ideal: the fewest it runs on, and the most it can use.
        harvests: how often it was harvested.
        start: of its run, in seconds.
        left: work left at ``since``, as seconds on the ideal processors.
        since: when ``left`` was true; later than now while it adapts.
        end: when it ends as it runs now.
        floor: scratch: down to which count it may be harvested in this decision.
        taken: scratch: what a harvest takes from it.
        order: scratch: entries in the order in which they give or get.
        before: scratch: processors before the decision, 0 for one that starts.
    """

    job: Ints
    held: Ints
    least: Ints
    ideal: Ints
    harvests: Ints
    start: Floats
    left: Floats
    since: Floats
    end: Floats
    floor: Ints
    taken: Ints
    order: Ints
    before: Ints


class JobColumns(NamedTuple):
    """Applications as they are submitted, in order of submission.

    Attributes:
        submit: in seconds.
        run: seconds on the ideal processors.
        least, ideal: processors.
        data: bytes that an adaptation moves, times the processors that hold them; below 0: free.
    """

    submit: Floats
    run: Floats
    least: Ints
    ideal: Ints
    data: Floats


class PolicyRules(NamedTuple):
    """The policy components and the execution model by number (names: malleable_policies.py).

    Attributes:
        admission: M of achieve_mp, NO_LIMIT for none.
        harvest, distribution, model: see malleable_policies.py.
        max_harvests: an application harvested so often gives no more (control).
        protected_s: one that has run for less gives nothing (control).
        weighs: 1: harvest only where the wait it saves is above the delay it causes (control).
    """

    admission: int
    harvest: int
    distribution: int
    model: int
    max_harvests: int
    protected_s: float
    weighs: int


class Context(NamedTuple):
    """What every decision of a run is made with.

    Attributes:
        jobs: all applications; those that wait stand in order of arrival.
        rules: the policy.
        tally: counts of harvests asked for and had, of victims and of changes (ATTEMPTS to LOGGED).
    """

    jobs: JobColumns
    rules: PolicyRules
    tally: Ints


def empty_active(most: int) -> Active:
    """Return columns for so many applications; no more can run at once than processors."""
    times = {"start", "left", "since", "end"}
    kinds: tuple[Any, ...] = tuple(np.float64 if name in times else np.int64 for name in Active._fields)
    return Active(*(np.zeros(most, dtype=kind) for kind in kinds))


# Run times on fewer processors than the ideal, and how work goes on (Weissman 4.3).

LINEAR, PARABOLIC = 0, 1
#: The names of these, in their order: how run times follow from processors.
EXECUTION_MODELS = ("linear", "parabolic")

#: Of shipping data on the paper's cluster: 1 + 0.00009 · bytes seconds (4.1).
LATENCY_S, SECONDS_PER_BYTE = 1.0, 0.00009


@kernel
def speed(model: int, count: int, ideal: int) -> float:
    """Return the work done in a second on ``count`` processors, in seconds on the ideal ones.

    Linear: exec_time = P_ideal · RT_ideal / P. Parabolic: exec_time = a / P + b · P, where
    a = P_ideal · RT_ideal / 2 and b = RT_ideal / (2 · P_ideal): at least RT_ideal, at P_ideal.
    """
    share = count / ideal
    if model == LINEAR:
        return share
    return 2.0 * share / (1.0 + share * share)


@kernel
def overhead_s(data: float, count: int) -> float:
    """Return the seconds that an adaptation suspends an application of ``count`` processors."""
    if data < 0.0:
        return 0.0
    return LATENCY_S + SECONDS_PER_BYTE * data / count


@kernel
def work_left(active: Active, place: int, now: float, model: int) -> float:
    """Return an application's work left now, as seconds on the ideal processors."""
    passed = now - active.since[place]
    if passed <= 0.0:
        return float(active.left[place])
    # A count that this decision changed has not run yet: the work was done on the count before it.
    count = active.before[place] if active.before[place] > 0 else active.held[place]
    return float(max(0.0, active.left[place] - passed * speed(model, count, active.ideal[place])))


@kernel
def begin(active: Active, place: int, run: float, now: float, model: int) -> None:
    """Let an application's work begin on the processors that it holds."""
    active.start[place] = now
    active.since[place] = now
    active.left[place] = run
    active.end[place] = now + run / speed(model, active.held[place], active.ideal[place])


@kernel
def resize(active: Active, place: int, data: float, now: float, model: int) -> None:
    """Let an application go on with its new count, after the seconds that the adaptation takes."""
    before = active.before[place]
    active.left[place] = work_left(active, place, now, model)
    resumed = max(now, active.since[place]) + overhead_s(data, before)
    active.since[place] = resumed
    pace = speed(model, active.held[place], active.ideal[place])
    active.end[place] = resumed + active.left[place] / pace
