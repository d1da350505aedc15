"""The registry of policy components by name, and a policy as a combination (Weissman 2.2)."""

from collections.abc import Mapping
from dataclasses import dataclass

from .application_columns import EXECUTION_MODELS, NO_LIMIT, PolicyRules
from .harvesting import DISTRIBUTIONS, HARVESTS


@dataclass(frozen=True, slots=True, kw_only=True)
class IschedulerPolicy:
    """One policy of each component; the last members bind every decision (control_policy).

    Attributes:
        admission: M of achieve_mp(M), None without limit.
        harvest: one of HARVESTS.
        distribution: one of DISTRIBUTIONS.
        is_ideal: every application takes its ideal processors or waits.
        backfills: applications may pass others but delay none (EASY); only with ``is_ideal``.
        max_harvests: how often an application may be harvested; None: without limit.
        protected_s: an application that has run for less gives nothing.
        weighs: harvest only where the wait that it saves is above the delay that it causes.
    """

    admission: int | None = None
    harvest: str = "low_impact"
    distribution: str = "favor_running"
    is_ideal: bool = False
    backfills: bool = False
    max_harvests: int | None = None
    protected_s: float = 0.0
    weighs: bool = False

    def rules(self, model: str) -> PolicyRules:
        """Return the policy by number, under an execution model."""
        most = self.max_harvests
        return PolicyRules(
            admission=NO_LIMIT if self.admission is None else self.admission,
            harvest=HARVESTS.index(self.harvest),
            distribution=DISTRIBUTIONS.index(self.distribution),
            model=EXECUTION_MODELS.index(model),
            max_harvests=NO_LIMIT if most is None else most,
            protected_s=self.protected_s,
            weighs=int(self.weighs),
        )


#: The paper's baselines: nobody gives, nobody grows.
BASELINES: Mapping[str, IschedulerPolicy] = {
    "ideal-only": IschedulerPolicy(harvest="never", distribution="queued_only", is_ideal=True),
    "moldable": IschedulerPolicy(harvest="never", distribution="queued_only"),
    "ideal-backfill": IschedulerPolicy(
        harvest="never", distribution="queued_only", is_ideal=True, backfills=True
    ),
}
