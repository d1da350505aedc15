"""YAML as configuration files have it: lists, mappings and texts.

A YAML alias means what it names, and so on: a file of a kilobyte can mean a billion entries. Values are built
from the parser's events one by one, so that such a file is refused at its first alias.
"""

from __future__ import annotations

from typing import Any

import yaml

from ..cluster.errors import InputError

#: Beyond this no configuration file is one: the reader would take minutes over it.
_LONGEST = 16_000_000
#: A topology is four deep.
_DEEPEST = 20
_STANDARD = "tag:yaml.org,2002:"
_TAGS = {"!", "str", "int", "float", "bool", "null", "seq", "map"}
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
}


def yaml_value(text: str) -> Any:
    """Return the document in a text: lists, dicts, texts, true, false, None; numbers stay texts.

    Raises:
        InputError: it is no YAML, too long, uses an alias, is too deep, or a key is no text or stands twice.
    """
    if len(text) > _LONGEST:
        raise InputError(f"{len(text)} characters are above the limit of {_LONGEST}")
    builder = _Builder()
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise InputError(f"not YAML: {' '.join(str(error).split())[:200]}") from error
    return builder.value


class _Builder:
    """Builds one value of the parser's events."""

    def __init__(self) -> None:
        self.value: Any = None
        self._documents = 0
        self._open: list[Any] = []
        self._keys: list[str | None] = []

    def take(self, event: yaml.Event) -> None:
        """Add what an event says."""
        tag = getattr(event, "tag", None)
        if tag is not None and tag.removeprefix(_STANDARD) not in _TAGS:
            raise InputError(f"not YAML: the tag {tag[:60]!r} is not known")
        if isinstance(event, yaml.ScalarEvent):
            plain = event.style in (None, "") and event.tag is None
            self._add(_WORDS.get(event.value, event.value) if plain else event.value, event)
        elif isinstance(event, (yaml.SequenceStartEvent, yaml.MappingStartEvent)):
            self._begin([] if isinstance(event, yaml.SequenceStartEvent) else {}, event)
        elif isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
            self._open.pop()
            self._keys.pop()
        elif isinstance(event, yaml.AliasEvent):
            raise InputError(f"the alias *{event.anchor[:60]} is not read", path=_yaml_line(event))
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise InputError("a second document begins", path=_yaml_line(event))

    def _begin(self, container: Any, event: yaml.Event) -> None:
        if len(self._open) >= _DEEPEST:
            raise InputError(f"it is more than {_DEEPEST} levels deep", path=_yaml_line(event))
        self._add(container, event)
        self._open.append(container)
        self._keys.append(None)

    def _add(self, value: Any, event: yaml.Event) -> None:
        if not self._open:
            self.value = value
            return
        holder = self._open[-1]
        if isinstance(holder, list):
            holder.append(value)
        elif self._keys[-1] is None:
            self._keys[-1] = _key(value, event, holder)
        else:
            holder[self._keys[-1]] = value
            self._keys[-1] = None


def _key(value: Any, event: yaml.Event, holder: dict[str, Any]) -> str:
    key = event.value if isinstance(event, yaml.ScalarEvent) else value
    if not isinstance(key, str):
        raise InputError("a key is a list or a mapping", path=_yaml_line(event))
    if key in holder:
        raise InputError(f"the member {key[:60]!r} stands twice", path=_yaml_line(event))
    return key


def _yaml_line(event: yaml.Event) -> str:
    return f"line {event.start_mark.line + 1}"
