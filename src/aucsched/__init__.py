"""aucsched: an integer-programming auction scheduler for HPC clusters.

``load_snapshot`` reads a cluster and its queue, ``schedule`` runs one auction over it. Names load on
first use, so that ``import aucsched`` and ``aucsched --help`` cost no numpy and no solver. ``__init__.pyi``
says where each of them is, to type checkers as to this file.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from .cluster.version import __version__

_STUB = __loader__.get_data(f"{__file__}i").decode()
#: Public name -> its module, and its name there.
_SOURCE_OF = {
    name: (module, name)
    for module, names in re.findall(r"^from \.([\w.]+) import (\([^)]+\)|.+)$", _STUB, re.MULTILINE)
    for name in re.findall(r"(\w+)(?: as \w+)?", names)
}
for _public, _own in re.findall(r"^(\w+) = (\w+)$", _STUB, re.MULTILINE):
    _SOURCE_OF[_public] = _SOURCE_OF.pop(_own)
__all__ = sorted(_SOURCE_OF)


def __getattr__(name: str) -> Any:
    if name not in _SOURCE_OF:
        raise AttributeError(f"module 'aucsched' has no attribute {name!r}")
    module, known_there = _SOURCE_OF[name]
    value = getattr(import_module(f".{module}", __name__), known_there)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
