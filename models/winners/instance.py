"""Bids and capacities as they are given, read strictly: exact numbers in, integer columns out.

A float counts as the decimal that it prints as: ten bids of 0.1 fill a capacity of 1.
The program over all bids may be kept as a file that other solvers read.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import gcd, isfinite, lcm
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ...cluster.errors import InputError
from ...cluster.resources.capacity import FloatArray, IntArray
from ...cluster.text import shown
from ..search.packing import Packing, packing_from
from ..solve.lexicographic import integer_weights
from ..solve.solver import export_program

#: What values, amounts and capacities may be; numpy's integers and floats too.
Number: TypeAlias = int | float | Fraction | Decimal
#: Who bids (None: nobody in particular), what for all of it, and how much of which item.
Bid: TypeAlias = tuple[Hashable, Number, Mapping[Any, Number]]

#: Floats hold every integer below this: amounts of a capacity are counted in them.
LARGEST_CAPACITY = 2**53
#: Values from this on, or fractions of which the common denominator is, are a slip.
_LARGEST_VALUE = 10**300
#: A sum of values from this on, in their common unit, is beyond what floats count with.
_LARGEST_SUM = 10**307


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class BidArrays:
    """Bids as columns (CSR): bid i takes amount[e] of item[e] for indptr[i] ≤ e < indptr[i + 1].

    Attributes:
        value: of each bid, shape (bids,).
        indptr: integers, from 0 on, shape (bids + 1,).
        item: places among the capacities, each at most once a bid, shape (entries,).
        amount: not negative, shape (entries,).
        bidder: of each bid, shape (bids,); None: each bid is another's.

    Examples:
        >>> import numpy as np
        >>> import aucsched
        >>> bids = BidArrays(
        ...     value=np.array([10, 7]),
        ...     indptr=np.array([0, 1, 2]),
        ...     item=np.array([0, 0]),
        ...     amount=np.array([2, 1]),
        ... )
        >>> aucsched.winners(bids, np.array([2])).chosen
        (0,)
    """

    value: Sequence[Number] | npt.NDArray[Any]
    indptr: npt.ArrayLike
    item: npt.ArrayLike
    amount: npt.ArrayLike
    bidder: Sequence[Hashable] | npt.NDArray[Any] | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ProblemInstance:
    """What is auctioned, checked.

    Attributes:
        packing: the bids, ordered by group; capacities that cannot bind are left out.
        values: of the packing's bids, exact.
        place: where each of the packing's bids was given, shape (bids,).
        items: names of the capacities, in the order given.
        unit: how much of each item the packing counts as one, shape (items,).
    """

    packing: Packing
    values: list[int | Fraction]
    place: IntArray
    items: tuple[Hashable, ...]
    unit: FloatArray


def read_instance(
    bids: Iterable[Bid] | BidArrays,
    capacities: Mapping[Any, Number] | npt.ArrayLike,
    groups: str | Sequence[Hashable] | npt.NDArray[Any],
    *,
    in_floats: bool = True,
) -> ProblemInstance:
    """Return what is given as columns.

    Args:
        bids: tuples, or arrays.
        capacities: by item; for arrays also by place.
        groups: ``xor``: at most one bid of a bidder wins; ``or``: any; else the group of each bid:
            at most one bid of a group wins, None for bids in no group.
        in_floats: values are to be added as floats.

    Raises:
        InputError: names the bid and the value.
    """
    items, limits = _capacities(capacities)
    if isinstance(bids, BidArrays):
        columns = _columns_of_arrays(bids, len(items))
    else:
        columns = _columns_of_tuples(bids, items)
    if in_floats and _is_beyond_floats(columns.values):
        at = max(range(len(columns.values)), key=lambda place: columns.values[place].denominator)
        text = f"{float(columns.values[at]):g} is too fine beside {float(max(columns.values)):g}"
        path = f"value[{at}]" if isinstance(bids, BidArrays) else f"bids[{at}].value"
        raise InputError(f"{text}: in its units their sum is beyond floats", path=path)
    group = _groups(groups, columns.bidder)
    amount, capacity, unit = _whole(columns, limits, items)
    order = np.argsort(group, kind="stable")
    bid = np.repeat(np.arange(len(group)), np.diff(columns.indptr))
    now = np.empty(len(group), np.int64)
    now[order] = np.arange(len(group))
    taken = amount > 0
    return ProblemInstance(
        packing=packing_from(group[order], now[bid[taken]], columns.item[taken], amount[taken], capacity),
        values=[columns.values[place] for place in order.tolist()],
        place=order,
        items=items,
        unit=unit,
    )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Columns:
    """Bids, their numbers not yet integers."""

    values: list[int | Fraction]
    bidder: list[Hashable]
    indptr: IntArray
    item: IntArray
    amount: list[int | Fraction] | IntArray


def _capacities(
    capacities: Mapping[Any, Number] | npt.ArrayLike,
) -> tuple[tuple[Hashable, ...], list[int | Fraction]]:
    if isinstance(capacities, Mapping):
        return tuple(capacities), [exact(one, f"capacities.{item}") for item, one in capacities.items()]
    limits = as_list(capacities, "capacities")
    return tuple(range(len(limits))), [exact(one, f"capacities[{at}]") for at, one in enumerate(limits)]


def exact(value: Any, path: str) -> int | Fraction:
    """Return a number that is not negative as an integer or a fraction.

    Raises:
        InputError: it is no such number.
    """
    if type(value) is int:
        if 0 <= value < LARGEST_CAPACITY:
            return value
        found: int | Fraction = value
    else:
        found = _fraction(value, path)
    if found < 0:
        raise InputError(f"{value} is below 0", path=path)
    if max(found, found.denominator) >= _LARGEST_VALUE:
        what = "10^300 or more" if found > 1 else "a fraction with a denominator of 10^300 or more"
        raise InputError(f"{value!r} is {what}", path=path)
    return found


def _fraction(value: Any, path: str) -> int | Fraction:
    if isinstance(value, np.generic):
        value = Decimal(str(value)) if isinstance(value, np.floating) else value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction, Decimal)):
        raise InputError(f"{value!r} is not a number", path=path)
    if isinstance(value, (float, Decimal)):
        if not isfinite(value):
            raise InputError(f"{value} is not a finite number", path=path)
        if isinstance(value, Decimal) and abs(value.adjusted()) > 300:  # noqa: PLR2004 - its limit
            what = "10^300 or more" if value.adjusted() > 0 else "closer to 0 than 10^-300"
            raise InputError(f"{value} is {what}", path=path)
        value = Fraction(str(value))
    return value.numerator if value.denominator == 1 else Fraction(value)


def as_list(values: Any, path: str) -> list[Any]:
    """Return the numbers of a sequence or a flat array; Python's where those are as exact."""
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise InputError(f"an array of {values.ndim} dimensions instead of 1", path=path)
        return values.tolist() if values.dtype.kind in "iu" or values.dtype == np.float64 else list(values)
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InputError(f"{values!r} is not a sequence of numbers", path=path)
    return list(values)


