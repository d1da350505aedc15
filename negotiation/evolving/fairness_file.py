"""Dynamic fairness in files: delays, settings in TOML and Maui's syntax (Prabhakaran, figure 6).

The file of the delays so far survives a restart: it is written whole, and refused when torn.
"""

import re
import zlib
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

from ...cluster.checks import named
from ...cluster.errors import InputError
from ...formats.checked_lines import sync
from ...formats.jsontext import decode
from ...formats.reading import read_document, text_of
from ...formats.settings_text import toml_tables
from ...formats.writing import write_bytes
from ...slurm.answers.answer_text import joined_lines
from .fairness import INTERVAL_S, KINDS, Accounts, DelayLimits, DelayPolicy, Fairness

#: Maui's and the paper's names of the policies: its text and its figure disagree on the last one's.
_MAUI_POLICIES = {
    "NONE": DelayPolicy.NONE,
    "DFSSINGLEJOBDELAY": DelayPolicy.SINGLE,
    "DFSTARGETDELAY": DelayPolicy.TARGET,
    "DFSSINGLETARGETDELAY": DelayPolicy.BOTH,
    "DFSSINGLEANDTARGETDELAY": DelayPolicy.BOTH,
}
_CREDENTIAL = re.compile(r"(USER|GROUP|ACCOUNT|CLASS|QOS)CFG\[([^\[\]]*)\]", re.IGNORECASE)
_CLOCK = re.compile(r"(?:(?:(\d{1,9}):)?(\d{1,9}):)?(\d{1,2}):(\d{1,2})", re.ASCII)
_COMMENT = re.compile(r"#.*")
_PERMISSIONS = {"0": False, "1": True}


def load_fairness(path: str | Path) -> tuple[Fairness, tuple[str, ...]]:
    """Return a file's configuration, and what else it holds, which is not read.

    A name that ends in ``.toml`` is TOML, any other file Maui's syntax.

    Raises:
        InputError: it cannot be read; names file, line or path, and value.
    """
    if str(path).lower().endswith(".toml"):
        return read_document(path, fairness_of_toml), ()
    return read_document(path, lambda content: fairness_of_maui(text_of(content)))


def seconds_of(value: object, path: str) -> float:
    """Return a time: a number of seconds, or [DD:]HH:MM:SS.

    Raises:
        InputError: it is neither.
    """
    found = _CLOCK.fullmatch(value) if isinstance(value, str) else None
    if found is not None:
        days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
        return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
    number = _number(value)
    if not (isfinite(number) and number >= 0):
        raise InputError(f"{value!r} is neither a number of seconds of at least 0 nor HH:MM:SS", path=path)
    return number


def _number(value: object) -> float:
    """Return a number or that in a text, NaN where it is neither."""
    try:
        is_one = isinstance(value, (int, float, str)) and not isinstance(value, bool)
        return float(value) if is_one else float("nan")  # type: ignore[arg-type]  # is_one says so
    except (ValueError, OverflowError):
        return float("nan")


# TOML.

_TOP = ("policy", "interval", "decay")
_LIMITS = ("permission", "single_delay", "target_delay")


def fairness_of_toml(content: bytes) -> Fairness:
    """Return the configuration in a TOML file's text.

    Raises:
        InputError: it is no TOML, or a value cannot be used.
    """
    document = toml_tables(content)
    _only(document, (*_TOP, *KINDS), "")
    policy, limits = document.get("policy", DelayPolicy.NONE), {}
    if policy not in [*DelayPolicy]:
        raise InputError(f"{policy!r} is not one of {', '.join(DelayPolicy)}", path="policy")
    for kind in KINDS:
        for name, members in _table(document.get(kind, {}), kind).items():
            named(name, kind)
            limits[kind, name] = _limits_of_toml(_table(members, f"{kind}.{name}"), f"{kind}.{name}")
    return Fairness(
        policy=DelayPolicy(policy),
        interval_s=seconds_of(document.get("interval", INTERVAL_S), "interval"),
        decay=_decay(document.get("decay", 0.0), "decay"),
        limits=limits,
    )


def _limits_of_toml(members: dict[str, Any], path: str) -> DelayLimits:
    _only(members, _LIMITS, path)
    permission = members.get("permission")
    if permission is not None and not isinstance(permission, bool):
        raise InputError(f"{permission!r} is neither true nor false", path=f"{path}.permission")
    times = {name: seconds_of(members[name], f"{path}.{name}") for name in _LIMITS[1:] if name in members}
    return DelayLimits(
        permitted=permission, single_s=times.get("single_delay"), target_s=times.get("target_delay")
    )


