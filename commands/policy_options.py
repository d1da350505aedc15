"""The options that choose a policy and set its parameters; one that would be ignored is refused.

Policies over logs, then those of applications that grow and shrink, with what these play.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import click
from click.shell_completion import CompletionItem

from ..cluster.errors import OptionError, shown_name
from ..cluster.option_fields import Option, options_in, refuse_given, taken_from
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
from .built_options import click_option, in_order, in_section, record_options
from .outputs import note, read_log, write_report

if TYPE_CHECKING:
    from ..negotiation.malleable.malleable_policies import IschedulerPolicy

#: The parameters of policies by their old flags.
PARAMETERS = options_in(LogRecord)


class PolicyNames(click.ParamType):  # type: ignore[type-arg]  # only newer clicks have any
    """One of our policies, somebody's own, or several with commas between; with parameters."""

    name = "policy"

    def __init__(self, choices: Sequence[str] = EVERY_POLICY) -> None:
        self.choices = choices

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


ISCHEDULER = "ischeduler"
NO_LIMIT = "none"


@dataclass(kw_only=True, unsafe_hash=True)
class DecidingOptions:
    """How policy ischeduler decides who gives processors and who gets them."""

    admission: Option[str] = Option(
        "Harvest for an application only if fewer than M run; none: always.", default=NO_LIMIT, unit="M|none"
    )
    harvest: Option[Literal["never", "even", "fair", "long", "short", "low_impact", "priced"]] = Option(
        "Which applications give processors.", default="low_impact"
    )
    distribute: Option[Literal["favor_running", "favor_queued", "queued_only", "trade"]] = Option(
        "Which applications get the processors of one that ended.", default="favor_running"
    )
    max_harvests: Option[int | None] = Option(
        "Number of harvests after which an application gives no more.", low=0, high=10**9
    )
    protected_s: Option[float | None] = Option(
        "An application that has run for less time gives nothing.",
        low=0,
        high=10**12,
        includes_low=True,
        unit="SECONDS",
        spelling="protected-age",
    )
    weigh_harvests: Option[bool | None] = Option(
        "Harvest only where the saved wait exceeds the delay caused."
    )


@dataclass(kw_only=True, unsafe_hash=True)
class PlayingOptions:
    """How applications of a log run on fewer processors."""

    min_of_ideal: Option[float] = Option(
        "For ischeduler and moldable: fewest processors, as a share of those requested.",
        default=0.3,
        low=0,
        high=1,
        unit="SHARE",
    )
    model: Option[Literal["linear", "parabolic"]] = Option(
        "For ischeduler and moldable: model of run times on fewer processors.", default="linear"
    )
    adaptation: Option[Literal["free", "memory"]] = Option(
        "For ischeduler: cost of growing and shrinking: none (free), or moving the used memory.",
        default="free",
    )


_DECIDING, _PLAYING = options_in(DecidingOptions), options_in(PlayingOptions)
_OWN = {**_DECIDING, **_PLAYING}
malleable_options = record_options(DecidingOptions, PlayingOptions)
#: Options of simulations that have no meaning here.
_FOREIGN = (
    *("check", "batsim_out", "swf_out", "forecasts", "forecast_at", "gantt", "plot"),
    *("queue_weights", "priorities", "log_begins", "user_priorities"),
)


def refuse_malleable(options: dict[str, Any]) -> None:
    """Refuse what only applications that grow and shrink have."""
    refuse_given(options, _OWN, f"needs --policy {ISCHEDULER}, not {options['policy']}")


def check_malleable(options: dict[str, Any]) -> None:
    """Refuse options that would be ignored."""
    policy = options["policy"]
    refuse_given(options, _FOREIGN, f"is not for --policy {policy}")
    if options["order"] != "fcfs":
        raise OptionError(f"--policy {policy} serves first come, first served: no --order")
    ignored = {
        ISCHEDULER: (),
        "moldable": (*_DECIDING, "adaptation"),
    }.get(policy, tuple(_OWN))
    refuse_given(options, {name: _OWN[name] for name in ignored}, f"is not for --policy {policy}")


def policy_of(options: dict[str, Any]) -> IschedulerPolicy:
    """Return the policy that the options combine, or a baseline."""
    from ..negotiation.malleable.malleable_policies import BASELINES, IschedulerPolicy

    if options["policy"] != ISCHEDULER:
        return BASELINES[options["policy"]]
    given = taken_from(DecidingOptions, options)
    admission = given.admission
    if admission != NO_LIMIT and not (admission.isdecimal() and admission.isascii() and len(admission) < 10):  # noqa: PLR2004
        raise OptionError(f"--admission: {admission!r} is neither a number of applications nor {NO_LIMIT}")
    return IschedulerPolicy(
        admission=None if admission == NO_LIMIT else int(admission),
        harvest=given.harvest,
        distribution=given.distribute,
        max_harvests=given.max_harvests,
        protected_s=given.protected_s or 0.0,
        weighs=bool(given.weigh_harvests),
    )


def simulate_malleable_log(
    path: str, content: bytes, options: dict[str, Any], processors: int | None
) -> None:
    """Play a log under a policy of applications, write what the options name, print the metrics."""
    from ..simulation.malleable_run import moved_bytes, simulate_malleable

    policy, settings = policy_of(options), _settings(options)
    log, jobs = read_log(path, content, processors)
    found = simulate_malleable(
        jobs,
        policy,
        model=settings.get("model", "linear"),
        min_of_ideal=settings.get("min_of_ideal", 1.0),
        data=moved_bytes(jobs, log) if settings.get("adaptation") == "memory" else None,
    )
    write_report(replace(found, settings=settings), shown_name(path), options)


def _settings(options: dict[str, Any]) -> dict[str, Any]:
    """Return the policy and what it reads, as a result states it."""
    settings: dict[str, Any] = {"policy": options["policy"]}
    if options["policy"] in {"ideal-only", "ideal-backfill"}:
        return settings
    deciding, playing = taken_from(DecidingOptions, options), taken_from(PlayingOptions, options)
    if options["policy"] == ISCHEDULER:
        read = {name: getattr(deciding, name) for name in _DECIDING}
        settings |= {name: value for name, value in read.items() if value is not None}
        settings["adaptation"] = playing.adaptation
    return settings | {"min_of_ideal": playing.min_of_ideal, "model": playing.model}
