"""One pass beside a live Slurm: what its commands say, and what the auction would start.

A pass of the shadow sets that beside what Slurm started and planned meanwhile. Nothing is changed
on the cluster, so the queue follows Slurm's starts: each pass says what the auction would do now,
not what the cluster would be had it decided all along.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from ...auction.options import StepOptions
from ...auction.step import Step, run_step, take_step
from ...cluster.errors import InputError
from ...cluster.jobs import Job, Request, may_start
from ...cluster.nodes import Node, Resources
from ...cluster.schedule import Award
from ...cluster.snapshot import Snapshot
from ...formats.hostlist import expand, join
from ...models.search.compiled_search import compiled_loop
from ...topology.tree import Topology, topology_of
from ..answers.answer_record import Known, Record, read_document
from ..answers.answer_text import Paragraph, answered
from ..answers.live import Ask, ask_slurm, collect
from ..answers.policy import config_of
from ..answers.running_jobs import End, SlurmStart, started_jobs
from ..answers.slurm_files import SlurmFiles
from ..answers.snapshot_of_answers import SlurmSources, import_slurm
from .live_forecasts import Quantiles
from .loop_metrics import Metrics
from .replay import cluster_document, request_document
from .shadow_log import FORGOTTEN, Offer, ShadowPass, Waiting
from .ticker import Ticker


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The cluster as Slurm told it.

    Attributes:
        snapshot: what its answers make.
        sources: the answers themselves.
        jobs: the decoded answer of squeue.
        at: when the first answer was asked for, seconds since the epoch by this host's clock.
        read_s: seconds that asking and reading took.
    """

    snapshot: Snapshot
    sources: SlurmSources
    at: float
    read_s: float
    jobs: Record = Record({}, "")

    @property
    def config(self) -> Paragraph:
        """What Slurm is configured to; empty where it does not tell."""
        config = self.sources.config
        return Paragraph({}, "config") if config is None else config_of(answered(config.content))

    @property
    def started(self) -> list[tuple[SlurmStart, End | None]]:
        """The jobs that have started, as Slurm lists them, with the ends of those that ended."""
        return list(started_jobs(self.jobs))


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePass:
    """A look and what the auction makes of it; nothing is changed by either.

    Attributes:
        look: the cluster.
        step: who would start where, and why the others wait.
        decide_s: seconds that the auction took.
    """

    look: Look
    step: Step
    decide_s: float


def take_look(
    files: SlurmFiles | None = None,
    *,
    gate: str = "",
    ask: Ask = ask_slurm,
    known: Known | None = None,
    at_once: int = 1,
    clock: Callable[[], float] = time.perf_counter,
    now: Callable[[], float] = time.time,
) -> Look:
    """Ask the live Slurm and read its answers; ``files`` stand for live ones.

    Jobs behind the gate, whose licence is ``gate``, count as free to start. ``known`` is what the
    look before read; what is read now is kept there.

    Raises:
        InputError: a command that is needed fails, or an answer cannot be read.
    """
    began, at = clock(), now()
    files = SlurmFiles() if files is None else files
    sources, notes = collect(files, ask=ask, at_once=at_once)
    # A saved queue is of its own time.
    is_live = files.jobs is None
    moment, known = (at, known) if is_live else (None, None)
    snapshot, _ = import_slurm(sources, time=moment, gate=gate, notes=notes, known=known)
    content = sources.jobs.content
    jobs = read_document(content) if known is None else known.document(content, "jobs")
    return Look(snapshot=snapshot, sources=sources, at=at, read_s=clock() - began, jobs=jobs)


def cores_in_use(snapshot: Snapshot) -> tuple[int, int]:
    """Return the cores of nodes that take jobs, or hold some, and those in use."""
    busy = {name for job in snapshot.running for name in job.nodes}
    nodes = [node for node in snapshot.nodes if node.state.takes_jobs or node.name in busy]
    total = sum(node.total.cores for node in nodes)
    return total, total - sum(node.free.cores for node in nodes)


def warm_up(options: StepOptions) -> None:
    """Load and compile an auction's code by running one: a gate that is up must not wait for it."""
    compiled_loop()
    nodes = tuple(Node(name=f"n{number}", total=Resources(cores=2)) for number in range(2))
    jobs = tuple(Job(id=str(number), priority=number, request=Request(cores=2)) for number in (1, 2, 3))
    run_step(Snapshot(nodes=nodes, jobs=jobs), options)


def take_pass(
    look: Look,
    options: StepOptions,
    clock: Callable[[], float] = time.perf_counter,
    *,
    last: LivePass | None = None,
) -> LivePass:
    """Run ``schedule``'s auction on what a look found, by counts where these settle it.

    ``last``: the pass before: as many jobs are looked at as it says, and what has not changed is
    not read anew.

    Raises:
        OptionError: an option's value cannot be used.
        InputError: the snapshot's promises or weights cannot be used.
    """
    began = clock()
    window, before = (None, None) if last is None else (last.step.schedule.next_window, last.step.state)
    step = take_step(look.snapshot, options, window, before, lazy=True)
    return LivePass(look=look, step=step, decide_s=clock() - began)


