"""A switch as a topology file writes it, before it is checked against the cluster's nodes."""

from __future__ import annotations

from dataclasses import dataclass

from ...formats.hostlist import expand


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchLine:
    """A switch as written; ``path`` is its place in the file."""

    name: str
    switches: tuple[str, ...]
    nodes: tuple[str, ...]
    path: str


def names(text: str, path: str) -> tuple[str, ...]:
    """Return the names of a hostlist that may be empty."""
    return expand(text, path) if text else ()
