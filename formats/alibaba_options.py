"""What an import of Alibaba's trace may choose. Nothing heavy here: ``--help`` reads it."""

from dataclasses import dataclass
from typing import Literal

from ..cluster.option_fields import Option


@dataclass(kw_only=True)
class AlibabaOptions:
    """What the trace leaves open."""

    gpus: Option[Literal["shares", "separate"]] = Option(
        "Count gpu_milli of all GPUs of a node together, or of each GPU separately: then no share is split.",
        default="shares",
    )
    unscheduled: Option[Literal["leave-out", "lifetime"]] = Option(
        "Pods that never ran: leave them out, or let them run from creation to deletion.",
        default="leave-out",
    )
    time_limits: Option[Literal["none", "run-time"]] = Option(
        "Time limits of jobs: none, as in the trace, or each pod's true run time.", default="none"
    )
