"""One call that plays a log's jobs under a policy by its name: ours on the fast kernel, others checked."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..log_columns import Workload
from ..own_policy import is_own
from ..result import Result
from ..simulate_options import RENAMED, PolicyOptions
from ..stepping import StoppedRun, refused_by, stopped_by
from .counts import simulate_checked, simulate_counts
from .policies import POLICIES, make_policy


def play_log(
    jobs: Workload,
    policy: str,
    *,
    order: str = "fcfs",
    options: PolicyOptions | None = None,
    checked: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Result:
    """Play a log's jobs.

    Args:
        jobs: and the machine's size.
        policy: a name in POLICIES, or of somebody's own policy, which is always checked.
        order: of the queue.
        options: the policy's parameters.
        checked: check every start against every rule; the results are the same.
        progress: called now and then with the number of jobs that have arrived.

    Raises:
        AwardError: a policy that is checked broke a rule.
        OptionError: no such policy or order.
        PolicyError: somebody's own policy raised.
    """
    policy = RENAMED.get(policy, policy)
    is_checked = checked or (policy not in POLICIES and is_own(policy))
    kernel = simulate_checked if is_checked else simulate_counts
    stopped: list[StoppedRun] = []
    began = time.perf_counter()
    made = make_policy(policy, jobs.requests, order=order, options=options)
    starts = kernel(jobs, made, progress, stopped)
    return Result(
        workload=jobs,
        policy=policy,
        order=order,
        starts=tuple(starts),
        seconds=time.perf_counter() - began,
        stopped=None if stopped_by(made) is None else tuple(stopped),
        refused=None if (refused := refused_by(made)) is None else tuple(refused),
    )
