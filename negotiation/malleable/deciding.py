"""The decision function on columns: when an application comes or ends (Weissman, figure 3).

Decisions change counts and append who starts; how work goes on from there is application_columns.py's.
"""

from __future__ import annotations

from ...cluster.kernels.harness import kernel
from .application_columns import (
    ATTEMPTS,
    EVENTS,
    SUCCESSES,
    Active,
    Context,
    JobColumns,
    overhead_s,
    speed,
    work_left,
)
from .harvesting import (
    FAVOR_QUEUED,
    FAVOR_RUNNING,
    NEVER,
    QUEUED_ONLY,
    TRADE,
    give_up,
    grow,
    set_floors,
    take,
    trade,
)


@kernel
def harvest(active: Active, running: int, need: int, spared: int, now: float, context: Context) -> bool:
    """Take ``need`` processors from running applications, all or nothing; say whether they were had.

    ``spared`` is the place of one that gives nothing, −1 for none.
    """
    rules, tally = context.rules, context.tally
    if need <= 0:
        return True
    if running == 0 or rules.harvest == NEVER:
        return False
    tally[ATTEMPTS] += 1
    spare = set_floors(active, running, now, rules)
    if spared >= 0:
        spare -= active.held[spared] - active.floor[spared]
        active.floor[spared] = active.held[spared]
    if spare < need:
        return False
    take(active, running, need, now, rules)
    if rules.weighs and delay_s(active, running, now, context) > wait_s(active, running, need, now):
        return False
    tally[SUCCESSES] += 1
    tally[EVENTS] += give_up(active, running)
    return True


@kernel
def delay_s(active: Active, running: int, now: float, context: Context) -> float:
    """Return by how much the victims of ``taken`` would end later, all together: a harvest's cost."""
    jobs, model = context.jobs, context.rules.model
    total = 0.0
    for place in range(running):
        if active.taken[place] > 0:
            count = active.held[place]
            ran_on = active.before[place] if active.before[place] > 0 else count
            left = work_left(active, place, ran_on, now, model)
            slow = speed(model, count - active.taken[place], active.ideal[place])
            total += left / slow - left / speed(model, count, active.ideal[place])
            total += overhead_s(jobs.data[active.job[place]], count)
    return total


@kernel
def wait_s(active: Active, running: int, need: int, now: float) -> float:
    """Return how long ``need`` processors more would be waited for if nobody gave any: a benefit."""
    lacking = need
    last = now
    for _ in range(running):
        soonest = -1
        for place in range(running):
            later = active.end[place] > last
            if later and (soonest < 0 or active.end[place] < active.end[soonest]):
                soonest = place
        if soonest < 0:
            break
        last = active.end[soonest]
        for place in range(running):
            if active.end[place] == last:
                lacking -= active.held[place]
        if lacking <= 0:
            break
    return last - now


@kernel
def admit(active: Active, running: int, job: int, count: int, now: float, jobs: JobColumns) -> None:
    """Append a job that starts on ``count`` processors."""
    active.job[running] = job
    active.held[running] = count
    active.least[running] = jobs.least[job]
    active.ideal[running] = jobs.ideal[job]
    active.harvests[running] = 0
    active.start[running] = now
    active.since[running] = now
    active.left[running] = jobs.run[job]
    active.end[running] = now
    active.before[running] = 0


@kernel
def remember(active: Active, running: int) -> None:
    """Keep the counts from before a decision."""
    for place in range(running):
        active.before[place] = active.held[place]


@kernel
def on_arrival(
    active: Active, running: int, free: int, job: int, now: float, context: Context
) -> tuple[int, int]:
    """Figure 3, step 2, for a job that nobody waits before; returns how many run then, and what is free."""
    jobs, rules = context.jobs, context.rules
    least, ideal = jobs.least[job], jobs.ideal[job]
    if least <= free:
        count = min(free, ideal)
    elif running >= rules.admission or not harvest(active, running, least - free, -1, now, context):
        return running, free
    else:
        count = least
    admit(active, running, job, count, now, jobs)
    if rules.distribution == TRADE:
        trade(active, running + 1, now, rules)
    return running + 1, max(free - count, 0)


@kernel
def on_end(
    active: Active,
    running: int,
    free: int,
    head: int,
    tail: int,
    now: float,
    context: Context,
) -> tuple[int, int, int]:
    """Figure 3, step 3: the admission policy first, then running or queued applications.

    Jobs wait first come, first served: ``head`` up to ``tail``. Returns how many run then, what is
    free, and the new head.
    """
    jobs, rules = context.jobs, context.rules
    if rules.distribution != QUEUED_ONLY:
        while head < tail and running < rules.admission:
            least = jobs.least[head]
            if not harvest(active, running, least - free, -1, now, context):
                break
            free = max(free - least, 0)
            admit(active, running, head, least, now, jobs)
            running += 1
            head += 1
    if rules.distribution == FAVOR_RUNNING:
        free = grow(active, running, free, now, rules)
    while head < tail and jobs.least[head] <= free:
        count = min(free, jobs.ideal[head])
        admit(active, running, head, count, now, jobs)
        free -= count
        running += 1
        head += 1
    if rules.distribution >= FAVOR_QUEUED:
        free = grow(active, running, free, now, rules)
    if rules.distribution == TRADE:
        trade(active, running, now, rules)
    return running, free, head


@kernel
def remove(active: Active, running: int, place: int) -> None:
    """Take an application out; those behind it move up, so that the order of starts is kept."""
    for column in (active.job, active.held, active.least, active.ideal, active.harvests):
        for at in range(place, running - 1):
            column[at] = column[at + 1]
    for times in (active.start, active.left, active.since, active.end):
        for at in range(place, running - 1):
            times[at] = times[at + 1]