def _columns_of_tuples(bids: Any, items: tuple[Hashable, ...]) -> _Columns:
    place = {item: at for at, item in enumerate(items)}
    values: list[int | Fraction] = []
    bidders: list[Hashable] = []
    ends, taken, amounts = [0], [], []
    if isinstance(bids, (str, bytes)) or not isinstance(bids, Iterable):
        raise InputError(f"{shown(bids)} is not a list of bids", path="bids")
    for number, bid in enumerate(bids):
        path = f"bids[{number}]"
        if not isinstance(bid, (tuple, list)) or len(bid) != 3:  # noqa: PLR2004 - a bid's parts
            raise InputError(f"{bid!r} is not (bidder, value, items)", path=path)
        bidder, value, wanted = bid
        if not isinstance(wanted, Mapping):
            raise InputError(f"{wanted!r} is not a mapping of items to amounts", path=f"{path}.items")
        values.append(exact(value, f"{path}.value"))
        bidders.append(_hashable(bidder, f"{path}.bidder"))
        for item, amount in wanted.items():
            if item not in place:
                listed = items == tuple(range(len(items))) and "; in a list they are called 0, 1, …"
                raise InputError(f"{item!r} is not among the capacities{listed or ''}", path=f"{path}.items")
            taken.append(place[item])
            amounts.append(exact(amount, f"{path}.items.{item}"))
        ends.append(len(taken))
    return _Columns(
        values=values,
        bidder=bidders,
        indptr=np.array(ends, np.int64),
        item=np.array(taken, np.int64),
        amount=amounts,
    )


def _hashable(value: Any, path: str) -> Hashable:
    try:
        hash(value)
    except TypeError as error:
        raise InputError(f"{value!r} cannot name a bidder or a group: it can change", path=path) from error
    named: Hashable = value
    return named


def _columns_of_arrays(bids: BidArrays, items: int) -> _Columns:
    values = [exact(one, f"value[{at}]") for at, one in enumerate(as_list(bids.value, "value"))]
    indptr, item = _integers(bids.indptr, "indptr"), _integers(bids.item, "item")
    amount = bids.amount
    if isinstance(amount, np.ndarray) and amount.ndim == 1 and amount.dtype.kind in "iu":
        whole = amount.astype(np.int64)
        if len(whole) and int(whole.min()) < 0:
            raise InputError(f"{int(whole.min())} is below 0", path=f"amount[{int(whole.argmin())}]")
        amounts: list[int | Fraction] | IntArray = whole
    else:
        amounts = [exact(one, f"amount[{at}]") for at, one in enumerate(as_list(amount, "amount"))]
    bidder = [None] * len(values) if bids.bidder is None else as_list(bids.bidder, "bidder")
    for name, length, right in (
        ("indptr", len(indptr), len(values) + 1),
        ("amount", len(amounts), len(item)),
        ("bidder", len(bidder), len(values)),
    ):
        if length != right:
            raise InputError(f"{length} entries instead of {right}", path=name)
    if indptr[0] != 0 or indptr[-1] != len(item) or (np.diff(indptr) < 0).any():
        raise InputError(f"it does not rise from 0 to {len(item)}", path="indptr")
    wrong = np.flatnonzero((item < 0) | (item >= items))
    if len(wrong):
        raise InputError(f"{item[wrong[0]]} is none of the {items} capacities", path=f"item[{wrong[0]}]")
    key = np.repeat(np.arange(len(values)), np.diff(indptr)) * max(items, 1) + item
    order = np.argsort(key, kind="stable")
    twice = np.flatnonzero(np.diff(key[order]) == 0)
    if len(twice):
        at = int(order[twice[0] + 1])
        raise InputError(f"{item[at]} is listed twice in one bid", path=f"item[{at}]")
    named = [_hashable(one, f"bidder[{at}]") for at, one in enumerate(bidder)]
    return _Columns(values=values, bidder=named, indptr=indptr, item=item, amount=amounts)


