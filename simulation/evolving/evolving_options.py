"""The options of simulations of evolving jobs, of how requests of running jobs are served.

No numpy here: ``--help`` reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ...cluster.errors import OptionError
from ...cluster.option_fields import Option, flag_of, given_in, options_in
from ...cluster.option_table import StrategyName

if TYPE_CHECKING:
    from ...negotiation.evolving.fairness import Fairness
    from ...negotiation.evolving.iteration import Depths

#: Workloads that are named rather than files.
EVOLVING_WORKLOADS = ("dynamic-esp", "quadflow")
#: The auctions' strategy where none is given: every pass is an auction, and a run has thousands.
STRATEGY: StrategyName = "anytime"


@dataclass(kw_only=True, unsafe_hash=True)
class FairnessOptions:
    """How long requests of running jobs may delay others."""

    fairness: Option[str] = Option(
        "How long requests may delay queued jobs: none (no limit), target:SECONDS for every user in an "
        "hour, or a FILE (.toml, else Maui's syntax).",
        default="none",
        unit="none|target:SECONDS|FILE",
    )
    fairness_decay: Option[float] = Option(
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

    def depths(self, serve_by: str) -> Depths:
        """Return the depths where requests are served so, the default resolved."""
        from ...negotiation.evolving.iteration import Depths  # noqa: PLC0415 - for --help

        # The paper's; of an auction one reservation, as elsewhere.
        default = 1 if serve_by == "auction" else Depths().reservation
        reservation = default if self.reservation_depth is None else self.reservation_depth
        return Depths(reservation=reservation, delay=self.reservation_delay_depth)


@dataclass(kw_only=True, unsafe_hash=True)
class EvolvingRecord(DepthOptions, FairnessOptions):
    """How requests of running jobs are served."""

    requests: Option[Literal["serve", "refuse"]] = Option(
        "Requests of evolving jobs for more cores: serve them, or refuse all.", default="serve"
    )
    keep_requests: Option[bool | None] = Option(
        "Keep a refused request until its job's last request time.", default="in an auction only"
    )
    serve_by: Option[Literal["iteration", "auction", "partition", "preallocation", "merge"]] = Option(
        "The extended Maui iteration, one auction with the queue, a partition kept for requests, "
        "preallocation (CooRMv2), or a second job that is merged (Slurm).",
        default="iteration",
    )
    dynamic_partition: Option[int | None] = Option(
        "Size of the partition of --serve-by partition.", default=8, low=1, high=10**7, unit="CORES"
    )
    det: Option[Literal["table", "remaining"]] = Option(
        "Run time after a grant: the table's, or the remaining work at the new speed.", default="table"
    )
    job_overhead_s: Option[float] = Option(
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


@dataclass(kw_only=True)
class EvolvingOptions(EvolvingRecord):
    """Options of a simulation of evolving jobs, and those of other simulations that it reads.

    Attributes:
        limits: what ``fairness`` names; None: nothing limits delays.
        strategy: of the engine, of ``auction`` only.
        interval_s: jobs start at multiples of it only, requests are served at once; None: after
            every event.
    """

    limits: Fairness | None = None
    strategy: StrategyName | None = None
    interval_s: float | None = None

    def __post_init__(self) -> None:
        given, serve_by = given_in(self), self.serve_by
        options_in(EvolvingRecord)["serve_by"].check(serve_by)
        for name, needed in (
            ("preemptible", "iteration"),
            ("shrinkable", "iteration"),
            ("dynamic_partition", "partition"),
        ):
            if name in given and serve_by != needed:
                raise OptionError(f"{flag_of(name)} needs --serve-by {needed}, not {serve_by}")
        if self.strategy is not None and serve_by != "auction":
            raise OptionError(f"--strategy needs --serve-by auction, not {serve_by}")
        if serve_by in ("iteration", "auction"):
            return
        if self.keep_requests:
            raise OptionError(f"--keep-requests is not for --serve-by {serve_by}")
        for name in ("fairness", "reservation_delay_depth"):
            if given.get(name, "none") != "none":
                raise OptionError(f"{flag_of(name)}: --serve-by {serve_by} measures no delays")

    @property
    def kept_cores(self) -> int | None:
        """Size of the partition that is kept for requests, None: of no such way to serve them."""
        from ..workloads.evolving import CORES_PER_NODE  # noqa: PLC0415 - for --help

        return (self.dynamic_partition or CORES_PER_NODE) if self.serve_by == "partition" else None

    def settings(self) -> dict[str, Any]:
        """Return what decides a run, as its result says it."""
        is_auction, depths = self.serve_by == "auction", self.depths(self.serve_by)
        return {
            "requests": self.requests,
            "keep_requests": is_auction if self.keep_requests is None else self.keep_requests,
            "fairness": self.fairness,
            "fairness_decay": 0.0 if self.limits is None else self.limits.decay,
            "serve_by": self.serve_by,
            "dynamic_partition": self.kept_cores,
            "strategy": (self.strategy or STRATEGY) if is_auction else None,
            "det": self.det,
            "interval_s": self.interval_s,
            "job_overhead_s": float(self.job_overhead_s),
            "preemptible": self.preemptible,
            "shrinkable": self.shrinkable,
            "reservation_depth": depths.reservation,
            "reservation_delay_depth": depths.delay,
        }
