"""The auction as the mapper (stub)."""

from __future__ import annotations

from .greedy import greedy_map
from .mapping import Request, Slot


def auction_map(request: Request) -> list[Slot]:
    """Return the Map."""
    return greedy_map(request)
