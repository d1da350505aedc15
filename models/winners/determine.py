"""Winner determination: which bids win, their exact worth, how far it is proved, item prices.

``winners`` reads what is given strictly and calls ``determine``, as the scheduler's strategies do
with the bids of its jobs. Several searches of one packing may run side by side, in processes, each
with a seed of its own. Where work is counted, how many searches there are and how far each goes
follows from the limit alone: any number of processes gives the same award, and more work is never
worse. Where a clock counts, each process is one search.
"""

import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from math import inf, isfinite
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ...cluster.errors import AucschedError, InputError, OptionError
from ...cluster.keywords import refuses_unknown
from ...cluster.option_table import OPTIONS_BY_NAME
from ...cluster.resources.capacity import FloatArray, IntArray
from ...cluster.schedule import Status
from ...cluster.tabular import Tabular
from ...cluster.text import plural
from ..search.anytime import AnytimeSearch
from ..search.compiled_search import load_within
from ..search.operators import FEW_BIDS, greedy_award
from ..search.packing import Packing, Worth
from ..search.proving import best_among, proved_award
from ..search.reductions import reduced
from ..search.search_parameters import Found, ProgramBuilder, SearchLimits, SearchParameters, parameters_of
from ..solve.lexicographic import BoundByNumber, integer_weights, solve_lexicographic
from ..solve.program import are_one
from ..solve.solver import SolverStatus
from .instance import Bid, BidArrays, Number, ProblemInstance, as_list, exact, read_instance
from .spawning import search_processes, spawning

#: Seconds where neither a time nor a work limit is given.
TIME_LIMIT_S = 3.0
#: Seconds that a pair of bids takes reductions, and the share of the time that these may have.
_PAIR_S, _FOR_REDUCTIONS = 3e-8, 0.06


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Winners(Tabular):
    """The answer of a winner determination.

    Attributes:
        chosen: the winning bids, by their places as given, ascending.
        value: what they are worth together, exactly.
        bound: no award is worth more.
        gap: (bound − value) / value; 0 where both are equal, infinite where only the value is 0.
        proved: no award is worth more than this one.
        status: ``optimal`` where it is proved, with any second objective; else ``feasible``.
        prices: of one of each item, by name: what bids outbid each other up to, at the bound. One
            that no float holds, as for an item counted in 10^-299, is the largest float.
        seconds: of wall time, reading what was given included.
        parameters: of the search, those that were changed, by name; absent in JSON without any.

    Examples:
        >>> found = winners([("ann", 10, {"gpu": 2}), ("bob", 5, {"gpu": 1})], {"gpu": 2})
        >>> found.value, found.bound, found.status.value
        (10, 10, 'optimal')
        >>> print(found.title())
        1 bid wins, worth 10, optimal
    """

    chosen: tuple[int, ...]
    value: int | Fraction
    bound: int | Fraction
    gap: float
    proved: bool
    status: Status
    prices: dict[Hashable, float]
    seconds: float = field(compare=False)
    parameters: Mapping[str, float] = field(default_factory=dict)

    @property
    def columns(self) -> dict[str, list[Any]]:
        """A row for each winning bid: its place as given."""
        return {"bid": list(self.chosen)}

    def to_dict(self) -> dict[str, Any]:
        """Return the answer (``aucsched-winners/1``); a gap above an award worth 0 is None."""
        return {
            "format": "aucsched-winners/1",
            "status": self.status.value,
            "value": _number(self.value),
            "bound": _number(self.bound),
            "gap": self.gap if isfinite(self.gap) else None,
            "chosen": list(self.chosen),
            "prices": {str(item): price for item, price in self.prices.items()},
            "seconds": round(self.seconds, 6),
            **({"parameters": dict(self.parameters)} if self.parameters else {}),
        }

    def title(self) -> str:
        """Return how many bids win, what they are worth, and how far that is proved."""
        wins = plural(len(self.chosen), "bid", "wins")
        return f"{wins}, worth {_number(self.value):.12g}, {self.status.value}"

    def summary(self) -> dict[str, Any]:
        """Return the bound, the gap and the time."""
        return {
            "bids": list(self.chosen),
            "bound": _number(self.bound),
            "gap": self.gap,
            "seconds": self.seconds,
        }


def _number(value: int | Fraction) -> int | float:
    return value.numerator if value.denominator == 1 else float(value)


