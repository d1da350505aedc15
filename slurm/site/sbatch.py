"""sbatch's command line taken apart: which options there are, and which of them take a value."""

import re
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import NamedTuple

from ...cluster.errors import InputError


class SbatchOption(NamedTuple):
    """A line of sbatch_options.txt, which says what its words mean."""

    name: str
    letter: str
    value: str
    reading: str


def _listed() -> Iterator[SbatchOption]:
    for line in files(__package__).joinpath("sbatch_options.txt").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            yield SbatchOption(*line.split())


OPTIONS = {one.name: one for one in _listed()}
_SHORT = {one.letter: one.name for one in OPTIONS.values()}
_SAME = {"share": "oversubscribe", "workdir": "chdir", "tasks-per-node": "ntasks-per-node"}
_QUOTING = re.compile(r"[\"'\\]")
#: Pieces of a shell's words. The standard library's shlex takes time by the square of a long word.
_PIECE = re.compile(
    r"""(?P<blank>[ \t\r\n]++)|(?P<plain>[^ \t\r\n"'\\]++)|\\(?P<escaped>.)"""
    r"""|'(?P<single>[^']*+)'|"(?P<double>(?:[^"\\]++|\\.)*+)["]""",
    re.DOTALL,
)
#: Within double quotes a backslash stands for itself before any other character.
_ESCAPED = re.compile(r"\\([\"\\])")


def words_of(text: str, path: str) -> list[str]:
    """Return a command line's words, quotes resolved as a shell does."""
    if not _QUOTING.search(text):
        return text.split()
    words: list[str] = []
    parts: list[str] = []
    place, within = 0, False
    while place < len(text):
        piece = _PIECE.match(text, place)
        if piece is None:
            missing = "escaped character" if text[place] == "\\" else "closing quotation"
            raise InputError(f"{text.strip()[:60]!r}: No {missing}", path=path)
        place = piece.end()
        if piece.lastgroup == "double":
            parts.append(_ESCAPED.sub(r"\1", piece["double"]))
            within = True
        elif piece.lastgroup != "blank":
            parts.append(piece[piece.lastgroup or 0])
            within = True
        elif within:
            words.append("".join(parts))
            parts.clear()
            within = False
    return [*words, "".join(parts)] if within else words


def parse_sbatch(words: Sequence[str], path: str) -> dict[str, str]:
    """Return an sbatch command line's options by their long names; of one given twice, the last.

    Flags have an empty value. The first word that is no option is the script; the rest is its own.

    Raises:
        InputError: an option is none of sbatch's, or lacks its value.
    """
    options: dict[str, str] = {}
    left = list(reversed(words))
    while left and left[-1].startswith("-") and left[-1] != "--":
        name, value = _option(left.pop(), path)
        if value is None and OPTIONS[name].value != "value":
            value = ""
        elif value is None:
            if not left:
                raise InputError(f"the value of --{name} is missing", path=path)
            value = left.pop()
        options[name] = value
    return options


def _option(word: str, path: str) -> tuple[str, str | None]:
    """Return an option's long name, and its value where it stands in the same word."""
    if word.startswith("--"):
        name, equals, rest = word[2:].partition("=")
        value: str | None = rest if equals else None
    else:
        name = _SHORT.get(word[1:2], "")
        value = word[2:] or None
    name = _SAME.get(name, name)
    # Several flags in one word are not written by sbatch's users, nor read here.
    if name not in OPTIONS or (OPTIONS[name].value == "flag" and value is not None):
        raise InputError(f"{word[:60]!r} is not an option of sbatch that is known here", path=path)
    return name, value
