"""One run of both schedulers over a workload: who held which nodes when, and every message.

Both parties are in one process, or each in its own; then the runtime scheduler's side notes what
the run comes to. It sees every message in the order in which both parties in one process would have
sent them, so that its result is the same.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf, isfinite
from pathlib import Path

import msgspec

from ...cluster.checks import LARGEST_COUNT, named
from ...cluster.errors import InputError, OptionError, errors_in
from ...cluster.option_fields import given_in
from ...cluster.option_table import NEGOTIATE, read_by
from ...formats.jsontext import decode
from ...formats.sqlite_file import SqliteTable
from ...negotiation.batch.batch_state import BatchState
from ...negotiation.batch.mapping import BatchSettings, Engine
from ...negotiation.job_records import JobReport, Known
from ...negotiation.messages import (
    FromBatchBase,
    NegotiationEnd,
    NegotiationEndResponse,
    Send,
    StatusReport,
)
from ...negotiation.pair import Pair, Sent, StuckError
from ...negotiation.runtime.irtsched import RuntimeState
from ...negotiation.runtime.runtime_machine import MachineState
from ...negotiation.runtime.settings import RuntimeSettings
from ...negotiation.transport.party import Happening
from .negotiated_report import Held, Negotiated
from .negotiation_options import NegotiationOptions
from .plays import Play


class Recorder(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Notes which nodes jobs hold, from one state of a machine to the next.

    Attributes:
        held: the stretches that have ended.
        since: those that go on: their beginning and nodes, by job.
    """

    held: list[Held] = []
    since: dict[str, tuple[float, int]] = {}

    def see(self, machine: MachineState, first: int = 0) -> None:
        """Note a machine after a transition; ``first``: its first node's number among all."""
        running = machine.running
        for job, (since, nodes) in list(self.since.items()):
            now = running.get(job)
            if now is not None and now.nodes == nodes:
                continue
            end = machine.done[job].end_s if now is None and job in machine.done else machine.now_s
            if end > since:
                self.held.append(Held(job=job, start_s=since, end_s=end, nodes=nodes << first))
            del self.since[job]
        for job, record in running.items():
            if job not in self.since:
                self.since[job] = (machine.now_s, record.nodes)


class StalledError(StuckError):
    """A run stalled; ``came`` is what there is of it."""

    def __init__(self, text: str, came: Negotiated) -> None:
        super().__init__(text)
        self.came = came


def negotiate(
    play: Play,
    batch: BatchSettings,
    runtime: RuntimeSettings,
    *,
    progress: Callable[[int], None] | None = None,
    until_s: float = inf,
    known: Known | None = None,
) -> Negotiated:
    """Run the schedulers on a workload until every job has ended; ``known`` are runs of before.

    Raises:
        StalledError: a job would never start, or the clock came to ``until_s`` seconds.
    """
    machines = play.machines(runtime.parts)
    first = {peer: runtime.parts * play.nodes.index(one.names[0]) for peer, one in machines.items()}
    recorders = {peer: Recorder() for peer in machines}
    sent: list[Sent] = []

    def watch(peer: str, machine: MachineState) -> None:
        recorders[peer].see(machine, first[peer])
        if machine.now_s > until_s:
            raise StuckError(f"it goes on beyond {until_s:g} s")
        if progress is not None:
            progress(len(pair.batch.done))

    runtimes = {peer: RuntimeState(settings=runtime, machine=machine) for peer, machine in machines.items()}
    state = BatchState(settings=batch, arrivals=play.arrivals, known=known or {})
    pair = Pair(state, runtimes, sent.append, watch)
    why = ""
    try:
        pair.run()
    except StuckError as error:
        why = str(error)
    came = Negotiated(
        play=play,
        batch=batch,
        runtime=runtime,
        done=pair.batch.done,
        held=tuple(held for recorder in recorders.values() for held in recorder.held),
        sent=tuple(sent),
        lost_node_s=pair.batch.lost_node_s,
        known=known or {},
    )
    if why:
        raise StalledError(why, came)
    return came


def runs_of(play: Play, done: Mapping[str, JobReport]) -> list[tuple[str, str, int, float]]:
    """Return the history of ended jobs: name, job, nodes, seconds of the whole job on them."""
    names = {arrival.job.job: arrival.job.name for arrival in play.arrivals}
    return [
        (names[job], job, count, seconds)
        for job, report in done.items()
        for count, seconds in report.measured
    ]


#: The note in which the batch scheduler sends its settings.
_BATCH = "batch"


def terms_of(play: Play, urgency: str) -> dict[str, str]:
    """Return what both processes must have alike: the jobs, the nodes, what urgent jobs may do."""
    text = msgspec.json.encode((play.nodes, dict(play.partitions), play.arrivals), order="deterministic")
    return {"workload": hashlib.sha256(text).hexdigest()[:16], "urgent": urgency}


def settings_text(settings: BatchSettings | RuntimeSettings) -> str:
    """Return settings as a text that equal ones have alike.

    ``steps`` came after the first journals, which name a negotiation's settings by this text. The
    text leaves it out where it has its default, so that such a journal still loads.
    """
    members = msgspec.to_builtins(settings)
    if settings.steps == "ceiling":
        del members["steps"]
    return msgspec.json.encode(members).decode()


def batch_notes(settings: BatchSettings) -> dict[str, str]:
    """Return what the batch scheduler sends of itself."""
    return {_BATCH: settings_text(settings)}


