"""``aucsched simulate`` under policies of applications that grow and shrink: options and output."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from ..cluster.errors import OptionError, shown_name
from ..cluster.option_fields import Option, options_in, refuse_given, taken_from
from .built_options import click_option, in_order
from .outputs import read_jobs, write_report

if TYPE_CHECKING:
    from ..negotiation.malleable.malleable_policies import IschedulerPolicy

ISCHEDULER = "ischeduler"
NO_LIMIT = "none"


@dataclass(kw_only=True, unsafe_hash=True)
class DecidingOptions:
    """How policy ischeduler decides who gives processors and who gets them."""

    admission: Option[str] = Option(
        "Admit applications while fewer than M run; none: while one fits.", default=NO_LIMIT, unit="M|none"
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
malleable_options = in_order(click_option(one) for one in _OWN.values())
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


def simulate_malleable_log(path: str, options: dict[str, Any], processors: int | None) -> None:
    """Play a log under a policy of applications, write what the options name, and print the metrics."""
    from ..formats.swf import load_swf
    from ..simulation.malleable_run import moved_bytes, simulate_malleable

    policy, settings = policy_of(options), _settings(options)
    log = load_swf(path)
    jobs = read_jobs(path, log, processors, None)
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
