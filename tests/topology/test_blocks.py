"""Slurm's rule for blocks: the documented cases, and random requests against enumeration."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from support.block_rule import legal_sets, level

from aucsched.topology.blocks import BlockRequest, Blocks

A, B, C = (4, 8, 16), (4, 16), (4,)
FULL = (4,) * 8

#: Sizes, free nodes by block, the request, and what Slurm takes by block; None: it waits.
CASES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any], dict[int, int] | None]] = [
    (A, FULL, {"nodes": 3}, {7: 3}),
    (A, (3, 4, 2, 4, 4, 4, 4, 4), {"nodes": 3}, {0: 3}),
    (A, FULL, {"nodes": 6}, {7: 4, 6: 2}),
    (A, (2, 4, 4, 2, 3, 2, 1, 1), {"nodes": 6}, {2: 4, 3: 2}),
    (A, (0, 4, 4, 0), {"nodes": 6}, None),
    (B, (0, 4, 4, 0), {"nodes": 6}, {2: 4, 1: 2}),
    (B, (2, 2, 2, 2), {"nodes": 6}, None),
    (B, (3, 2, 2, 2), {"nodes": 9}, None),
    (A, (3, 2, 2, 2), {"nodes": 9}, {0: 3, 1: 2, 2: 2, 3: 2}),
    (A, FULL, {"nodes": 9}, {7: 4, 6: 4, 5: 1}),
    (A, (3, 4, 4, 4) * 2, {"nodes": 16}, None),
    (A, (1,) * 8, {"nodes": 4}, None),
    (A, FULL, {"nodes": 17}, {7: 4, 6: 4, 5: 4, 4: 4, 3: 1}),
    (A, (2, 2, 1, 1) * 3, {"nodes": 17}, None),
    # The largest block is in a part that is too small: parts with enough are taken instead.
    (A, (4, 0, 0, 0) + (3, 3, 3, 3) * 2, {"nodes": 17}, {11: 3, 10: 3, 9: 3, 8: 3, 7: 3, 6: 2}),
    (C, (3, 3, 2, 2), {"nodes": 9}, None),
    (A, FULL, {"nodes": 12, "segment": 4}, {7: 4, 6: 4, 5: 4}),
    (A, (3,) * 8, {"nodes": 12, "segment": 4}, None),
    (A, (3,) * 8, {"nodes": 12, "segment": 3}, {7: 3, 6: 3, 5: 3, 4: 3}),
    (A, (4,) * 5, {"nodes": 12, "segment": 2, "spread": True}, None),
    (A, (2, 2, 2, 2, 4, 0, 4, 0), {"nodes": 8, "segment": 2}, {3: 2, 2: 2, 1: 2, 0: 2}),
    (A, (2, 2, 2, 2, 4, 0, 4, 0), {"nodes": 8, "segment": 2, "consolidated": True}, None),
    (
        A,
        FULL,
        {"nodes": 8, "segment": 2, "spread": True, "consolidated": True},
        {7: 2, 6: 2, 5: 2, 4: 2},
    ),
    (A, FULL, {"nodes": 12, "segment": 6}, {7: 4, 6: 2, 5: 4, 4: 2}),
    (A, FULL, {"nodes": 6, "required": (0, 3, 3)}, None),
    (A, FULL, {"nodes": 6, "required": (3, 3, 0)}, {0: 3, 1: 3}),
    (A, FULL, {"nodes": 12, "segment": 4, "required": (3, 3, 3, 3)}, None),
    (A, FULL, {"nodes": 12, "segment": 4, "required": (4, 4, 4)}, {0: 4, 1: 4, 2: 4}),
    ((30, 120), (32,) * 4, {"nodes": 31}, {3: 31}),
    ((30, 120), (32,) * 4, {"nodes": 33}, {3: 32, 2: 1}),
]


def padded(asked: dict[str, Any], blocks: int) -> dict[str, Any]:
    required = asked.get("required", ())
    return {**asked, "required": (*required, *[0] * (blocks - len(required))) if required else ()}


@pytest.mark.parametrize(("sizes", "free", "asked", "expected"), CASES)
def test_cases_of_the_documentation(
    sizes: tuple[int, ...],
    free: tuple[int, ...],
    asked: dict[str, Any],
    expected: dict[int, int] | None,
) -> None:
    blocks = Blocks(sizes=sizes, nodes=tuple(max(sizes[0], count) for count in free))
    request = BlockRequest(**padded(asked, len(free)))
    chosen = blocks.choice(free, request)
    found = None if chosen is None else {place: count for place, count in enumerate(chosen) if count}
    assert found == expected
    assert chosen is None or blocks.is_legal(chosen, request)


def test_a_segment_that_does_not_fit_a_pair_of_the_middle_is_refused() -> None:
    blocks = Blocks(sizes=A, nodes=FULL)
    assert not blocks.is_legal((0, 3, 3, 0, 0, 0, 0, 0), BlockRequest(nodes=6))
    assert blocks.is_legal((3, 3, 0, 0, 0, 0, 0, 0), BlockRequest(nodes=6))


def random_case(rng: Random) -> tuple[Blocks, tuple[int, ...], dict[str, Any]]:
    count, base = rng.randint(1, 4), rng.randint(1, 6)
    sizes = (base, *(base << doubling for doubling in (1, 2, 3) if rng.random() < 0.5))
    nodes = tuple(rng.randint(0, 6) for _ in range(count))
    free = tuple(rng.randint(0, most) if rng.random() < 0.6 else most for most in nodes)
    asked: dict[str, Any] = {"nodes": rng.randint(1, sum(free) + 1)}
    if rng.random() < 0.6:
        segment = rng.randint(1, 8)
        asked = {"nodes": segment * rng.randint(1, max(1, sum(free) // segment)), "segment": segment}
        asked |= {"spread": rng.random() < 0.3, "consolidated": rng.random() < 0.3}
    if rng.random() < 0.2 and any(free):
        required = tuple(rng.randint(0, min(2, most)) for most in free)
        if 0 < sum(required) <= asked["nodes"] and "segment" not in asked:
            asked["required"] = required
    return Blocks(sizes=sizes, nodes=nodes), free, asked


def test_random_requests_are_those_of_enumeration() -> None:
    rng = Random(39)
    feasible = 0
    for case in range(10_000):
        blocks, free, asked = random_case(rng)
        request = BlockRequest(**asked)
        legal = legal_sets(blocks.sizes, free, **asked)
        chosen = blocks.choice(free, request)
        offered = [tuple(one) for one in blocks.choices(free, request)]
        assert (chosen is not None, bool(offered)) == (bool(legal), bool(legal)), (case, blocks, free, asked)
        if not legal:
            continue
        feasible += 1
        assert tuple(chosen or ()) in legal, (case, blocks, free, asked)
        assert set(offered) <= legal, (case, blocks, free, asked)

        def quality(one: tuple[int, ...], blocks: Blocks = blocks, free: Any = free) -> tuple[int, int]:
            pairs = zip(one, free, blocks.nodes, strict=True)
            broken = sum(bool(count) and left == most for count, left, most in pairs)
            return level(blocks.sizes, one), broken

        best, ours = min(map(quality, legal)), min(map(quality, offered))
        assert ours == best, (case, blocks, free, asked, ours, best)
        one = rng.choice(sorted(legal))
        assert blocks.is_legal(one, request), (case, blocks, one, asked)
        other = [rng.randint(0, most) for most in free]
        assert blocks.is_legal(other, request) == (tuple(other) in legal), (case, blocks, other, asked)
    assert feasible > 3_000
