r"""Which characters a text shows, and how one with others is shown all the same.

Hidden are those that a terminal obeys or that change how their neighbours look: controls (Unicode's
Cc), format characters such as the bidirectional overrides (Cf), halves of surrogate pairs (Cs),
separators of lines and paragraphs (Zl, Zp). They are written as JSON escapes them, ``\u001b``: a
JSON document says the same before and after.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from numbers import Number, Rational

#: Cc, Cf, Cs, Zl and Zp of Unicode 16, as ranges of code points.
_RANGES = (
    *((0x00, 0x1F), (0x7F, 0x9F), (0xAD, 0xAD), (0x600, 0x605), (0x61C, 0x61C), (0x6DD, 0x6DD)),
    *((0x70F, 0x70F), (0x890, 0x891), (0x8E2, 0x8E2), (0x180E, 0x180E), (0x200B, 0x200F)),
    *((0x2028, 0x202E), (0x2060, 0x206F), (0xD800, 0xDFFF), (0xFEFF, 0xFEFF), (0xFFF9, 0xFFFB)),
    *((0x110BD, 0x110BD), (0x110CD, 0x110CD), (0x13430, 0x1343F), (0x1BCA0, 0x1BCA3)),
    *((0x1D173, 0x1D17A), (0xE0001, 0xE0001), (0xE0020, 0xE007F)),
)
_CLASS = "[" + "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in _RANGES) + "]"
_HIDDEN = re.compile(_CLASS)
#: The calendar repeats after 400 years; datetime ends with the year 9999.
_CYCLE_YEARS, _CYCLE_S, _LAST_PLAIN_YEAR = 400, 146_097 * 86_400, 9999
#: More names than these are counted, not listed.
LISTED = 8
#: A value of more characters than these is cut in a message of one line.
_LONGEST = 60
_PLURAL_VERBS = {"is": "are", "has": "have", "was": "were"}


def plural(count: int | str, thing: str, verb: str = "") -> str:
    """Return a count, what is counted and perhaps a verb, both in the plural where it is not one.

    Examples:
        >>> plural(1, "node"), plural(2, "pass"), plural(2, "job", "never starts")
        ('1 node', '2 passes', '2 jobs never start')
    """
    if str(count) != "1":
        thing += "es" if thing.endswith(("s", "ch")) else "s"
        verb = " ".join(_PLURAL_VERBS.get(word, word.removesuffix("s")) for word in verb.split())
    return f"{count} {thing} {verb}".rstrip()


def shown(value: object) -> str:
    """Return a wrong value for a message: cut where long, its type if no text or number.

    Examples:
        >>> shown(10**99), shown([1]), len(shown("a" * 99))
        ('a number of more than 60 digits', 'a list', 62)
    """
    if isinstance(value, Rational) and abs(value) >= 10**_LONGEST:
        return f"a number of more than {_LONGEST} digits"
    if isinstance(value, str):
        return repr(value if len(value) <= _LONGEST else value[: _LONGEST - 3] + "...")
    if value is None or isinstance(value, Number):
        return str(value)
    name = type(value).__name__
    return f"{'an' if name[0] in 'AEIO' else 'a'} {name}"


def cut(text: str, most: int) -> str:
    """Return a text short enough, cut in its middle: names differ at their ends."""
    half = most // 2
    return text if len(text) <= most else f"{text[: half - 1]}…{text[-half:]}"


def utc(seconds: float) -> str:
    """Return a time in seconds since the epoch in text and files: ``2026-11-20T09:30:00Z``.

    A year before 0 or after 9999 has its sign, as in ISO 8601's expanded form.

    Examples:
        >>> utc(10**12), utc(-1e11)
        ('+33658-09-27T01:46:40Z', '-1199-02-15T14:13:20Z')
    """
    cycles, since = divmod(seconds, _CYCLE_S)
    moment = datetime.fromtimestamp(since, UTC)
    year = moment.year + int(cycles) * _CYCLE_YEARS
    shown_year = f"{year:04d}" if 0 <= year <= _LAST_PLAIN_YEAR else f"{year:+05d}"
    return f"{shown_year}-{moment:%m-%dT%H:%M:%SZ}"


def listed(names: Sequence[str], count: int | None = None) -> str:
    """Return the first of ``count`` names (None: of all), and how many more there are."""
    number = len(names) if count is None else count
    shown = ", ".join(names[: min(number, LISTED)])
    return shown if number <= LISTED else f"{shown} and {number - LISTED} more"


def not_one_of(value: object, names: Iterable[str]) -> str:
    """Return in words that a value is none of some names, and which one was perhaps meant.

    Examples:
        >>> not_one_of("eazy", ["fcfs", "easy"])
        "'eazy' is not one of fcfs, easy: did you mean easy?"
    """
    known = list(names)
    return f"{value!r} is not one of {', '.join(known)}{did_you_mean(value, known)}"


def did_you_mean(value: object, names: Iterable[str], most: int = 1) -> str:
    """Return the end of a message: which names were perhaps meant; empty where none is close."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    close = get_close_matches(str(value), list(names), most)
    return f": did you mean {' or '.join(close)}?" if close else ""


def meant_or_known(value: object, names: Iterable[str]) -> str:
    """Return the end of a message: the names that were perhaps meant; all where none is close."""
    known = list(names)
    return did_you_mean(value, known, 3) or f" of {', '.join(known)}"


def hidden_in(text: str) -> str:
    """Return a text's first hidden character, empty where it has none."""
    if text.isprintable():
        return ""
    found = _HIDDEN.search(text)
    return found[0] if found else ""


def escaped(text: str) -> str:
    """Return a text of several lines with hidden characters but line feeds and tabs as escapes."""
    return "\n".join(map(_escaped_line, text.split("\n")))


def _escaped_line(line: str) -> str:
    if line.isprintable():  # far faster than the pattern
        return line
    return _HIDDEN.sub(lambda found: found[0] if found[0] == "\t" else escape(found[0]), line)


def one_line(text: str) -> str:
    """Return a text as one line: white space as single blanks, hidden characters as escapes."""
    words = " ".join(text.split())
    return _escaped_line(words)


def escape(character: str) -> str:
    r"""Return a character as JSON escapes it: ``\u202e``, two of them above U+FFFF."""
    units = character.encode("utf-16-be", "surrogatepass").hex(" ", 2).split()
    return "".join(f"\\u{unit}" for unit in units)
