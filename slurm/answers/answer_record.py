"""Slurm's JSON, read tolerantly: each shape a member has had so far, a clear error for any other.

A number is an integer (22.05) or ``{"set", "infinite", "number"}`` (23.02 and later); a state is a
text or a list of texts. Any other shape raises InputError with the member's path and value.

A loop asks for the same thousands of jobs and nodes each few seconds, and almost none of them
changed: an entry whose text has not changed is not read anew (``Known``). Entries are told by their
text, without the time at which Slurm's scheduler looked at a job last.
"""

import math
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from ...cluster.checks import LARGEST_COUNT
from ...cluster.errors import InputError
from ...cluster.value_types import YEAR_10000
from ...formats.file_kinds import is_json
from ...formats.jsontext import decode, shown
from ...formats.notes import Notes
from .answer_text import Paragraph, answered, paragraphs

T = TypeVar("T")
Text = TypeVar("Text", str, msgspec.Raw)

#: What a number member says when Slurm's value is INFINITE; 22.05 writes null for it.
INFINITE = math.inf

_WRAPPED = {"set", "infinite", "number"}
#: Slurm's NO_VAL and INFINITE in 32 and 64 bits, which some members show as they are.
_NO_VALUE = {2**32 - 2, 2**32 - 1, 2**64 - 2, 2**64 - 1}
#: Slurm's INFINITE16 and NO_VAL16, which some versions write for a count that is not set; later
#: ones write --thread-spec without the bit that tells it from --core-spec.
_NOT_SET = {0xFFFF, 0xFFFE, 0x7FFF, 0x7FFE}


@dataclass(frozen=True, slots=True)
class Record:
    """One JSON object of Slurm's output, and its place in the file (``jobs[3]``)."""

    members: Mapping[str, Any]
    path: str

    def once(self, kind: str, make: Callable[[], T], key: object = None) -> T:
        """Return what ``make`` returns, or did for an equal text and ``key`` (``Known``)."""
        made = getattr(self.members, "made", None)
        if made is None:
            return make()
        found = made.get(kind)
        if found is None or found[0] != key:
            found = made[kind] = key, make()
        return found[1]  # type: ignore[no-any-return]

    def noted(self, kind: str, make: Callable[[Notes], T], notes: Notes, key: object = None) -> T:
        """Return the same of what makes notes, too, which are noted each time."""

        def once() -> tuple[T, Notes]:
            own = Notes()
            return make(own), own

        made, own = self.once(kind, once, key)
        notes.join(own)
        return made

    def place(self, name: str) -> str:
        """Return the path of a member, for an error."""
        return f"{self.path}.{name}" if self.path else name

    def has(self, name: str) -> bool:
        """Whether the member stands there and is not null."""
        return self.members.get(name) is not None

    def require(self, *names: str) -> None:
        """Raise InputError if one of ``names`` is missing: read without it, a request is weaker."""
        for name in names:
            if name not in self.members:
                raise InputError(f"the member {name!r} is missing", path=self.path)

    def number(self, name: str) -> int | None:
        """Return an integer, None where it is absent, null, not set or infinite."""
        value = self.number_or_infinite(name)
        return None if value == INFINITE else value  # type: ignore[return-value]

    def number_or_infinite(self, name: str) -> int | float | None:
        """Return an integer, INFINITE, or None where it is absent, null or not set."""
        value = self.members.get(name)
        if isinstance(value, dict) and set(value) == _WRAPPED:
            if value["infinite"] is True:
                return INFINITE
            value = value["number"] if value["set"] is True else None
        if value is None:
            return None
        # As +complex writes it.
        if value == "Infinity":
            return INFINITE
        if isinstance(value, int) and not isinstance(value, bool):
            if value in _NO_VALUE:
                return None
            if 0 <= value <= LARGEST_COUNT:
                return value
        raise self.unknown(name, "a number as Slurm writes it")

    def asked(self, name: str) -> int:
        """Return a count that a job may ask for, 0 where it does not, also as 16 bits say so."""
        value = self.number(name) or 0
        return 0 if value in _NOT_SET else value

    def moment(self, name: str) -> int | None:
        """Return a time in seconds since the epoch, None where it is absent, null, not set or 0."""
        value = self.number(name)
        if value is not None and value >= YEAR_10000:
            raise self.unknown(name, "a time")
        return value or None

    def count(self, name: str) -> int:
        """Return an integer that must be there.

        Raises:
            InputError: it is absent, null, not set or infinite.
        """
        self.require(name)
        value = self.number(name)
        if value is None:
            raise self.unknown(name, "a count")
        return value

    def text(self, name: str) -> str:
        """Return a text, empty where it is absent or null."""
        value = self.members.get(name)
        if value is None or isinstance(value, str):
            return value or ""
        raise self.unknown(name, "a text")

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts; one text: a list of one, an empty text or null: an empty list."""
        value = self.members.get(name)
        if value is None or isinstance(value, str):
            return (value,) if value else ()
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        raise self.unknown(name, "a text or a list of texts")

    def words(self, name: str) -> frozenset[str]:
        """Return a list of flags as a set; 21.08 leaves a blank behind one of them."""
        return frozenset(word.strip() for word in self.texts(name))

    def flag(self, name: str) -> bool:
        """Return true or false, false where it is absent or null."""
        value = self.members.get(name)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise self.unknown(name, "true or false")

    def child(self, name: str) -> "Record | None":
        """Return the object below a member, None where it is absent or null."""
        value = self.members.get(name)
        if value is None:
            return None
        if isinstance(value, dict):
            return Record(value, self.place(name))
        raise self.unknown(name, "an object")

    def children(self, name: str) -> "Iterator[Record]":
        """Yield the objects of a list, none where it is absent or null."""
        value = self.members.get(name)
        if not isinstance(value, list) and value is not None:
            raise self.unknown(name, "a list")
        for index, item in enumerate(value or ()):
            place = f"{self.place(name)}[{index}]"
            if not isinstance(item, dict):
                raise InputError(f"{shown(item)} is not an object", path=place)
            yield Record(item, place)

    def entries(self, name: str) -> "Iterator[Record]":
        """Yield a member's objects in order: of a list (23.11 and later), of an object (22.05)."""
        value = self.members.get(name)
        if isinstance(value, dict):
            for key in value:
                child = Record(value, self.place(name)).child(key)
                if child is not None:
                    yield child
            return
        yield from self.children(name)

    def unknown(self, name: str, wanted: str) -> InputError:
        """Return the error for a member whose shape no Slurm version is known to write."""
        return InputError(f"{shown(self.members.get(name))} is not {wanted}", path=self.place(name))


