"""Binary heaps over two columns: the first is the key, the smallest on top; equal keys by the second."""

from __future__ import annotations

from .promise_state import Column


def push(keys: Column, others: Column, count: int, key: float, other: int) -> int:
    """Add an entry; return how many there are."""
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


def pop(keys: Column, others: Column, count: int) -> int:
    """Take the top off; return how many are left."""
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
