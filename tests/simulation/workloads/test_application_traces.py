"""Traces of applications: table 1, arrivals by beta and by hour, what a fit recovers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from aucsched.cluster.errors import InputError, OptionError
from aucsched.formats.swf import SwfField, SwfLog, parse_swf, swf_text
from aucsched.reports.curves import draw_workload
from aucsched.simulation.log_columns import workload_from_swf
from aucsched.simulation.malleable_run import moved_bytes
from aucsched.simulation.workloads.application_traces import (
    SDSC_SP2,
    fit,
    interarrival_s,
    model_of,
    system_trace,
    table_1,
    user_trace,
    weibull_of,
)


def test_arrivals_of_a_user_follow_beta() -> None:
    """Weissman: user-centric workload (4.1), table 1."""
    ge = table_1()["GE"]
    # Means: 6 775.5 s on 11 processors; 64 / 11 run side by side.
    assert interarrival_s(ge, 64, 1.0) == pytest.approx(6775.5 * 11 / 64)
    made = user_trace("GE", beta=0.5, jobs=20_000, seed=3)
    assert np.diff(made.column(SwfField.SUBMIT)).mean() == pytest.approx(6775.5 * 11 / 64 / 2, rel=0.03)
    _, counts = np.unique(made.column(SwfField.EXECUTABLE), return_counts=True)
    assert counts / 20_000 == pytest.approx([0.25] * 4, abs=0.02)
    assert set(made.column(SwfField.RUN)) == {177, 768, 3857, 22_300}
    assert 22_300 not in user_trace("GE", ge_p4_s=3857, jobs=99).column(SwfField.RUN)


def test_used_memory_is_what_an_adaptation_moves() -> None:
    made = user_trace("STEN", jobs=50, seed=1)
    log = parse_swf(swf_text(made).encode())
    jobs = workload_from_swf(log)
    at_ideal = dict(zip(jobs.requests.size, moved_bytes(jobs, log).tolist(), strict=True))
    assert at_ideal == {4: 2 * 128**2 * 8, 8: 2 * 256**2 * 8, 10: 2 * 512**2 * 8, 14: 2 * 1024**2 * 8}
    cl = user_trace("CL", jobs=50, block_bytes=10)
    data = cl.column(SwfField.MEMORY) * 1024 * cl.column(SwfField.REQUESTED_PROCESSORS)
    assert set(np.round(data, 6)) == {500, 1000, 2000, 4000}


def test_a_system_trace_has_the_load_the_sizes_and_the_hours_of_its_model() -> None:
    """Weissman: system-centric workload (4.2), figures 5 to 8."""
    made = system_trace(SDSC_SP2, jobs=100_000, load=0.6, seed=5)
    size, run = made.column(SwfField.REQUESTED_PROCESSORS), made.column(SwfField.RUN)
    submit = made.column(SwfField.SUBMIT)
    assert (np.diff(submit) >= 0).all()
    assert (size * run).sum() / (128 * submit[-1]) == pytest.approx(0.6, rel=0.05)
    assert size.max() == 64
    hours = np.bincount((submit // 3600 % 24).astype(int), minlength=24) / len(submit) * 24
    assert hours == pytest.approx(np.array(SDSC_SP2.hours), abs=0.1)
    again = fit(made, "again")
    assert again.shape == pytest.approx(SDSC_SP2.shape, rel=0.02)
    assert again.scale_s == pytest.approx(SDSC_SP2.scale_s, rel=0.03)
    expected = {size: share / 0.9948 for size, share in SDSC_SP2.sizes.items() if size <= 64}
    assert again.sizes == pytest.approx(expected, abs=0.01)
    assert again.hours == pytest.approx(np.array(SDSC_SP2.hours), abs=0.1)


def test_seeds_and_streams() -> None:
    one, two = system_trace(SDSC_SP2, jobs=50, seed=1), system_trace(SDSC_SP2, jobs=50, seed=1, load=0.3)
    assert one.column(SwfField.RUN).tolist() == two.column(SwfField.RUN).tolist()
    assert swf_text(one) == swf_text(system_trace(SDSC_SP2, jobs=50, seed=1))
    assert swf_text(one) != swf_text(system_trace(SDSC_SP2, jobs=50, seed=2))


@pytest.mark.parametrize(
    "zone", ["TimeZoneString: US/Eastern", "TimeZone: -14400", "TimeZoneString: nowhere", "TimeZone: x"]
)
def test_hours_are_local_and_odd_sizes_count_as_the_nearest_power(
    zone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = np.full((4, 18), -1.0)
    rows[:, SwfField.JOB] = np.arange(4)
    rows[:, SwfField.SUBMIT] = [0, 3600, 7200, 7300]
    rows[:, SwfField.RUN] = [5, 50, 500, 0]
    rows[:, SwfField.REQUESTED_PROCESSORS] = [3, 5, -1, 8]
    rows[:, SwfField.ALLOCATED_PROCESSORS] = [1, 1, 12, 8]
    # Noon in New York, 1 July 2026: 16:00 in UTC.
    log = SwfLog(comments=(" UnixStartTime: 1782921600", f" {zone}"), table=rows)
    model = fit(log, "x")
    assert model.sizes == {4: 0.6667, 16: 0.3333}
    hours = [12, 13, 14] if "-14" in zone or "US" in zone else [16, 17, 18]
    assert [hour for hour in range(24) if model.hours[hour]] == hours
    # The chart of a log reads its header alike.
    drawn: list[Any] = []
    monkeypatch.setattr("aucsched.reports.curves.save_figure", lambda figure, _: drawn.append(figure))
    draw_workload(workload_from_swf(log, processors=16), log, tmp_path / "log.svg")
    bars = drawn[0].axes[2].patches
    assert [hour for hour, bar in enumerate(bars) if bar.get_height()] == hours


def test_likelihood_is_largest_at_the_fit() -> None:
    values = np.random.default_rng(2).weibull(0.6, 4000) * 700
    shape, scale = weibull_of(values)

    def likelihood(k: float, s: float) -> float:
        return float((np.log(k / s) + (k - 1) * np.log(values / s) - (values / s) ** k).sum())

    best = likelihood(shape, scale)
    assert shape == pytest.approx(0.6, rel=0.05)
    for k, s in ((1.01, 1), (0.99, 1), (1, 1.01), (1, 0.99)):
        assert likelihood(shape * k, scale * s) < best


def test_a_model_travels_as_json() -> None:
    assert model_of(json.dumps(SDSC_SP2.to_document()).encode()) == SDSC_SP2
    document = SDSC_SP2.to_document()
    for name, value in (("hours", [1]), ("sizes", {}), ("shape", 0), ("scale_s", "x"), ("format", "y")):
        with pytest.raises(InputError):
            model_of(json.dumps({**document, name: value}).encode())


def test_refusals() -> None:
    with pytest.raises(OptionError, match="no size up to 1"):
        system_trace(msgspec.structs.replace(SDSC_SP2, sizes={8: 1.0}), processors=2)
    with pytest.raises(OptionError, match="above 20 processors"):
        user_trace("CL", processors=20)
    with pytest.raises(InputError, match="two different run times"):
        fit(SwfLog(comments=(), table=np.full((3, 18), 1.0)), "x")


def test_models_and_headers_that_are_out_of_range_are_refused() -> None:
    for shape in (1e-3, float("nan"), float("inf")):
        with pytest.raises(InputError):
            model_of(json.dumps({**SDSC_SP2.to_document(), "shape": shape}).encode())
    rows = np.full((2, 18), 1.0)
    rows[1, SwfField.RUN] = 2
    with pytest.raises(InputError, match="is not a time"):
        fit(SwfLog(comments=(f" UnixStartTime: {10**17}",), table=rows), "x")
