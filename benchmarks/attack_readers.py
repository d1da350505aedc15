"""Mutants of every kind of file: each is read, or refused in one line, and costs little.

The mutants are those of mutants.py, and a few that only a size or a kind of file makes hostile. Journals have
a checksum a line: most of their mutants are signed again, so that what is behind it is reached too.
"""

from __future__ import annotations

import gzip
import random
import shutil
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import attack_command
from attack_cases import Outcome, Section
from attack_command import run_command
from attack_inputs import READERS, Files, Reader, packed
from mutants import MOST_BYTES, mutants

#: One in this many mutants is a special one, and one in this many is of the file as gzip.
_SPECIAL, _PACKED = 100, 6
#: The bomb's content: 4 MiB of zeros a member.
_MEMBER = gzip.compress(bytes(4 << 20), mtime=0)


def _bomb(good: bytes) -> bytes:
    """Return 1 MB of gzip that unpacks to 1 GB."""
    del good
    return _MEMBER * (MOST_BYTES // len(_MEMBER))


def _filled(byte: bytes) -> Callable[[bytes], bytes]:
    return lambda good: good + byte * (MOST_BYTES - len(good))


def _only(byte: bytes) -> Callable[[bytes], bytes]:
    return lambda good: byte * max(MOST_BYTES, len(good))


def _repeated(good: bytes) -> bytes:
    """Return the file over and over."""
    return (good * (MOST_BYTES // max(1, len(good)) + 1))[:MOST_BYTES]


def _nested(good: bytes) -> bytes:
    return b"[" * 100_000 + good + b"]" * 100_000


SPECIALS: tuple[Callable[[bytes], bytes], ...] = (
    *(_bomb, _repeated, _nested),
    *map(_filled, (b"\n", b" ", b"a", b"0", b"\x00", b"[", b'"', b",a", b" a=b")),
    *map(_only, (b"\n", b"\x00", b"a", b"{", b"-", b"\\\n", b"n[1-9],")),
)


def mutant(reader: Reader, seed: int) -> tuple[Files, str]:
    """Return a reader's files, its target mutated, and the command that reads them."""
    rng = random.Random(f"{reader.name} {seed}")  # noqa: S311 - not a secret
    files = dict(reader.files(seed))
    if rng.randrange(_PACKED) == 0:
        files = packed(files, reader.target)
    good = files[reader.target]
    if rng.randrange(_SPECIAL) == 0:
        files[reader.target] = rng.choice(SPECIALS)(good)
    elif good.startswith(b"\x1f\x8b") or not _signed(good) or rng.random() < 0.2:
        files[reader.target] = next(mutants(good, seed=seed, count=1))[1]
    else:
        files[reader.target] = _signed_mutant(rng, good, seed)
    return files, rng.choice(reader.commands)


def _signed(content: bytes) -> bool:
    """Return whether a file has a checksum at the beginning of each line."""
    checksum, _, text = content.partition(b"\n")[0].partition(b" ")
    return checksum == b"%08x" % zlib.crc32(text)


def _signed_mutant(rng: random.Random, good: bytes, seed: int) -> bytes:
    """Mutate one of a journal's texts, or what they are together, and sign the lines again."""
    texts = [line.partition(b" ")[2] for line in good.splitlines()]
    if rng.random() < 0.3:
        texts = next(mutants(b"\n".join(texts), seed=seed, count=1))[1].split(b"\n")
    else:
        place = rng.randrange(len(texts))
        changed = next(mutants(texts[place], seed=seed, count=1))[1].replace(b"\n", b"")
        texts[place : place + 1] = [changed] * rng.choice([1, 1, 2])
    return b"".join(b"%08x %s\n" % (zlib.crc32(text), text) for text in texts)


def described(reader: Reader, seed: int, folder: Path) -> Outcome:
    """Return a case without running it."""
    del folder
    files, line = mutant(reader, seed)
    return Outcome(replay=f"aucsched {line}", files=dict(files))


def run_case(reader: Reader, seed: int, folder: Path) -> Outcome:
    """Let a command read a mutant."""
    outcome = described(reader, seed, folder)
    place = folder / "case"
    shutil.rmtree(place, ignore_errors=True)
    for name, content in outcome.files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
    check_command(outcome.replay.split()[1:], place, outcome, reader.other_ends)
    return outcome


def check_command(arguments: list[str], place: Path, outcome: Outcome, other_ends: bytes = b"") -> None:
    """Run a command in a folder and note what it did that none may do, half-written files too."""
    with attack_command.inside(place):
        before = attack_command.listing(place)
        ran = run_command(arguments)
        after = attack_command.listing(place)
    if ran.code and other_ends and other_ends in ran.err:
        ran.code = 2
    attack_command.judge(arguments, ran, outcome)
    written = [name for name in after if before.get(name) != after[name] and not name.endswith(".journal")]
    if ran.code == 2 and written:
        outcome.fail("half", f"refused, but {', '.join(written)} is written")


def sections() -> tuple[Section, ...]:
    """Return a section for each kind of file."""
    return tuple(
        Section(
            name=f"readers:{reader.name}",
            count=10_000,
            quick=60,
            run=partial(run_case, reader),
            describe=partial(described, reader),
            prepare=partial(reader.files, 0),
            hangs_after_s=20.0,
        )
        for reader in READERS
    )
