"""The Chapter's job selections and orders: first, best and next fit, figure 3.2, flexible priorities."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from support.plain import J, plain, plain_easy, plain_fcfs, starts_of, workload_of, workloads

from aucsched.cli import run
from aucsched.cluster.errors import OptionError
from aucsched.simulation.logs.orderings import FlexiblePriorities
from aucsched.simulation.logs.policies import make_policy
from aucsched.simulation.simulate_options import PolicyOptions

Case = tuple[list[J], int]
SMALL = str(Path(__file__).parents[2] / "fixtures" / "swf" / "small.swf")


def plain_first_fit(jobs: list[J], processors: int) -> list[float]:
    def choose(_: float, free: int, queue: list[int], __: dict[int, float]) -> list[int]:
        started = []
        while fitting := [job for job in queue if jobs[job].size <= free and job not in started]:
            started.append(fitting[0])
            free -= jobs[fitting[0]].size
        return started

    return plain(jobs, processors, choose)


def plain_best_fit(jobs: list[J], processors: int) -> list[float]:
    def choose(_: float, free: int, queue: list[int], __: dict[int, float]) -> list[int]:
        started: list[int] = []
        while fitting := [job for job in queue if jobs[job].size <= free and job not in started]:
            best = min(fitting, key=lambda job: (free - jobs[job].size, job))
            started.append(best)
            free -= jobs[best].size
        return started

    return plain(jobs, processors, choose)


def plain_next_fit(jobs: list[J], processors: int) -> list[float]:
    last = -1

    def choose(_: float, free: int, queue: list[int], __: dict[int, float]) -> list[int]:
        nonlocal last
        started = []
        before = last
        for job in sorted(queue, key=lambda one: (one <= before, one)):
            if jobs[job].size <= free:
                started.append(job)
                free -= jobs[job].size
                last = job
        return started

    return plain(jobs, processors, choose)


@pytest.mark.parametrize(
    ("name", "rule"),
    [("first-fit", plain_first_fit), ("best-fit", plain_best_fit), ("next-fit", plain_next_fit)],
)
def test_every_selection_is_its_plain_rule(name: str, rule) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """What docs/papers.md names this test for.

    The chapter: selections of jobs: front, first, best, next fit (of logs; on nodes the auction and
    Slurm's backfill).
    """

    @given(workloads())
    def check(case: Case) -> None:
        assert starts_of(*case, name) == rule(*case)

    check()


#: Jobs of 3, 2, 4, 1, 2 processors that wait for five, in this order; the first runs when they come.
WAITING = [J(0, 10, 5, 10), J(1, 10, 3, 10), J(1, 10, 2, 10), J(1, 10, 4, 10), J(1, 10, 1, 10), J(1, 9, 1, 9)]


def test_the_selections_differ() -> None:
    """Five processors come free at 10: first fit takes jobs 1 and 2, best fit 3 (of 4) and 4 (of 1)."""
    assert starts_of(WAITING, 5, "first-fit") == [0, 10, 10, 20, 20, 30]
    assert starts_of(WAITING, 5, "best-fit") == [0, 20, 20, 10, 10, 30]


def test_best_fit_of_equal_ones_takes_the_first_of_the_order() -> None:
    jobs = [J(0, 10, 2, 10), J(1, 10, 2, 10), J(1, 5, 2, 5)]
    assert starts_of(jobs, 2, "best-fit") == [0, 10, 20]
    assert starts_of(jobs, 2, "best-fit", order="sjf") == [0, 15, 10]


def test_next_fit_goes_on_behind_the_last() -> None:
    """Job 3 was started last: job 4, behind it, comes before job 1, which first fit would take."""
    jobs = [J(0, 4, 3, 4), J(1, 5, 4, 5), J(1, 9, 4, 9), J(1, 5, 1, 5), J(2, 5, 4, 5)]
    assert starts_of(jobs, 4, "next-fit") == [0, 11, 16, 1, 6]
    assert starts_of(jobs, 4, "first-fit") == [0, 6, 11, 1, 20]


# Figure 3.2: one set of jobs under FCFS, SJF, LJF and FFIA ------------------------------------

#: Submitted at once to six processors: (length, width).
FIGURE = [(5, 3), (2, 4), (7, 2), (3, 1), (4, 6), (1, 5)]
SCHEDULES = {
    # Job by job from the front: nobody passes the first that does not fit.
    "fcfs": [0, 5, 5, 7, 12, 16],
    # 5 (1 s), 1 (2 s), 3 (3 s), 4 (4 s), 0 (5 s), 2 (7 s): by rising length.
    "sjf": [8, 1, 8, 1, 4, 0],
    # 2, 0, 4, 3, 1, 5: by falling length.
    "ljf": [0, 11, 0, 11, 7, 13],
    # Areas 15, 8, 14, 3, 24, 5: 3, 5, 1, 2, 0, 4.
    "area": [3, 1, 3, 0, 10, 0],
}


@pytest.mark.parametrize("order", SCHEDULES)
def test_figure_3_2(order: str) -> None:
    """The Chapter's figure is not in its text: six jobs of ours, each schedule worked by hand.

    The chapter: figures 3.1, 3.2 backfilling and its variations.
    """
    jobs = [J(0, length, width, length) for length, width in FIGURE]
    assert starts_of(jobs, 6, "fcfs", order=order) == SCHEDULES[order]


# Orders ---------------------------------------------------------------------------------------


def test_orders_by_width() -> None:
    requests = workload_of([J(0, 1, 3, 1), J(0, 1, 1, 1), J(0, 1, 3, 1), J(0, 1, 2, 1)], 4).requests
    assert make_policy("fcfs", requests, order="width").job_at == [1, 3, 0, 2]
    assert make_policy("fcfs", requests, order="widest").job_at == [0, 2, 3, 1]


@given(workloads())
def test_the_order_by_slowdown_sorts_before_each_pass(case: Case) -> None:
    """The chapter: orders: width, slowdown."""

    def key(now: float, job: int) -> tuple[float | Fraction, ...]:
        return (-Fraction(int(now) - case[0][job].submit, case[0][job].estimate), job)

    assert starts_of(*case, "easy", order="slowdown") == plain_easy(*case, key=key)
    assert starts_of(*case, "fcfs", order="slowdown") == plain_fcfs(*case, key=key)


def test_slowdown_favours_the_short_that_waited() -> None:
    """At 20 job 1 has waited 19 of 100 s, job 2 10 of its 10 s: its slowdown is 2."""
    jobs = [J(0, 20, 1, 20), J(1, 100, 1, 100), J(10, 10, 1, 10)]
    assert starts_of(jobs, 1, "fcfs", order="slowdown") == [0, 30, 20]


# Flexible backfilling's three priorities ------------------------------------------------------


def flexible(**priorities: object) -> PolicyOptions:
    return PolicyOptions(flexible=FlexiblePriorities(**priorities))  # type: ignore[arg-type]


def test_each_of_the_three_priorities_counts() -> None:
    """Users are 0, 1, 2, 0, …; weights 1, 2, 1, 2, …; job 0 runs while 1 to 4 wait.

    The chapter: flexible backfilling's three priorities.
    """
    jobs = [J(0, 10, 1, 10), *(J(second, 10, 1, 10) for second in (1, 2, 3, 4))]
    alone = {"admin": 0, "user": 0}
    assert starts_of(jobs, 1, "fcfs", order="flexible", options=flexible(**alone)) == [0, 10, 20, 30, 40]
    users = flexible(user=0, of_user={0: 5, 2: 3})
    assert starts_of(jobs, 1, "fcfs", order="flexible", options=users) == [0, 30, 20, 10, 40]
    queues = flexible(admin=0)
    assert starts_of(jobs, 1, "fcfs", order="flexible", options=queues) == [0, 10, 30, 20, 40]


def test_the_administrative_priority_favours_projects(tmp_path: Path) -> None:
    """Groups of a log are its projects: job 3 is of group 5, user 1 has 2 and its own job 2."""
    log = tmp_path / "groups.swf"
    rows = [f"{job} 0 -1 10 1 -1 -1 1 10 -1 1 {user} {group} -1 1 -1 -1 -1"
            for job, user, group in ((1, 7, 4), (2, 1, 4), (3, 2, 5), (4, 1, 5))]  # fmt: skip
    log.write_text("; MaxProcs: 1\n" + "\n".join(rows) + "\n")
    found = {}
    for favoured in ("1=2", "group=5=3", "1=2,group=5=3", "user=1=2,group=5=1"):
        out = tmp_path / "jobs.csv"
        given = ["simulate", str(log), "--policy", "fcfs", "--order", "flexible", "--jobs-out", str(out)]
        given += ["-o", str(tmp_path / "m.txt")]
        assert run([*given, "--user-priorities", favoured]) == 0
        found[favoured] = [float(row.split(",")[2]) for row in out.read_text().splitlines()[1:]]
    assert found == {
        "1=2": [20, 0, 30, 10],
        "group=5=3": [20, 30, 0, 10],
        "1=2,group=5=3": [30, 20, 10, 0],
        "user=1=2,group=5=1": [30, 10, 20, 0],
    }


def test_who_waits_long_enough_is_no_longer_passed() -> None:
    """A user's priority of 2 is worth two days: later jobs of that user pass job 1 only so long."""
    day = 86_400
    jobs = [J(0, 3 * day, 1, 3 * day), J(0, 9, 1, 9), J(day, 9, 1, 9), J(5 * day // 2, 9, 1, 9)]
    # Users 0, 1, 2, 0.
    found = starts_of(jobs, 1, "fcfs", order="flexible", options=flexible(user=0, of_user={0: 2, 2: 2}))
    assert found == [0, 3 * day + 9, 3 * day, 3 * day + 18]


@given(workloads())
def test_the_three_priorities_sort_the_queue_before_each_pass(case: Case) -> None:
    favoured = flexible(of_user={1: 3})

    def key(_: float, job: int) -> tuple[float | Fraction, ...]:
        day = Fraction(case[0][job].submit, 86_400)
        return (day - (3 if job % 3 == 1 else 0) - (1 + job % 2), job)

    assert starts_of(*case, "easy", order="flexible", options=favoured) == plain_easy(*case, key=key)
    # Flexible backfilling: the same queue with reservations that have slack.
    assert min(starts_of(*case, "slack", order="flexible", options=favoured)) == 0


@pytest.mark.parametrize(
    ("weights", "users"),
    [
        ("admin=-1", None),
        ("scheduler=0", None),
        ("age=1", None),
        ("user=x", None),
        (None, "a=1"),
        (None, "team=3=1"),
        (None, "group=3=x"),
        (None, "1=-1"),
        (None, "1=1,01=2"),
        ("admin=1,admin=2", None),
    ],
)
def test_priorities_refuse_what_they_cannot_use(weights: str | None, users: str | None) -> None:
    with pytest.raises(OptionError, match=r"--(user-)?priorities"):
        FlexiblePriorities.from_text(weights, users)


def test_the_command_reads_priorities_and_refuses_them_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["simulate", SMALL, "--order", "flexible", "--priorities", "admin=2", "--user-priorities", "1=3"]
    assert run([*given, "--policy", "slack", "--format", "json"]) == 0
    assert '"admin": 2.0' in capsys.readouterr().out
    assert run(["simulate", SMALL, "--user-priorities", "1=3"]) == 2
    assert "--user-priorities needs --order flexible" in capsys.readouterr().err
    requests = workload_of([J(0, 1, 1, 1)], 1).requests
    make_policy("next-fit", requests, order="flexible")