def _integers(values: npt.ArrayLike, path: str) -> IntArray:
    found = np.asarray(values)
    if found.ndim != 1 or (found.dtype.kind not in "iu" and len(found)):
        raise InputError("it is not an array of integers of 1 dimension", path=path)
    return found.astype(np.int64)


def _groups(groups: str | Sequence[Hashable] | npt.NDArray[Any], bidders: list[Hashable]) -> IntArray:
    """Return a number for the group of each bid, in the order in which they come up first."""
    if isinstance(groups, str):
        if groups not in {"xor", "or"}:
            raise InputError(f"{groups!r} is not one of xor, or", path="groups")
        named: list[Hashable] = bidders if groups == "xor" else [None] * len(bidders)
    else:
        listed = as_list(groups, "groups")
        if len(listed) != len(bidders):
            raise InputError(f"{len(listed)} entries instead of {len(bidders)}", path="groups")
        named = [_hashable(one, f"groups[{at}]") for at, one in enumerate(listed)]
    numbers: dict[Hashable, int] = {}
    group: list[int] = []
    for at, one in enumerate(named):
        key: Hashable = ("alone", at) if one is None else ("group", one)
        group.append(numbers.setdefault(key, len(numbers)))
    return np.array(group, np.int64)


def _whole(
    columns: _Columns, limits: list[int | Fraction], items: tuple[Hashable, ...]
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return amounts and capacities in whole units, which divide all of an item's, and the units.

    What wants more than there is wants one unit more, and there is no more than all bids want.
    """
    amounts = columns.amount
    if isinstance(amounts, np.ndarray):
        is_plain = all(type(one) is int and one < LARGEST_CAPACITY for one in limits)
        if is_plain and int(amounts.max(initial=0)) < LARGEST_CAPACITY:
            return amounts, np.array(limits, np.int64), np.ones(len(items))
        amounts = amounts.tolist()
    wanted: list[list[int]] = [[] for _ in items]
    for entry, item in enumerate(columns.item.tolist()):
        wanted[item].append(entry)
    whole = np.zeros(len(amounts), np.int64)
    capacity, unit = np.zeros(len(items), np.int64), np.ones(len(items))
    for item, entries in enumerate(wanted):
        mine = [amounts[entry] for entry in entries]
        limit, units, unit[item] = _in_units(mine, limits[item])
        if limit >= LARGEST_CAPACITY:
            raise InputError(f"amounts of {items[item]!r} take more than 53 bits", path="capacities")
        whole[entries] = units
        capacity[item] = limit
    return whole, capacity, unit


def _is_beyond_floats(values: Sequence[int | Fraction]) -> bool:
    """Return whether the sum of values, in their common unit, is more than floats count with."""
    scale = lcm(*{value.denominator for value in values})
    most = len(values) * max((value.numerator for value in values), default=0) * scale
    # Of many values the unit takes as long to find as all of them to read; few need it.
    return most >= _LARGEST_SUM and sum(integer_weights(values)[0]) >= _LARGEST_SUM


def _in_units(amounts: list[int | Fraction], limit: int | Fraction) -> tuple[int, list[int], float]:
    """Return a capacity and amounts of it in the largest unit that divides these, and that unit."""
    scale = lcm(*(amount.denominator for amount in amounts))
    scaled = [int(amount * scale) for amount in amounts]
    common = gcd(*scaled) or 1
    units = [amount // common for amount in scaled]
    least = min(int(limit * scale // common), sum(units))
    return least, [min(amount, least + 1) for amount in units], common / scale


def export_instance(instance: ProblemInstance, names: tuple[str, ...], path: str) -> None:
    """Write the program over all bids to ``path``, .mps or .lp; the file's optimum is the value.

    Args:
        instance: the bids.
        names: of the bids, by their places as given: names of the columns.
        path: ends in one of EXPORTS (models/solve/solver.py).

    Raises:
        InputError: the file cannot be written.
    """
    packing = instance.packing
    program = packing.program(np.arange(len(packing)), packing.capacity)
    values = np.array([float(value) for value in instance.values], np.float64)
    ordered = [names[place] for place in instance.place.tolist()]
    export_program(program.maximising(values), ordered, path, "the winning bids' values")
