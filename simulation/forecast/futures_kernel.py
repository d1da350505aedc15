"""Futures of a machine: its queue is played from now on, with run times that are drawn.

The machine counts cores in pools; a job takes them from those pools whose nodes it could use. With
one pool, EASY is that of backfilling/easy.py, job for job, and conservative backfilling is
backfilling/conservative.py with its plan made anew in each pass. The functions are kernels: plain
Python over columns.
"""

from math import inf
from typing import NamedTuple

from ...cluster.kernels.column_operations import insert, insert_pair, pop, push, remove, remove_pair
from ...cluster.kernels.harness import Column, Floats, FloatTable, Ints, IntTable, kernel
from ...cluster.timeline.count_profile import ProfileColumns, add, earliest
from ..backfilling.easy import share_of_extra
from ..promised.awards import cost, is_too_much
from ..promised.promise_plan import OVERDUE, SHARE, window

#: What futures play: EASY, conservative backfilling (of one pool), ``--objective response`` with
#: promises, and the same where promises are withdrawn under overload (promised/awards.py).
EASY, CONSERVATIVE, RESPONSE, WITHDRAWING = 0, 1, 2, 3
#: No job.
NOBODY = -1
#: Places of ``counts``: waiting jobs, running jobs, targets that have not started, who has a
#: reservation.
QUEUED, RUNNING, LEFT, HEAD, COUNTED = 0, 1, 2, 3, 4
#: Places of ``numbers``: when the head can start, how many cores it leaves then, and when the next
#: job may start that waits for its time.
SHADOW, EXTRA, NEXT, NUMBERS = 0, 1, 2, 3


class FutureJobs(NamedTuple):
    """Jobs that run or wait, in the order of the queue, then places for those to come.

    Attributes:
        size: cores.
        limit: in seconds.
        submit: when the job came, or may first start, in seconds.
        start: when it started; below 0 where it has not.
        run: seconds for which it runs in the present future.
        length: seconds for which a policy that favours short jobs expects it to run.
        pools: a set of pools as bits.
        rank: smaller ones stand before larger ones, equal ones in order.
        held: by running job and pool, cores.
        rows: of the table of run times, by level.
        chance: by job and future, a number from 0 to 1: which quantile of its run time is drawn.
        drawn: the same shape, run times.
    """

    size: Ints
    limit: Floats
    submit: Floats
    start: Floats
    run: Floats
    length: Floats
    pools: Ints
    rank: Floats
    held: IntTable
    rows: IntTable
    chance: FloatTable
    drawn: FloatTable


class FutureMachine(NamedTuple):
    """What the present future has come to; columns are overwritten by each.

    Attributes:
        counts, numbers: see above.
        free: cores by pool now, and
        spare: those that the future has.
        end, ending: a heap of ends with their jobs.
        known_end, known: ends by limit, rising, with their jobs.
        queue: waiting jobs in order.
        key: by job, what orders the queue where that changes with time.
        start: by job, when it starts; below 0 where it does not.
        is_wanted: by job, 1 for a target.
        taken: by job and pool, cores that it holds.
        share: one distribution of a run time.
        profile: free cores over time, of conservative backfilling.
    """

    counts: Ints
    numbers: Floats
    free: Ints
    spare: Ints
    end: Floats
    ending: Ints
    known_end: Floats
    known: Ints
    queue: Ints
    key: Floats
    start: Floats
    is_wanted: Ints
    taken: IntTable
    share: Floats
    profile: ProfileColumns


class FutureRules(NamedTuple):
    """How the queue is served.

    Attributes:
        now: in seconds.
        live: jobs that run or wait.
        arrivals: how many come in each future at most.
        depth: waiting jobs that a pass looks at.
        policy: ``EASY`` or another. Under ``RESPONSE`` jobs start by what a second less of waiting
            saves in slowdown, beside a reservation for the job that is most overdue.
        begins: whether jobs of the queue wait for a time before which they may not start.
        longest: seconds of the longest wait so far, which says who is due under ``RESPONSE``.
        cores: of the machine.
        decided: whether the pass of now has been: whoever waits does until something happens.
    """

    now: float
    live: int
    arrivals: int
    depth: int
    policy: int
    begins: int
    longest: float
    cores: float
    decided: int


