"""Run times on fewer processors than the ideal, and how work goes on (Weissman 4.3)."""

from __future__ import annotations

from ...cluster.kernels.harness import kernel
from .application_columns import Active

LINEAR, PARABOLIC = 0, 1

#: Of shipping data on the paper's cluster: 1 + 0.00009 · bytes seconds (4.1).
LATENCY_S, SECONDS_PER_BYTE = 1.0, 0.00009


@kernel
def speed(model: int, count: int, ideal: int) -> float:
    """Return the work done in a second on ``count`` processors, in seconds on the ideal ones.

    Linear: exec_time = P_ideal · RT_ideal / P. Parabolic: exec_time = a / P + b · P with
    a = P_ideal · RT_ideal / 2 and b = RT_ideal / (2 · P_ideal), whose least value is RT_ideal at P_ideal.
    """
    share = count / ideal
    if model == LINEAR:
        return share
    return 2.0 * share / (1.0 + share * share)


@kernel
def overhead_s(data: float, count: int) -> float:
    """Return the seconds for which an adaptation suspends an application that holds ``count`` processors."""
    if data < 0.0:
        return 0.0
    return LATENCY_S + SECONDS_PER_BYTE * data / count


@kernel
def work_left(active: Active, place: int, count: int, now: float, model: int) -> float:
    """Return an application's work left now, as seconds on the ideal processors; it has run on ``count``."""
    passed = now - active.since[place]
    if passed <= 0.0:
        return float(active.left[place])
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
    active.left[place] = work_left(active, place, before, now, model)
    resumed = max(now, active.since[place]) + overhead_s(data, before)
    active.since[place] = resumed
    pace = speed(model, active.held[place], active.ideal[place])
    active.end[place] = resumed + active.left[place] / pace
