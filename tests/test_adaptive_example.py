"""The adaptive API on something that runs: Prophet's costs, Jacobi in processes, a live scheduler."""

from __future__ import annotations

import os
import signal
import time
from threading import Event

import numpy as np
import pytest
from adaptive.jacobi import JacobiApplication, serial_jacobi
from adaptive.live import LiveScheduler
from adaptive.prophet import Callbacks, Platform, Prophet, Sample, fitted
from adaptive.protocol import Adaptive, Method

from aucsched.cluster.errors import InputError, OptionError
from aucsched.negotiation.malleable.malleable_policies import IschedulerPolicy

CALLBACKS = Callbacks(
    comm_topology="1-D",
    comm_complexity=1000,
    num_des=10_000,
    comp_complexity=5,
    iters=100,
    min_requirements=2,
    data_bytes=80_000,
)
#: 50 000 instructions of 2 µs: 0.1 s on one processor; messages cost 1 ms a processor, and 4 ms.
PLATFORM = Platform(lat_s=0.004, bw_s=1e-6, arch_cost_us=2.0, adapt_s=0.5)
PROPHET = Prophet(callbacks=CALLBACKS, platform=PLATFORM)


def test_cost_functions_and_the_knee() -> None:
    assert PROPHET.comp_s(4) == pytest.approx(0.1 / 4)
    assert PROPHET.comm_s(4) == pytest.approx(0.004 + 0.004)
    assert PROPHET.exec_s(4) == pytest.approx(0.033)
    # 0.1 / p + 0.001 p is least at 10.
    assert PROPHET.resources(64).ideal == 10
    assert PROPHET.resources(6).ideal == 6
    assert PROPHET.resources(1).least == 2
    slow = Prophet(callbacks=CALLBACKS, platform=Platform(lat_s=0, bw_s=0, arch_cost_us=2, cpu_avail=0.5))
    assert slow.comp_s(4) == pytest.approx(0.05)


def test_cost_and_benefit_of_an_adaptation() -> None:
    found = PROPHET.cost_benefit(4, 5, 100)
    # 20 000 bytes from each of four, over a shared medium, and half a second.
    assert found.cost_s == pytest.approx(0.5 + 0.004 + 4 * 20_000e-6)
    assert found.benefit_s == pytest.approx(100 * (0.033 - (0.02 + 0.009)))
    assert PROPHET.cost_benefit(4, 3, 100).benefit_s < 0


def test_a_platform_is_found_again_from_its_measurements() -> None:
    samples = [
        Sample(processors=count, comp_s=PROPHET.comp_s(count), comm_s=PROPHET.comm_s(count))
        for count in (2, 3, 5, 8)
    ]
    found = fitted(CALLBACKS, samples, [0.4, 0.6])
    assert (found.arch_cost_us, found.bw_s, found.lat_s) == pytest.approx((2.0, 1e-6, 0.004))
    assert found.adapt_s == 0.5
    alone = fitted(CALLBACKS, samples[:1])
    assert alone.bw_s == 0.0
    assert alone.lat_s == pytest.approx(PROPHET.comm_s(2))
    with pytest.raises(InputError, match="no measured"):
        fitted(CALLBACKS, [])
    with pytest.raises(InputError, match="none of 1-D"):
        Callbacks(comm_topology="star", comm_complexity=1, num_des=1, comp_complexity=1, iters=1)


def test_it_grows_shrinks_migrates_and_senses_itself() -> None:
    """Nagendra: invasive MPI (3.3.1), its process manager (4.1.3).

    Weissman: application model, callbacks, figure 4 (3.0).
    """
    turns = Event()

    def pace(app: JacobiApplication) -> None:
        if not turns.is_set() and app.iteration > 20:
            time.sleep(0.01)

    app = JacobiApplication("j", size=40, iterations=2000, most=3, ideal=3, after=pace)
    adaptive: Adaptive = app
    assert adaptive.exec_time(1, 5).measured_s is None
    adaptive.start(1)
    adaptive.add_processors(2)
    assert (app.processors, len(set(app.pids))) == (3, 3)
    before = app.pids
    adaptive.migrate_processor(1, 1)
    assert [one == other for one, other in zip(before, app.pids, strict=True)] == [True, False, True]
    adaptive.remove_processors(2)
    assert app.processors == 1
    with pytest.raises(OptionError, match="cannot run on 0"):
        adaptive.remove_processors(1)
    times = [call(1, 10) for call in (app.exec_time, app.exec_time_comp, app.exec_time_comm)]
    assert times[0].measured_s == pytest.approx((times[1].measured_s or 0) + (times[2].measured_s or 0))
    assert times[0].predicted_s == pytest.approx((times[1].predicted_s or 0) + (times[2].predicted_s or 0))
    assert adaptive.actuating_cost_benefit(Method.ADD, 1).cost_s > 0
    assert adaptive.actuating_cost_benefit(Method.MIGRATE, 1).benefit_s == 0
    turns.set()
    assert adaptive.wait(120)
    assert np.array_equal(app.result(), serial_jacobi(40, 2000))
    # Who has ended is left alone.
    adaptive.add_processors(1)
    assert app.processors == 0


def test_a_killed_worker_costs_its_iteration_not_the_run() -> None:
    def kill(app: JacobiApplication) -> None:
        if app.iteration in {20, 40}:
            os.kill(app.pids[app.iteration // 40], signal.SIGKILL)

    app = JacobiApplication("j", size=64, iterations=60, most=2, after=kill)
    app.start(2)
    assert app.wait(120)
    assert (app.iteration, app.redone) == (60, 2)
    assert np.array_equal(app.result(), serial_jacobi(64, 60))


@pytest.mark.parametrize("distribution", ["favor_running", "favor_queued"])
def test_three_at_once_grow_and_shrink_and_are_right(distribution: str) -> None:
    third_has_ended = Event()

    def first_paces(_: JacobiApplication) -> None:
        # The first is there until the third has come and gone.
        if not third_has_ended.is_set():
            time.sleep(0.02)

    def third_says(app: JacobiApplication) -> None:
        if app.iterations_left == 0:
            third_has_ended.set()

    first = JacobiApplication("a", size=60, iterations=6000, most=2, ideal=2, after=first_paces)
    second = JacobiApplication("b", size=80, iterations=50, most=2, ideal=2)
    third = JacobiApplication("c", size=100, iterations=40, most=2, ideal=2, after=third_says)
    scheduler = LiveScheduler(2, IschedulerPolicy(harvest="even", distribution=distribution))
    scheduler.run([(0.0, first), (0.0, second), (0.0, third)])
    for app, size, iterations in ((first, 60, 6000), (second, 80, 50), (third, 100, 40)):
        assert np.array_equal(app.result(), serial_jacobi(size, iterations))
    # a shrinks for b, c takes b's place, a grows when c has ended.
    assert [(change.name, change.processors) for change in scheduler.history] == [
        *(("a", 2), ("a", 1), ("b", 1)),
        *(("b", 0), ("c", 1), ("c", 0)),
        *(("a", 2), ("a", 0)),
    ]


def test_what_goes_wrong_in_an_application_reaches_who_runs_it() -> None:
    def fail(app: JacobiApplication) -> None:
        raise ZeroDivisionError(app.name)

    app = JacobiApplication("bad", size=20, iterations=5, most=1, after=fail)
    with pytest.raises(ZeroDivisionError, match="bad"):
        LiveScheduler(2, IschedulerPolicy()).run([(0.0, app)])
    assert app.processors == 0