class Targets(NamedTuple):
    """The jobs that are asked for.

    Attributes:
        job: their places.
        start: by target and future, when it starts; below 0: never.
    """

    job: Ints
    start: FloatTable


@kernel
def play_future(
    jobs: FutureJobs, machine: FutureMachine, rules: FutureRules, count: int, targets: Targets
) -> None:
    """Play until every target has started, or nothing is left to happen."""
    counts, now, coming, decided = machine.counts, rules.now, rules.live, rules.decided
    _begin(jobs, machine, rules, targets)
    machine.numbers[NEXT] = inf
    while True:
        if counts[QUEUED] > 0:
            if rules.policy == CONSERVATIVE:
                _pass_of_plan(jobs, machine, now)
            elif not decided:
                _make_pass(jobs, machine, rules, now)
            machine.numbers[NEXT] = _next_time(jobs, machine, now) if rules.begins else inf
        decided = 0
        ends = machine.end[0] if counts[RUNNING] > 0 else inf
        comes = jobs.submit[coming] if coming < count else inf
        now = min(ends, comes, machine.numbers[NEXT])
        if counts[LEFT] == 0 or now == inf:
            return
        while counts[RUNNING] > 0 and machine.end[0] <= now:
            _end_first(machine)
        while coming < count and jobs.submit[coming] <= now:
            _wait(jobs, machine, coming)
            coming += 1


@kernel
def _begin(jobs: FutureJobs, machine: FutureMachine, rules: FutureRules, targets: Targets) -> None:
    """Put everything where it is now."""
    counts = machine.counts
    remove(machine.known_end, counts[RUNNING], 0, counts[RUNNING])
    remove(machine.known, counts[RUNNING], 0, counts[RUNNING])
    remove(machine.queue, counts[QUEUED], 0, counts[QUEUED])
    counts[QUEUED] = counts[RUNNING] = 0
    for pool in range(len(machine.free)):
        machine.spare[pool] = machine.free[pool]
    for job in range(rules.live):
        machine.is_wanted[job] = 0
        machine.start[job] = jobs.start[job]
        if jobs.start[job] < 0.0:
            _wait(jobs, machine, job)
            continue
        for pool in range(len(machine.free)):
            machine.taken[job, pool] = jobs.held[job, pool]
        _run(machine, job, max(jobs.start[job] + jobs.run[job], rules.now), jobs.start[job] + jobs.limit[job])
    for job in range(rules.live, rules.live + rules.arrivals):
        machine.is_wanted[job] = 0
    counts[LEFT] = len(targets.job)
    for place in range(len(targets.job)):
        machine.is_wanted[targets.job[place]] = 1


@kernel
def _wait(jobs: FutureJobs, machine: FutureMachine, job: int) -> None:
    """Let a job join the queue."""
    counts, queue = machine.counts, machine.queue
    place = counts[QUEUED]
    while place > 0 and jobs.rank[queue[place - 1]] > jobs.rank[job]:
        place -= 1
    insert(queue, counts[QUEUED], place, job)
    counts[QUEUED] += 1


@kernel
def _run(machine: FutureMachine, job: int, end: float, known_end: float) -> None:
    counts = machine.counts
    insert_pair(machine.known_end, machine.known, counts[RUNNING], known_end, job)
    counts[RUNNING] = push(machine.end, machine.ending, counts[RUNNING], end, job)


@kernel
def _end_first(machine: FutureMachine) -> None:
    """Let the running job end whose end is next."""
    counts = machine.counts
    job = machine.ending[0]
    running = counts[RUNNING]
    counts[RUNNING] = pop(machine.end, machine.ending, running)
    for pool in range(len(machine.spare)):
        machine.spare[pool] += machine.taken[job, pool]
    place = 0
    while machine.known[place] != job:
        place += 1
    remove_pair(machine.known_end, machine.known, running, place)