@dataclass(frozen=True, slots=True)
class KeyedRecord(Paragraph):
    """A record by the keys of scontrol's text, so that one reader serves both; without ``pairs``.

    Attributes:
        record: the object.
        members: a key -> its member, with a dot below each group; an absent key has no value.
    """

    record: Record
    members: Mapping[str, str]

    def verbatim(self, key: str) -> str:
        """Return a text, or texts with commas between; empty where it is absent."""
        holder, name = self._found(key)
        return ",".join(holder.texts(name)) if holder else ""

    #: JSON has no words for nothing: all are names.
    text = verbatim

    def amount(self, key: str) -> str:
        """Return a number as text, empty if absent or no limit: -1 in 22.05, infinite later."""
        holder, name = self._found(key)
        count = None if holder is None or holder.members.get(name) == -1 else holder.number(name)
        return "" if count is None else str(count)

    def place(self, key: str) -> str:
        """Return the path of a value, for an error."""
        return self.record.place(self.members[key])

    def unknown(self, key: str, wanted: str) -> InputError:
        """Return the error for a value that no Slurm version is known to write."""
        holder, name = self._found(key)
        return (holder or self.record).unknown(name, wanted)

    def _found(self, key: str) -> tuple[Record | None, str]:
        """Return the object that holds a key's member, and the member's name."""
        *groups, name = self.members.get(key, "").split(".")
        holder: Record | None = self.record if name else None
        for group in groups:
            holder = holder.child(group) if holder else None
        return holder, name


def read_document(text: bytes) -> Record:
    """Return the top object of a JSON answer of Slurm.

    Raises:
        InputError: it is no JSON object, or Slurm reports errors in it.
    """
    return check_errors(Record(decode(_valid(text), dict[str, Any]), ""))


