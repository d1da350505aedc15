"""``aucsched simulate`` under policy evolving: options and output."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..cluster.errors import OptionError
from ..cluster.option_fields import Option, flag_of, options_in
from ..simulation.simulate_options import EVOLVING
from .built_options import click_option, in_order, record_options
from .outputs import note

if TYPE_CHECKING:
    from ..negotiation.evolving.fairness import Fairness
    from ..simulation.evolving.evolving_report import EvolvingOptions
    from ..simulation.workloads.evolving import EvolvingWorkload

#: Workloads that are named rather than files.
EVOLVING_WORKLOADS = ("dynamic-esp", "quadflow")
_TARGET = "target:"
#: How many names of other parameters are printed, and how much of each.
_LISTED, _LONGEST = 8, 40


@dataclass(kw_only=True, unsafe_hash=True)
class FairnessOptions:
    """How long requests of running jobs may delay others."""

    fairness: Option[str | None] = Option(
        "How long requests may delay queued jobs: none (no limit), target:SECONDS for every user in an "
        "hour, or a FILE (.toml, else Maui's syntax).",
        default="none",
        unit="none|target:SECONDS|FILE",
    )
    fairness_decay: Option[float | None] = Option(
        "With target: share of a user's delay kept for the next interval (DFSDecay).",
        default=0,
        low=0,
        high=1,
        includes_low=True,
        unit="SHARE",
    )


@dataclass(kw_only=True, unsafe_hash=True)
class DepthOptions:
    """How many waiting jobs have a reservation, and of how many delays are measured."""

    reservation_depth: Option[int | None] = Option(
        "Number of waiting jobs with a reservation.", default="5, an auction 1", low=0, high=10**6
    )
    reservation_delay_depth: Option[int] = Option(
        "Number of waiting jobs whose delay is measured.", default=5, low=0, high=10**6
    )


@dataclass(kw_only=True, unsafe_hash=True)
class EvolvingRecord(DepthOptions, FairnessOptions):
    """How requests of running jobs are served."""

    requests: Option[Literal["serve", "refuse"] | None] = Option(
        "Requests of evolving jobs for more cores: serve them, or refuse all.", default="serve"
    )
    keep_requests: Option[bool | None] = Option(
        "Keep a refused request until its job's last request time.", default="in an auction only"
    )
    serve_by: Option[Literal["iteration", "auction", "partition", "preallocation", "merge"] | None] = Option(
        "The extended Maui iteration, one auction with the queue, a partition kept for requests, "
        "preallocation (CooRMv2), or a second job that is merged (Slurm).",
        default="iteration",
    )
    dynamic_partition: Option[int | None] = Option(
        "Size of the partition of --serve-by partition.", default=8, low=1, high=10**7, unit="CORES"
    )
    det: Option[Literal["table", "remaining"] | None] = Option(
        "Run time after a grant: the table's, or the remaining work at the new speed.", default="table"
    )
    job_overhead_s: Option[float | None] = Option(
        "Time that a job holds its cores beyond its run time.",
        default=0,
        low=0,
        high=10**9,
        includes_low=True,
        unit="SECONDS",
    )
    preemptible: Option[str | None] = Option(
        "Types of jobs that requests may stop if no core is idle; they start over.", unit="TYPE,…"
    )
    shrinkable: Option[str | None] = Option(
        "Types of jobs that requests may shrink, to half of their cores.", unit="TYPE,…"
    )


_OPTIONS = options_in(EvolvingRecord)
evolving_options = in_order(click_option(one) for one in _OPTIONS.values())
fairness_options = record_options(FairnessOptions)
depth_options = record_options(DepthOptions)
#: Options of other simulations that are read here too.
_SHARED = (
    "policy",
    "order",
    "seed",
    "interval_s",
    "strategy",
    "form",
    "output",
    "jobs_out",
    "plot",
    "workload",
)


def is_evolving(workload: str) -> bool:
    """Whether a workload is named rather than a file."""
    return workload in EVOLVING_WORKLOADS and not Path(workload).exists()


def refuse_evolving(workload: str, options: dict[str, Any]) -> None:
    """Refuse what only evolving jobs have."""
    if is_evolving(workload):
        raise OptionError(f"the workload {workload} needs --policy {EVOLVING}, not {options['policy']}")
    for name in _OPTIONS:
        if options[name] is not None:
            raise OptionError(f"{flag_of(name)} needs --policy {EVOLVING}, not {options['policy']}")


def read_fairness(text: str | None, decay: float | None) -> tuple[Fairness, str]:
    """Return the configuration that ``--fairness`` names, and the remark on it to print once all is well.

    Raises:
        InputError: the file cannot be read.
        OptionError: the text is none of the forms.
    """
    from ..negotiation.evolving.fairness import Fairness, same_for_every_user
    from ..negotiation.evolving.fairness_file import load_fairness, seconds_of

    is_target = text is not None and text.startswith(_TARGET)
    if decay is not None and not is_target:
        raise OptionError("--fairness-decay needs --fairness target:SECONDS")
    if text is None or text == "none":
        return Fairness(), ""
    if is_target:
        seconds = seconds_of(text.removeprefix(_TARGET), "--fairness")
        if not seconds:
            raise OptionError(f"--fairness {text}: 0 would be no limit; give none")
        return same_for_every_user(seconds, decay=decay or 0.0), ""
    fairness, others = load_fairness(text)
    if not others:
        return fairness, ""
    named = ", ".join(name[:_LONGEST] for name in others[:_LISTED])
    more = f" and {len(others) - _LISTED} more" if others[_LISTED:] else ""
    return fairness, f"{text}: not of dynamic fairness, not read: {named}{more}"


def note_if_any(remark: str) -> None:
    """Print a remark on stderr, if there is one."""
    if remark:
        note(remark)


def simulate_evolving_workload(workload: str, options: dict[str, Any], foreign: dict[str, Any]) -> None:
    """Play a named workload and print what came of it.

    Args:
        workload: its name.
        options: all of the command's.
        foreign: what those of other simulations are where nothing is said, if not None.
    """
    from ..formats.drawing import check_drawing
    from ..formats.native.write import write_text
    from ..simulation.evolving.evolving_report import (
        WORKLOADS,
        evolving_document,
        evolving_jobs_csv,
        evolving_text,
        simulate_evolving,
    )
    from ..simulation.report import to_json

    _check(workload, options, foreign)
    check_drawing("--plot", options["plot"])
    seed = options["seed"] or 0
    made = WORKLOADS[workload](seed)
    fairness, remark = read_fairness(options["fairness"], options["fairness_decay"])
    chosen = _chosen(made, options, fairness)
    played = simulate_evolving(made, chosen)
    note_if_any(remark)
    settings = _settings(options, chosen, seed)
    if options["jobs_out"] is not None:
        write_text(options["jobs_out"], evolving_jobs_csv(played.run))
    if options["plot"] is not None:
        from ..reports.curves import draw_evolving

        refused = replace(chosen, setting=replace(chosen.setting, serves=False))
        runs = {"requests refused": simulate_evolving(made, refused).run, "as asked for": played.run}
        draw_evolving(runs, options["plot"])
    if options["form"] == "json":
        write_text(options["output"], to_json(evolving_document(played, settings)))
    else:
        write_text(options["output"], evolving_text(played, settings))


def _check(workload: str, options: dict[str, Any], foreign: dict[str, Any]) -> None:
    if workload not in EVOLVING_WORKLOADS:
        raise OptionError(f"--policy {EVOLVING} plays {' or '.join(EVOLVING_WORKLOADS)}, not {workload!r}")
    if options["order"] != "fcfs":
        raise OptionError(f"--policy {EVOLVING} serves first come, first served: no --order")
    for name, value in options.items():
        if name not in _OPTIONS and name not in _SHARED and value != foreign.get(name) and value != ():
            raise OptionError(f"{flag_of(name)} is not for --policy {EVOLVING}")


def _types(workload: EvolvingWorkload, name: str, options: dict[str, Any]) -> frozenset[str]:
    """Return the types of jobs that an option names."""
    if options[name] is None:
        return frozenset()
    known = {job.kind for job in workload.jobs}
    given = frozenset(options[name].split(","))
    for one in sorted(given - known):
        raise OptionError(f"{flag_of(name)}: {one!r} is not one of {', '.join(sorted(known))}")
    return given


def _chosen(workload: EvolvingWorkload, options: dict[str, Any], fairness: Fairness) -> EvolvingOptions:
    from ..negotiation.evolving.iteration import Depths, default_depths
    from ..simulation.evolving.evolving_loop import Setting
    from ..simulation.evolving.evolving_report import EvolvingOptions

    serve_by = options["serve_by"] or "iteration"
    default = default_depths(serve_by)
    for name in ("preemptible", "shrinkable"):
        if options[name] is not None and serve_by != "iteration":
            raise OptionError(f"{flag_of(name)} needs --serve-by iteration, not {serve_by}")
    if serve_by not in {"iteration", "auction"}:
        if options["keep_requests"]:
            raise OptionError(f"--keep-requests is not for --serve-by {serve_by}")
        measured = {"fairness": options["fairness"] not in {None, "none"}}
        measured["reservation_delay_depth"] = options["reservation_delay_depth"] is not None
        for name, is_given in measured.items():
            if is_given:
                raise OptionError(f"{flag_of(name)}: --serve-by {serve_by} measures no delays")
    given = (options["reservation_depth"], options["reservation_delay_depth"])
    return EvolvingOptions(
        serve_by=serve_by,
        partition=options["dynamic_partition"],
        strategy=options["strategy"],
        fairness=fairness,
        depths=Depths(
            reservation=default.reservation if given[0] is None else given[0],
            delay=default.delay if given[1] is None else given[1],
        ),
        setting=Setting(
            serves=options["requests"] != "refuse",
            by_table=options["det"] != "remaining",
            interval_s=options["interval_s"],
            keeps=options["keep_requests"],
            overhead_s=options["job_overhead_s"] or 0.0,
            preemptible=_types(workload, "preemptible", options),
            malleable=_types(workload, "shrinkable", options),
        ),
    )


def _settings(options: dict[str, Any], chosen: EvolvingOptions, seed: int) -> dict[str, Any]:
    from ..simulation.evolving.providers import STRATEGY

    setting = chosen.setting
    return {
        "seed": seed,
        "requests": options["requests"] or "serve",
        "keep_requests": chosen.serve_by == "auction" if setting.keeps is None else setting.keeps,
        "fairness": options["fairness"] or "none",
        "fairness_decay": chosen.fairness.decay,
        "serve_by": chosen.serve_by,
        "dynamic_partition": chosen.partition,
        "strategy": (chosen.strategy or STRATEGY) if chosen.serve_by == "auction" else None,
        "det": options["det"] or "table",
        "interval_s": setting.interval_s,
        "job_overhead_s": setting.overhead_s,
        "preemptible": options["preemptible"],
        "shrinkable": options["shrinkable"],
        "reservation_depth": chosen.chosen_depths.reservation,
        "reservation_delay_depth": chosen.chosen_depths.delay,
    }
