"""Algorithm 2 on cores alone: figure 1, and properties over random machines."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from aucsched.cluster.limits import Owned
from aucsched.negotiation.evolving.fairness import (
    DelayLimits,
    DelayPolicy,
    Fairness,
    at_start,
    same_for_every_user,
)
from aucsched.negotiation.evolving.iteration import (
    CountBoard,
    CountGrant,
    CountJob,
    CountRequest,
    CountRunning,
    Depths,
    planned,
    serve,
    started,
)

HOUR = 3600.0
A = CountRunning(id="A", cores=2, end_s=8 * HOUR, owner=Owned(user="a"))
B = CountRunning(id="B", cores=2, end_s=4 * HOUR, owner=Owned(user="b"))
C = CountJob(id="C", cores=4, walltime_s=4 * HOUR, owner=Owned(user="c"))
ASKS = CountRequest(job="A", cores=2, owner=A.owner)
DEPTHS = Depths()
NOBODY: list[CountJob] = []


def _figure_1() -> CountBoard:
    return CountBoard(6, 0.0, [A, B])


def test_figure_1_job_c_is_delayed_by_four_hours() -> None:
    """Prabhakaran: figure 1."""
    _, starts = planned(_figure_1(), [C], 5)
    assert starts == {"C": 4 * HOUR}
    none = Fairness()
    served = serve(_figure_1(), [ASKS], [C], DEPTHS, none, at_start(none, 0.0))
    (answer,) = served.answers
    assert answer.grant == CountGrant()
    assert [(delay.job, delay.seconds) for delay in answer.delays] == [("C", 4 * HOUR)]
    assert planned(served.board, [C], 5)[1] == {"C": 8 * HOUR}
    assert started(served.board, [C], DEPTHS)[0] == []


def test_figure_1_is_refused_where_c_may_be_delayed_by_less() -> None:
    for limit, granted in ((4 * HOUR, True), (4 * HOUR - 1, False)):
        fairness = same_for_every_user(limit, interval_s=24 * HOUR)
        served = serve(_figure_1(), [ASKS], [C], DEPTHS, fairness, at_start(fairness, 0.0))
        assert (served.answers[0].grant is not None) is granted
    assert "user c" in served.answers[0].why
    # Beside C's reservation the two nodes could be had at once for four hours only: A needs eight.
    assert served.answers[0].earliest_s == float("inf")


def test_the_requesters_own_jobs_may_be_delayed() -> None:
    fairness = same_for_every_user(1)
    own = replace(C, owner=A.owner)
    served = serve(_figure_1(), [ASKS], [own], DEPTHS, fairness, at_start(fairness, 0.0))
    assert served.answers[0].grant is not None
    assert not served.accounts.targets


def test_jobs_that_would_start_now_are_measured_too() -> None:
    small = CountJob(id="D", cores=2, walltime_s=HOUR, owner=Owned(user="d"))
    fairness = same_for_every_user(HOUR)
    served = serve(_figure_1(), [ASKS], [small], DEPTHS, fairness, at_start(fairness, 0.0))
    assert served.answers[0].grant is None
    assert [(delay.job, delay.seconds) for delay in served.answers[0].delays] == [("D", 4 * HOUR)]


def test_only_the_delay_depth_is_measured() -> None:
    """Prabhakaran: figure 5 depths."""
    board = CountBoard(6, 0.0, [A, B])
    jobs = [CountJob(id=f"J{n}", cores=4, walltime_s=HOUR, owner=Owned(user=f"u{n}")) for n in range(4)]
    none = Fairness()
    for depth in range(1, 5):
        served = serve(board, [ASKS], jobs, Depths(reservation=1, delay=depth), none, at_start(none, 0.0))
        assert [delay.job for delay in served.answers[0].delays] == [f"J{n}" for n in range(depth)]


def test_a_refusal_says_when_resources_could_be_there() -> None:
    none = Fairness()
    asks = CountRequest(job="A", cores=3, owner=A.owner)
    served = serve(_figure_1(), [asks], NOBODY, DEPTHS, none, at_start(none, 0.0))
    assert (served.answers[0].grant, served.answers[0].earliest_s) == (None, 4 * HOUR)
    # C is planned on them then.
    served = serve(_figure_1(), [asks], [C], DEPTHS, none, at_start(none, 0.0))
    assert served.answers[0].earliest_s == float("inf")
    short = replace(C, walltime_s=HOUR)
    served = serve(_figure_1(), [asks], [short], DEPTHS, none, at_start(none, 0.0))
    assert served.answers[0].earliest_s == 5 * HOUR


def test_requests_are_served_first_come_first_served() -> None:
    """Prabhakaran: algorithm 2, the extended iteration."""
    none = Fairness()
    asks = [CountRequest(job="A", cores=1), CountRequest(job="B", cores=2), CountRequest(job="A", cores=1)]
    served = serve(_figure_1(), asks, NOBODY, DEPTHS, none, at_start(none, 0.0))
    assert [answer.grant is not None for answer in served.answers] == [True, False, True]


def test_idle_before_preemptible_before_malleable() -> None:
    none = Fairness()
    low = CountRunning(id="L", cores=1, end_s=9 * HOUR, preemptible=True, rank=2)
    lower = CountRunning(id="M", cores=1, end_s=9 * HOUR, preemptible=True, rank=3)
    bends = CountRunning(id="N", cores=2, end_s=9 * HOUR, least=1)
    board = CountBoard(7, 0.0, [A, low, lower, bends])
    expected = {
        1: CountGrant(),
        2: CountGrant(preempted=("M",)),
        3: CountGrant(preempted=("M", "L")),
        4: CountGrant(preempted=("M", "L"), shrunk=(("N", 1),)),
        5: None,
    }
    for cores, grant in expected.items():
        served = serve(board, [CountRequest(job="A", cores=cores)], NOBODY, DEPTHS, none, at_start(none, 0.0))
        assert served.answers[0].grant == grant


def test_nothing_starts_behind_a_job_that_drains() -> None:
    whole = CountJob(id="Z", cores=6, walltime_s=100.0, drains=True)
    small = CountJob(id="S", cores=1, walltime_s=1.0)
    assert started(_figure_1(), [whole, small], DEPTHS)[0] == []
    assert started(_figure_1(), [small, whole], DEPTHS)[0] == [small]
    # A running job still grows.
    none = Fairness()
    assert serve(_figure_1(), [ASKS], [whole, small], DEPTHS, none, at_start(none, 0.0)).answers[0].grant


def test_backfilled_jobs_delay_no_reservation() -> None:
    long = CountJob(id="L", cores=2, walltime_s=5 * HOUR)
    short = CountJob(id="S", cores=2, walltime_s=4 * HOUR)
    assert started(_figure_1(), [C, long, short], Depths(reservation=1))[0] == [short]
    assert started(_figure_1(), [C, long, short], Depths(reservation=0))[0] == [long]


def _simple_earliest(cores: int, busy: list[tuple[float, float, int]], need: int, walltime: float) -> float:
    """Look at every moment at which anything changes: the slow oracle."""
    if need > cores:
        return float("inf")
    for start in sorted({0.0, *(end for _, end, _ in busy)}):
        moments = {start, *(begin for begin, _, _ in busy if start < begin < start + walltime)}
        if all(
            cores - sum(count for begin, end, count in busy if begin <= moment < end) >= need
            for moment in moments
        ):
            return start
    return float("inf")


_RUNNING = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 20)), max_size=5)
_QUEUE = st.lists(st.tuples(st.integers(1, 16), st.integers(1, 20)), max_size=8)


@given(running=_RUNNING, queue=_QUEUE)
def test_plans_are_the_earliest_starts(running: list[tuple[int, int]], queue: list[tuple[int, int]]) -> None:
    """Prabhakaran: algorithm 1, Maui's iteration."""
    busy = [(0.0, float(end), cores) for cores, end in running]
    board = CountBoard(
        20, 0.0, [CountRunning(id=f"R{n}", cores=c, end_s=e) for n, (_, e, c) in enumerate(busy)]
    )
    for number, (cores, walltime) in enumerate(queue):
        expected = _simple_earliest(20, busy, cores, walltime)
        assert board.place(CountJob(id=str(number), cores=cores, walltime_s=walltime), 0.0) == expected
        busy.append((expected, expected + walltime, cores))