#: Slurm's estimates move a little with every cycle: smaller changes are not written again.
_SAME_PLAN_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the passes before have written.

    Attributes:
        waiting: of each job that waited, whether something held it.
        started: of each job listed as started, its start, which tells a requeued job's runs apart.
        ended: ids of those that had ended.
        planned: Slurm's estimates of starts.
    """

    waiting: Mapping[str, bool] = field(default_factory=dict)
    started: Mapping[str, float] = field(default_factory=dict)
    ended: frozenset[str] = frozenset()
    planned: Mapping[str, float] = field(default_factory=dict)


def watch(
    take: Callable[[], LivePass],
    write: Callable[[ShadowPass], None],
    ticker: Ticker,
    figures: Metrics,
    *,
    options: Mapping[str, str],
    failed: Callable[[InputError], None],
    forecasts: Callable[[Look], Quantiles] | None = None,
) -> None:
    """Make passes and write what each has to say; ``failed`` hears of one that fails."""
    seen: Seen | None = None
    for _ in ticker:
        try:
            taken = take()
            entry, after = observe(taken, seen, interval_s=ticker.interval_s, options=options)
            if forecasts is not None:
                entry.forecast = forecasts(taken.look)
            write(entry)
        except InputError as error:
            figures.add("aucsched_failures")
            failed(error)
            continue
        # What could not be written is said again by the next pass.
        seen = after
        _tell(figures, entry, len(taken.look.snapshot.unread))


def _tell(figures: Metrics, entry: ShadowPass, unread: int) -> None:
    figures.add("aucsched_passes")
    figures.spend(read=entry.read_s, decide=entry.decide_s)
    figures.set("aucsched_pass_timestamp_seconds", entry.time)
    figures.set("aucsched_gap_ratio", entry.gap)
    figures.set("aucsched_awards", len(entry.would))
    figures.set("aucsched_unread_rules", unread)
    figures.of_states("aucsched_jobs", waiting=entry.waiting, running=entry.running)
    figures.of_states("aucsched_cores", all=entry.cores, used=entry.used)
    if not entry.is_first:
        figures.add("aucsched_starts", len(entry.started), by="slurm")


def observe(
    taken: LivePass, before: Seen | None, *, interval_s: float, options: Mapping[str, str]
) -> tuple[ShadowPass, Seen]:
    """Return what a pass has to say, and what the next one need not say again."""
    snapshot = taken.look.snapshot
    history = taken.look.started
    seen = Seen() if before is None else before
    waiting = {job.id: job for job in snapshot.jobs}
    planned = {job.id: job.expected_start_time for job in snapshot.jobs if job.expected_start_time}
    tree = None if snapshot.switches is None else topology_of(snapshot)
    index = {node.name: place for place, node in enumerate(snapshot.nodes)}
    listed = {job.job: job.start for job, _ in history}
    cores, used = cores_in_use(snapshot)
    entry = ShadowPass(
        time=taken.look.at,
        interval_s=interval_s,
        read_s=round(taken.look.read_s, 4),
        decide_s=round(taken.decide_s, 4),
        options=dict(options),
        status=taken.step.schedule.status.value,
        gap=taken.step.schedule.objective.gap,
        waiting=sum(may_start(job) for job in snapshot.jobs),
        running=sum(end is None for _, end in history),
        seen=[
            _waiting(job)
            for job in snapshot.jobs
            if job.id not in seen.waiting or (seen.waiting[job.id] and job.hold is None)
        ],
        would=list(map(_offer, taken.step.schedule.started)),
        started=[
            _with_level(job, tree, index) for job, _ in history if seen.started.get(job.job) != job.start
        ],
        ended=_ended(history, seen, taken.look.at),
        planned=_changes(seen.planned, planned, waiting),
        gone=sorted(seen.waiting.keys() - waiting.keys() - listed.keys()),
        unread=list(snapshot.unread) if before is None else [],
        is_first=before is None,
        cluster=cluster_document(snapshot) if before is None else {},
        cores=cores,
        used=used,
    )
    return entry, Seen(
        waiting={job.id: job.hold is not None for job in snapshot.jobs},
        started=listed,
        ended=frozenset(end.job for _, end in history if end is not None),
        planned={**{job: at for job, at in seen.planned.items() if job in waiting}, **entry.planned},
    )


def _ended(history: Sequence[tuple[SlurmStart, End | None]], seen: Seen, now: float) -> list[End]:
    """Return the ends not written yet; a job that Slurm forgot between two passes ended by now."""
    told = [end for _, end in history if end is not None and end.job not in seen.ended]
    listed = {job.job for job, _ in history}
    forgotten = [
        End(job=job, start=start, end=now, state=FORGOTTEN)
        for job, start in seen.started.items()
        if job not in listed and job not in seen.ended
    ]
    return told + forgotten


def _waiting(job: Job) -> Waiting:
    return Waiting(
        job=job.id,
        submit=job.submit_time or 0.0,
        cores=job.request.fewest_cores,
        nodes=job.request.fewest_nodes,
        limit_s=job.time_limit_s,
        user=job.user,
        account=job.account,
        held=job.hold or "",
        request=request_document(job),
    )


def _offer(award: Award) -> Offer:
    cores = sum(use.cores for use in award.nodes.values())
    return Offer(job=award.job, nodes=join(award.nodes), cores=cores, level=award.bid.level)


def _changes(
    before: Mapping[str, float], now: Mapping[str, float], waiting: Iterable[str]
) -> dict[str, float]:
    """Return the estimates that moved; 0 for a waiting job that has none any more."""
    moved = {job: at for job, at in now.items() if abs(at - before.get(job, 0.0)) > _SAME_PLAN_S}
    lost = {job: 0.0 for job in waiting if before.get(job) and job not in now}
    return moved | lost


def _with_level(job: SlurmStart, tree: Topology | None, index: Mapping[str, int]) -> SlurmStart:
    """Return a start with the level of its nodes' lowest common switch, as an award's.

    None without a tree, in the linear topology; ``index`` has the places of the nodes.
    """
    names, level = expand(job.nodes, f"job {job.job} nodes"), None
    places = np.array([index[name] for name in names if name in index], np.int64)
    if tree is not None and len(places):
        switch = tree.common_switch_of_sets(np.array([0, len(places)]), places)
        level = int(tree.level[switch[0]])
    return msgspec.structs.replace(job, nodes=join(names), level=level)