def batch_settings_in(notes: Mapping[str, str]) -> BatchSettings:
    """Return the settings that a batch scheduler has sent.

    Raises:
        InputError: it has sent none, none that can be, or something else.
        OptionError: one of them is out of its range.
    """
    if others := sorted(notes.keys() - {_BATCH}):
        raise InputError(f"unknown note {others[0]!r}")
    if _BATCH not in notes:
        raise InputError("the batch scheduler has not sent its settings", path=_BATCH)
    return decode(notes[_BATCH].encode(), BatchSettings)


class RunLog(Recorder):
    """Notes every message and who holds which nodes, from the transitions of a runtime scheduler.

    A checkpoint keeps all of it.
    """

    sent: list[Sent] = []
    own: list[Sent] = []
    lost_node_s: float = 0.0

    def watch(
        self, before: RuntimeState, happening: Happening, after: RuntimeState, sends: Sequence[Send]
    ) -> None:
        """Take note of a transition.

        Messages that came together are noted together, before what the first of them led to.
        """
        now, has_more = after.machine.now_s, False
        if isinstance(happening, FromBatchBase | NegotiationEnd | NegotiationEndResponse):
            self.sent.append(Sent(time_s=before.machine.now_s, from_batch=True, peer="", message=happening))
            has_more = isinstance(happening, FromBatchBase) and happening.more
        for send in sends:
            self.own.append(Sent(time_s=now, from_batch=False, peer="", message=send.message))
            if isinstance(send.message, StatusReport):
                for report in send.message.reports:  # one by one: the order determines the sum
                    self.lost_node_s += report.lost_node_s
        if not has_more:
            self.sent += self.own
            self.own = []
        self.see(after.machine)

    def result(self, play: Play, batch: BatchSettings, state: RuntimeState) -> Negotiated:
        """Return the finished run.

        Raises:
            InputError: jobs are left.
        """
        left = [arrival.job.job for arrival in play.arrivals if arrival.job.job not in state.machine.done]
        if left:
            text = f"the negotiation ended with {len(left)} of {len(play.arrivals)} jobs not done"
            raise InputError(f"{text}: {left[0]}")
        return Negotiated(
            play=play,
            batch=batch,
            runtime=state.settings,
            done=state.machine.done,
            held=tuple(self.held),
            sent=tuple(self.sent + self.own),
            lost_node_s=self.lost_node_s,
        )


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
    given = [option.flag for option in read_by(NEGOTIATE) if option.name in given_in(options)]
    if given and options.mapper != "auction":
        raise OptionError(f"{given[0]} needs --mapper auction")
    has_limit = options.work_limit is not None or options.time_limit_s is not None
    engine = Engine(
        strategy=options.strategy or ("anytime" if has_limit else "greedy"),
        work_limit=options.work_limit,
        time_limit_s=options.time_limit_s,
    )
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


def runtime_settings(options: NegotiationOptions) -> RuntimeSettings:
    """Return iRTSched's choices; the batch scheduler proposes attempts and interval."""
    return RuntimeSettings(
        max_attempts=options.max_attempts,
        interval_s=options.interval,
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


#: The history of executions: what runs of each name took (Nagendra, section 4.1.1).
_RUNS = SqliteTable(
    name="runs",
    schema="""
CREATE TABLE runs (
    name TEXT NOT NULL,
    job TEXT NOT NULL,
    nodes INTEGER NOT NULL CHECK (nodes > 0),
    run_time_s REAL NOT NULL CHECK (run_time_s > 0)
) STRICT
""",
    what="history of runs",
    kind="history",
)
_QUERY = "SELECT name, nodes, COUNT(*), AVG(run_time_s) FROM runs GROUP BY name, nodes ORDER BY name, nodes"


def load_history(path: Path) -> dict[str, dict[int, tuple[int, float]]]:
    """Return, by name and node count, how many runs there were and their mean run time in seconds.

    A file that is not there holds nothing.

    Raises:
        InputError: it cannot be read, or is no history.
    """
    known: dict[str, dict[int, tuple[int, float]]] = {}
    for name, nodes, count, mean in _RUNS.read(path, _QUERY):
        with errors_in(path):
            check_run(name, nodes, mean)
        known.setdefault(name, {})[nodes] = (count, mean)
    return known


def add_to_history(path: Path, runs: Iterable[tuple[str, str, int, float]]) -> None:
    """Add runs (name, job, nodes, seconds of the whole job on them), all or none.

    Raises:
        InputError: the file cannot be written, or is no history.
    """
    _RUNS.write(path, "INSERT INTO runs VALUES (?, ?, ?, ?)", runs)


def check_run(name: object, nodes: object, mean: object) -> None:
    """Refuse what the schema lets no program write, but a damaged file may hold."""
    if not isinstance(name, str):
        raise InputError("a name is not a text", path="runs.name")
    named(name, "runs.name")
    path = f"runs.{name[:60]}"
    if not isinstance(nodes, int) or not 1 <= nodes <= LARGEST_COUNT:
        raise InputError(f"{str(nodes)[:60]} is not a number of nodes", path=path)
    if not isinstance(mean, float) or not isfinite(mean) or not 0 < mean <= LARGEST_COUNT:
        raise InputError(f"{str(mean)[:60]} is not a time in seconds", path=path)
