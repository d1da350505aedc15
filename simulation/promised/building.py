"""The state of an empty machine, before anybody has come."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from .promise_state import (
    CLOCKS,
    COPY_FREE,
    COUNTED,
    FREE,
    REMEMBERED,
    Column,
    Copy,
    PromisedJobs,
    PromisedMachine,
    PromisedState,
    RunTimeShares,
    Scratch,
)


def empty_state(
    *,
    processors: int,
    submit: Sequence[float],
    size: Sequence[int],
    estimate: Sequence[float],
    user: Sequence[int],
    is_compiled: bool,
) -> PromisedState:
    """Return the state of an empty machine, as arrays or as lists.

    Args:
        processors: of the machine.
        submit: by job number, in seconds; the other columns as in ``PromisedJobs``.
        size: processors.
        estimate: in seconds.
        user: whose; -1: nobody's.
        is_compiled: whether compiled code reads it, which wants arrays.
    """
    jobs = len(submit)
    running = min(jobs, processors) + 1

    def ints(count: int, value: int = 0) -> Column:
        return np.full(count, value, np.int64) if is_compiled else [value] * count

    def floats(count: int, value: float = 0.0) -> Column:
        return np.full(count, value) if is_compiled else [value] * count

    def column(values: Sequence[float], kind: type) -> Column:
        return np.array(values, np.float64 if kind is float else np.int64) if is_compiled else list(values)

    users = {name: place for place, name in enumerate(sorted(set(user) - {-1}))}
    counts = ints(COUNTED)
    counts[FREE] = counts[COPY_FREE] = processors
    return PromisedState(
        jobs=PromisedJobs(
            submit=column(submit, float),
            size=column(size, int),
            estimate=column(estimate, float),
            start=floats(jobs, -inf),
            run=floats(jobs, -1.0),
            promise=floats(jobs, inf),
            due=floats(jobs, inf),
            rank=column(range(jobs), int),
            user=column([users.get(name, -1) for name in user], int),
        ),
        machine=PromisedMachine(
            counts=counts,
            waiting=ints(jobs + 1),
            planned=floats(jobs + 1),
            gone=ints(jobs + 1),
            end=floats(running),
            size=ints(running),
            job=ints(running),
        ),
        copy=Copy(
            clock=floats(CLOCKS),
            start=floats(jobs),
            waiting=ints(jobs + 1),
            end=floats(running),
            job=ints(running),
        ),
        shares=RunTimeShares(last=floats(len(users) * REMEMBERED), count=ints(len(users))),
        scratch=Scratch(
            end=floats(running + jobs + 1),
            size=ints(running + jobs + 1),
            key=floats(jobs + 1),
            place=ints(jobs + 1),
            long=floats(jobs + 1),
            wide=ints(jobs + 1),
            behind=ints(jobs + 1),
        ),
    )
