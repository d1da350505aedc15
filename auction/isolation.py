"""The job that makes a step fail: it is set aside, so that the others are scheduled."""

from __future__ import annotations

from dataclasses import replace

from ..bidgen.table import allocation_of_bid
from ..cluster.errors import AwardError, InputError, OptionError, SolverError
from ..cluster.resources.allocation import resources_of
from ..cluster.resources.demand import Demand
from ..cluster.schedule import Refusal
from .attempt import attempt
from .check import AwardChecker
from .options import StepOptions
from .queue import set_aside
from .state import StepState
from .strategies import Cluster

#: Errors that no single job causes.
ENDS_THE_STEP = (InputError, OptionError, SolverError)


def failing_job(
    state: StepState,
    window: tuple[Demand, ...],
    options: StepOptions,
    error: Exception,
    checker: AwardChecker,
) -> Refusal | None:
    """Return the job that made a step fail, set aside; None when no job alone does.

    An award that breaks a rule names its job. Otherwise each job of the window bids alone: the first that
    fails, or whose bid the check refuses, it is.

    Args:
        state: the cluster.
        window: the jobs that took part.
        options: of the step.
        error: what was raised.
        checker: of single awards.
    """
    if isinstance(error, AwardError) and error.job in {demand.job.id for demand in window}:
        return set_aside(str(error.job), error)
    alone = replace(options, export="", work_limit=None if options.is_greedy else 0)
    for demand in window:
        try:
            _try_alone(state, demand, alone, checker)
        except ENDS_THE_STEP:
            raise
        except Exception as found:  # noqa: BLE001 - whatever it is, it is this job's
            return set_aside(demand.job.id, found)
    return None


def _try_alone(state: StepState, demand: Demand, options: StepOptions, checker: AwardChecker) -> None:
    cluster = Cluster(columns=state.columns, topology=state.topology)
    found = attempt((replace(demand, index=0),), cluster, options, size=1, deadline=None)
    for bid in found.chosen.tolist():
        held = resources_of(demand, allocation_of_bid(found.table, bid), state.columns.names)
        checker.check(demand.job, held)
