"""Every error aucsched raises on purpose.

::

    AucschedError
    ├── InputError      a snapshot, a Slurm file or an API value is wrong (the command exits 2)
    ├── OptionError     an option's value cannot be used (the command exits 2)
    ├── SolverError     the solver failed or reported an error (the command exits 1)
    ├── PolicyError     somebody's own policy raised an error (the command exits 1)
    ├── NobodyError     the other party of a negotiation did not come in time (the command exits 1)
    └── AwardError      starts broke a rule, by a policy of your own or a bug of ours (exits 1)
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from sysconfig import get_path
from traceback import extract_tb
from typing import Any

from .text import cut, one_line, shown

#: A printed path or message is cut to about this many characters: an error is one line.
_LONGEST_PART = 1000
#: Beginnings of the files of ours, of installed packages and of Python.
_NOT_USERS = (str(Path(__file__).parents[1]), "<", *map(get_path, ("stdlib", "purelib", "platlib")))
#: Of a name or a number of more characters than 120 the first 60 are printed.
_LONG_WORD = re.compile(r"(\w{60})\w{60,}")


class AucschedError(Exception):
    """The root of every error raised on purpose.

    Examples:
        >>> issubclass(InputError, AucschedError)
        True
    """


class InputError(AucschedError):
    """A value that cannot be used, and its place.

    Args:
        message: what is wrong, with the value, e.g. ``-1 is below 1``.
        path: the value's place inside its file, e.g. ``jobs[3].gres_per_node.gpu``.
        file: the file's name as the user gave it; empty for values of the Python API.

    Examples:
        >>> print(InputError("-1 is below 1", path="jobs[3].cores", file="now.json"))
        now.json: jobs[3].cores: -1 is below 1
    """

    def __init__(self, message: str, *, path: str = "", file: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.file = file

    def under(self, prefix: str) -> "InputError":
        """Return the same error, its path standing below ``prefix``."""
        joint = "" if not self.path or self.path.startswith("[") else "."
        return InputError(self.message, path=f"{prefix}{joint}{self.path}", file=self.file)

    def in_file(self, file: str) -> "InputError":
        """Return the same error, named as found in ``file`` unless it already names one."""
        return InputError(self.message, path=self.path, file=self.file or file)

    def __str__(self) -> str:
        said = (_LONG_WORD.sub(r"\1…", part) for part in (self.path, self.message))
        return one_line(": ".join(cut(part, _LONGEST_PART) for part in (self.file, *said) if part))


@contextmanager
def errors_in(file: str | Path) -> Iterator[None]:
    """Name a file, ``-`` standard input, in the InputErrors raised inside that name none."""
    try:
        yield
    except InputError as error:
        raise error.in_file(shown_name(file)) from error


@contextmanager
def errors_below(prefix: str) -> Iterator[None]:
    """Put the paths of the InputErrors raised inside below ``prefix``."""
    try:
        yield
    except InputError as error:
        raise error.under(prefix) from error


@contextmanager
def system_errors(file: str | Path) -> Iterator[None]:
    """Let what the system says of a file inside be an InputError that names it."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:  # a name with a null is a ValueError
        raise InputError(getattr(error, "strerror", None) or str(error), file=shown_name(file)) from error


def path_of(path: object) -> Path:
    """Return a file's path; raise InputError where it is none."""
    if not isinstance(path, (str, PathLike)):
        raise InputError(f"{shown(path)} is not a file's name")
    return Path(path)


def shown_name(path: str | Path) -> str:
    """Return the name that messages call a file by."""
    return {"-": "standard input", "": "''"}.get(str(path), one_line(str(path)))


class OptionError(AucschedError):
    """An option's value cannot be used; the message names the option and the value.

    Examples:
        >>> print(OptionError("window: 0 is below 1"))
        window: 0 is below 1
    """

    def __str__(self) -> str:
        return one_line(super().__str__())


class SolverError(AucschedError):
    """The solver failed, refused the model or was given an option it does not know.

    Examples:
        >>> isinstance(SolverError("HiGHS refused the model"), AucschedError)
        True
    """


class PolicyError(AucschedError):
    """A policy of your own raised an error, the cause of this one; the message names its last line.

    Examples:
        >>> print(PolicyError("mine:Policy", "its step at 5 s", ValueError("no")))
        policy mine:Policy: its step at 5 s: ValueError: no
    """

    def __init__(self, policy: str, what: str, error: BaseException) -> None:
        theirs = [one for one in extract_tb(error.__traceback__) if not one.filename.startswith(_NOT_USERS)]
        place = "".join(f" ({Path(one.filename).name}, line {one.lineno})" for one in theirs[-1:])
        super().__init__(one_line(f"policy {policy}: {what}: {type(error).__name__}: {error}{place}"))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how a copy, and another process, make it: of its message."""
        return type(self).__new__, (type(self), *self.args)


class NobodyError(AucschedError):
    """The other party did not connect, or not again, in time.

    Examples:
        >>> isinstance(NobodyError("nobody connected"), AucschedError)
        True
    """


@contextmanager
def errors_of_policy(name: str) -> Iterator[None]:
    """Name a policy, as it was typed, in the AwardErrors that its starts raise inside."""
    try:
        yield
    except AwardError as error:
        raise AwardError(f"policy {name}: {error}", job=error.job) from error


class AwardError(AucschedError):
    """Starts that break capacity, counts or contiguity, by your own policy or by a bug of ours.

    They are never a result.

    Args:
        message: what is broken.
        job: whose award it is, where one job's alone breaks a rule.

    Examples:
        >>> AwardError("3 cores of 2", job="7").job
        '7'
    """

    def __init__(self, message: str, *, job: str | None = None) -> None:
        super().__init__(message)
        self.job = job