@kernel
def _pass_of_plan(jobs: FutureJobs, machine: FutureMachine, now: float) -> None:
    """Reserve for one job after another, in the order of the queue; who can start now does."""
    counts, queue, profile = machine.counts, machine.queue, machine.profile
    idle = machine.spare[0]
    remove(profile.times, profile.steps[0], 1, profile.steps[0])
    remove(profile.free, profile.steps[0], 1, profile.steps[0])
    profile.times[0], profile.free[0], profile.steps[0] = now, idle, 1
    for place in range(counts[RUNNING]):
        add(profile, max(machine.known_end[place], now), inf, jobs.size[machine.known[place]])
    waiting = counts[QUEUED]
    kept = place = 0
    while place < waiting and idle > 0:
        job = queue[place]
        place += 1
        start = earliest(profile, jobs.size[job], jobs.limit[job], max(now, jobs.submit[job]), inf, inf)
        add(profile, start, start + jobs.limit[job], -jobs.size[job])
        if start <= now and jobs.size[job] <= idle:
            _start(jobs, machine, now, job)
            idle -= jobs.size[job]
        else:
            queue[kept] = job
            kept += 1
    remove(queue, waiting, kept, place)
    counts[QUEUED] = waiting - place + kept


@kernel
def _start(jobs: FutureJobs, machine: FutureMachine, now: float, job: int) -> None:
    _take(jobs, machine, job)
    machine.start[job] = now
    machine.counts[LEFT] -= machine.is_wanted[job]
    _run(machine, job, now + jobs.run[job], now + jobs.limit[job])


@kernel
def _make_pass(jobs: FutureJobs, machine: FutureMachine, rules: FutureRules, now: float) -> None:
    """Go once through the queue; who fits starts, beside the reservation of one that does not."""
    counts, queue = machine.counts, machine.queue
    counts[HEAD] = NOBODY
    waiting = counts[QUEUED]
    is_in_turn = rules.policy == EASY
    if rules.policy == WITHDRAWING and _is_overloaded(jobs, machine, rules):
        _sort_under_overload(jobs, machine, now)
        is_in_turn = True
    elif not is_in_turn:
        _sort_by_worth(jobs, machine, rules, now)
    kept = place = 0
    idle = _cores_in(machine.spare, -1)
    while place < waiting and place < rules.depth and idle > 0:
        job = queue[place]
        place += 1
        if jobs.submit[job] <= now and _may_start(jobs, machine, now, job):
            _start(jobs, machine, now, job)
            idle -= jobs.size[job]
            continue
        queue[kept] = job
        kept += 1
        if counts[HEAD] == NOBODY and is_in_turn and jobs.submit[job] <= now:
            _reserve(jobs, machine, now, job)
    remove(queue, waiting, kept, place)
    counts[QUEUED] = waiting - place + kept


@kernel
def _next_time(jobs: FutureJobs, machine: FutureMachine, now: float) -> float:
    """Return when the next job that has to wait for its time may start; infinite: none does."""
    first = inf
    for place in range(machine.counts[QUEUED]):
        submit = jobs.submit[machine.queue[place]]
        if now < submit < first:
            first = submit
    return first


@kernel
def _sort_by_worth(jobs: FutureJobs, machine: FutureMachine, rules: FutureRules, now: float) -> None:
    """Sort as promised/awards.py does; of the jobs that do not fit, reserve for the first due."""
    queue, key = machine.queue, machine.key
    waiting = machine.counts[QUEUED]
    due, head = inf, NOBODY
    for place in range(waiting):
        job = queue[place]
        waited = now - jobs.submit[job]
        if waited >= OVERDUE * rules.longest:
            key[job] = -waited
        else:
            key[job] = cost(jobs.length[job], max(waited, 0.0))
        after = window(SHARE * rules.longest, jobs.limit[job], jobs.size[job] / rules.cores)
        is_due = after <= waited and jobs.submit[job] + after < due
        if is_due and _cores_in(machine.spare, jobs.pools[job]) < jobs.size[job]:
            due, head = jobs.submit[job] + after, job
    _sort(queue, key, 0, waiting)
    if head != NOBODY:
        _reserve(jobs, machine, now, head)


