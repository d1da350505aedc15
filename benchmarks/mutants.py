"""Mutants of a file: the same seed and the same file give the same mutants, on every machine.

    from mutants import mutants
    for name, content in mutants(good, seed=7, count=1000): ...

Each mutant has one to three changes, drawn from the mutators below: of bytes, of lines, of words and
numbers, and of a JSON document's tree where the file is JSON. No mutant is larger than MOST_BYTES, so that
a time limit can be the same for all.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

#: No mutant is larger: a second or two must be enough for any.
MOST_BYTES = 1_000_000
#: Numbers at the edges of what types, Slurm's own codes, and Python's conversions hold.
NUMBERS = (
    *("0", "-1", "1", "-0", "0.5", "1e-320", "1e400", "-1e400", "1e999999999", "NaN", "Infinity"),
    *("2147483647", "2147483648", "4294967294", "4294967295", "9007199254740993"),
    *("9223372036854775807", "9223372036854775808", "18446744073709551614", "18446744073709551615"),
    *("999999999999", "1000000000000", "9" * 19, "9" * 400, "9" * 4301, "1" + "0" * 20_000, "0" * 5000 + "1"),
    *("0x10", "1_000", "١٢", "1.5.2", "--3", "+7", "1e3"),
)
#: Texts that mean something to a parser, a terminal, a shell or a page.
TEXTS = (
    *(
        "",
        " ",
        "\x00",
        "\x1b[31m",
        "\n",
        "\r",
        "\u2028",
        "\ud7ff",
        "é" * 3,
        "[/x]",
        "$\\frac{$",
        "%s",
        "`id`",
    ),
    *(
        "n[1-999999999]",
        "n[1-99999]",
        "n[3-1]",
        "n[1,1]",
        "n[",
        "n]",
        "[[1]]",
        "n[0001-9]",
        "x[1-9][1-9][1-9]",
    ),
    *(
        "null",
        "N/A",
        "(null)",
        "UNLIMITED",
        "INFINITE",
        "DEFAULT",
        "ALL",
        "\\",
        '"',
        "'",
        "=",
        "#",
        "&a",
        "*a",
    ),
    *("gres:", "gpu:", "gpu:a:b:c:9", "cores", "memory", "9999-12-31T23:59:59Z", "1969-12-31T23:59:59", "0"),
)
#: What lists of values are joined with, and what separates members.
SEPARATORS = (
    b",",
    b":",
    b";",
    b"=",
    b"|",
    b" ",
    b"\t",
    b"\n",
    b"\r\n",
    b"[",
    b"]",
    b"{",
    b"}",
    b"(",
    b")",
    b'"',
)

_TOKEN = re.compile(rb"[A-Za-z_]{1,200}|\d{1,200}(?:\.\d{1,200})?|[^\sA-Za-z_\d]")
_DIGITS = re.compile(rb"\d{1,200}(?:\.\d{1,200})?")
_LONG = 30_000
_DEEP = 5000

Mutator = Callable[[random.Random, bytes], bytes]


def mutants(good: bytes, *, seed: int, count: int) -> Iterator[tuple[str, bytes]]:
    """Yield ``count`` mutants of a file, each with the names of what was done to it.

    A gzip file is mutated both as it is and inside, where it is packed again.
    """
    for number in range(count):
        rng = random.Random(f"{seed}/{number}")  # noqa: S311 - the same mutants every time
        names, content = _mutated(rng, good)
        yield f"{seed}/{number} {' '.join(names)}", content


def _mutated(rng: random.Random, good: bytes) -> tuple[list[str], bytes]:
    packed = good.startswith(b"\x1f\x8b") and rng.random() < 0.8
    content = gzip.decompress(good) if packed else good
    names: list[str] = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        mutator = rng.choice(mutators_for(content))
        names.append(mutator.__name__)
        content = mutator(rng, content)[:MOST_BYTES]
    return names, gzip.compress(content, mtime=0) if packed else content


def mutators_for(content: bytes) -> tuple[Mutator, ...]:
    """Return the mutators that say something of a file: those of trees where it is JSON."""
    # A document's own mutators twice: most changes of bytes end at the parser's first check.
    return (*BYTES, *TOKENS, *TREES, *TREES) if content.lstrip()[:1] in (b"{", b"[") else (*BYTES, *TOKENS)


def _place(rng: random.Random, content: bytes) -> int:
    return rng.randrange(len(content) + 1)


def _stretch(rng: random.Random, content: bytes) -> tuple[int, int]:
    """Return a stretch's begin and end; short ones are as likely as long ones."""
    begin = _place(rng, content)
    return begin, min(len(content), begin + int(2 ** rng.uniform(0, max(1, len(content).bit_length()))))