@given(
    running=_RUNNING,
    queue=_QUEUE,
    asks=st.lists(st.tuples(st.integers(0, 4), st.integers(1, 6)), max_size=4),
    limit=st.integers(1, 30),
    single=st.integers(1, 30),
)
def test_no_limit_is_ever_exceeded(
    running: list[tuple[int, int]],
    queue: list[tuple[int, int]],
    asks: list[tuple[int, int]],
    limit: int,
    single: int,
) -> None:
    board = CountBoard(
        20, 0.0, [CountRunning(id=f"R{n}", cores=c, end_s=e) for n, (c, e) in enumerate(running)]
    )
    jobs = [
        CountJob(id=f"J{n}", cores=c, walltime_s=w, owner=Owned(user=f"u{n % 3}"))
        for n, (c, w) in enumerate(queue)
    ]
    fairness = Fairness(
        policy=DelayPolicy.BOTH,
        limits={("user", "DEFAULT"): DelayLimits(target_s=float(limit), single_s=float(single))},
    )
    requests = [CountRequest(job=f"R{n}", cores=c, owner=Owned(user="e")) for n, c in asks]
    served = serve(board, requests, jobs, DEPTHS, fairness, at_start(fairness, 0.0))
    _, before = planned(board, jobs, 5)
    _, after = planned(served.board, [job for job in jobs if job.id in before], 99)
    for user in ("u0", "u1", "u2"):
        own = [job.id for job in jobs if job.owner.user == user and job.id in before]
        # A second grant may undo what the first has delayed, never the reverse.
        assert sum(max(0.0, after[job] - before[job]) for job in own) <= limit
        assert all(after[job] - before[job] <= single for job in own)
    assert isinstance(served.board, CountBoard)
    assert served.board.free >= 0
