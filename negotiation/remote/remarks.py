"""Remarks that strangers cause: told, but no more of them than a log can bear."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

#: Remarks told in each period of so many seconds; the others are counted.
_MOST, _PERIOD_S = 20, 10.0


class Remarks:
    """Tells remarks, and how many more there were.

    Args:
        tell: is told.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._until_s, self._left, self._untold = 0.0, 0, 0

    def add(self, text: str) -> None:
        """Tell a remark, or count it."""
        if monotonic() >= self._until_s:
            self.flush()
            self._until_s, self._left = monotonic() + _PERIOD_S, _MOST
        if self._left:
            self._left -= 1
            self._tell(text)
        else:
            self._untold += 1

    def flush(self) -> None:
        """Tell how many remarks were only counted."""
        untold, self._untold = self._untold, 0
        if untold:
            self._tell(f"{untold} more remarks of that kind")
