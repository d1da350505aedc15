"""The files that are installed with the package."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


def bundled(name: str) -> Traversable:
    """Return the file of that name, with slashes, below examples/."""
    return files("aucsched").joinpath("examples", *name.split("/"))
