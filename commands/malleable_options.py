"""``aucsched simulate`` under policies of applications that grow and shrink: options and output."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..cluster.errors import OptionError
from .outputs import read_jobs, read_log, shown

if TYPE_CHECKING:
    from ..negotiation.malleable.malleable_policies import IschedulerPolicy

F = TypeVar("F", bound=Callable[..., Any])

ISCHEDULER = "ischeduler"
#: Repeated here so that --help need not load numpy.
MALLEABLE_POLICIES = (ISCHEDULER, "ideal-only", "moldable", "ideal-backfill")
HARVESTS = ("never", "even", "fair", "long", "short", "low_impact", "priced")
DISTRIBUTIONS = ("favor_running", "favor_queued", "queued_only", "trade")
NO_LIMIT = "none"


class Admission(click.ParamType[str]):
    """M of achieve_mp, or none."""

    name = "M|none"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text, once it is known to be one of both."""
        text = str(value)
        if text != NO_LIMIT and not (text.isdecimal() and text.isascii() and len(text) < 10):  # noqa: PLR2004
            self.fail(f"{text!r} is neither a number of applications nor {NO_LIMIT}", param, ctx)
        return text


_DECIDING: dict[str, Callable[[Any], Any]] = {
    "admission": click.option(
        "--admission",
        type=Admission(),
        help="Admit applications while fewer than M run; none (default): while one fits.",
    ),
    "harvest": click.option(
        "--harvest",
        type=click.Choice(HARVESTS),
        help="Which applications give processors; default low_impact.",
    ),
    "distribute": click.option(
        "--distribute",
        type=click.Choice(DISTRIBUTIONS),
        help="Which applications get the processors of one that ended; default favor_running.",
    ),
    "max_harvests": click.option(
        "--max-harvests",
        type=click.IntRange(0, 10**9),
        help="Number of harvests after which an application gives no more.",
    ),
    "protected_s": click.option(
        "--protected-age",
        "protected_s",
        type=click.FloatRange(0, 10**12),
        metavar="SECONDS",
        help="An application that has run for less time gives nothing.",
    ),
    "weigh_harvests": click.option(
        "--weigh-harvests",
        is_flag=True,
        default=None,
        help="Harvest only where the saved wait exceeds the delay caused.",
    ),
}
_PLAYING: dict[str, Callable[[Any], Any]] = {
    "min_of_ideal": click.option(
        "--min-of-ideal",
        type=click.FloatRange(0, 1, min_open=True),
        metavar="SHARE",
        help="For ischeduler and moldable: fewest processors, as a share of those requested; default 0.3.",
    ),
    "model": click.option(
        "--model",
        type=click.Choice(["linear", "parabolic"]),
        help="For ischeduler and moldable: model of run times on fewer processors; default linear.",
    ),
    "adaptation": click.option(
        "--adaptation",
        type=click.Choice(["free", "memory"]),
        help="For ischeduler: cost of growing and shrinking: none (default), or moving the used memory.",
    ),
}
#: Options of simulations that have no meaning here, with the value that means: not given.
_FOREIGN: dict[str, Any] = {
    "check": False,
    "batsim_out": None,
    "swf_out": None,
    "forecasts": None,
    "forecast_at": None,
    "gantt": None,
    "plot": None,
    "queue_weights": None,
    "priorities": None,
    "log_begins": None,
    "user_priorities": None,
}


def malleable_options(command: F) -> F:
    """Give a command the options of applications that grow and shrink."""
    for option in reversed([*_DECIDING.values(), *_PLAYING.values()]):
        command = option(command)
    return command


def refuse_malleable(options: dict[str, Any]) -> None:
    """Refuse what only applications that grow and shrink have."""
    for name in (*_DECIDING, *_PLAYING):
        if options[name] is not None:
            raise OptionError(f"{_flag(name)} needs --policy {ISCHEDULER}, not {options['policy']}")


def check_malleable(options: dict[str, Any]) -> None:
    """Refuse options that would be ignored."""
    policy = options["policy"]
    for name, absent in _FOREIGN.items():
        if options[name] != absent:
            raise OptionError(f"{_flag(name)} is not for --policy {policy}")
    if options["order"] != "fcfs":
        raise OptionError(f"--policy {policy} serves first come, first served: no --order")
    ignored = {
        ISCHEDULER: (),
        "moldable": (*_DECIDING, "adaptation"),
    }.get(policy, (*_DECIDING, *_PLAYING))
    for name in ignored:
        if options[name] is not None:
            raise OptionError(f"{_flag(name)} is not for --policy {policy}")


def _flag(name: str) -> str:
    return "--protected-age" if name == "protected_s" else f"--{name.replace('_', '-')}"


def policy_of(options: dict[str, Any]) -> IschedulerPolicy:
    """Return the policy that the options combine, or a baseline."""
    from ..negotiation.malleable.malleable_policies import BASELINES, Control, IschedulerPolicy

    if options["policy"] != ISCHEDULER:
        return BASELINES[options["policy"]]
    admission = options["admission"] or NO_LIMIT
    return IschedulerPolicy(
        admission=None if admission == NO_LIMIT else int(admission),
        harvest=options["harvest"] or "low_impact",
        distribution=options["distribute"] or "favor_running",
        control=Control(
            max_harvests=options["max_harvests"],
            protected_s=options["protected_s"] or 0.0,
            weighs=bool(options["weigh_harvests"]),
        ),
    )


def simulate_malleable_log(path: str, options: dict[str, Any], processors: int | None) -> None:
    """Play a log under a policy of applications, write what the options name, and print the metrics."""
    from ..formats.native.write import write_text
    from ..simulation.malleable.malleable_report import malleable_document, malleable_jobs_csv, malleable_text
    from ..simulation.malleable.malleable_run import simulate_malleable, trace_of
    from ..simulation.report import to_json

    policy, settings = policy_of(options), _settings(options)
    log = read_log(path)
    jobs = read_jobs(path, log, processors, None)
    trace = trace_of(jobs, log, adapting_costs=settings.get("adaptation") == "memory")
    found = simulate_malleable(
        trace,
        policy,
        model=settings.get("model", "linear"),
        min_of_ideal=settings.get("min_of_ideal", 1.0),
        keep_sizes=True,
    )
    if options["jobs_out"] is not None:
        write_text(options["jobs_out"], malleable_jobs_csv(found, jobs))
    if options["form"] == "json":
        text = to_json(malleable_document(found, jobs, settings))
    else:
        text = malleable_text(found, shown(path), settings)
    write_text(options["output"], text)


def _settings(options: dict[str, Any]) -> dict[str, Any]:
    """Return the policy and what it reads, as a result states it."""
    settings: dict[str, Any] = {"policy": options["policy"]}
    if options["policy"] in {"ideal-only", "ideal-backfill"}:
        return settings
    if options["policy"] == ISCHEDULER:
        settings["admission"] = options["admission"] or NO_LIMIT
        settings["harvest"] = options["harvest"] or "low_impact"
        settings["distribute"] = options["distribute"] or "favor_running"
        for name in ("max_harvests", "protected_s", "weigh_harvests"):
            if options[name] is not None:
                settings[name] = options[name]
        settings["adaptation"] = options["adaptation"] or "free"
    settings["min_of_ideal"] = options["min_of_ideal"] if options["min_of_ideal"] is not None else 0.3
    settings["model"] = options["model"] or "linear"
    return settings
