"""The decision function on columns: when an application comes or ends (Weissman, figure 3).

Decisions change counts and append who starts; how work goes on from there is
application_columns.py's.

First who gives processors, who gets them, and in which order: the harvest policies (Weissman 2.2).
An order fills ``active.order`` with all running applications, the policy's own candidates first,
and returns how many those are; where they cannot supply what is asked for, the others follow. A
harvest takes exactly what is asked for, or nothing; to give free processors is its inverse.
"""

from ...cluster.kernels.harness import Floats, kernel
from .application_columns import (
    ATTEMPTS,
    EVENTS,
    SUCCESSES,
    Active,
    Context,
    JobColumns,
    PolicyRules,
    begin,
    overhead_s,
    speed,
    work_left,
)

NEVER, EVEN, FAIR, LONG, SHORT, LOW_IMPACT, PRICED = 0, 1, 2, 3, 4, 5, 6
#: The names of these, in their order; from LOW_IMPACT on processors go one by one, before in turns.
HARVESTS = ("never", "even", "fair", "long", "short", "low_impact", "priced")

#: Which way processors go; a sign, so that one comparison serves both.
GIVES, GETS = 1, -1


@kernel
def order_fair(active: Active, running: int, way: int) -> int:
    """Those harvested no more often than the average; to get, no less often; then the others."""
    total = 0
    for place in range(running):
        total += active.harvests[place]
    chosen, first = 0, 0
    for turn in range(2):
        for place in range(running):
            is_candidate = way * (active.harvests[place] * running - total) <= 0
            if is_candidate == (turn == 0):
                active.order[chosen] = place
                chosen += 1
        if turn == 0:
            first = chosen
    return first


@kernel
def order_long(active: Active, running: int, now: float, way: int) -> int:
    """Longest run first, of at least average age; to get, the youngest first, of at most that."""
    for place in range(running):
        active.order[place] = place if way == GIVES else running - 1 - place
    return first_by_average(active, running, now, active.start, way)


@kernel
def order_short(active: Active, running: int, now: float, way: int) -> int:
    """Most time left first, of at least the average; to get, the least first, of at most that."""
    for place in range(running):
        left, at = active.end[place] - now, place
        while at > 0 and way * left > way * (active.end[active.order[at - 1]] - now):
            active.order[at] = active.order[at - 1]
            at -= 1
        active.order[at] = place
    return first_by_average(active, running, now, active.end, -way)


@kernel
def first_by_average(active: Active, running: int, now: float, times: Floats, way: int) -> int:
    """Return how many of an order are at least as far from (near) their time as the average is."""
    total, chosen = 0.0, 0
    for place in range(running):
        total += now - times[place]
    while chosen < running and way * ((now - times[active.order[chosen]]) * running - total) >= 0.0:
        chosen += 1
    return chosen


@kernel
def order_of(active: Active, running: int, now: float, policy: int, way: int) -> int:
    """Fill the order of a policy that goes round candidates; return their number, at least one."""
    chosen = running
    if policy == FAIR:
        chosen = order_fair(active, running, way)
    elif policy == LONG:
        chosen = order_long(active, running, now, way)
    elif policy == SHORT:
        chosen = order_short(active, running, now, way)
    else:
        for place in range(running):
            active.order[place] = place
    return max(chosen, 1)


#: Less work than this counts as this much: prices stay finite.
SHORTEST_S = 1e-6


@kernel
def set_floors(active: Active, running: int, now: float, rules: PolicyRules) -> int:
    """Set how far each application may be harvested (control); return what all can give."""
    spare = 0
    for place in range(running):
        is_open = active.harvests[place] < rules.max_harvests
        is_open = is_open and now - active.start[place] >= rules.protected_s
        active.floor[place] = active.least[place] if is_open else active.held[place]
        active.taken[place] = 0
        spare += active.held[place] - active.floor[place]
    return spare


@kernel
def take(active: Active, running: int, need: int, now: float, rules: PolicyRules) -> None:
    """Mark in ``taken`` who gives ``need`` processors; ``set_floors`` found that many."""
    if rules.harvest >= LOW_IMPACT:
        for _ in range(need):
            active.taken[next_one(active, running, now, rules.harvest, rules.model, GIVES)] += 1
    else:
        chosen = order_of(active, running, now, rules.harvest, GIVES)
        take_in_turns(active, running, chosen, need)


@kernel
def take_in_turns(active: Active, running: int, chosen: int, need: int) -> None:
    """Take one at a time from each candidate in turn; from all, if candidates lack processors."""
    spare = 0
    for at in range(chosen):
        spare += active.held[active.order[at]] - active.floor[active.order[at]]
    reach = chosen if spare >= need else running
    while need > 0:
        for at in range(reach):
            place = active.order[at]
            if active.held[place] - active.taken[place] > active.floor[place]:
                active.taken[place] += 1
                need -= 1
                if need == 0:
                    break


@kernel
def next_one(active: Active, running: int, now: float, policy: int, model: int, way: int) -> int:
    """Return who gives one processor more, or gets it, under low impact or prices; -1: nobody can.

    Low impact: who keeps the largest share of its ideal gives, who has the smallest gets. Priced:
    who values a processor least gives, who values one more most gets. Among equals the first.
    """
    best, least = -1, 0.0
    for place in range(running):
        # The count without the processor in question.
        count = active.held[place]
        if way == GIVES:
            count -= active.taken[place] + 1
        can = count >= active.floor[place] if way == GIVES else count < active.ideal[place]
        if not can:
            continue
        if policy == LOW_IMPACT:
            value = -way * (count / active.ideal[place])
        else:
            value = way * price_of(active, place, count, now, model)
        if best < 0 or value < least:
            best, least = place, value
    return best


