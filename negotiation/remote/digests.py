"""Digests of values: equal values have equal digests, in every process.

A journal's lines and checkpoints are compared by these. The JSON of a message would not do: ``omit_defaults``
leaves a member out where it is the default *object*, and a process that has read its state from a checkpoint
holds another object of the same value.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from math import isfinite
from typing import Any

import msgspec

from ..offer_events import Send
from .codec import encode_message

#: Begins the digests of values; those of earlier journals are of JSON, and begin with a hexadecimal digit.
_OF_VALUES = "="
_ENCODER = msgspec.json.Encoder()
#: Types of most members: they are as they are.
_PLAIN = frozenset({str, int, bool, type(None)})


def digest_of(sends: Sequence[Send]) -> str:
    """Return a digest of what a transition sends, empty when it sends nothing.

    1 and 1.0 are equal; the order of a mapping counts, as that of a sequence.
    """
    if not sends:
        return ""
    text = _ENCODER.encode([_plain(send.message) for send in sends])
    return f"{_OF_VALUES}{zlib.crc32(text):08x}"


def has_digest(sends: Sequence[Send], digest: str) -> bool:
    """Whether a digest is that of what a transition sends; earlier journals have one of its JSON."""
    if not digest or not sends or digest.startswith(_OF_VALUES):
        return digest_of(sends) == digest
    messages = [send.message for send in sends]
    return digest in {_digest_of_json(messages), _digest_of_json([_with_defaults(one) for one in messages])}


def _plain(value: Any) -> Any:
    """Return a value as lists, texts and numbers: a member that has its default like any other."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else value if isfinite(value) else str(value)
    if isinstance(value, msgspec.Struct):
        return [value.__struct_config__.tag, *map(_plain, msgspec.structs.astuple(value))]
    if isinstance(value, dict):
        return [[key, _plain(one)] for key, one in value.items()]
    if isinstance(value, tuple):
        return [*map(_plain, value)]
    return value  # a name of an enumeration


def _digest_of_json(messages: Sequence[Any]) -> str:
    checksum = 0
    for message in messages:
        checksum = zlib.crc32(encode_message(message), checksum)
    return f"{checksum:08x}"


def _with_defaults(value: Any) -> Any:
    """Return a message with the default objects themselves wherever a member equals one."""
    if isinstance(value, tuple):
        return tuple(_with_defaults(one) for one in value)
    if not isinstance(value, msgspec.Struct):
        return value
    members = {}
    for member in msgspec.structs.fields(value):
        own = _with_defaults(getattr(value, member.name))
        members[member.name] = member.default if own == member.default else own
    return type(value)(**members)
