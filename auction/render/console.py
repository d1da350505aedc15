"""Printing of text: content of files is printed literally, never as markup or escapes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from ...cluster.text import escaped

#: Width of text that goes to a file or a pipe (characters).
PLAIN_WIDTH = 150


class LiteralConsole(Console):
    """A console on which ``[/x]`` and ``:bell:`` are letters and escape sequences are seen, not obeyed."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text with its hidden characters as escapes, before anything is made as wide as it."""
        return super().render_str(escaped(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield what is printed."""
        if isinstance(renderable, Text) and (shown := escaped(renderable.plain)) != renderable.plain:
            renderable = Text(shown, style=renderable.style, end=renderable.end)
        return super().render(renderable, options)
