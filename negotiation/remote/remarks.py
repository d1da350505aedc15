"""Remarks that unauthenticated peers cause: printed, but no more of them than a log can hold."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

#: Remarks printed in each period of that many seconds; the others are counted.
_MOST, _PERIOD_S = 20, 10.0


class Remarks:
    """Tells remarks, and how many more there were.

    Args:
        tell: prints one.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._until_s, self._left, self._omitted = 0.0, 0, 0

    def add(self, text: str) -> None:
        """Tell a remark, or count it."""
        if monotonic() >= self._until_s:
            self.flush()
            self._until_s, self._left = monotonic() + _PERIOD_S, _MOST
        if self._left:
            self._left -= 1
            self._tell(text)
        else:
            self._omitted += 1

    def flush(self) -> None:
        """Tell how many remarks were only counted."""
        omitted, self._omitted = self._omitted, 0
        if omitted:
            self._tell(f"{omitted} more remarks of that kind")
