"""One simulation of evolving jobs: the workload, the provider of cores, and the outcome."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ...cluster.errors import OptionError
from ...cluster.option_table import StrategyName
from ...negotiation.evolving.fairness import Fairness, at_start
from ...negotiation.evolving.iteration import Depths, default_depths
from ..workloads.evolving import EvolvingWorkload, dynamic_esp, quadflow
from .evolving_loop import EvolvingRun, Setting, play_evolving
from .providers import Iteration, Merged, Preallocated, Reserved
from .request_auction import RequestAuction

#: Workloads by name, of a seed.
WORKLOADS: dict[str, Callable[[int], EvolvingWorkload]] = {"dynamic-esp": dynamic_esp, "quadflow": quadflow}
#: Default size, in cores, of the partition kept for requests: a node.
PARTITION = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolvingOptions:
    """How to play.

    Attributes:
        serve_by: a name of PROVIDERS.
        partition: cores kept for requests, of ``partition`` only.
        strategy: of the engine, of ``auction`` only.
        fairness, setting: see each.
        depths: None: the paper's five and five; of an auction's reservations one, as in other simulations.
    """

    serve_by: str = "iteration"
    partition: int | None = None
    strategy: StrategyName | None = None
    fairness: Fairness = field(default_factory=Fairness)
    depths: Depths | None = None
    setting: Setting = field(default_factory=Setting)

    def __post_init__(self) -> None:
        if self.serve_by not in PROVIDERS:
            raise OptionError(f"serve_by: {self.serve_by!r} is not one of {', '.join(PROVIDERS)}")
        if self.partition is not None and self.serve_by != "partition":
            raise OptionError(f"--dynamic-partition needs --serve-by partition, not {self.serve_by}")
        if self.strategy is not None and self.serve_by != "auction":
            raise OptionError(f"--strategy needs --serve-by auction, not {self.serve_by}")

    @property
    def chosen_depths(self) -> Depths:
        """The depths, the default resolved."""
        return self.depths or default_depths(self.serve_by)


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A finished run, its options, the delays that were charged, and its wall time."""

    run: EvolvingRun
    options: EvolvingOptions
    provider: Iteration
    seconds: float


#: Who serves requests, by name.
PROVIDERS: dict[str, type[Iteration]] = {
    "iteration": Iteration,
    "auction": RequestAuction,
    "partition": Reserved,
    "preallocation": Preallocated,
    "merge": Merged,
}


def _provider(workload: EvolvingWorkload, options: EvolvingOptions) -> Iteration:
    accounts = at_start(options.fairness, 0.0)
    given = (workload, options.chosen_depths, options.fairness, accounts)
    kind = PROVIDERS[options.serve_by]
    if kind is Reserved:
        return Reserved(*given, partition=PARTITION if options.partition is None else options.partition)
    if kind is RequestAuction:
        return RequestAuction(*given, strategy=options.strategy)
    return kind(*given)


def simulate_evolving(workload: EvolvingWorkload, options: EvolvingOptions) -> Played:
    """Play a workload.

    Raises:
        OptionError: the options do not fit the machine.
    """
    provider = _provider(workload, options)
    began = time.perf_counter()
    run = play_evolving(workload, provider, options.setting)
    return Played(run=run, options=options, provider=provider, seconds=time.perf_counter() - began)
