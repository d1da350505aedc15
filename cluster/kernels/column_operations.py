"""Columns in use up to a count: what lists do at once, and numba's loops of the same for arrays.

In plain Python such a column is a list that grows and shrinks. An array is as long as it ever gets,
and what is behind the count means nothing.
"""

from bisect import bisect_left, bisect_right

from .harness import Column, compiled_as, kernel


def _first_from(keys: Column, count: int, key: float) -> int:
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@compiled_as(_first_from)
def first_from(keys: Column, count: int, key: float) -> int:
    """Return the first place whose key is not below ``key``; keys rise."""
    return bisect_left(keys, key, 0, count)


def _largest_before(keys: Column, others: Column, count: int, key: float) -> int:
    found: int = others[0]
    place = 1
    while place < count and keys[place] < key:
        found = max(found, others[place])
        place += 1
    return found


@compiled_as(_largest_before)
def largest_before(keys: Column, others: Column, count: int, key: float) -> int:
    """Return the largest of the first number and all beside keys below ``key``; keys rise."""
    found: int = max(others[: max(bisect_left(keys, key, 0, count), 1)])
    return found


def _insert(column: Column, count: int, place: int, value: float) -> None:
    for other in range(count, place, -1):
        column[other] = column[other - 1]
    column[place] = value


@compiled_as(_insert)
def insert(column: Column, count: int, place: int, value: float) -> None:  # noqa: ARG001 - arrays
    """Insert a value at a place."""
    column.insert(place, value)


@kernel
def insert_number(column: Column, count: int, number: int) -> None:
    """Insert a number into numbers that rise."""
    insert(column, count, first_from(column, count, number), number)


def _insert_pair(keys: Column, others: Column, count: int, key: float, other: int) -> None:
    place = count
    while place > 0 and keys[place - 1] > key:
        keys[place] = keys[place - 1]
        others[place] = others[place - 1]
        place -= 1
    keys[place] = key
    others[place] = other


@compiled_as(_insert_pair)
def insert_pair(keys: Column, others: Column, count: int, key: float, other: int) -> None:
    """Insert a key behind its equals among keys that rise, and beside it another number."""
    place = bisect_right(keys, key, 0, count)
    keys.insert(place, key)
    others.insert(place, other)


def _remove(column: Column, count: int, first: int, end: int) -> None:
    for place in range(end, count):
        column[place - end + first] = column[place]


@compiled_as(_remove)
def remove(column: Column, count: int, first: int, end: int) -> None:  # noqa: ARG001 - arrays
    """Remove the values from a place up to another."""
    del column[first:end]


def _remove_pair(keys: Column, others: Column, count: int, place: int) -> None:
    remove(keys, count, place, place + 1)
    remove(others, count, place, place + 1)


@compiled_as(_remove_pair)
def remove_pair(keys: Column, others: Column, count: int, place: int) -> None:  # noqa: ARG001
    """Remove the values of two columns at a place."""
    del keys[place], others[place]


@kernel
def push(keys: Column, others: Column, count: int, key: float, other: int) -> int:
    """Add to a heap, the smallest key on top, equal keys by the other number; return the count."""
    place = count
    while place > 0:
        above = (place - 1) // 2
        if keys[above] < key or (keys[above] == key and others[above] <= other):
            break
        keys[place] = keys[above]
        others[place] = others[above]
        place = above
    keys[place] = key
    others[place] = other
    return count + 1


@kernel
def pop(keys: Column, others: Column, count: int) -> int:
    """Take the top off a heap; return the count."""
    count -= 1
    key, other = keys[count], others[count]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= count:
            break
        right = below + 1
        if right < count and (
            keys[right] < keys[below] or (keys[right] == keys[below] and others[right] < others[below])
        ):
            below = right
        if keys[below] > key or (keys[below] == key and others[below] >= other):
            break
        keys[place] = keys[below]
        others[place] = others[below]
        place = below
    keys[place] = key
    others[place] = other
    return count