@refuses_unknown
def winners(  # noqa: PLR0913 - what is given, and each limit by its own name
    bids: Iterable[Bid] | BidArrays,
    capacities: Mapping[Any, Number] | npt.ArrayLike,
    *,
    groups: str | Sequence[Hashable] | npt.NDArray[Any] = "xor",
    second: Sequence[Number] | npt.NDArray[Any] | None = None,
    start: Iterable[int] = (),
    time_limit_s: float | None = None,
    work_limit: int | None = None,
    seed: int = 0,
    strategy: Literal["anytime", "exact", "greedy"] = "anytime",
    workers: int = 1,
    parameters: SearchParameters | Mapping[str, float] | str | None = None,
) -> Winners:
    """Return which bids win: the greatest sum of values that the capacities and the groups allow.

    Examples:
        >>> bids = [("ann", 10, {"gpu": 2}), ("ann", 7, {"gpu": 1}), ("bob", 5, {"gpu": 1})]
        >>> found = winners(bids, {"gpu": 2})
        >>> found.chosen, found.value, found.proved
        ((1, 2), 12, True)

    Args:
        bids: tuples ``(bidder, value, {item: amount})``, or columns. Numbers are integers or floats
            (Python's, numpy's), Fractions or Decimals, from 0 on; a float is the decimal it prints.
        capacities: how much there is of each item: by name, or an array by place.
        groups: ``xor``: a bidder wins at most one bid (bids without a bidder exclude none); ``or``:
            any; or the group of each bid: at most one bid of a group wins, None is no group.
        second: a second objective: among awards of the greatest value one with the greatest sum of
            these is looked for, shape (bids,), not negative.
        start: places of bids that may win together, to begin with.
        time_limit_s: wall time; 3 s where no limit is given.
        work_limit: instead, the same everywhere: steps of the search, nodes of ``exact``.
        seed: of every random choice.
        strategy: ``anytime``, ``exact`` or ``greedy`` (docs/winners.md).
        workers: processes that search at once, for ``anytime``. Under a work limit alone their
            number changes nothing but the time.
        parameters: of ``anytime``: SearchParameters, some by name, or a text like ``moves=50``.

    Raises:
        InputError: a bid, a capacity, a group or the start cannot be used; names it.
        OptionError: an option's value cannot be used.
        AucschedError: a worker process ended.
    """
    began = time.perf_counter()
    options: dict[str, Any] = {"time_limit_s": time_limit_s, "work_limit": work_limit, "seed": seed}
    options |= {"strategy": strategy, "workers": workers}
    check_options(**options, parameters=parameters)
    instance = read_instance(bids, capacities, groups, in_floats=adds_floats(strategy, work_limit))
    return winners_of(instance, second=second, start=start, parameters=parameters, began=began, **options)


def winners_of(
    instance: ProblemInstance,
    *,
    second: Sequence[Number] | npt.NDArray[Any] | None = None,
    start: Iterable[int] = (),
    parameters: SearchParameters | Mapping[str, float] | str | None = None,
    began: float | None = None,
    **options: Any,
) -> Winners:
    """Return which bids of an instance win; arguments as in ``winners``, where None is the default.

    ``began``: when the time began to count (time.perf_counter); None: now. ``options``: those that
    ``check_options`` has checked.
    """
    began = time.perf_counter() if began is None else began
    work_limit = options.get("work_limit")
    limit_s = time_limit_of(options.get("time_limit_s"), work_limit)
    if len(instance.packing) >= FEW_BIDS:
        load_within(limit_s if isfinite(limit_s) else None)
    steering = parameters_of(parameters)
    limits = SearchLimits(
        deadline=began + limit_s if isfinite(limit_s) else None,
        steps=work_limit,
        seed=options.get("seed") or 0,
        clock=time.perf_counter,
        parameters=steering,
    )
    decided = determine(
        instance.packing,
        instance.values,
        _second(second, instance),
        _start(start, instance, np.argsort(instance.place)),
        limits,
        options.get("strategy") or "anytime",
        workers=options.get("workers") or 1,
    )
    value = sum((instance.values[bid] for bid in decided.award.tolist()), start=0)
    bound = value if decided.bound is None else decided.bound
    return Winners(
        chosen=tuple(sorted(instance.place[decided.award].tolist())),
        value=_plain(value),
        bound=_plain(bound),
        gap=_gap(value, bound),
        proved=decided.proved,
        status=Status.OPTIMAL if decided.status is SolverStatus.OPTIMAL else Status.FEASIBLE,
        prices=_prices(instance, decided.price),
        seconds=time.perf_counter() - began,
        parameters=steering.changed,
    )


def adds_floats(strategy: str | None, work_limit: int | None) -> bool:
    """Return whether a determination adds values as floats: all but ``greedy`` and HiGHS alone."""
    return (strategy or "anytime") == "anytime" or work_limit is not None


def time_limit_of(time_limit_s: float | None, work_limit: int | None) -> float:
    """Return the seconds that a determination may take; infinite where only work is counted."""
    if time_limit_s is None:
        return TIME_LIMIT_S if work_limit is None else inf
    return time_limit_s


