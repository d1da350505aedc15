"""The one place that awards: a state and a queue go in, a decision comes out.

Every command is an adapter of it: ``schedule`` (a snapshot), ``simulate`` and ``sweep`` (a machine
with lasting columns), any importer. A pass is five functions over its record (``StepPass``), in
this order: ``open_window``, ``reserve``, ``StepPass.bidders``, ``award``, ``complete``.

The decision says how many jobs the next pass should look at: half after a limit without a proof,
twice as many after a proof. Where a balance is kept, a pass by it comes first; others follow only
where an empty machine would stay empty (balance.py).

No clock but the options' is read, nothing is kept: the same state, queue and options give the same
decision under a work limit.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, filterfalse

from ..bidgen.candidates import GuardedViews, most_at_once
from ..bidgen.first_fit import Cluster, FirstFitPlacer, Placement
from ..cluster.errors import OptionError
from ..cluster.resources.allocation import StartingJob
from ..cluster.resources.demand import Demand
from ..cluster.resources.job_reservations import Guard
from .attempt import are_preferred, attempt, bids_of_step, placed_by_counts
from .balance import NO_BALANCE, BalancePolicy, balances_of
from .complete import among, complete
from .job_classes import ClassMix
from .ledger import delays
from .options import StepOptions
from .parts.attempt_in_parts import attempt_in_parts
from .reserve import Backfilling, Promise, StepReservations
from .state import StepState
from .step_pass import StepPass, WaitingJobs
from .strategies import AttemptResult

#: Share of the limit after which a step has decided: the rest is for checks and reasons.
_FOR_DECIDING = 0.9
#: Seconds that this takes for each node and job, where that is more, of half of the limit at most.
_REPORT_S_OF_NODE, _REPORT_S_OF_JOB, _MOST_FOR_REPORT = 1.5e-5, 2.5e-4, 0.5
#: Share of the time in which a blocked job is looked for behind a window that starts whole: where
#: thousands start there, a pass of 3 s that took all of it started a quarter as many.
_FOR_BEHIND = 0.1
#: Promises that a step keeps, the earliest.
_MOST_PROMISED = 64
#: Share of the time that is left for an attempt after which another may follow.
_FIRST_OF_TWO = 0.5
#: Jobs that could start from which on only some of those that ask for the same bid.
MANY = 100


def decide(
    state: StepState,
    queue: Iterable[Demand],
    options: StepOptions,
    *,
    window: int | None = None,
    mix: ClassMix | None = None,
    all_bid_up_to: int | None = None,
    promised: Sequence[Promise] | None = None,
) -> StepPass:
    """Decide which jobs of a queue start now, and where.

    Args:
        state: the cluster; left alone.
        queue: the waiting jobs that the model can express, highest priority first.
        options: of the step.
        window: jobs that are looked at, ``options.window`` at most; None: as many as that.
        mix: what waits and what runs, where a balance is kept; None: as the whole queue and the
            state say.
        all_bid_up_to: with more jobs that could start, only some of those that ask alike bid; None:
            100.
        promised: starts that jobs were promised, in the window or behind it; None: those of the
            queue.

    Raises:
        InputError: the weights are too large to be summed exactly.
        SolverError: HiGHS failed.
    """
    waiting = _read(state, queue, options, window, promised)
    if options.began is None and options.most_s is not None:
        options = replace(options, began=options.clock())
    balances: Iterable[BalancePolicy] = (NO_BALANCE,)
    if options.balance:
        waiting = waiting._replace(behind=tuple(waiting.behind))
        behind = [demand for demand in waiting.behind if not state.impossible(demand)]
        balances = balances_of(state, waiting.window, behind, mix)
    many = MANY if all_bid_up_to is None else all_bid_up_to
    for balance in balances:
        step = open_window(state, waiting, options, balance, many)
        reserve(step)
        award(step)
        # Nobody is to wait for ever beside an empty machine on which no bid of his stands.
        step.completed = not step.discarded and (step.is_idle or not options.award_alone)
        complete(step)
        step.close()
        if step.starts or step.discarded or state.holds:
            break
    return step


def _read(
    state: StepState,
    queue: Iterable[Demand],
    options: StepOptions,
    window: int | None,
    promised: Sequence[Promise] | None,
) -> WaitingJobs:
    """Return the window and what is behind it, read only where promises have to be known."""
    size = options.window if window is None else window
    first, behind = window_of(queue, size, state)
    if options.promise == "none":
        return WaitingJobs(first, size, behind, ())
    if promised is None:
        behind = tuple(behind)
        starts = ((demand, demand.job.promised_start) for demand in (*first, *behind))
        promised = [Promise(demand, start) for demand, start in starts if start is not None]
    earliest = sorted(promised, key=lambda one: one.start)[:_MOST_PROMISED]
    return WaitingJobs(first, size, behind, tuple(earliest))


def window_of(
    queue: Iterable[Demand], size: int, state: StepState
) -> tuple[tuple[Demand, ...], Iterable[Demand]]:
    """Return the jobs of a window, and the others.

    No place goes to jobs that can never run, that lack a licence or whose limits are used up, for
    which nothing is ever reserved: one user's could keep others from bidding.
    """
    jobs, pools = iter(queue), state.columns.pools
    first: list[Demand] = []
    passed: list[Demand] = []
    while len(first) < size and (demand := next(jobs, None)) is not None:
        could = pools.hold(demand.job) and not state.impossible(demand)
        (first if could else passed).append(demand)
    return tuple(first), chain(passed, jobs)


def _deciding_s(time_limit_s: float, nodes: int, jobs: int) -> float:
    """Return after how many seconds a step has decided."""
    report_s = nodes * _REPORT_S_OF_NODE + jobs * _REPORT_S_OF_JOB
    least = (1 - _MOST_FOR_REPORT) * time_limit_s
    return min(_FOR_DECIDING * time_limit_s, max(least, time_limit_s - report_s))


def with_bids(step: StepPass, left_s: float | None = None) -> StepPass:
    """Return a pass with its award among all bids, for reasons and prices, if it made few or none.

    Args:
        step: a pass.
        left_s: seconds in which the bids have to be made; None: they take what they take.
    """
    now = step.options.clock()
    if step.selected:
        again = replace(step, selected=frozenset(), guards=step.guards_of_bids)
    elif step.counted is not None:
        options = replace(step.options, began=now)
        again = open_window(step.state, step.waiting, options, step.balance, MANY)
        reserve(again, by_counts=False)
        again.guards = again.reserved.guards
        again.completed, again.starts = step.completed, step.starts
    else:
        return step
    demands, others = again.bidders(len(again.window))
    if demands:
        deadline = None if left_s is None else now + left_s
        bids = bids_of_step(demands, again.cluster, again.options, deadline, others)
        again.best = among(bids, step.best, again.cluster, again.options, len(again.window))
        if step.selected:
            again.guards = step.guards
        else:
            reserve_for_losers(again)
    return again


def open_window(
    state: StepState, waiting: WaitingJobs, options: StepOptions, balance: BalancePolicy, all_bid_up_to: int
) -> StepPass:
    """Begin a pass: who of the window could start, and who of those that ask alike bids.

    Under promise ``backfill`` that is said as reservations are made.

    Args:
        state: the cluster.
        waiting: the queue.
        options: of the step; ``began`` is known.
        balance: in what proportions jobs are to run.
        all_bid_up_to: with more jobs that could start, only some of those that ask alike bid.
    """
    window, columns, clock = waiting.window, balance.on(state.columns), options.clock
    deadline = end = None
    if options.most_s is not None and options.began is not None:
        deadline = options.began + _deciding_s(options.most_s, len(columns.names), len(window))
        end = options.began + options.most_s
    reserved = StepReservations(
        state,
        balance.reservations(options.reservations),
        later_only=balance.keeps_shares or options.backfills,
        is_over=lambda: deadline is not None and clock() >= deadline,
    )
    step = StepPass(
        state=state,
        options=options,
        balance=balance,
        waiting=waiting,
        columns=columns,
        views=state.views_on(columns),
        deadline=deadline,
        end=end,
        reserved=reserved,
    )
    if not options.backfills:
        step.able = able = step.views.startable(window)
        count, alike = options.reservations, step.alike
        step.bidding = cap_identical_jobs(window, able, step.views, count, all_bid_up_to, alike)
    return step


def reserve(step: StepPass, *, by_counts: bool = True) -> None:
    """Reserve for jobs that were promised a start, and for the first that no award can let start.

    Under promise ``backfill`` as plain backfilling would; the jobs that it would start bid, and no
    others. With ``by_counts`` they start at once if counts say that no award is better.
    """
    reserved = step.reserved
    for promise in step.waiting.promised:
        reserved.promise(promise)
    if step.options.backfills:
        _backfill(step, by_counts)
        return
    for demand in step.window:
        if demand.job.id in step.bidding:
            if not step.passes_over(demand):
                break
            continue
        is_asked = demand.job.id in reserved.asked or step.passes_over(demand)
        if not is_asked and not reserved.reserve(demand, ()):
            break


def _backfill(step: StepPass, by_counts: bool) -> None:
    reserved = step.reserved
    fit = FirstFitPlacer(Cluster(step.columns, step.state.topology, reserved.guards))
    backfilling = Backfilling(fit, reserved, step.passes_over)
    backfilling.start(step.window)
    if by_counts and not step.waiting.promised and _stand(step, fit.placements, fit):
        return
    backfilling.reserve()
    if reserved.wants_more:
        # Where the whole window starts, the first blocked job stands behind it.
        now = step.options.clock()
        end = step.deadline and now + _FOR_BEHIND * (step.deadline - now)
        step.waiting = step.waiting._replace(behind=tuple(step.waiting.behind))
        for demand in filterfalse(step.passes_over, step.waiting.behind):
            if not reserved.wants_more or step.is_over(end):
                break
            backfilling.start((demand,))
        backfilling.reserve()
    due = {guard.job.id for guard in reserved.guards if guard.is_now}
    step.able = step.views.startable(step.window)
    step.bidding = step.able & ({start.demand.job.id for start in backfilling.starts} | due)
    step.passed = step.able - step.bidding


def award_by_counts(step: StepPass) -> bool:
    """Start an award that no other could better, if counts say so.

    Where they say so of the jobs but not of their nodes, these jobs alone bid. Return whether these
    may not all win.
    """
    step.selected = frozenset()
    if step.balance.placer is not None or not (step.options.selects or step.options.counts_may_prove):
        return False
    demands, _ = step.bidders(len(step.window))
    found = placed_by_counts(demands, step.cluster, step.options)
    if found is None:
        return False
    chosen, places, fit = found
    placements = [placement for placement in places if placement is not None]
    are_placed, are_few = len(placements) == len(chosen), 2 * len(chosen) <= len(demands)
    if step.options.selects and _attempt_of(step.options, len(step.columns.names)) is attempt:
        # Of few the bids say soon whether all can win.
        step.selected = frozenset(one.job.id for one in chosen if are_placed or are_few)
    if not are_placed:
        return bool(step.selected)
    known = step.reserved.asked | {one.job.id for one in chosen}
    losers = (demand for demand in step.window if demand.job.id not in known)
    # Where the award delays a loser's reservation, there is another auction.
    if not step.attempts and (not step.reserved.wants_more or all(map(step.passes_over, losers))):
        _stand(step, placements, fit)
    return False


def _stand(step: StepPass, placements: list[Placement], fit: FirstFitPlacer) -> bool:
    """Start jobs where they are placed if no award could better that; return whether they start.

    None is preferred, and by counting no other job could start beside them.
    """
    if placements and not are_preferred(placements, step.cluster, step.options):
        return False
    if not (placements or step.state.holds):
        return False
    waiting = {demand.job.id: demand for demand in step.window}
    starts = [(waiting.pop(one.asked.demand.job.id), one.allocation()) for one in placements]
    step.waiting = step.waiting._replace(behind=tuple(step.waiting.behind))
    fit.release()
    others = () if step.options.award_alone else chain(waiting.values(), step.waiting.behind)
    if any(map(fit.could_hold, others)):
        return False
    step.counted = [StartingJob(demand=demand, allocation=where) for demand, where in starts]
    step.placed, step.selected = tuple(placements), frozenset()
    return True


def reserve_for_losers(step: StepPass) -> bool:
    """Reserve for the first jobs that did not start; return whether the award delays any."""
    best, reserved = step.best, step.reserved
    winners = {start.demand.job.id: start for start in step.winners()}
    if best is None:
        return False
    for demand, before in step.unreserved(winners):
        reserved.reserve(demand, [winners[job] for job in before if job in winners])
    if len(reserved.guards) == len(step.guards):
        return False
    step.guards = reserved.guards
    is_delayed = delays(best.answer.table, best.answer.chosen, step.cluster)
    return is_delayed or any(guard.is_now and guard.job.id not in winners for guard in step.guards)


def award(step: StepPass) -> None:
    """Hold the auctions of a pass; under ``halve`` each of ever fewer jobs until one is proved.

    The best award of the last auction stands; where nobody can bid in it the one before does.
    """
    options = step.options
    halves = options.chosen_on_timeout == "halve" and not options.is_anytime and not options.is_greedy
    for guards, share, everywhere in _auctions(step):
        step.guards = step.guards_of_bids = guards
        is_tried = award_by_counts(step)
        if step.counted is not None:
            return
        made: list[AttemptResult] = []
        few: list[AttemptResult] = []
        size, deadline = len(step.window), step.until(share)
        cluster = replace(step.cluster, everywhere=everywhere)
        while size and any(demand.job.id in step.bidding for demand in step.window[:size]):
            # The file is the whole window's: halved attempts leave it alone.
            asked = replace(options, export="") if made or step.attempts else options
            end = deadline
            may_repeat = is_tried or (halves and size > 1 and options.most_work is None)
            if may_repeat and deadline is not None:
                end = options.clock() + _FIRST_OF_TWO * (deadline - options.clock())
            if is_tried:
                asked = replace(asked, work_limit=1)
            demands, others = step.bidders(size)
            make = _attempt_of(options, len(cluster.columns.names))
            made.append(make(demands, cluster, asked, size=size, deadline=end, others=others))
            have_won, was_tried, is_tried = len(made[-1].answer.chosen) == len(demands), is_tried, False
            are_chosen = bool(step.selected) and size == len(step.window)
            if are_chosen and not (have_won and (made[-1].ended or not was_tried)):
                # Everyone bids where not all can win that counts choose.
                few.append(made.pop())
                step.selected = step.selected if have_won else frozenset()
            elif made[-1].ended or not halves or size == 1 or step.is_over(deadline):
                break
            else:
                size //= 2
        step.attempts += made
        step.best = best = max(made, key=lambda one: (*one.answer.value, one.proved), default=step.best)
        if made and best and few:
            alone = max(few, key=lambda one: one.answer.value)
            step.best = replace(best, alone=among(best.bids, alone, cluster, options, best.size))


def _auctions(step: StepPass) -> Iterator[tuple[tuple[Guard, ...], float, bool]]:
    """Yield the auctions of a pass: beside what, for what share of the time, whether everywhere.

    None where backfilling settles the pass; another one where one delays a loser's reservation,
    until none does; others while an empty machine would stay empty. Neither first bids nor bids
    cover every place, and what is only reserved must not keep the machine idle.
    """
    if step.counted is not None:
        return
    yield step.reserved.guards, _FIRST_OF_TWO if step.reserved.wants_more else 1.0, False
    while reserve_for_losers(step):
        # A job reserved for now starts, so that the next one gets its reservation.
        share = _FIRST_OF_TWO if any(guard.is_now for guard in step.guards) else 1.0
        yield step.guards, share, False
    guards = step.guards
    bids_more = step.balance.placer is not None and step.options.is_greedy
    for kept in (guards, ()) if guards else (guards,):
        if step.is_idle and kept != guards:
            yield kept, 1.0, False
        if step.is_idle and bids_more:
            yield kept, 1.0, True
    if step.is_idle:
        step.guards = ()


def _attempt_of(options: StepOptions, nodes: int) -> Callable[..., AttemptResult]:
    """Return how an auction over so many nodes is held: in one piece or in parts."""
    if options.is_anytime and nodes > options.nodes_of_a_part:
        return attempt_in_parts
    if options.dask:
        most = options.nodes_of_a_part
        raise OptionError(f"dask: {nodes} nodes are one part of at most {most} (part_nodes)")
    return attempt


def cap_identical_jobs(
    window: tuple[Demand, ...],
    able: set[str],
    views: GuardedViews,
    reserve: int,
    all_bid_up_to: int,
    alike: Callable[[Demand], int],
) -> set[str]:
    """Return the jobs that bid: of those that ask for the same, as many as could start at once.

    One of them can take the place of another, so those of higher priority stand for the others: the
    award is the same, and a window of thousands costs what its few kinds of jobs cost. As many more
    of a kind stay as there are reservations: the first blocked jobs are among them. Where few could
    start, all bid, so that prices and reasons know of each. ``alike``: what such jobs have in common.
    """
    if len(able) <= all_bid_up_to:
        return able
    seen: dict[int, int] = {}
    most: dict[int, int] = {}
    bidding: set[str] = set()
    for demand in window:
        if demand.job.id not in able:
            continue
        kind = alike(demand)
        seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] > reserve + 1:
            if kind not in most:
                most[kind] = reserve + max(most_at_once(demand, views.of(demand)), 1)
            if seen[kind] > most[kind]:
                continue
        bidding.add(demand.job.id)
    return bidding