def _valid(text: bytes) -> bytes:
    """Return JSON as UTF-8: Slurm writes names as users gave them, in any encoding."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return answered(text).encode()
    return text.removeprefix(BOM_UTF8)


def check_errors(document: Record) -> Record:
    """Return an answer's top object as it is.

    Raises:
        InputError: Slurm reports errors in it.
    """
    for error in document.children("errors"):
        what = error.text("error") or error.text("description") or "unnamed"
        raise InputError(f"Slurm reports an error: {what}", path=error.path)
    return document


def answer_entries(
    content: bytes, first: str, member: str, keys_of: Callable[[Record], Mapping[str, str]]
) -> Iterator[Paragraph]:
    """Yield what an answer says of each thing: scontrol's paragraphs, or objects of JSON's list.

    Raises:
        InputError: the answer is malformed, or a name is empty.
    """
    if not is_json(content):
        yield from paragraphs(answered(content), first)
        return
    document = read_document(content)
    document.require(member)
    for record in document.children(member):
        entry = KeyedRecord({}, record.path, record, keys_of(record))
        if not entry.verbatim(first):
            raise entry.unknown(first, "a name")
        yield entry


#: Inside a JSON text a quotation mark has a backslash before it: no user's text can look like this.
_LOOKED = re.compile(rb'"last_sched_evaluation":\s*(?:\d+|\{[^{}]*\})')
#: Of scontrol's record of a job the lines of its times, of which nothing is read.
_TIMES = re.compile(r"^   (?:RunTime|StartTime|SuspendTime)=.*$", re.MULTILINE)
_ENTRY = msgspec.json.Decoder(dict[str, Any])
_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_TOP = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ANY = msgspec.json.Decoder()


class DecodedObject(dict[str, Any]):
    """A decoded object of a list, and what was made of it (``Record.once``)."""

    __slots__ = ("made",)

    def __init__(self, members: dict[str, Any]) -> None:
        super().__init__(members)
        self.made: dict[str, tuple[Any, Any]] = {}


class Known:
    """Entries of the answers of one look, for the next look."""

    def __init__(self) -> None:
        self._entries: dict[str, dict[str | bytes, Any]] = {}
        self._documents: dict[str, tuple[bytes, Record]] = {}
        self._site: Any = None

    def document(self, text: bytes, member: str) -> Record:
        """Return an answer's top object; entries of its list ``member`` stay known where they were.

        Raises:
            InputError: it is no JSON object, or Slurm reports errors in it.
        """
        content, document = self._documents.get(member, (b"", None))
        if document is None or content is not text:
            document = self._document(text, member)
            self._documents[member] = text, document
        return document

    def _document(self, text: bytes, member: str) -> Record:
        try:
            parts = _TOP.decode(_valid(text))
            members = {name: _ANY.decode(part) for name, part in parts.items() if name != member}
            if member in parts:
                members[member] = self._kept(
                    member,
                    _LIST.decode(parts[member]),
                    lambda raw: _LOOKED.sub(b"", bytes(raw), count=1),
                    lambda raw: DecodedObject(_ENTRY.decode(raw)),
                )
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            # Its words for what is wrong, with the whole path.
            return read_document(text)
        return check_errors(Record(members, ""))

    def details(self, records: list[str], read: Callable[[str], T]) -> list[T]:
        """Return what ``read`` makes of scontrol's job records; that of a known text as it was."""
        return self._kept("details", records, lambda record: _TIMES.sub("", record), read)

    def _kept(
        self, kind: str, texts: list[Text], key_of: Callable[[Text], str | bytes], make: Callable[[Text], T]
    ) -> list[T]:
        """Return what is made of each text, what was made of it before where its key is known."""
        before, now = self._entries.get(kind, {}), dict[str | bytes, T]()
        made: list[T] = []
        for text in texts:
            key = key_of(text)
            one = before.get(key)
            made.append(make(text) if one is None else one)
            now[key] = made[-1]
        self._entries[kind] = now
        return made

    def site(self, figures: T) -> T:
        """Return what jobs are read against: the object of the look before where it is equal."""
        if self._site != figures:
            self._site = figures
        return self._site  # type: ignore[no-any-return]
