"""The one harness for numba: what it compiles, when that pays, where it keeps it.

A kernel is a function over columns: lists in plain Python, arrays where numba compiles it.
``@kernel`` marks it. An ``Entry`` is a kernel that Python calls; numba is handed it with all
kernels that it reaches. The types of its parameters are those of its annotations: ``warm_up``
compiles without making up arguments.

numba keeps what it compiled in ``__pycache__`` beside this file or in the user's cache
(NUMBA_CACHE_DIR moves it). A file's name has the entry and a number of all text and constants that
it is made of: a change of any of them is compiled anew. Nothing that numba can do wrong ends a run:
plain Python takes its place.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from hashlib import sha256
from inspect import getclosurevars, signature
from pathlib import Path
from threading import RLock, Timer
from types import FunctionType, UnionType
from typing import Annotated, Any, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

#: Set to ``0``, kernels run in plain Python also where numba is installed.
SWITCH = "AUCSCHED_NUMBA"
#: Seconds after which a user is told that something compiles: reading the cache takes less.
_TOLD_AFTER_S = 2.0

#: Said once, whatever is to be compiled.
_NOWHERE = "aucsched: plain Python runs, compiled code cannot be kept: set NUMBA_CACHE_DIR"

#: Columns of 64-bit numbers; a list stands for either in plain Python.
Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
#: Rows and columns.
IntTable: TypeAlias = Annotated[NDArray[np.int64], "rows and columns"]
FloatTable: TypeAlias = Annotated[NDArray[np.float64], "rows and columns"]
#: A column whose kind says nothing about how it is read.
Column = Any

Loop = Callable[..., Any]
_Function = TypeVar("_Function", bound=Callable[..., Any])

_log = logging.getLogger(__name__)
_lock = RLock()
#: Marked functions, and what numba compiles instead of some of them.
_KERNELS: dict[object, Loop] = {}
_ENTRIES: "list[Entry]" = []
#: What a user has been told already.
_TOLD: set[str] = set()


def kernel(function: _Function) -> _Function:
    """Mark a function that numba compiles as it stands, into each entry that reaches it."""
    _KERNELS[function] = function
    return function


def compiled_as(other: Loop) -> Callable[[_Function], _Function]:
    """Mark a function instead of which numba compiles another that does the same to arrays."""

    def mark(function: _Function) -> _Function:
        _KERNELS[function] = other
        return function

    return mark


class Entry:
    """A kernel that Python calls.

    Args:
        plain: the kernel; numba takes the types of its parameters from their annotations.
        what: it does, for messages.
        many: jobs from which on plain Python takes longer than numba takes to be loaded.
    """

    def __init__(self, plain: Loop, what: str, *, many: int = 0) -> None:
        self.plain = plain
        self.many = many
        self._what = what
        self._loaded: list[Loop | None] = []
        _ENTRIES.append(self)

    def compiled(self) -> Loop | None:
        """Return it compiled, None without a numba that works.

        The first call in a process loads it, the first on a machine compiles it, which takes
        seconds.
        """
        with _lock:
            if not self._loaded:
                self._loaded.append(self._load())
            return self._loaded[0]

    @property
    def is_loaded(self) -> bool:
        """Whether it is at hand compiled without waiting."""
        return bool(self._loaded) and self._loaded[0] is not None

    def for_jobs(self, jobs: int) -> tuple[Loop, bool]:
        """Return it for so many jobs, and whether it is compiled and wants arrays for columns."""
        compiled = self.compiled() if self.is_loaded or jobs >= self.many else None
        return (self.plain, False) if compiled is None else (compiled, True)

    def is_kept(self) -> bool:
        """Return whether numba's cache has it."""
        own = os.environ.get("NUMBA_CACHE_DIR")
        users = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "numba"
        folders = [Path(own)] if own else [Path(__file__).parent / "__pycache__", users]
        wanted = f"{Path(__file__).stem}.{self._name}-*.nbi"
        return any(True for folder in folders for _ in folder.rglob(wanted))

    @cached_property
    def _name(self) -> str:
        """What names numba's files: a number of all that its own key lacks is part of it.

        That is the text of the kernels and of the types that they are handed, and the constants.
        """
        parts = _reached(self.plain)
        files = {__file__, *(part.__code__.co_filename for part in parts)}
        files |= {str(sys.modules[one.__module__].__file__) for one in _tuples(_hints(self.plain))}
        text = b"".join(Path(file).read_bytes() for file in sorted(files))
        text += repr(sorted(set(_constants(parts)))).encode()
        module = self.plain.__module__.rpartition(".")[2]
        return f"{module}_{self.plain.__name__}_{sha256(text).hexdigest()[:12]}"

    def _load(self) -> Loop | None:
        if os.environ.get(SWITCH) == "0":
            return None
        try:
            import numba  # noqa: PLC0415 - half a second, and an extra
            from numba.extending import overload  # noqa: PLC0415
        except ImportError:
            return None
        except Exception as error:  # noqa: BLE001 - a numba that does not fit numpy or the machine
            self._warn(error)
            return None
        try:
            # Else LLVM leaves some calls, which hand over every array of every tuple in memory.
            # Which it leaves differs between a loop just compiled and the same from the cache:
            # EASY's took three times as long.
            for part in _reached(self.plain):
                inline = overload(part, jit_options={"forceinline": True}, strict=False)
                inline(_as_overload(_KERNELS.get(part, part)))
            plain = self.plain

            def loop(*arguments: Any) -> Any:
                return plain(*arguments)

            loop.__name__ = loop.__qualname__ = self._name
            # No kernel makes arrays, so none has to be counted: that would cost as much as all else
            # where tuples of arrays are read at every event.
            found: Any = numba.njit(cache=True, nogil=True, _nrt=False)(loop)
            types = [_type(numba, hint) for hint in _hints(self.plain)]
            with self._said():
                found.compile((numba.types.BaseTuple.from_types(types),))
        except Exception as error:  # noqa: BLE001 - no cache writable, a broken one, no compiler
            self._warn(error)
            return None
        compiled: Loop = found
        return compiled

    def _warn(self, error: Exception) -> None:
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        said = f"aucsched: numba cannot be used, {self._what} runs in plain Python: {reason}"
        _tell(_NOWHERE if "no locator available" in reason else said)

    @contextmanager
    def _said(self) -> Iterator[None]:
        """Tell what is waited for where it takes long, but not of one that is only slow to load."""

        def tell() -> None:
            if not self.is_kept():
                _tell(f"aucsched: compiling {self._what}, once on this machine")

        timer = Timer(_TOLD_AFTER_S, tell)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def _tell(text: str) -> None:
    if text not in _TOLD:
        _TOLD.add(text)
        _log.warning("%s", text)


