"""What lists do at once, and the loops that arrays need instead, give the same columns."""

from __future__ import annotations

import random

import pytest

from aucsched.cluster.kernels import column_operations
from aucsched.cluster.kernels.harness import _KERNELS


@pytest.mark.parametrize("seed", range(200))
def test_lists_and_arrays_hold_the_same(seed: int) -> None:
    draw = random.Random(seed)
    keys = sorted(draw.randint(0, 9) for _ in range(draw.randint(1, 9)))
    others = [draw.randint(0, 9) for _ in keys]
    count, key, other = len(keys), draw.randint(0, 10), draw.randint(0, 9)
    place = draw.randrange(count)
    end = draw.randint(place, count)
    calls: tuple[tuple[object, tuple[object, ...], int], ...] = (
        (column_operations.first_from, (keys, count, key), 0),
        (column_operations.largest_before, (keys, others, count, key), 0),
        (column_operations.insert, (others, count, place, other), 1),
        (column_operations.insert_pair, (keys, others, count, key, other), 1),
        (column_operations.remove, (others, count, place, end), place - end),
        (column_operations.remove_pair, (keys, others, count, place), -1),
    )
    assert len(calls) == sum(marked is not instead for marked, instead in _KERNELS.items())
    for function, arguments, more in calls:
        lists = [one.copy() if isinstance(one, list) else one for one in arguments]
        arrays = [[*one, -1] if isinstance(one, list) else one for one in arguments]
        assert function(*lists) == _KERNELS[function](*arrays)  # type: ignore[operator]
        for one, array in zip(lists, arrays, strict=True):
            if isinstance(one, list) and isinstance(array, list):
                kept = count + more if len(one) != count or more == 0 else count
                assert one[:kept] == array[:kept]
                assert len(one) in (count, count + more)


def test_numbers_are_inserted_where_they_rise() -> None:
    numbers = [1, 4, 6]
    column_operations.insert_number(numbers, 3, 5)
    column_operations.insert_number(numbers, 4, 0)
    assert numbers == [0, 1, 4, 5, 6]
