"""Run times as distributions: what is learnt, what is not known yet, and where nothing is known."""

from __future__ import annotations

import numpy as np
import pytest

from aucsched.simulation.run_times import (
    BINS,
    REMEMBERED,
    LastShares,
    RunTimes,
    bin_of,
    mean_share,
    remember_share,
)

HOUR = 3600.0


def quantiles(known: RunTimes, rows: object, elapsed_s: float = 0.0) -> list[float]:
    """P10, P50 and P90 of a job of an hour's limit."""
    return [known.quantile(rows, one, limit_s=HOUR, elapsed_s=elapsed_s) for one in (0.1, 0.5, 0.9)]


def test_without_history_the_distribution_is_wide_and_within_the_limit() -> None:
    known = RunTimes()
    low, middle, high = quantiles(known, known.rows(limit_s=HOUR, user="ann"))
    assert 1 <= low < middle < high <= HOUR
    assert high / low > 100


def test_a_user_s_jobs_sharpen_their_own_forecast_and_a_new_user_borrows() -> None:
    known = RunTimes()
    ann = known.rows(limit_s=HOUR, user="ann", cores=2)
    for _ in range(60):
        known.learn(ann, limit_s=HOUR, run_s=1800)
    low, middle, high = quantiles(known, ann)
    assert 1000 < low <= middle <= high < 3000
    bob = quantiles(known, known.rows(limit_s=HOUR, user="bob", cores=2))
    assert 900 < bob[1] < 3000
    assert bob[2] - bob[0] > high - low


def test_a_late_habit_outweighs_an_old_one() -> None:
    known = RunTimes()
    rows = known.rows(limit_s=HOUR, user="ann")
    for run in [60.0] * 100 + [HOUR] * 10:
        known.learn(rows, limit_s=HOUR, run_s=run)
    assert quantiles(known, rows)[1] == HOUR


def test_what_runs_already_runs_longer_than_it_has() -> None:
    known = RunTimes()
    rows = known.rows(limit_s=HOUR, user="ann")
    for _ in range(50):
        known.learn(rows, limit_s=HOUR, run_s=60)
    low, _, high = quantiles(known, rows, elapsed_s=1800)
    assert 1800 < low <= high <= HOUR
    assert quantiles(known, rows, elapsed_s=HOUR + 5) == [HOUR] * 3


@pytest.mark.parametrize("limit", [0.0, 1.0, 1e9])
def test_limits_of_every_length_give_times_within_them(limit: float) -> None:
    known = RunTimes()
    rows = known.rows(limit_s=limit, user=7)
    known.learn(rows, limit_s=limit, run_s=0.5)
    assert 0 <= known.quantile(rows, 0.5, limit_s=limit) <= max(limit, 1.0)


def test_jobs_without_users_are_one_user_s() -> None:
    known = RunTimes()
    rows = known.rows(limit_s=HOUR)
    assert (rows == known.rows(limit_s=HOUR)).all()
    assert (rows != known.rows(limit_s=HOUR, account="a")).sum() == 3
    known.learn(rows, limit_s=HOUR, run_s=HOUR)
    assert known.table.mass[rows[0], BINS] == 1.0


def test_a_regular_user_is_trusted_and_a_fickle_one_is_not() -> None:
    known = RunTimes()
    random = np.random.default_rng(3)
    ann, bob = (known.rows(limit_s=HOUR, user=user) for user in ("ann", "bob"))
    for _ in range(60):
        known.learn(ann, limit_s=HOUR, run_s=1800)
        known.learn(bob, limit_s=HOUR, run_s=float(HOUR ** random.random()))
    trust = known.table.trust
    assert trust[ann[2]] > trust[bob[2]]


def test_bins_cover_every_share() -> None:
    found = [bin_of(share) for share in np.linspace(0, 1.2, 500)]
    assert found[0] == 0
    assert found[-1] == BINS
    assert found == sorted(found)


def test_mean_shares_remember_the_last_jobs() -> None:
    shares = LastShares(last=[0.0] * 40, ended=[0, 0], mean=[1.0, 1.0])
    assert mean_share(shares, 1) == 1.0
    for place in range(30):
        remember_share(shares, 1, 0.0 if place < 10 else 0.5)
    assert mean_share(shares, 1) == 0.5
    assert mean_share(shares, 0) == mean_share(shares, -1) == 1.0


def test_the_last_jobs_of_a_user_tell_how_long_the_next_may_run() -> None:
    known = RunTimes()
    assert known.mean_share("ada") == 1.0
    for _ in range(5):
        known.remember("ada", 0.0)
    for rank in range(REMEMBERED):
        known.remember("ada", (rank + 1) / REMEMBERED)
    known.remember("", 0.25)
    known.remember(None, 0.25)
    # The first five are forgotten, and what nobody ran is nobody's.
    assert known.mean_share("ada") == pytest.approx((1 + 1 / REMEMBERED) / 2)
    assert known.mean_share("bob") == known.mean_share("") == known.mean_share(None) == 1.0
