"""The options that choose a policy over logs and set its parameters; one that would be ignored is refused."""

from typing import Any

import click
from click.shell_completion import CompletionItem

from ..cluster.errors import OptionError
from ..cluster.option_fields import Option, options_in
from ..cluster.text import meant_or_known
from ..simulation.policy_names import EVERY_POLICY, parameters_of, policy_with_parameters, split_policies
from ..simulation.simulate_options import (
    EVOLVING,
    LOG_POLICIES,
    MALLEABLE_POLICIES,
    ON_NODES,
    ORDER_NAMES,
    LogRecord,
    OrderOptions,
    PolicyOptions,
    SimulateKeywords,
    check_read,
)
from .built_options import click_option, in_order, in_section
from .outputs import note

#: The parameters of policies by their old flags.
PARAMETERS = options_in(LogRecord)


class PolicyNames(click.ParamType):  # type: ignore[type-arg]  # only newer clicks have any
    """One of our policies, somebody's own, or several with commas between; with parameters."""

    name = "policy"
    choices = EVERY_POLICY

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text where it names policies."""
        from ..simulation.own_policy import is_own

        texts = split_policies(value)
        for text in texts:
            try:
                name = policy_with_parameters(text)[0]
            except OptionError as error:
                self.fail(str(error).removeprefix("--policy "), param, ctx)
            if name not in self.choices and not is_own(name):
                self.fail(f"{name!r} is not a policy{meant_or_known(name, self.choices)}", param, ctx)
        if len(set(texts)) < len(texts):
            self.fail(f"{value}: one is named twice", param, ctx)
        return value

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Return the policies that begin so, behind those that are named already."""
        before, comma, last = incomplete.rpartition(",")
        return [CompletionItem(f"{before}{comma}{name}") for name in self.choices if name.startswith(last)]


def _key(option: Option[Any]) -> str:
    """Return an option's name as a parameter, behind its policy's."""
    policy = option.policies[0]
    return next(f"{policy}:{key}" for key, one in parameters_of(policy).items() if one is option)


def _shown(option: Option[Any]) -> tuple[str, str]:
    value = option.unit or "|".join(option.choices) or ("N" if option.is_whole else "NUMBER")
    text = option.said().partition(": ")[2]
    return f"{_key(option)}={value}", f"{text[0].upper()}{text[1:]}"


#: How help shows each parameter, and its text.
PARAMETERS_SHOWN = {name: _shown(one) for name, one in PARAMETERS.items()}
policy_options = in_order(
    [
        click.option(
            "--policy",
            type=PolicyNames(),
            metavar="NAME,…",
            multiple=True,
            callback=lambda ctx, param, values: PolicyNames().convert(",".join(values), param, ctx),
            default=("easy",),
            show_default=True,
            help="Policies: several with commas, or give the option again. A policy takes parameters: "
            "slack:factor=0.5 (docs/policies.md). Your own: MODULE:CLASS, FILE.py:CLASS. "
            f"On logs: {', '.join((*LOG_POLICIES, *MALLEABLE_POLICIES))}. On nodes: {', '.join(ON_NODES)}. "
            f"On dynamic-esp and quadflow: {EVOLVING}.",
        ),
        click.option(
            "--order",
            type=click.Choice(ORDER_NAMES),
            metavar="NAME",
            default="fcfs",
            show_default=True,
            help=f"Order of the waiting queue. One of {', '.join(ORDER_NAMES)}.",
        ),
        in_section(
            LogRecord.heading,
            *(click_option(one, hidden=True) for one in PARAMETERS.values()),
            shown=PARAMETERS_SHOWN,
        ),
    ]
)


#: What the orders of a log's queue and its clock read.
ORDER_OPTIONS = (
    options_in(PolicyOptions)["multifactor"],
    *options_in(OrderOptions).values(),
    options_in(SimulateKeywords)["queue_weights"],
)


def note_old_flags(options: dict[str, Any]) -> None:
    """Say how a policy's parameter is spelled now, where its old flag is used."""
    for name, one in PARAMETERS.items():
        if options.get(name) not in (None, ()):
            note(f"{one.flag} is the old spelling of --policy {_key(one)}=…")


#: What policies over logs and the order of their queue read.
_OF_LOGS = (*PARAMETERS, *(one.name for one in ORDER_OPTIONS))


def check_policy_options(options: dict[str, Any]) -> None:
    """Refuse options that would be ignored."""
    check_read(options["policy"], options["order"], {name: options[name] for name in _OF_LOGS})


def chosen_policy(options: dict[str, Any]) -> tuple[PolicyOptions, dict[str, Any]]:
    """Return the options of a policy over a log, and those of them that this run reads.

    Raises:
        OptionError: a value cannot be read.
    """
    from ..api.simulations import chosen_on_log, parsed

    names = options_in(PolicyOptions, OrderOptions)
    given = {name: options[name] for name in names if options.get(name) not in (None, ())}
    return chosen_on_log(options["policy"], options["order"], parsed(given))