def entries() -> tuple[Entry, ...]:
    """Return the entries of all modules that have been imported."""
    return tuple(_ENTRIES)


def _as_overload(function: Loop) -> Loop:
    def chosen(*_arguments: Any) -> Loop:
        return function

    return chosen


def _reached(function: Loop) -> tuple[FunctionType, ...]:
    """Return a function and all kernels that it reaches, with numba's replacements of some."""
    found: dict[Any, None] = {}

    def add(one: Any) -> None:
        if one in found:
            return
        found[one] = None
        named = getclosurevars(_KERNELS.get(one, one))
        for other in (*named.globals.values(), *named.nonlocals.values()):
            if isinstance(other, FunctionType) and other in _KERNELS:
                add(other)

    add(function)
    return tuple(found)


def _constants(parts: Iterable[FunctionType]) -> Iterator[tuple[str, str]]:
    """Yield the numbers that functions read of modules: they are compiled into them."""
    for part in parts:
        named = getclosurevars(_KERNELS.get(part, part))
        for name, value in named.globals.items():
            if isinstance(value, (int, float, tuple)):
                yield name, repr(value)


def _tuples(hints: Iterable[Any]) -> Iterator[type]:
    """Yield the named tuples among annotations, and those that they hold."""
    for hint in hints:
        if isinstance(hint, type) and issubclass(hint, tuple):
            yield hint
            yield from _tuples(get_type_hints(hint).values())


def _hints(function: Loop) -> list[Any]:
    hints = get_type_hints(function, include_extras=True)
    return [hints[name] for name in signature(function).parameters]


def _type(numba: Any, hint: Any) -> Any:
    """Return numba's type of an annotation."""
    simple = {
        bool: numba.boolean,
        int: numba.int64,
        float: numba.float64,
        Ints: numba.int64[::1],
        Floats: numba.float64[::1],
        IntTable: numba.int64[:, ::1],
        FloatTable: numba.float64[:, ::1],
    }
    if hint in simple:
        return simple[hint]
    if isinstance(hint, UnionType) or get_origin(hint) is Union:
        # An array, or a list in plain Python.
        return _type(numba, get_args(hint)[0])
    if isinstance(hint, type) and issubclass(hint, tuple):
        members = get_type_hints(hint, include_extras=True)
        parts = [_type(numba, members[name]) for name in hint._fields]  # type: ignore[attr-defined]
        return numba.types.BaseTuple.from_types(parts, hint)
    raise TypeError(f"a kernel cannot be compiled for {hint!r}")