def flip_bits(rng: random.Random, content: bytes) -> bytes:
    """Flip one to eight bits anywhere."""
    changed = bytearray(content)
    for _ in range(rng.randint(1, 8)):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def cut_short(rng: random.Random, content: bytes) -> bytes:
    """Drop all behind a place."""
    return content[: _place(rng, content)]


def cut_out(rng: random.Random, content: bytes) -> bytes:
    """Drop a stretch."""
    begin, end = _stretch(rng, content)
    return content[:begin] + content[end:]


def repeat_stretch(rng: random.Random, content: bytes) -> bytes:
    """Repeat a stretch, twice or up to a thousand times."""
    begin, end = _stretch(rng, content)
    return content[:end] + content[begin:end] * rng.choice((1, 1, 2, 30, 1000)) + content[end:]


def insert_bytes(rng: random.Random, content: bytes) -> bytes:
    """Insert bytes of any value: NUL, broken UTF-8, line breaks."""
    place = _place(rng, content)
    return content[:place] + rng.randbytes(rng.choice((1, 2, 16))) + content[place:]


def insert_run(rng: random.Random, content: bytes) -> bytes:
    """Insert a long run of one byte: what makes patterns backtrack and lines endless."""
    place = _place(rng, content)
    return (
        content[:place]
        + rng.choice(b"a0 \n\t,-[]{}\"'\\=#:;|&!/x").to_bytes(1, "big") * _LONG
        + content[place:]
    )


def swap_stretches(rng: random.Random, content: bytes) -> bytes:
    """Let two stretches change places."""
    a, b, c = sorted(_place(rng, content) for _ in range(3))
    return content[:a] + content[b:c] + content[a:b] + content[c:]


def drop_line(rng: random.Random, content: bytes) -> bytes:
    """Drop, double or move a line."""
    lines = content.splitlines(keepends=True)
    if not lines:
        return b"\n"
    line = lines.pop(rng.randrange(len(lines)))
    for _ in range(rng.choice((0, 1, 2))):
        lines.insert(rng.randrange(len(lines) + 1), line)
    return b"".join(lines)


def _tokens(rng: random.Random, content: bytes, pattern: re.Pattern[bytes]) -> list[tuple[int, int]]:
    """Return the places of some tokens near a random place; reading them all would be slow in long files."""
    begin = max(0, _place(rng, content) - 400)
    found = [match.span() for match in pattern.finditer(content, begin, begin + 4000)]
    return found or [match.span() for match in pattern.finditer(content, 0, 4000)]


def change_number(rng: random.Random, content: bytes) -> bytes:
    """Put an extreme number in a number's place."""
    if not (found := _tokens(rng, content, _DIGITS)):
        return insert_bytes(rng, content)
    begin, end = rng.choice(found)
    return content[:begin] + rng.choice(NUMBERS).encode() + content[end:]


def swap_tokens(rng: random.Random, content: bytes) -> bytes:
    """Let two words change places."""
    found = _tokens(rng, content, _TOKEN)
    if len(found) < 2:
        return insert_bytes(rng, content)
    (a, b), (c, d) = sorted(rng.sample(found, 2))
    return content[:a] + content[c:d] + content[b:c] + content[a:b] + content[d:]


def change_token(rng: random.Random, content: bytes) -> bytes:
    """Put another word, a hostile text or a separator in a word's place."""
    if not (found := _tokens(rng, content, _TOKEN)):
        return insert_bytes(rng, content)
    begin, end = rng.choice(found)
    other = rng.choice(found)
    word = rng.choice((rng.choice(TEXTS).encode(), content[slice(*other)], rng.choice(SEPARATORS), b""))
    return content[:begin] + word + content[end:]


def repeat_token(rng: random.Random, content: bytes) -> bytes:
    """Repeat a word many times, with a separator between."""
    if not (found := _tokens(rng, content, _TOKEN)):
        return insert_bytes(rng, content)
    begin, end = rng.choice(found)
    separator = rng.choice((b"", *SEPARATORS))
    return content[:end] + (separator + content[begin:end]) * rng.choice((1, 3, 1000)) + content[end:]


