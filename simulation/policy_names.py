"""How ``--policy`` names policies: a list of them, each with its parameters.

No numpy here: ``--help`` reads it.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..cluster.errors import OptionError
from ..cluster.option_fields import Option, flag_of, options_in
from ..cluster.text import did_you_mean
from .simulate_options import (
    EVOLVING,
    LOG_POLICIES,
    MALLEABLE_POLICIES,
    NODE_ONLY_POLICIES,
    OF_LOGS,
    READ_ON_LOGS,
    RENAMED,
    LogRecord,
    NodeKeywords,
)

#: Every policy's name, in the order of ``--help``.
EVERY_POLICY = (*LOG_POLICIES, *NODE_ONLY_POLICIES, *RENAMED, *MALLEABLE_POLICIES, EVOLVING)
_PARAMETER = re.compile(r"([a-z][a-z0-9-]*)=(.*)", re.ASCII | re.DOTALL)


def parameters_of(policy: str) -> dict[str, Option[Any]]:
    """Return the options that a policy's name may carry, by their names there."""
    if policy not in EVERY_POLICY:
        return {}
    found = {}
    known = options_in(LogRecord, NodeKeywords) | (OF_LOGS if policy in LOG_POLICIES else {})
    for one in known.values():
        is_own = policy in one.policies or READ_ON_LOGS.get(one.name) == policy
        if is_own and one.parameter:
            found[one.parameter] = one
        if is_own or (policy == "adaptive" and one.name in READ_ON_LOGS):
            found.setdefault(one.flag.removeprefix("--"), one)
    return found


def split_policies(text: str) -> list[str]:
    """Return the policies of a list, each with its parameters.

    Examples:
        >>> split_policies("easy,adaptive:every=50,window=20,slack:factor=0.5")
        ['easy', 'adaptive:every=50,window=20', 'slack:factor=0.5']
    """
    found: list[str] = []
    for part in text.split(","):
        name, _, rest = part.partition(":")
        is_parameter = found and "=" in found[-1] and not (name in EVERY_POLICY or (rest and "=" not in name))
        if is_parameter:
            found[-1] += f",{part}"
        else:
            found.append(part)
    return found


def policy_with_parameters(text: str) -> tuple[str, dict[str, Any]]:
    """Return a policy's name, and the options that ``slack:factor=0.5`` gives it.

    Several parameters have commas between, several texts of one a plus sign.

    Raises:
        OptionError: the policy has no such parameter, or its value cannot be used.

    Examples:
        >>> policy_with_parameters("adaptive:every=50,candidates=easy+slack")
        ('adaptive', {'adapt_every': 50, 'candidates': 'easy,slack'})
    """
    name, _, rest = text.partition(":")
    known = parameters_of(name)
    if (name in EVERY_POLICY and text == f"{name}:") or rest in known:
        form = f"{name}:{rest or 'NAME'}=VALUE"
        raise OptionError(f"--policy {text}: a parameter needs a value: {form}")
    if "=" not in rest or not known:
        return text, {}
    texts: dict[str, list[str]] = {}
    last = ""
    for part in rest.split(","):
        found = _PARAMETER.fullmatch(part)
        if found is not None and found[1] in known:
            last = found[1]
            texts.setdefault(last, []).append(found[2])
        elif last and known[last].is_text:
            texts[last][-1] += f",{part}"
        else:
            raise OptionError(f"--policy {text}: {_unknown(part.partition('=')[0], name, known)}")
    return name, {
        known[key].name: known[key].read(given, f"--policy {name}:{key}") for key, given in texts.items()
    }


def with_parameters(options: Mapping[str, Any], policy: str) -> dict[str, Any]:
    """Return a command's options for a policy of ``--policy``, with the parameters in its name.

    Raises:
        OptionError: an option says the same.
    """
    name, own = policy_with_parameters(policy)
    for member in own:
        if options.get(member) not in (None, ()):
            raise OptionError(f"{flag_of(member)}: --policy {policy} says it, too")
    return {**options, **own, "policy": name}


def _unknown(given: str, policy: str, known: Mapping[str, Option[Any]]) -> str:
    """Return in words that a policy has no such parameter, and which it has."""
    names = list({known[key].name: key for key in reversed([*known])}.values())[::-1]
    on_both = READ_ON_LOGS if policy in LOG_POLICIES else [one.name for one in known.values()]
    shown = [key + " (on nodes only)" * (known[key].name not in on_both) for key in names]
    return f"{given!r} is not one of {', '.join(shown)}{did_you_mean(given, names)}"


@contextmanager
def naming_as_typed(policy: str) -> Iterator[None]:
    """Let errors name a policy's parameter as ``slack:factor=x`` does, not by its flag."""
    try:
        yield
    except OptionError as error:
        name, own = policy_with_parameters(policy)
        for key, option in parameters_of(name).items():
            if option.name in own and str(error).startswith((f"{option.flag} ", f"{option.flag}:")):
                text = str(error).replace(option.flag, f"--policy {name}:{key}", 1)
                raise OptionError(text) from error
        raise
