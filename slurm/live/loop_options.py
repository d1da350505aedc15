"""The options of the loops beside Slurm. No numpy here: ``--help`` reads them."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ...cluster.errors import OptionError
from ...cluster.option_fields import Option
from ...cluster.promises import NONE

_LICENCE = re.compile(r"[A-Za-z][\w-]{0,62}", re.ASCII)
_INTERVAL = "Seconds from the start of one pass to the start of the next."


def _seconds(text: str, default: float, low: float = 0.1, high: float | None = None) -> Option[float]:
    """Return an option of seconds, from ``low`` on."""
    return Option(text, default=default, low=low, high=high, includes_low=True, unit="SECONDS")


def check_licence(name: str) -> None:
    """Raise OptionError where scontrol could read a licence's name as something else."""
    if not _LICENCE.fullmatch(name):
        raise OptionError(f"--license: {name!r} is not a plain name of a licence")


@dataclass(kw_only=True)
class GateOption:
    """Which gate."""

    licence: Option[str] = Option(
        "The licence that keeps jobs behind the gate.",
        default="auction",
        spelling="license",
        unit="NAME",
        check_text=check_licence,
    )


@dataclass(kw_only=True)
class LoopOptions:
    """How often a loop looks, and what it keeps of that; as it is, the shadow's."""

    interval: Option[float] = _seconds(_INTERVAL, 30, high=86400)
    passes: Option[int | None] = Option("Stop after this many passes. Default: no end.", low=1)
    once: Option[bool] = Option("Make one pass; a failure is the command's.", default=False)
    rotate_mib: Option[float] = Option(
        "Rename a log of this many MiB to LOG.1, an older one to LOG.2, and so on.",
        default=64,
        low=0.001,
        includes_low=True,
    )
    keep: Option[int] = Option("Keep so many renamed logs.", default=14, low=0)
    metrics: Option[str | None] = Option(
        "Answer Prometheus there, on a loopback address: 127.0.0.1:9123.", unit="ADDRESS:PORT"
    )
    forecasts: Option[bool] = Option(
        "Forecast each new job's start: P10, P50 and P90 in the log, how good they were in the metrics.",
        default=False,
    )


@dataclass(kw_only=True)
class Settings(LoopOptions, GateOption):
    """How the loop behind the gate runs, and how far it may go in a pass and in a minute.

    Attributes:
        host, user: whose gate it is.
        promise: ``plan`` or a duration; ``none`` keeps the promises of the marks and makes none.
        at_once: how many questions Slurm is asked at the same time.
    """

    host: str
    user: str
    promise: str = NONE
    at_once: int = 1

    interval: Option[float] = _seconds(_INTERVAL, 10.0)
    gate_for: Option[int] = Option(
        "The gate ends this many seconds after the last pass. Slurm then starts the jobs itself.",
        default=120,
        low=10,
        unit="SECONDS",
    )
    pin_for: Option[float] = _seconds(
        "Put a pinned job back behind the gate if it has not started after this many seconds.", 60.0, low=1
    )
    tries: Option[int] = Option("Hand a job over to Slurm after so many pins.", default=3, low=1)
    mark: Option[Literal["admin-comment", "comment"]] = Option(
        "Field of the job that records its pin: an operator may write the second only.",
        default="admin-comment",
    )
    plan_age: Option[float] = _seconds(
        "Discard a pass that read the queue more than this many seconds ago.", 30.0
    )
    topology: Option[str | None] = Option(
        "topology.conf or topology.yaml, read in each pass.  [default: what scontrol shows]", unit="FILE"
    )
    changes: Option[int] = Option("Commands of one pass at most.", default=500, low=1, unit="N")
    changes_a_minute: Option[int] = Option("Commands of a minute at most.", default=2000, low=1, unit="N")
    log: Option[Path] = Option(
        "JSON Lines: each action before and after it, each pass.", default=Path("aucsched-run.jsonl")
    )
    lock: Option[Path | None] = Option(
        "File whose lock keeps a second loop out.  [default: one for the cluster]"
    )
    dry_run: Option[bool] = Option("Print the commands of one pass; change nothing.", default=False)

    def __post_init__(self) -> None:
        if self.gate_for <= self.interval and not self.once and self.passes != 1:
            raise OptionError(
                f"--gate-for {self.gate_for} is not above --interval {self.interval:g}: "
                "the gate would end between passes"
            )