@kernel
def _is_overloaded(jobs: FutureJobs, machine: FutureMachine, rules: FutureRules) -> bool:
    """Say whether more waits than promises can follow, as promised/awards.py does."""
    backlog = 0.0
    for place in range(machine.counts[QUEUED]):
        job = machine.queue[place]
        backlog += jobs.length[job] * jobs.size[job]
    return is_too_much(backlog, machine.counts[QUEUED], rules.longest, rules.cores)


@kernel
def _sort_under_overload(jobs: FutureJobs, machine: FutureMachine, now: float) -> None:
    """Sort by wait² / limit, largest first, up to one that does not fit; by limits behind it."""
    queue, key, waiting = machine.queue, machine.key, machine.counts[QUEUED]
    for place in range(waiting):
        job = queue[place]
        key[job] = -(now - jobs.submit[job]) * (now - jobs.submit[job]) / jobs.limit[job]
    _sort(queue, key, 0, waiting)
    idle, first = _cores_in(machine.spare, -1), 0
    while first < waiting and jobs.size[queue[first]] <= idle:
        idle -= jobs.size[queue[first]]
        first += 1
    for place in range(first + 1, waiting):
        key[queue[place]] = jobs.limit[queue[place]]
    _sort(queue, key, first + 1, waiting)


@kernel
def _sort(queue: Column, key: Column, first: int, last: int) -> None:
    """Sort a part of the queue by keys, equal ones in order."""
    for place in range(first + 1, last):
        job, before = queue[place], place
        while before > first and key[queue[before - 1]] > key[job]:
            queue[before] = queue[before - 1]
            before -= 1
        queue[before] = job


@kernel
def _cores_in(cores: Column, pools: int) -> int:
    """Return how many of the cores are in a set of pools; −1: in any."""
    total = 0
    for pool in range(len(cores)):
        if (pools >> pool) & 1:
            total += cores[pool]
    return total


@kernel
def _reserve(jobs: FutureJobs, machine: FutureMachine, now: float, head: int) -> None:
    """Find when a job can start by limits, and how many cores that it could use are left then."""
    counts, pools = machine.counts, jobs.pools[head]
    free = _cores_in(machine.spare, pools)
    need, shadow, place = jobs.size[head], now, 0
    while place < counts[RUNNING] and (free < need or machine.known_end[place] <= shadow):
        for pool in range(len(machine.spare)):
            if (pools >> pool) & 1:
                free += machine.taken[machine.known[place], pool]
        shadow = max(machine.known_end[place], now)
        place += 1
    counts[HEAD] = head
    machine.numbers[SHADOW] = shadow if free >= need else inf
    machine.numbers[EXTRA] = free - need


@kernel
def _may_start(jobs: FutureJobs, machine: FutureMachine, now: float, job: int) -> bool:
    """Say whether a job fits now beside the reservation; take its part of what that leaves."""
    size, pools, head = jobs.size[job], jobs.pools[job], machine.counts[HEAD]
    if _cores_in(machine.spare, pools) < size:
        return False
    if head in (NOBODY, job):
        return True
    need = max(size - _cores_in(machine.spare, pools & ~jobs.pools[head]), 0)
    shadow, extra = machine.numbers[SHADOW], machine.numbers[EXTRA]
    taken = share_of_extra(now + jobs.limit[job], need, shadow, extra)
    machine.numbers[EXTRA] -= max(taken, 0)
    return taken >= 0


@kernel
def _take(jobs: FutureJobs, machine: FutureMachine, job: int) -> None:
    """Give a job its cores, first from pools that the reservation cannot use."""
    pools, head = jobs.pools[job], machine.counts[HEAD]
    others = pools if head == NOBODY else pools & ~jobs.pools[head]
    missing = jobs.size[job]
    for turn in range(2):
        allowed = others if turn == 0 else pools
        for pool in range(len(machine.spare)):
            if turn == 0:
                machine.taken[job, pool] = 0
            if (allowed >> pool) & 1:
                part = min(missing, machine.spare[pool])
                machine.taken[job, pool] += part
                machine.spare[pool] -= part
                missing -= part