@kernel
def price_of(active: Active, place: int, count: int, now: float, model: int) -> float:
    """Return what one processor more than ``count`` is worth to an application.

    It is the share of the work left that it does in a second: what it adds to the rate of ends.
    """
    ideal = active.ideal[place]
    left = work_left(active, place, now, model)
    return (speed(model, count + 1, ideal) - speed(model, count, ideal)) / max(left, SHORTEST_S)


@kernel
def give_up(active: Active, running: int) -> int:
    """Let applications give what ``taken`` marks; return how many were harvested: an event each."""
    victims = 0
    for place in range(running):
        if active.taken[place] > 0:
            active.held[place] -= active.taken[place]
            active.harvests[place] += 1
            victims += 1
    return victims


#: From FAVOR_QUEUED on running applications grow after the queue was served.
FAVOR_RUNNING, QUEUED_ONLY, FAVOR_QUEUED, TRADE = 0, 1, 2, 3
#: The names of these, in their order: who gets the processors of an application that ended; trade:
#: the queue, then running ones trade (ours).
DISTRIBUTIONS = ("favor_running", "queued_only", "favor_queued", "trade")

#: A processor moves only for a price so many times the one it has: moving is not free.
CLEARLY = 1.05


@kernel
def grow(active: Active, running: int, free: int, now: float, rules: PolicyRules) -> int:
    """Let running applications grow up to their ideal, and return what is left."""
    room = 0
    for place in range(running):
        room += active.ideal[place] - active.held[place]
    given = min(free, room)
    if given <= 0:
        return free
    if rules.harvest >= LOW_IMPACT:
        for _ in range(given):
            active.held[next_one(active, running, now, rules.harvest, rules.model, GETS)] += 1
    else:
        chosen = order_of(active, running, now, rules.harvest, GETS)
        give_in_turns(active, running, chosen, given)
    return free - given


@kernel
def give_in_turns(active: Active, running: int, chosen: int, given: int) -> None:
    """Give one at a time to each candidate in turn; to all, once candidates have their ideal."""
    reach = chosen
    while given > 0:
        begun = given
        for at in range(reach):
            place = active.order[at]
            if active.held[place] < active.ideal[place]:
                active.held[place] += 1
                given -= 1
                if given == 0:
                    break
        if given == begun:
            reach = running


@kernel
def trade(active: Active, running: int, now: float, rules: PolicyRules) -> None:
    """Move processors from where one is worth least to where one more is worth most.

    Ours: the control policy's floors hold, and moving ends when no price is clearly above another.
    """
    for _ in range(set_floors(active, running, now, rules)):
        giver = next_one(active, running, now, PRICED, rules.model, GIVES)
        taker = next_one(active, running, now, PRICED, rules.model, GETS)
        if giver < 0 or taker < 0 or giver == taker:
            break
        low = price_of(active, giver, active.held[giver] - 1, now, rules.model)
        if price_of(active, taker, active.held[taker], now, rules.model) <= CLEARLY * low:
            break
        active.held[giver] -= 1
        active.held[taker] += 1


@kernel
def harvest(active: Active, running: int, need: int, spared: int, now: float, context: Context) -> bool:
    """Take ``need`` processors from running applications, all or nothing; say whether it got them.

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
    """Return by how much the victims of ``taken`` would end later in sum: a harvest's cost."""
    jobs, model = context.jobs, context.rules.model
    total = 0.0
    for place in range(running):
        if active.taken[place] > 0:
            count = active.held[place]
            left = work_left(active, place, now, model)
            slow = speed(model, count - active.taken[place], active.ideal[place])
            total += left / slow - left / speed(model, count, active.ideal[place])
            total += overhead_s(jobs.data[active.job[place]], count)
    return total


@kernel
def wait_s(active: Active, running: int, need: int, now: float) -> float:
    """Return how long ``need`` more processors would take to come without a harvest: a benefit."""
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
def admit(
    active: Active, running: int, job: int, count: int, now: float, jobs: JobColumns, model: int
) -> None:
    """Append a job that starts on ``count`` processors."""
    active.job[running] = job
    active.held[running] = count
    active.least[running] = jobs.least[job]
    active.ideal[running] = jobs.ideal[job]
    active.harvests[running] = 0
    begin(active, running, jobs.run[job], now, model)
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
    """Figure 3, step 2, for a job that is first; returns how many run then, and what is free."""
    jobs, rules = context.jobs, context.rules
    least, ideal = jobs.least[job], jobs.ideal[job]
    if least <= free:
        count = min(free, ideal)
    elif running >= rules.admission or not harvest(active, running, least - free, -1, now, context):
        return running, free
    else:
        count = least
    admit(active, running, job, count, now, jobs, rules.model)
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
            admit(active, running, head, least, now, jobs, rules.model)
            running += 1
            head += 1
    if rules.distribution == FAVOR_RUNNING:
        free = grow(active, running, free, now, rules)
    while head < tail and jobs.least[head] <= free:
        count = min(free, jobs.ideal[head])
        admit(active, running, head, count, now, jobs, rules.model)
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