def _spots(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return every (container, key) below a document."""
    waiting = [value]
    while waiting:
        here = waiting.pop()
        keys = list(here) if isinstance(here, dict) else range(len(here)) if isinstance(here, list) else ()
        for key in keys:
            found.append((here, key))
            waiting.append(here[key])
    return found


def _on_tree(change: Callable[[random.Random, list[tuple[Any, Any]]], None]) -> Mutator:
    """Return a mutator that changes a document's tree; text that is no JSON is changed as text."""

    def mutate(rng: random.Random, content: bytes) -> bytes:
        try:
            document = json.loads(content)
            spots = _spots(document, [])
        except (ValueError, RecursionError):
            return change_token(rng, content)
        if not spots:
            return change_token(rng, content)
        change(rng, spots)
        try:
            text = json.dumps(document, indent=rng.choice((None, 1)), ensure_ascii=rng.random() < 0.5)
        except (ValueError, RecursionError):
            return change_token(rng, content)
        text = _RAW.sub(lambda match: match[1], text)
        return text.encode("utf-8", "surrogatepass")

    mutate.__name__ = change.__name__
    mutate.__doc__ = change.__doc__
    return mutate


#: A text that stands for what json.dumps would not write: numbers of any spelling, broken members.
_RAW = re.compile(r'"<raw:([^"<>]{0,30000}):raw>"')


def _any_value(rng: random.Random, spots: list[tuple[Any, Any]]) -> Any:
    """Return a value of any type: an extreme, a hostile text, or one from elsewhere in the document."""
    kind = rng.randrange(6)
    if kind == 0:
        return f"<raw:{rng.choice(NUMBERS)}:raw>"
    if kind == 1:
        return rng.choice(TEXTS)
    if kind == 2:
        return rng.choice((None, True, False, [], {}, [[]], {"": {}}, "x" * _LONG))
    if kind == 3:
        return f"<raw:{'[' * _DEEP}{']' * _DEEP}:raw>"
    holder, key = rng.choice(spots)
    return _copied(holder[key])


def _copied(value: Any) -> Any:
    return json.loads(json.dumps(value))


def change_value(rng: random.Random, spots: list[tuple[Any, Any]]) -> None:
    """Put a value of any type in a member's place."""
    holder, key = rng.choice(spots)
    holder[key] = _any_value(rng, spots)


def change_leaf(rng: random.Random, spots: list[tuple[Any, Any]]) -> None:
    """Put an extreme of the same type in a number's or a text's place."""
    leaves = [(holder, key) for holder, key in spots if isinstance(holder[key], (int, float, str))]
    holder, key = rng.choice(leaves or spots)
    text = isinstance(holder[key], str)
    holder[key] = rng.choice(TEXTS) if text else f"<raw:{rng.choice(NUMBERS)}:raw>"


def drop_member(rng: random.Random, spots: list[tuple[Any, Any]]) -> None:
    """Drop a member or an entry."""
    holder, key = rng.choice(spots)
    del holder[key]


def add_member(rng: random.Random, spots: list[tuple[Any, Any]]) -> None:
    """Add a member under a new name, or a member's name from elsewhere, or an entry."""
    holder, key = rng.choice(spots)
    value = _any_value(rng, spots)
    if isinstance(holder, list):
        holder.insert(key, value)
    else:
        names = [other for place, other in spots if isinstance(place, dict)]
        holder[rng.choice([*names, *TEXTS])] = value


def repeat_entry(rng: random.Random, spots: list[tuple[Any, Any]]) -> None:
    """Repeat a list's entry: names that stand twice, and lists much longer than most."""
    lists = [(holder, key) for holder, key in spots if isinstance(holder, list)]
    if not lists:
        change_value(rng, spots)
        return
    holder, key = rng.choice(lists)
    holder[key:key] = [_copied(holder[key]) for _ in range(rng.choice((1, 1, 3, 200)))]


def swap_values(rng: random.Random, spots: list[tuple[Any, Any]]) -> None:
    """Let two members' values change places."""
    (a, i), (b, j) = rng.choice(spots), rng.choice(spots)
    a[i], b[j] = _copied(b[j]), _copied(a[i])


def rename_member(rng: random.Random, spots: list[tuple[Any, Any]]) -> None:
    """Give a member another name."""
    members = [(holder, key) for holder, key in spots if isinstance(holder, dict)]
    if not members:
        change_value(rng, spots)
        return
    holder, key = rng.choice(members)
    holder[rng.choice([*TEXTS, rng.choice(members)[1], key + key[-1:]])] = holder.pop(key)


BYTES: tuple[Mutator, ...] = (
    *(flip_bits, cut_short, cut_out, repeat_stretch, insert_bytes, insert_run, swap_stretches, drop_line),
)
TOKENS: tuple[Mutator, ...] = (change_number, swap_tokens, change_token, repeat_token)
TREES: tuple[Mutator, ...] = tuple(
    _on_tree(change)
    for change in (
        *(change_value, change_leaf, change_leaf, drop_member),
        *(add_member, repeat_entry, swap_values, rename_member),
    )
)
