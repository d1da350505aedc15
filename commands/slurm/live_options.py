"""Options that the commands beside a live Slurm share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...cluster.errors import OptionError
from ...slurm.live.loop_options import GateOption, LoopOptions
from ..built_options import filled_options
from ..outputs import note

if TYPE_CHECKING:
    from ...slurm.live.loop_metrics import Metrics
    from ...slurm.live.shadow_log import RotatedLog
    from ...slurm.live.ticker import Ticker

_MIB = 2**20
licence_option = filled_options(GateOption)


def _removed(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    """Refuse an option of version 0.1 that has no successor."""
    del context
    if value is not None:
        raise OptionError(f"{parameter.opts[0]}: removed in 0.2; scontrol makes every change of a job")


def no_rest_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse ``--rest`` and ``--rest-token``: changes by slurmrestd saved no time (decision 86)."""
    for flag in ("--rest", "--rest-token"):
        command = click.option(flag, hidden=True, expose_value=False, callback=_removed)(command)
    return command


def say_unknown_release() -> None:
    """Say that this Slurm is newer than any whose answers are known, where it is."""
    from ...slurm.answers.live import release_here

    release = release_here()
    if release is not None and release.is_newer:
        note(release.warning)


@contextmanager
def looping(name: str, options: LoopOptions) -> Iterator[tuple[Metrics, Ticker]]:
    """Give the figures of a loop, answered where ``--metrics`` says, and its passes, which signals end."""
    from ...slurm.live.loop_metrics import Metrics, served
    from ...slurm.live.ticker import Ticker

    figures = Metrics(loop=name)
    ticker = Ticker(interval_s=options.interval, passes=1 if options.once else options.passes)
    ticker.stop_on_signals()
    with served(figures, options.metrics) as where:
        if where:
            note(f"figures at {where}")
        yield figures, ticker


def log_of(path: Path | str, options: LoopOptions) -> RotatedLog:
    """Return a loop's log, opened."""
    from ...slurm.live.shadow_log import RotatedLog

    return RotatedLog(Path(path), most_bytes=int(options.rotate_mib * _MIB), keep=options.keep)