def _table(value: object, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{value!r} is not a table", path=path)
    return value


def _only(members: dict[str, Any], names: tuple[str, ...], path: str) -> None:
    for name in members:
        if name not in names:
            where = f"{path}.{name}" if path else name
            raise InputError(f"{name!r} is not one of {', '.join(names)}", path=where)


def _decay(value: object, path: str) -> float:
    number = _number(value)
    if not 0 <= number <= 1:
        raise InputError(f"{value!r} is not from 0 to 1", path=path)
    return number


# Maui.


def fairness_of_maui(text: str) -> tuple[Fairness, tuple[str, ...]]:
    """Return the configuration in a maui.cfg, and its other parameters, which are another's.

    Names are read in capitals or not; a line that ends in a backslash goes on in the next; later
    lines of the same name add to earlier ones.

    Raises:
        InputError: a DFS parameter is unknown or given twice, or has a value that cannot be used;
            the path is the line.
    """
    policy, interval_s, decay = DelayPolicy.NONE, INTERVAL_S, 0.0
    limits: dict[tuple[str, str], DelayLimits] = {}
    others, seen = list[str](), set[tuple[str, ...]]()
    for number, line in joined_lines(text, _COMMENT):
        path, words = f"line {number}", line.split()
        name = words[0].upper()
        credential = _CREDENTIAL.fullmatch(words[0])
        if credential is None:
            _check_once(words[:1], (), path, seen)
        else:
            key = (credential[1].lower(), credential[2])
            named(key[1], path)
            _check_once(words[1:], key, path, seen)
            found = _limits_of_maui(words[1:], path, others)
            limits[key] = found.over(limits.get(key, DelayLimits()))
        if name == "DFSPOLICY":
            word = _only_word(words, path)
            if word.upper() not in _MAUI_POLICIES:
                known = ", ".join(_MAUI_POLICIES)
                raise InputError(f"{word!r} is not one of {known}", path=f"{path}.DFSPOLICY")
            policy = _MAUI_POLICIES[word.upper()]
        elif name == "DFSINTERVAL":
            interval_s = seconds_of(_only_word(words, path), f"{path}.{name}")
            if not interval_s:
                raise InputError("0 is not a time above 0", path=f"{path}.{name}")
        elif name == "DFSDECAY":
            decay = _decay(_only_word(words, path), f"{path}.{name}")
        elif name.startswith("DFS"):
            raise InputError(f"{words[0]!r} is not a parameter of dynamic fairness", path=path)
        elif credential is None:
            others.append(words[0])
    fairness = Fairness(policy=policy, interval_s=interval_s, decay=decay, limits=limits)
    return fairness, tuple(dict.fromkeys(others))


def _check_once(words: list[str], owner: tuple[str, ...], path: str, seen: set[tuple[str, ...]]) -> None:
    """Refuse a parameter of dynamic fairness of which the file has said something before."""
    for name in (word.partition("=")[0].upper() for word in words):
        if (*owner, name) in seen and name.startswith("DFS"):
            raise InputError(f"{name} is given twice", path=path)
        seen.add((*owner, name))


def _only_word(words: list[str], path: str) -> str:
    values = words[1:] if words[1:2] != ["="] else words[2:]
    if len(values) != 1:
        raise InputError(f"{' '.join(values)!r} is not one value", path=f"{path}.{words[0]}")
    return values[0]


def _limits_of_maui(words: list[str], path: str, others: list[str]) -> DelayLimits:
    given: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        where = f"{path}.{name}"
        match name.upper():
            case "DFSDYNDELAYPERM":
                if value not in _PERMISSIONS:
                    raise InputError(f"{value!r} is neither 0 nor 1", path=where)
                given["permitted"] = _PERMISSIONS[value]
            case "DFSTARGETDELAYTIME":
                given["target_s"] = seconds_of(value, where)
            case "DFSSINGLEDELAYTIME":
                given["single_s"] = seconds_of(value, where)
            case other if other.startswith("DFS") or not equals:
                raise InputError(f"{word!r} is not a parameter of dynamic fairness", path=path)
            case _:
                others.append(name)
    return DelayLimits(**given)


FORMAT = "aucsched-delays/1"
#: Names in their order: equal accounts are one text.
_ENCODER = msgspec.json.Encoder(order="deterministic")


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    checksum: str
    delays: Accounts


def save_accounts(accounts: Accounts, path: str | Path) -> None:
    """Write accounts: the file is the old one or the new one, whenever the machine stops.

    Raises:
        InputError: it cannot be written.
    """
    file = _File(format=FORMAT, checksum=_checksum(accounts), delays=accounts)
    write_bytes(path, msgspec.json.format(_ENCODER.encode(file), indent=2) + b"\n")
    if Path(path).is_file():
        # The file and its name.
        for place in (Path(path), Path(path).resolve().parent):
            sync(place)


def load_accounts(path: str | Path) -> Accounts | None:
    """Return a file's accounts, None where there is no such file yet.

    Raises:
        InputError: it is none, or was changed or cut: its checksum does not fit.
    """
    if not Path(path).exists():
        return None
    return read_document(path, _parsed)


def _parsed(content: bytes) -> Accounts:
    file = decode(content, _File, FORMAT)
    found = file.delays
    if file.checksum != _checksum(found):
        raise InputError(f"{file.checksum!r} does not fit what the file holds", path="checksum")
    for kind, names in found.targets.items():
        if kind not in KINDS:
            raise InputError(f"{kind!r} is not one of {', '.join(KINDS)}", path="delays.targets")
        _times(names, f"delays.targets.{kind}")
    _times(found.singles, "delays.singles")
    _times({"since_s": found.since_s}, "delays")
    return found


def _times(values: dict[str, float], path: str) -> None:
    for name, value in values.items():
        if not (isfinite(value) and value >= 0):
            raise InputError(f"{value:g} is not a time of at least 0", path=f"{path}.{name}")


def _checksum(accounts: Accounts) -> str:
    return f"{zlib.crc32(_ENCODER.encode(accounts)):08x}"
