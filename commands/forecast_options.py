"""Options that ask a simulation for forecasts of its starts, and what writes them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..cluster.errors import OptionError
from ..cluster.option_fields import Option
from ..simulation.simulate_options import PROMISED, RENAMED
from .outputs import note, progress_over

if TYPE_CHECKING:
    from ..formats.swf import SwfLog
    from ..simulation.result import Result

#: When forecasts are asked where nothing is said.
_ASKED_AT = "arrival,0.25,0.5,0.75"


@dataclass(kw_only=True)
class ForecastOptions:
    """The options that ask for forecasts of a run's starts."""

    forecasts: Option[Path | None] = Option(
        "CSV of forecasts: P10, P50 and P90 of each job's start, the plan by limits, and the start."
    )
    forecast_at: Option[str | None] = Option(
        "With --forecasts: arrival and shares of the wait, below 1.", default=_ASKED_AT, unit="WHEN"
    )


def asked_at(options: dict[str, Any]) -> tuple[float, ...]:
    """Return the shares of the wait at which forecasts are asked.

    Raises:
        OptionError: it is no list of ``arrival`` and shares below 1, or nothing asks for forecasts.
    """
    given = options["forecast_at"]
    if given is not None and options["forecasts"] is None:
        raise OptionError("--forecast-at needs --forecasts")
    shares = []
    for part in (given or _ASKED_AT).split(","):
        try:
            share = 0.0 if part.strip() == "arrival" else float(part)
        except ValueError:
            share = -1.0
        if not 0 <= share < 1:
            raise OptionError(f"--forecast-at {given!r}: {part!r} is neither arrival nor a share below 1")
        shares.append(share)
    return tuple(dict.fromkeys(shares))


def write_forecasts(
    path: Path,
    result: Result,
    options: dict[str, Any],
    log: SwfLog | None = None,
    rank: tuple[float, ...] | None = None,
) -> None:
    """Write the forecasts of a run: of a log, whose queue's order ``rank`` has, or on nodes."""
    from ..formats.writing import write_text
    from ..simulation.forecast.logged import PLAYED, forecasts_csv, forecasts_of
    from ..simulation.forecast.snapshot_queue import not_played
    from ..simulation.nodes.node_forecasts import node_forecasts_of
    from ..simulation.nodes.node_policies import SLURM_DEPTH
    from ..simulation.nodes.node_result import NodeResult

    by_worth = options["policy"] in (PROMISED, *RENAMED) and options["objective"] == "response"
    if not by_worth and RENAMED.get(options["policy"], options["policy"]) not in PLAYED:
        note(f"forecasts play EASY, not {options['policy']}: the calibration corrects what it can")
    depth = options["window"]
    if depth is None and options["policy"].startswith("backfill-"):
        depth = SLURM_DEPTH
    with progress_over(len(result.workload), "jobs forecast") as progress:
        asked: dict[str, Any] = {"asked_at": asked_at(options), "by_worth": by_worth}
        if isinstance(result, NodeResult):
            for words in not_played(result.cluster.snapshot()):
                note(words)
            found = node_forecasts_of(result, depth=depth, progress=progress, **asked)
        else:
            found = forecasts_of(result, log, rank=rank, progress=progress, **asked)
        write_text(path, forecasts_csv(result, found))
