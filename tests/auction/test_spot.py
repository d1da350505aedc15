"""What many placements hold, added at once."""

from __future__ import annotations

import numpy as np
import pytest

from aucsched.auction.spot import Spot, add_spot, add_spots
from aucsched.bidgen.capacity import Capacity


@pytest.mark.parametrize("seed", range(20))
def test_many_spots_at_once_are_each_one_after_another(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = 6

    def amounts(count: int) -> np.ndarray:
        return rng.integers(0, 9, count)

    def spot() -> Spot:
        nodes = np.sort(rng.choice(size, int(rng.integers(1, size)), replace=False))
        gres = {kind: amounts(len(nodes)) for kind in ("gpu", "fpga") if rng.random() < 0.5}
        held = Capacity(cores=amounts(len(nodes)), memory=amounts(len(nodes)), gres=gres)
        return Spot(nodes=nodes, held=held, placement=None)

    gres = {"gpu": amounts(size), "fpga": amounts(size)}
    one = Capacity(cores=amounts(size), memory=amounts(size), gres=gres)
    many, limited = one.copy(), rng.random(size) < 0.5
    spots = [spot() for _ in range(int(rng.integers(0, 7)))]
    for each in spots:
        add_spot(one, each, 1, limited)
    add_spots(many, spots, limited)
    assert (many.cores == one.cores).all()
    assert (many.memory == one.memory).all()
    assert all((many.gres[kind] == one.gres[kind]).all() for kind in one.gres)