def determine(
    packing: Packing,
    values: Sequence[int | Fraction],
    second: FloatArray,
    start: IntArray,
    limits: SearchLimits,
    strategy: str = "anytime",
    build_program: ProgramBuilder | None = None,
    workers: int = 1,
) -> Found:
    """Return the award found within the limits, by exact sum of values and then by ``second``.

    Its bound, which there always is, and its prices are in units of the values.

    Args:
        packing: bids and capacities.
        values: not negative, shape (bids,).
        second: not negative, higher is better, shape (bids,).
        start: an award that fits, ascending.
        limits: when to stop.
        strategy: ``anytime``: search and HiGHS; ``exact``: HiGHS over all bids at once; ``greedy``:
            greedy awards, which no limit ends.
        build_program: for ``anytime``: builds the program over some bids for HiGHS; None: of the
            packing's rows.
        workers: for ``anytime`` without ``build_program``: searches at once, in processes.
    """
    weights, unit = integer_weights(values)
    worth, by_number = Worth.scaled(weights, second), BoundByNumber(weights, packing.job)
    if strategy == "greedy":
        found = _found(greedy_award(packing, worth, start), packing)
    elif strategy == "exact":
        found = _solve_exact(packing, worth, start, limits)
    elif build_program is None:
        found = _search_side_by_side(packing, worth, start, limits, workers)
    else:
        known = _soon_proved(packing, worth, start, limits)
        found = known or AnytimeSearch(packing, worth, start, limits, build_program).run()
    reached, _ = worth.of(found.award)
    bound = max(reached, by_number.of(found.bound))
    proved = found.proved or bound == reached
    is_best = proved and (found.status is SolverStatus.OPTIMAL or not second.any())
    return replace(
        found,
        status=SolverStatus.OPTIMAL if is_best else SolverStatus.FEASIBLE_AT_LIMIT,
        proved=proved,
        bound=bound * unit,
        price=found.price * float(unit),
    )


def _solve_exact(packing: Packing, worth: Worth, start: IntArray, limits: SearchLimits) -> Found:
    """Give HiGHS all bids at once; where steps count, if branch and bound does not settle them."""
    everything = np.arange(len(packing))
    won = proved_award(packing, worth, start, limits)
    if won is not None:
        return _proved(won[0], packing, worth)
    settings = limits.settings(nodes=limits.steps)
    program = packing.program(everything, packing.capacity)
    begin = np.isin(everything, start).astype(np.float64)
    weights, second = worth.weights, worth.preference
    solution = solve_lexicographic(program, packing.job, weights, second, begin, settings)
    award = np.flatnonzero(are_one(solution.values))
    if not (packing.use(award) <= packing.capacity).all():
        # Beside huge counts the solver's tolerance matters: what it found is counted again.
        return _found(start, packing)
    return _found(award, packing, status=solution.status, proved=solution.proved, bound=solution.bound)


def _soon_proved(packing: Packing, worth: Worth, start: IntArray, limits: SearchLimits) -> Found | None:
    """Return the best award where steps count and branch and bound alone proves it; else None."""
    if not (limits.counts_steps and limits.steps and limits.may_prove):
        return None
    if not 0 < len(packing) <= limits.parameters.branched:
        return None
    award, proved = best_among(
        packing, worth, start, np.arange(len(packing)), may_wait=limits.deadline is None
    )
    return _proved(award, packing, worth) if proved else None


def _proved(award: IntArray, packing: Packing, worth: Worth) -> Found:
    bound, _ = worth.of(award)
    return _found(award, packing, status=SolverStatus.OPTIMAL, proved=True, bound=bound)


def _found(award: IntArray, packing: Packing, **known: Any) -> Found:
    return Found(award=award, price=np.zeros(len(packing.capacity)), **known)


def check_options(**options: Any) -> None:
    """Raise OptionError for what ``winners`` cannot use or would ignore; None is not given."""
    for name, value in options.items():
        if value is not None and name != "parameters":
            OPTIONS_BY_NAME[name].check(value)
    strategy = options.get("strategy") or "anytime"
    for name in ("time_limit_s", "work_limit") if strategy == "greedy" else ():
        if options.get(name) is not None:
            raise OptionError(f"{name}: strategy greedy reaches no limit")
    for name in ("workers", "parameters", "search_parameters") if strategy != "anytime" else ():
        if options.get(name) not in (None, 1):
            raise OptionError(f"{name}: only strategy anytime searches")


