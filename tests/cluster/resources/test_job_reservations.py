"""Reservations: what a job that starts takes of the room beside them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from aucsched import Job, Request
from aucsched.cluster.resources.capacity import Capacity
from aucsched.cluster.resources.job_reservations import Guard


def test_a_guard_lessens_where_a_job_that_outlasts_it_stands() -> None:
    job = Job(id="g", priority=1, request=Request(cores=1), time_limit_s=10)
    room = Capacity(
        cores=np.array([4, 5, 6]), memory=np.zeros(3, np.int64), gres={"gpu": np.array([1, 2, 3])}
    )
    guard = Guard(job=job, time=50.0, now=0.0, nodes=np.array([2, 4, 6]), room=room)
    held = Capacity(cores=np.array([1, 2]), memory=np.zeros(2, np.int64), gres={"gpu": np.array([0, 2])})
    guard.take(replace(job, id="short", time_limit_s=50), np.array([4, 5]), held)
    assert room.cores.tolist() == [4, 5, 6]
    guard.take(replace(job, id="long", time_limit_s=51), np.array([5, 6]), held)
    assert room.cores.tolist() == [4, 5, 4]
    assert room.gres["gpu"].tolist() == [1, 2, 1]
