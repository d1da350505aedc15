"""The place of each point of a grid on a Hilbert curve (Skilling, AIP Conf. Proc. 707, 2004).

Soner (section 9.1) puts the nodes of a torus on such a curve, so that nodes near each other in the
order are near each other in the network.
"""

from itertools import permutations

import numpy as np

from ..cluster.resources.capacity import IntArray

#: With more dimensions no other order of the axes is tried: their permutations are too many.
_MOST_TRIED = 4


def curve_place(points: IntArray, bits: int) -> IntArray:
    """Return each point's place on the curve through the cube of side 2^bits.

    Args:
        points: coordinates, shape (n, dimensions), each below 2^bits.
        bits: of a coordinate; dimensions · bits is at most 62.

    Returns:
        Places from 0 on, shape (n,), a bijection of the whole cube. All points of an aligned cube
        of side 2^k stand in one run, and neighbours in the order are neighbours in the cube.
    """
    axes = [points[:, axis].copy() for axis in range(points.shape[1])]
    _transpose(axes, bits)
    place = np.zeros(len(points), np.int64)
    for bit in range(bits - 1, -1, -1):
        for axis in axes:
            place = (place << 1) | ((axis >> bit) & 1)
    return place


def _transpose(axes: list[IntArray], bits: int) -> None:
    """Turn coordinates into place bits, dealt to the axes in turn (Skilling's AxestoTranspose)."""
    for bit in range(bits - 1, 0, -1):
        here, below = 1 << bit, (1 << bit) - 1
        for place, axis in enumerate(axes):
            is_set = (axis & here) > 0
            swapped = np.where(is_set, 0, (axes[0] ^ axis) & below)
            axes[0] = np.where(is_set, axes[0] ^ below, axes[0] ^ swapped)
            if place:
                axes[place] = axis ^ swapped
    for place in range(1, len(axes)):
        axes[place] = axes[place] ^ axes[place - 1]
    flips = np.zeros_like(axes[0])
    for bit in range(bits - 1, 0, -1):
        flips = np.where((axes[-1] >> bit) & 1, flips ^ ((1 << bit) - 1), flips)
    for place, axis in enumerate(axes):
        axes[place] = axis ^ flips


def torus_places(shape: tuple[int, ...], points: IntArray) -> tuple[IntArray, int]:
    """Return places on a curve through a grid, not only a cube, and the bits that a level takes.

    The curve is that of the smallest cube of side 2^k around the grid, without the points beside
    it. Of the orders of the axes (up to four dimensions) the one is taken whose curve makes the
    fewest steps between neighbours in the order; of those alike, the first.

    Args:
        shape: points along each dimension; one of length 1 does not count.
        points: coordinates in the grid, shape (n, dimensions).
    """
    axes = [axis for axis, length in enumerate(shape) if length > 1]
    if not axes:
        return np.arange(len(points)), 1
    bits = max(1, (max(shape) - 1).bit_length())
    tried = permutations(axes) if len(axes) <= _MOST_TRIED else iter([tuple(axes)])
    places = [curve_place(points[:, list(order)], bits) for order in tried]
    in_order = [points[np.argsort(place)] for place in places]
    steps = [torus_hops(shape, along[:-1], along[1:]).sum() for along in in_order]
    return places[int(np.argmin(steps))], len(axes)


def torus_hops(shape: tuple[int, ...], first: IntArray, last: IntArray) -> IntArray:
    """Return links between points of a torus, elementwise: the shorter way in each dimension."""
    apart = np.abs(first - last)
    hops: IntArray = np.minimum(apart, np.array(shape) - apart).sum(axis=-1)
    return hops


def grid(shape: tuple[int, ...]) -> IntArray:
    """Return the coordinates of a grid's points, last dimension first, shape (n, dimensions)."""
    return np.stack(np.unravel_index(np.arange(int(np.prod(shape))), shape), axis=-1).astype(np.int64)