def _second(second: Sequence[Number] | npt.NDArray[Any] | None, instance: ProblemInstance) -> FloatArray:
    if second is None:
        return np.zeros(len(instance.place))
    listed = as_list(second, "second")
    if len(listed) != len(instance.place):
        raise InputError(f"{len(listed)} entries instead of {len(instance.place)}", path="second")
    read = np.array([float(exact(one, f"second[{at}]")) for at, one in enumerate(listed)], np.float64)
    return read[instance.place]


def _start(start: Iterable[int], instance: ProblemInstance, now: IntArray) -> IntArray:
    """Return a start's bids as the packing has them; it is checked that they fit."""
    places = as_list(start, "start")
    for at, place in enumerate(places):
        is_number = isinstance(place, (int, np.integer)) and not isinstance(place, bool)
        if not is_number or not 0 <= place < len(now):
            raise InputError(f"{place!r} is none of the {len(now)} bids", path=f"start[{at}]")
    award = np.sort(now[np.array(places, np.int64)])
    group = instance.packing.job[award]
    if len(np.unique(group)) < len(group):
        raise InputError("two bids of one group", path="start")
    if not (instance.packing.use(award) <= instance.packing.capacity).all():
        raise InputError("these bids do not fit together", path="start")
    return award


def _plain(value: int | Fraction) -> int | Fraction:
    return value.numerator if value.denominator == 1 else value


def _gap(value: int | Fraction, bound: int | Fraction) -> float:
    if bound == value:
        return 0.0
    return float(Fraction(bound - value) / Fraction(value)) if value else inf


def _prices(instance: ProblemInstance, price: FloatArray) -> dict[Hashable, float]:
    """Return the price of each item; what cannot bind costs nothing."""
    prices = np.zeros(len(instance.items))
    prices[instance.packing.origin] = price
    with np.errstate(over="ignore"):
        of_one = np.minimum(prices / instance.unit, np.finfo(np.float64).max)
    return dict(zip(instance.items, of_one.tolist(), strict=True))


#: Steps of the first search before there are others, and how many there are then.
ALONE, _SEARCHES = 400, 4


def _search_side_by_side(
    packing: Packing, worth: Worth, start: IntArray, limits: SearchLimits, workers: int
) -> Found:
    """Return the best of several searches among bids left by reductions; it holds for all bids.

    Arguments as in ``AnytimeSearch``, and how many processes.
    """
    is_worth_it = len(packing) ** 2 * _PAIR_S <= _FOR_REDUCTIONS * limits.left_s()
    reduction = reduced(packing, worth) if is_worth_it else None
    if reduction is not None:
        packing, worth, start = reduction.packing, reduction.worth, reduction.lowered(start)
    first, *others = _limits(limits, workers)
    search = partial(AnytimeSearch, packing, worth, start)
    if workers == 1 or not others:
        found = [search(one).run() for one in (first, *others)]
    else:
        with search_processes(min(workers - 1, len(others))) as pool:
            with spawning():
                waiting = [pool.submit(_searched, search, one) for one in others]
            try:
                found = [search(first).run(), *(one.result() for one in waiting)]
            except BrokenProcessPool:
                raise AucschedError("a worker process ended") from None
    best = _joined(found, worth)
    if reduction is None:
        return best
    return replace(
        best,
        award=reduction.lifted(best.award),
        bound=None if best.bound is None else best.bound + reduction.offset,
        price=reduction.prices(best.price),
        earlier=tuple(map(reduction.lifted, best.earlier)),
    )


def _limits(limits: SearchLimits, workers: int) -> list[SearchLimits]:
    """Return the limits of each search, the first with the seed that was given."""
    if limits.steps is None or limits.deadline is not None:
        return [replace(limits, seed=limits.seed + number) for number in range(workers)]
    alone, more = min(limits.steps, ALONE), max(0, limits.steps - ALONE)
    shares = [(more + place) // _SEARCHES for place in reversed(range(_SEARCHES))]
    steps = [alone + shares[0], *(share for share in shares[1:] if share)]
    return [replace(limits, steps=most, seed=limits.seed + number) for number, most in enumerate(steps)]


def _searched(search: Callable[[SearchLimits], AnytimeSearch], limits: SearchLimits) -> Found:
    return search(limits).run()


def _joined(found: list[Found], worth: Worth) -> Found:
    """Return the best award, of equals the first search's, with the least bound of all."""
    best = max(found, key=lambda one: worth.of(one.award))
    bounds = [one.bound for one in found if one.bound is not None]
    bound = min(bounds, default=None)
    priced = min(found, key=lambda one: (one.bound is None, one.bound or 0))
    proved = any(one.proved for one in found) or (bound is not None and worth.of(best.award)[0] >= bound)
    return replace(best, bound=bound, proved=proved, price=priced.price)
