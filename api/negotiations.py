"""The settings of both schedulers of a negotiation, as its options choose them."""

from ..cluster.errors import OptionError
from ..cluster.option_fields import given_in
from ..cluster.option_table import NEGOTIATE, read_by
from ..negotiation.batch.mapping import BatchSettings, Engine
from ..negotiation.runtime.settings import RuntimeSettings
from ..simulation.negotiated.negotiation_options import NegotiationOptions
from ..simulation.negotiated.plays import Play


def batch_settings(play: Play, options: NegotiationOptions) -> BatchSettings:
    """Return the batch scheduler's choices.

    Raises:
        OptionError: an option would be ignored.
    """
    if options.third_of is not None and options.decision != "paper":
        raise OptionError("--third-of needs --decision paper")
    if options.patience is not None and options.mapper != "auction":
        raise OptionError("--patience needs --mapper auction")
    if options.mapper == "greedy" and any(arrival.job.max_switches for arrival in play.arrivals):
        raise OptionError("--mapper greedy counts nodes: for max_switches take --mapper auction")
    engine = _engine(options)
    patience = {} if options.patience is None else {"patience_s": options.patience}
    return BatchSettings(
        **patience,
        engine=engine,
        mapper=options.mapper,
        decision=options.decision,
        depth=options.depth,
        third_of=options.third_of or "forwarded",
        max_attempts=options.max_attempts,
        steps=options.steps,
        interval_s=options.interval,
        atomic=options.atomic,
        ends_when_done=True,
        switches=play.switches,
    )


def _engine(options: NegotiationOptions) -> Engine:
    given = [option.flag for option in read_by(NEGOTIATE) if option.name in given_in(options)]
    if given and options.mapper != "auction":
        raise OptionError(f"{given[0]} needs --mapper auction")
    has_limit = options.work_limit is not None or options.time_limit_s is not None
    return Engine(
        strategy=options.strategy or ("anytime" if has_limit else "greedy"),
        work_limit=options.work_limit,
        time_limit_s=options.time_limit_s,
    )


def runtime_settings(options: NegotiationOptions) -> RuntimeSettings:
    """Return the runtime scheduler's choices; attempts and interval are the batch scheduler's to propose."""
    return RuntimeSettings(
        dependencies=options.dependencies,
        last_backfill=not options.no_last_backfill,
        equipartition=options.equipartition,
        reject_idle=options.reject_idle,
        start_at_minimum=options.start_at_minimum,
        transaction_s=options.transaction_seconds,
        shrink=options.shrink,
        steps=options.steps,
        urgency=options.urgent or "suspend",
        parts=options.parts,
    )
