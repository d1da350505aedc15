"""Forecasts beside a live Slurm: one for each new job, and what came of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from support.build import snapshot

from aucsched.cluster.snapshot import Snapshot
from aucsched.slurm.answers.running_jobs import End, SlurmStart
from aucsched.slurm.live.live_forecasts import LiveForecasts
from aucsched.slurm.live.loop_metrics import Metrics
from aucsched.slurm.live.shadow_log import ShadowPass, Waiting, encode
from aucsched.slurm.live.shadow_report import ShadowReport

NOW = 1_795_167_000.0


def busy(now: float = NOW) -> Snapshot:
    """A node that is held for an hour, and two jobs that wait; one of them is held by hand."""
    made = snapshot(
        [{"name": "a", "cores": 8, "free_cores": 0}],
        [{"cores": 4, "time_limit_s": 600, "user": "ann"}, {"cores": 1, "hold": "JobHeldUser"}],
        running=[{"id": "R", "nodes": {"a": {"cores": 8}}, "end_time": "2026-11-20T10:30:00Z"}],
    )
    return replace(made, time=now)


def started(job: str, start: float, end: float | None = None) -> tuple[SlurmStart, End | None]:
    """A job of Slurm's list."""
    submit = start - 60
    begun = SlurmStart(job=job, submit=submit, start=start, nodes="a", cores=8, limit_s=3600, user="ann")
    return begun, None if end is None else End(job=job, start=start, end=end, state="COMPLETED")


def test_a_job_is_forecast_once_and_its_start_is_learnt() -> None:
    forecasts, figures = LiveForecasts(), Metrics(loop="shadow")
    said = forecasts.look(busy(), [started("R", NOW - 900)])
    assert list(said) == ["J1"]
    low, middle, high = said["J1"]
    assert NOW <= low <= middle <= high
    assert forecasts.look(busy(NOW + 10), [started("R", NOW - 900)]) == {}
    forecasts.tell(figures)
    assert "aucsched_forecast_miss" not in _samples(figures)
    gone = replace(busy(NOW + 500), jobs=())
    forecasts.look(gone, [started("R", NOW - 900, NOW + 400), started("J1", middle)])
    forecasts.tell(figures)
    assert 'aucsched_forecasts{loop="shadow"} 1' in _samples(figures)
    assert 'aucsched_forecast_coverage_ratio{loop="shadow"} 1' in _samples(figures)


def test_the_forecast_of_a_cancelled_job_is_dropped() -> None:
    forecasts, figures = LiveForecasts(), Metrics(loop="shadow")
    running = started("R", NOW - 900)
    assert list(forecasts.look(busy(), [running])) == ["J1"]
    assert forecasts.look(replace(busy(NOW + 10), jobs=()), [running]) == {}
    # Another job has its number later.
    forecasts.look(replace(busy(NOW + 9000), jobs=()), [running, started("J1", NOW + 8000)])
    forecasts.tell(figures)
    assert 'aucsched_forecasts{loop="shadow"} 0' in _samples(figures)


def _samples(figures: Metrics) -> str:
    return "\n".join(line for line in figures.text().splitlines() if not line.startswith("#"))


def entry(time: float, **members: Any) -> ShadowPass:
    """A pass of the log."""
    return ShadowPass(
        time=time, interval_s=60, read_s=0, decide_s=0, cores=8, used=8, waiting=1, running=1, **members
    )


def test_the_report_sets_forecasts_beside_slurm_s_plans() -> None:
    seen = Waiting(job="7", submit=NOW, cores=4, nodes=1)
    said = (NOW + 60, NOW + 600, NOW + 1200)
    first = entry(NOW, seen=[seen], planned={"7": NOW + 3600}, forecast={"7": said})
    start = SlurmStart(job="7", submit=NOW, start=NOW + 700, nodes="a", cores=4)
    report = ShadowReport(entries=[first, entry(NOW + 720, started=[start])])
    rows = {row["figure"]: row for row in report.figures}
    both = rows["median miss of Slurm's first estimate, of P50 (s)"]
    assert (both["slurm"], both["auction"]) == (2900, 100)
    assert rows["starts from P10 to P90 (share)"]["auction"] == 1
    assert report.columns["p50"] == [NOW + 600]
    assert b'"forecast"' in encode(first)


def test_a_log_without_forecasts_is_as_it_was() -> None:
    report = ShadowReport(entries=[entry(NOW)])
    assert "p50" not in report.columns
    assert not [row for row in report.figures if "P50" in row["figure"]]
    assert b"forecast" not in encode(entry(NOW))
