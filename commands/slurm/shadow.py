"""``aucsched slurm shadow``: what the auction would start, pass after pass, while Slurm goes on as ever."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from ...cluster.option_fields import options_in
from ...slurm.answers.slurm_files import SlurmFiles
from ...slurm.live.loop_options import LoopOptions
from ..built_options import FilePath, SectionCommand, filled_options
from ..outputs import auction_options, say
from ..snapshot import answer_options
from .live_options import log_of, looping, say_unknown_release

if TYPE_CHECKING:
    from ...cluster.errors import InputError
    from ...slurm.live.passes import LivePass
    from ...slurm.live.shadow_log import ShadowPass


@click.command(cls=SectionCommand)
@click.option(
    "--log",
    "-o",
    type=FilePath(is_output=True, in_place=True, dir_okay=False, allow_dash=True),
    default="-",
    show_default=True,
    help="The log, a line of JSON for each pass; - prints it.",
)
@filled_options(LoopOptions)
@answer_options
@auction_options
def shadow(*, log: str, **options: Any) -> None:
    """Watch a live Slurm: every interval a snapshot, the auction, a line of a log. Nothing is changed.

    It needs no root: squeue, scontrol show and sinfo are all that is run. Answers that are given as
    files are read again in each pass.
    """
    from ...slurm.live.live_forecasts import LiveForecasts
    from ...slurm.live.passes import watch

    own = LoopOptions(**{name: options.pop(name) for name in options_in(LoopOptions)})
    files = SlurmFiles(**{name: options.pop(name) for name in options_in(SlurmFiles)})
    take = _taking(files, options)
    if files.jobs is None:
        say_unknown_release()

    def failed(error: InputError) -> None:
        """Say why a pass failed: the next one may not; where there is none, end the command."""
        if own.once:
            raise error
        say(f"aucsched: {error}")

    given = {name: str(value) for name, value in options.items() if value is not None}
    with ExitStack() as stack:
        figures, ticker = stack.enter_context(looping("shadow", own))
        watch(
            take,
            _writing(stack, log, own),
            ticker,
            figures,
            options=given,
            failed=failed,
            forecasts=LiveForecasts() if own.forecasts else None,
        )


def _taking(files: Any, options: dict[str, Any]) -> Callable[[], LivePass]:
    """Return what makes a pass; options that cannot be used are refused before the first."""
    from ...auction.options import options_with_preset
    from ...auction.step import check_queue_promise
    from ...slurm.answers.answer_record import Known
    from ...slurm.answers.live import AT_ONCE
    from ...slurm.live.passes import take_look, take_pass

    checked, known = options_with_preset(options), Known()
    check_queue_promise(checked)
    last: LivePass | None = None

    def taken() -> LivePass:
        nonlocal last
        last = take_pass(take_look(files, known=known, at_once=AT_ONCE), checked, last=last)
        return last

    return taken


def _writing(stack: ExitStack, log: str, options: LoopOptions) -> Callable[[ShadowPass], None]:
    from ...slurm.live.shadow_log import encode

    if log == "-":
        return lambda entry: click.echo(encode(entry), nl=False)
    opened = stack.enter_context(log_of(log, options))
    return lambda entry: opened.append(encode(entry))
