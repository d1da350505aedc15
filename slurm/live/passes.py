"""One pass beside a live Slurm: what its commands say, and what the auction would start."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ...auction.options import StepOptions
from ...auction.step import run_step
from ...cluster.jobs import Job, Request
from ...cluster.nodes import Node, Resources
from ...cluster.schedule import Award, Schedule
from ...cluster.snapshot import Snapshot
from ...models.search.compiled_search import compiled_loop
from ..answers.answer_record import Known
from ..answers.live import Ask, SlurmFiles, ask_slurm, collect
from ..answers.running_jobs import StartedJob, started_jobs
from ..answers.snapshot_of_answers import SlurmSources, import_slurm


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The cluster as Slurm told it.

    Attributes:
        snapshot: what its answers make.
        sources: the answers themselves.
        at: when the first answer was asked for, seconds since the epoch by this host's clock.
        read_s: seconds that asking and reading took.
    """

    snapshot: Snapshot
    sources: SlurmSources
    at: float
    read_s: float

    @property
    def started(self) -> list[StartedJob]:
        """The jobs that have started, as Slurm lists them, those that ended among them."""
        return list(started_jobs(self.sources.jobs.content))


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePass:
    """A look and what the auction makes of it; nothing is changed by either.

    Attributes:
        look: the cluster.
        schedule: who would start where, and why the others wait.
        decide_s: seconds that the auction took.
    """

    look: Look
    schedule: Schedule
    decide_s: float

    @property
    def started(self) -> tuple[Award, ...]:
        """What we would start."""
        return self.schedule.started


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
    """Ask the live Slurm and read its answers.

    Args:
        files: saved answers that stand for live ones.
        gate: the licence that keeps jobs behind the gate: they count as free to start; empty for none.
        ask: answers a command of Slurm's.
        known: what the look before read, where there was one; what is read now is kept there.
        at_once: how many commands are asked at the same time.
        clock: seconds.
        now: seconds since the epoch.

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
    return Look(snapshot=snapshot, sources=sources, at=at, read_s=clock() - began)


def cores_in_use(snapshot: Snapshot) -> tuple[int, int]:
    """Return the cores of nodes that take jobs, or hold some, and those in use."""
    busy = {name for job in snapshot.running for name in job.nodes}
    nodes = [node for node in snapshot.nodes if node.state.takes_jobs or node.name in busy]
    total = sum(node.total.cores for node in nodes)
    return total, total - sum(node.free.cores for node in nodes)


def warm_up(options: StepOptions) -> None:
    """Load and compile what an auction needs, by one of its kind: no gate that is up must wait for that."""
    compiled_loop()
    nodes = tuple(Node(name=f"n{number}", total=Resources(cores=2)) for number in range(2))
    jobs = tuple(Job(id=str(number), priority=number, request=Request(cores=2)) for number in (1, 2, 3))
    run_step(Snapshot(nodes=nodes, jobs=jobs), options)


def take_pass(
    look: Look,
    options: StepOptions,
    clock: Callable[[], float] = time.perf_counter,
    *,
    window: int | None = None,
) -> LivePass:
    """Run the auction that ``aucsched schedule`` runs on what a look found.

    ``window``: jobs that are looked at, as the pass before said; None: as many as the options say.

    Raises:
        OptionError: an option's value cannot be used.
        InputError: the snapshot's promises or weights cannot be used.
    """
    began = clock()
    schedule = run_step(look.snapshot, options, window)
    return LivePass(look=look, schedule=schedule, decide_s=clock() - began)
