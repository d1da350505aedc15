"""The options that choose a policy over logs and set its parameters; one that would be ignored is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click
from click.shell_completion import CompletionItem

from ..cluster.errors import OptionError
from ..simulation.logs.log_reading import READ_BY, is_read
from .evolving_options import EVOLVING
from .malleable_options import MALLEABLE_POLICIES
from .node_options import NODE_ONLY_POLICIES

if TYPE_CHECKING:
    from ..simulation.logs.policies import PolicyOptions

#: Repeated here so that --help need not load numpy.
POLICIES = (
    "fcfs",
    "first-fit",
    "best-fit",
    "next-fit",
    "queues",
    "easy",
    "conservative",
    "reservations",
    "lookahead",
    "slack",
    "selective",
    "partitioned",
    "adaptive",
    "speculative",
    "planning",
    "aucsched3",
)
ORDERS = (
    *("fcfs", "sjf", "ljf", "area", "width", "widest", "weight", "smith"),
    *("flexible", "slowdown", "multifactor"),
)

F = TypeVar("F", bound=Callable[..., Any])


class _PolicyOption(NamedTuple):
    """An option that one policy reads: the member of PolicyOptions that it sets, and how click reads it."""

    member: str
    option: Callable[[Any], Any]


_POLICY_OPTIONS = (
    _PolicyOption(
        "reservations",
        click.option(
            "--reservations", type=click.IntRange(1), help="For policy reservations: their number; default 4."
        ),
    ),
    _PolicyOption(
        "lookahead_depth",
        click.option(
            "--lookahead-depth",
            type=click.IntRange(1),
            help="For policy lookahead: jobs after the head that it considers; default: all.",
        ),
    ),
    _PolicyOption(
        "lookahead_ties",
        click.option(
            "--lookahead-ties",
            type=click.Choice(["first", "last"]),
            help="For policy lookahead: of equally full selections prefer first or last jobs; default first.",
        ),
    ),
    _PolicyOption(
        "slack",
        click.option(
            "--slack",
            type=click.FloatRange(0),
            metavar="FACTOR",
            help="For policy slack: delay allowed to the head, in multiples of its estimate; default 0.5.",
        ),
    ),
    _PolicyOption(
        "expansion_factor",
        click.option(
            "--expansion-factor",
            type=click.FloatRange(1),
            metavar="FACTOR",
            help="For policy selective: (wait + estimate) / estimate that gives a reservation; default 2.",
        ),
    ),
    _PolicyOption(
        "class_limits_s",
        click.option(
            "--class-limits",
            "class_limits_s",
            metavar="SECONDS,…",
            help="For policy partitioned: longest estimates of classes but the last; default 100,1000,10000.",
        ),
    ),
    _PolicyOption(
        "candidates",
        click.option(
            "--candidates",
            metavar="POLICY,…",
            help="For policy adaptive: policies to choose from; default easy,conservative,lookahead.",
        ),
    ),
    _PolicyOption(
        "adapt_every",
        click.option(
            "--adapt-every",
            type=click.IntRange(1),
            metavar="JOBS",
            help="For policy adaptive: submissions between two comparisons; default 100.",
        ),
    ),
    _PolicyOption(
        "adapt_window",
        click.option(
            "--adapt-window",
            type=click.IntRange(1),
            metavar="JOBS",
            help="For policy adaptive: number of the last submitted jobs that it simulates; default 200.",
        ),
    ),
    _PolicyOption(
        "speculation",
        click.option(
            "--speculation",
            type=click.FloatRange(0, 1, min_open=True),
            metavar="SHARE",
            help="For policy speculative: share of its estimate in which a job is bet to end; default 0.5.",
        ),
    ),
    _PolicyOption(
        "stops",
        click.option(
            "--stops",
            type=click.IntRange(1),
            help="For policy speculative: how often a job may be stopped after a lost bet; default 1.",
        ),
    ),
    _PolicyOption(
        "test_run_s",
        click.option(
            "--test-run",
            "test_run_s",
            type=click.FloatRange(0, min_open=True),
            metavar="SECONDS",
            help="For policy speculative: test runs of so long, twice as long each time, instead of bets.",
        ),
    ),
    _PolicyOption(
        "advance",
        click.option(
            "--advance",
            multiple=True,
            metavar="START,DURATION,PROCESSORS[,SUBMIT][,unused]|FILE",
            help="For policy planning: keep processors free, in seconds after the first submission; with the "
            "time at which it is asked for, accepted then or refused.",
        ),
    ),
    _PolicyOption(
        "queue",
        click.option(
            "--queue",
            multiple=True,
            metavar="NAME:LIMITS",
            help="For policy queues, may be repeated: 'short: processors=64 estimate=3600 priority=2 "
            "hours=mon-fri 08:00-18:00'; a job waits in the first that takes it.",
        ),
    ),
    _PolicyOption(
        "heads",
        click.option(
            "--heads",
            type=click.Choice(["priority", "best-fit"]),
            help="For policy queues: which of the heads that fit starts; default priority.",
        ),
    ),
    _PolicyOption(
        "release_unused_s",
        click.option(
            "--release-unused",
            "release_unused_s",
            type=click.FloatRange(0, min_open=True),
            metavar="SECONDS",
            help="For policy planning: release an unused reservation so long after its start; default never.",
        ),
    ),
    _PolicyOption(
        "start_rule",
        click.option(
            "--start-rule",
            multiple=True,
            metavar="KIND:LIMIT",
            help="For policy planning: hours when jobs of a kind may start, or how many at once: "
            "'processors>66%: 18:00-08:00,sat,sun', 'processors>=33%: 2', 'user=7: 64', 'group=3: 128'.",
        ),
    ),
    _PolicyOption(
        "replan",
        click.option(
            "--replan",
            type=click.Choice(["keep", "rebuild"]),
            help="For policy planning: never plan a job later than before (default), or replan all jobs.",
        ),
    ),
)


class PolicyNames(click.ParamType):  # type: ignore[type-arg]  # only newer clicks have any
    """One of our policies, somebody's own, or several with commas between."""

    name = "policy"
    choices = (*POLICIES, *NODE_ONLY_POLICIES, *MALLEABLE_POLICIES, EVOLVING)

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:  # noqa: ARG002
        """Return how the option's values are shown in ``--help``."""
        return f"[{'|'.join(self.choices)}|MODULE:CLASS]"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text where it names policies."""
        names = value.split(",")
        for name in names:
            if name not in self.choices and not _is_own(name):
                self.fail(f"{name!r} is not a policy{suggestion(name, self.choices)}", param, ctx)
        if len(set(names)) < len(names):
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


def _is_own(name: str) -> bool:
    from ..simulation.own_policy import is_own

    return is_own(name)


def suggestion(given: str, known: Iterable[str]) -> str:
    """Return ``: did you mean …?`` where something is much like what was given, else the list of all."""
    from difflib import get_close_matches

    names = tuple(known)
    close = get_close_matches(given, names, n=3, cutoff=0.5)
    return f": did you mean {' or '.join(close)}?" if close else f" of {', '.join(names)}"


def policy_options(command: F) -> F:
    """Give a command the options of every policy and order."""
    decorators = [
        click.option(
            "--policy",
            type=PolicyNames(),
            default="easy",
            show_default=True,
            help="One policy, several (POLICY,POLICY: one table), or your own (MODULE:CLASS, FILE.py:CLASS).",
        ),
        click.option(
            "--order",
            type=click.Choice(ORDERS),
            default="fcfs",
            show_default=True,
            help="Order of the waiting queue.",
        ),
        *(entry.option for entry in _POLICY_OPTIONS),
        click.option(
            "--multifactor",
            metavar="NAME=NUMBER,…",
            help="Weights of order multifactor: age, size, fairshare, age_max_s, half_life_s.",
        ),
        click.option(
            "--priorities",
            metavar="NAME=NUMBER,…",
            help="For order flexible: weights of the priorities admin, user, scheduler; default 1 each.",
        ),
        click.option(
            "--user-priorities",
            metavar="[group=]USER=NUMBER,…",
            help="For order flexible: administrative priorities by the log's users, or group=GROUP=NUMBER by "
            "its groups (projects); default 0, a job has its user's and its group's.",
        ),
        click.option(
            "--log-begins",
            metavar="DAY HH:MM",
            help="For policies planning and queues: time of the first submission; default mon 00:00.",
        ),
        click.option(
            "--queue-weights", metavar="QUEUE=WEIGHT,…", help="Job weights by the log's queues; default 1."
        ),
    ]
    for decorator in reversed(decorators):
        command = decorator(command)
    return command


def check_policy_options(options: dict[str, Any]) -> None:
    """Refuse options that would be ignored."""
    for entry in _POLICY_OPTIONS:
        _refuse_ignored(options, entry.member, "policy", _readers_of(entry, options))
    _refuse_ignored(options, "multifactor", "order", ("multifactor",))
    _refuse_ignored(options, "log_begins", "policy", ("planning", "queues"))
    _refuse_ignored(options, "priorities", "order", ("flexible",))
    _refuse_ignored(options, "user_priorities", "order", ("flexible",))
    _refuse_ignored(options, "queue_weights", "order", ("weight", "smith", "flexible"))


def _readers_of(entry: _PolicyOption, options: dict[str, Any]) -> tuple[str, ...]:
    """Return the policies that read an option; ``adaptive`` passes it on to a candidate that reads it."""
    policy = READ_BY[entry.member]
    is_candidate = policy in _names(options["candidates"] or "")
    return (policy, "adaptive") if is_candidate else (policy,)


def _refuse_ignored(options: dict[str, Any], member: str, needed: str, values: tuple[str, ...]) -> None:
    if options[member] not in {None, ()} and options[needed] not in values:
        name = f"--{member.removesuffix('_s').replace('_', '-')}"
        raise OptionError(f"{name} needs --{needed} {' or '.join(values)}, not {options[needed]}")


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def read_policy_options(options: dict[str, Any]) -> tuple[PolicyOptions, dict[str, Any]]:
    """Return the policy's options, and those of them that this run reads.

    Raises:
        OptionError: a value cannot be read.

    """
    from dataclasses import asdict

    from ..simulation.logs.advance import read_advance
    from ..simulation.logs.hours import moment_of_week
    from ..simulation.logs.orderings import FlexiblePriorities, MultifactorWeights
    from ..simulation.logs.partitioned import class_limits
    from ..simulation.logs.policies import PolicyOptions
    from ..simulation.logs.queues import QueueLimits
    from ..simulation.logs.start_rules import StartRule

    members: dict[str, Any] = {
        member: options[member] for member in READ_BY if options.get(member) not in {None, ()}
    }
    begins = 0 if options["log_begins"] is None else moment_of_week(options["log_begins"])
    read: dict[str, Callable[[Any], Any]] = {
        "class_limits_s": class_limits,
        "advance": read_advance,
        "start_rule": lambda texts: tuple(StartRule.from_text(one, begins) for one in texts),
        "queue": lambda texts: tuple(QueueLimits.from_text(one, begins) for one in texts),
        "candidates": _names,
    }
    members.update({member: parse(members[member]) for member, parse in read.items() if member in members})
    if {"test_run_s", "speculation"} <= members.keys():
        raise OptionError("--speculation is the share that a bet needs: none with --test-run")
    if options["multifactor"] is not None:
        members["multifactor"] = MultifactorWeights.from_text(options["multifactor"])
    if options["order"] == "flexible":
        members["flexible"] = FlexiblePriorities.from_text(options["priorities"], options["user_priorities"])
    choice = PolicyOptions(**members)
    policy = options["policy"]
    settings = {name: getattr(choice, name) for name in READ_BY if is_read(name, policy, choice.candidates)}
    if "advance" in settings:
        settings["advance"] = [one.settings() for one in choice.advance]
        settings["start_rule"] = [rule.text for rule in choice.start_rule]
    if "queue" in settings:
        settings["queue"] = [one.text for one in choice.queue]
    if options["order"] == "multifactor":
        settings["multifactor"] = asdict(choice.multifactor)
    if options["order"] == "flexible":
        settings["flexible"] = choice.flexible.settings()
    return choice, settings
