"""What was read of Slurm's answers before: an entry whose text has not changed is not read anew.

A loop asks for the same thousands of jobs and nodes each few seconds, and almost none of them changed.
Entries are told by their text, without the time at which Slurm's scheduler looked at a job last.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from .answer_record import Record, check_errors, read_document

T = TypeVar("T")

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
        self._entries: dict[str, dict[bytes, DecodedObject]] = {}
        self._texts: dict[str, Any] = {}
        self._documents: dict[str, tuple[bytes, Record]] = {}
        self._site: Any = None

    def document(self, text: bytes, member: str) -> Record:
        """Return the top object of an answer, the entries of its list ``member`` known where they were.

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
            parts = _TOP.decode(text)
            members = {name: _ANY.decode(part) for name, part in parts.items() if name != member}
            if member in parts:
                members[member] = self._listed(member, _LIST.decode(parts[member]))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            # Its words for what is wrong, with the whole path.
            return read_document(text)
        return check_errors(Record(members, ""))

    def _listed(self, member: str, raws: list[msgspec.Raw]) -> list[DecodedObject]:
        before, now = self._entries.get(member, {}), dict[bytes, DecodedObject]()
        listed: list[DecodedObject] = []
        for raw in raws:
            text = _LOOKED.sub(b"", bytes(raw), count=1)
            entry = before.get(text)
            if entry is None:
                entry = DecodedObject(_ENTRY.decode(raw))
            now[text] = entry
            listed.append(entry)
        self._entries[member] = now
        return listed

    def details(self, records: list[str], read: Callable[[str], T]) -> list[T]:
        """Return what ``read`` makes of scontrol's records of jobs, that of a known text as it was."""
        now: dict[str, T] = {}
        made: list[T] = []
        for record in records:
            text = _TIMES.sub("", record)
            one = self._texts.get(text)
            if one is None:
                one = read(record)
            now[text] = one
            made.append(one)
        self._texts = now
        return made

    def site(self, figures: T) -> T:
        """Return what jobs are read against: the object of the look before where it is equal."""
        if self._site != figures:
            self._site = figures
        return self._site  # type: ignore[no-any-return]
