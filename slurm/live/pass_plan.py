"""What changes at jobs, as lists of actions: pure, from what was seen and decided.

A pass pins winners, puts back what does not start, hands over what Slurm is to start. A moment
later a few words from Slurm say whether the plan's jobs are unchanged, and their nodes free.
Waiting jobs are put behind the gate from outside, and all of the gate is taken off jobs again.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import attrgetter
from typing import ParamSpec

from ...auction.check import unit_fault
from ...auction.state import SnapshotState, is_same_machine
from ...cluster.errors import InputError
from ...cluster.jobs import Job, may_start
from ...cluster.nodes import NodeState, PartitionState
from ...cluster.schedule import Award, Reason
from ...cluster.snapshot import Snapshot
from ...formats.hostlist import names_in
from ...simulation.nodes.node_machine import why_never
from ..answers.answer_text import answered
from ..answers.consumables import asks_for, with_gate
from ..answers.live import JOBS, Ask, Command
from ..answers.reservation_records import ReservationFigures
from ..answers.states import JobPhase
from ..answers.versions import SEGMENTS_NAMED, parse_release
from ..place import CannotPlaceError
from .actions import OWN, Action, ActionKind, Words, clear, hand_over, line, pin, unpin
from .live_queue import Carrier, LiveJob, read_queue
from .loop_options import Settings
from .loop_snapshot import is_pinned
from .passes import LivePass, Look

_P = ParamSpec("_P")
_JOBS_NOW: Command = ("squeue", "-h", "-a", "-r", "-t", "all", "-o", "%i|%A|%T|%N|%n|%W")
_NODES_NOW: Command = ("sinfo", "-h", "-a", "-N", "-o", "%N|%t|%C")
_NOTHING = {"", "(null)", "N/A"}
#: States in which a node takes jobs; a mark behind one, as of idle*, says that it does not, but for
#: the one of nodes that Slurm's backfill plans for a job (mix-).
_USABLE = {"idle", "mix", "alloc", "comp", "resv", "plnd"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """What a job is at a moment.

    Attributes:
        state: Slurm's word, ``PENDING``.
        nodes, required: where it runs, and the nodes it must have; hostlists.
    """

    state: str
    nodes: str
    required: str
    licenses: str


def answer_rows(ask: Ask, command: Command, fields: int) -> Iterator[list[str]]:
    """Yield the fields of each line of an answer; the last one may hold what separates them.

    Raises:
        InputError: Slurm does not answer, or prints what is not known.
    """
    for number, told in enumerate(answered(ask(command)).splitlines(), 1):
        row = told.split("|", fields - 1)
        if len(row) != fields:
            text = f"{told[:60]!r} is not what was asked for"
            raise InputError(text, path=f"line {number}", file=command[0])
        yield ["" if text in _NOTHING else text for text in row]


def jobs_now(ask: Ask) -> Mapping[str, Now]:
    """Return the jobs by id, tasks of an array each by its own."""
    found: dict[str, Now] = {}
    for name, own, state, nodes, required, licenses in answer_rows(ask, _JOBS_NOW, 6):
        # A job that is requeued before all others waits, whatever word is shown (25.11).
        word = "PENDING" if state == "EXPEDITING" else state
        # A part of a heterogeneous job is printed as 99+1, and is job 100 in all other answers.
        job = own if "+" in name else name
        found[job] = Now(state=word, nodes=nodes, required=required, licenses=licenses)
    return found


def idle_now(ask: Ask) -> dict[str, int]:
    """Return the idle CPUs of each node that takes jobs."""
    found: dict[str, int] = {}
    for name, state, cpus in answer_rows(ask, _NODES_NOW, 3):
        _, idle, *_ = [*cpus.split("/"), ""]
        if not idle.isdigit():
            raise InputError(f"{cpus[:60]!r} is not what was asked for", path=name, file="sinfo")
        if state.removesuffix("-") in _USABLE:
            found[name] = int(idle)
    return found


#: States of nodes on which no job starts until somebody does something about it.
_GONE = {NodeState.DRAINED, NodeState.DRAINING, NodeState.DOWN, NodeState.FAIL, NodeState.UNKNOWN}
#: Those of nodes that do not respond, for some seconds after a restart of slurmctld too.
_SILENT = {NodeState.DOWN, NodeState.UNKNOWN}
#: Refusals of jobs that the auction can never start: they are Slurm's.
_NEVER = {Reason.NOT_EXPRESSIBLE, Reason.SET_ASIDE}


def overdue(
    look: Look, queue: Mapping[str, LiveJob], settings: Settings, ran: Mapping[str, float]
) -> list[Action]:
    """Return what puts back pinned jobs that do not start, as their nodes or users changed.

    A pin whose nodes do not respond, or that met a restart of slurmctld, is no try of its job.
    ``ran``: jobs that were seen to run on their pins, and when they were pinned.
    """
    states = {node.name: node.state for node in look.snapshot.nodes}
    steady = settings.pin_for
    # Where Slurm does not tell it, every pin counts.
    with suppress(InputError):
        steady += look.config.moment("BOOT_TIME")
    found: list[Action] = []
    for job in queue.values():
        if job.mark is None or not is_pinned(job, settings.licence):
            continue
        ran_before = was_requeued(job, ran)
        needed = {name: states.get(name, NodeState.UNKNOWN) for name in names_in(job.required)}
        gone = [name for name, state in needed.items() if state in _GONE]
        why = f"node {gone[0]} takes no jobs" if gone else _why_back(job, settings, look.at)
        if why or ran_before:
            is_slurms = job.is_expedited or job.breaks_rules
            is_try = job.mark.since >= steady and _SILENT.isdisjoint(needed.values())
            tries = job.mark.tries + (is_try or ran_before)
            behind = tries < settings.tries and not is_slurms
            mark, why = replace(job.mark, tries=tries), why or "it was requeued"
            found += _sayable(unpin, job, mark, settings.licence, why, behind=behind)
    return found


def was_requeued(job: LiveJob, ran: Mapping[str, float]) -> bool:
    """Whether a job waits on a pin on which it has run."""
    return job.mark is not None and job.is_waiting and ran.get(job.id) == job.mark.since


def _why_back(job: LiveJob, settings: Settings, now: float) -> str:
    if job.is_expedited:
        return "Slurm starts it before all others"
    if job.breaks_rules or job.priority == 0:
        return f"Slurm holds it ({job.reason})" if job.breaks_rules else "it is held"
    waited = now - (job.mark.since if job.mark else 0)
    # A clock that was set back makes a pin of the future: its age is not known.
    if not 0 <= waited <= settings.pin_for:
        return f"it did not start within {settings.pin_for:g} s ({job.reason or 'no reason'})"
    return ""


def unused(reserved: Iterable[ReservationFigures], queue: Mapping[str, LiveJob]) -> list[Action]:
    """Return what removes the loop's reservations that no job asks for, left when a loop died."""
    used = {job.reservation for job in queue.values() if job.phase is not JobPhase.ENDED}
    names = [entry.name for entry in reserved if entry.name.startswith(OWN)]
    return [clear(name) for name in names if name not in used]


class NeverFits:
    """The jobs that fit nowhere in aucsched's model, even if all nodes are up and free."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Job, str]] = {}
        self._last: Snapshot | None = None

    def why(self, jobs: Iterable[Job], state: SnapshotState) -> dict[str, str]:
        """Return why jobs can never start, by id; those that may not start now are left out."""
        known = self._known if self._last and is_same_machine(self._last, state.snapshot) else {}
        up, parts = PartitionState.UP, state.snapshot.partitions
        closed = {part.name for part in parts if part.state is not up}
        jobs = [one for one in jobs if may_start(one) and closed.isdisjoint(one.partition.split(","))]
        new = [one for one in jobs if one.id not in known or _asks(known[one.id][0]) != _asks(one)]
        if new:
            for job, found in zip(new, why_never(new, state.emptied()), strict=True):
                known[job.id] = job, found if isinstance(found, str) else ""
        self._last, self._known = state.snapshot, {job.id: known[job.id] for job in jobs}
        return {name: why for name, (_, why) in self._known.items() if why}


#: Jobs that have these in common are tried once.
_asks = attrgetter("request", "partition", "user", "time_limit_s", "limits_by_nodes_s")


def decided(
    taken: LivePass,
    queue: Mapping[str, LiveJob],
    settings: Settings,
    now: float,
    refused: Mapping[str, int],
    left: Mapping[str, str],
) -> list[Action]:
    """Return what pins the winners and hands over the jobs that the auction cannot start.

    ``refused``: how often in a row Slurm refused a job's pin; too often, and the job is Slurm's.
    ``left``: more jobs that are Slurm's, and why. Those may be many, and Slurm may start them where
    this pass pins others: pins come first.
    """
    found: list[Action] = []
    refusals = taken.step.queue.unable.values()
    lost = {refusal.job: refusal.detail for refusal in refusals if refusal.reason in _NEVER}
    for name, why in {**left, **lost}.items():
        if name in queue and queue[name].needs(settings.licence):
            found += _sayable(hand_over, queue[name], settings.licence, why)
    for award in taken.step.schedule.started:
        job, count = queue[award.job], refused.get(award.job, 0)
        if count >= settings.tries:
            why = f"Slurm refused its pin (tries: {count})"
            found += _sayable(hand_over, job, settings.licence, why)
            continue
        try:
            _check_units(taken.look, award)
            found.append(pin(taken.look.snapshot, award, job, settings.licence, now))
        except CannotPlaceError as error:
            found += _sayable(hand_over, job, settings.licence, str(error))
    return found


def _check_units(look: Look, award: Award) -> None:
    """Refuse a pin that Slurm would take the job's priority for (BadConstraints).

    Raises:
        CannotPlaceError: its nodes break a rule, or Slurm takes no named nodes for it.
    """
    network = look.snapshot.network
    if network is None or not network.units:
        return
    request = next(job.request for job in look.snapshot.jobs if job.id == award.job)
    release = parse_release(look.config.text("SLURM_VERSION"))
    # Not if its version is unknown either.
    if request.segment is not None and (release is None or release < SEGMENTS_NAMED):
        raise CannotPlaceError("before Slurm 25.11 a job with --segment may name no nodes")
    if fault := unit_fault(network, request, award.nodes.keys()):
        raise CannotPlaceError(f"on these nodes it {fault}: Slurm would hold it")


def _sayable(make: Callable[_P, Action], *of: _P.args, **how: _P.kwargs) -> Iterator[Action]:
    """Yield an action; a job for which scontrol has no words stays as it is."""
    with suppress(CannotPlaceError):
        yield make(*of, **how)


def still_true(
    actions: Iterable[Action], queue: Mapping[str, LiveJob], jobs: Mapping[str, Now], idle: Mapping[str, int]
) -> Iterator[tuple[Action, str]]:
    """Yield each action with why it is no longer true, empty where jobs and nodes stay."""
    left = dict(idle)
    for action in actions:
        yield action, _changed(action, queue, jobs) or _taken(action, left)


def _changed(action: Action, queue: Mapping[str, LiveJob], jobs: Mapping[str, Now]) -> str:
    if action.kind is ActionKind.CLEAR:
        return ""
    was, now = queue[action.job], jobs.get(action.job)
    if now is None or now.state != "PENDING":
        return f"it is {now.state.lower() if now else 'gone'}"
    if now.licenses != was.licenses:
        return "its licences were changed"
    if set(names_in(now.required)) != set(names_in(was.required)):
        return "its nodes were changed"
    return ""


def _taken(action: Action, left: dict[str, int]) -> str:
    if action.kind is not ActionKind.PIN:
        return ""
    for node, cores in zip(action.nodes, action.cores, strict=True):
        if node not in left:
            return f"node {node} takes no jobs"
        if left[node] < cores:
            return f"node {node} has {left[node]} idle CPUs, not {cores}"
    for node, cores in zip(action.nodes, action.cores, strict=True):
        left[node] -= cores
    return ""


def came_true(action: Action, now: Now | None, licence: str) -> bool:
    """Whether Slurm shows what an action was to bring about, or the job has gone on since."""
    if action.kind is ActionKind.CLEAR or now is None:
        return action.kind is ActionKind.CLEAR
    behind = asks_for(now.licenses, licence)
    if action.kind is ActionKind.PIN:
        # A job cancelled before its start does not require these nodes; a started one still does.
        nodes = set(action.nodes)
        return not behind and set(names_in(now.required)) == nodes >= set(names_in(now.nodes))
    if now.state != "PENDING":
        return now.state != "CANCELLED" or bool(now.nodes)
    return behind == (action.kind in {ActionKind.UNPIN, ActionKind.PROMISE})


def within(actions: Sequence[Action], most: int, limit: int) -> tuple[list[Action], int]:
    """Return the first actions with at most so many commands, and how many are left for later.

    Where all of the ``limit`` is there, the first one passes: else one of more commands would never.
    """
    fit = sum(count <= most for count in accumulate(len(action.commands) for action in actions))
    fit = max(fit, bool(actions) and most >= limit > 0)
    return list(actions[:fit]), len(actions) - fit


def added(
    jobs: Collection[LiveJob], licence: str, partitions: Collection[str], users: Collection[str]
) -> tuple[list[Words], list[str]]:
    """Return the commands that put waiting jobs behind the gate, and why some cannot be."""
    commands: dict[Words, None] = {}
    having = {job.user for job in jobs}
    problems = [f"user {name} has no job" for name in users if name not in having]
    for job in jobs:
        named = not partitions or set(partitions) & set(job.partition.split(","))
        if not named or (users and job.user not in users):
            continue
        if not job.is_waiting or job.needs(licence) or is_pinned(job, licence):
            continue
        words = ("update", f"JobId={job.whole}", f"Licenses={with_gate(job.licenses, licence)}")
        if problem := _problem(job, words):
            problems.append(f"job {job.id} cannot be put behind the gate: {problem}")
        else:
            commands[words] = None
    return list(commands), problems


def _problem(job: LiveJob, words: Words) -> str:
    if "|" in job.licenses:
        return "it asks for one licence or another"
    try:
        line(words)
    except CannotPlaceError as error:
        return str(error)
    return ""


def read_all(ask: Ask) -> list[LiveJob]:
    """Return the jobs that Slurm lists, each with the comment that carries its mark, if any.

    Raises:
        InputError: squeue fails, or prints what is not known.
    """
    content = ask(JOBS)
    found: dict[str, LiveJob] = {}
    for carrier in Carrier:
        for name, job in read_queue(content, " ".join(JOBS), carrier=carrier).items():
            if name not in found or job.mark is not None:
                found[name] = job
    return list(found.values())


def cleared(
    jobs: Collection[LiveJob], licence: str, reserved: Iterable[ReservationFigures] = ()
) -> list[Action]:
    """Return what unpins jobs, restores their requests and comments, and takes their licence off.

    Running jobs keep their nodes, which Slurm does not change; their marks and licence go. Waiting
    array tasks that change alike share an action. One without commands needs a person.
    """
    found: dict[tuple[Words, ...] | str, Action] = {}
    for job in jobs:
        try:
            one = _clearing(job, licence)
        except CannotPlaceError as error:
            one = Action(kind=ActionKind.CLEAR, job=job.id, commands=(), why=f"not cleared: {error}")
        if one is not None:
            found.setdefault(one.commands or job.id, one)
    unpinned = {words for one in found.values() for words in one.commands}
    for action in unused(reserved, {job.id: job for job in jobs}):
        if unpinned.isdisjoint(action.commands):
            found[action.commands] = replace(action, why="removed")
    return list(found.values())


def _clearing(job: LiveJob, licence: str) -> Action | None:
    mark = job.mark
    if job.is_waiting and mark is not None and mark.since:
        return unpin(job, mark, licence, "unpinned, its request is as it was", behind=False)
    if job.is_waiting and (job.needs(licence) or mark is not None):
        action = hand_over(job, licence, "the licence is off")
        if mark is None:
            words = tuple((one[0], f"JobId={job.whole}", *one[2:]) for one in action.commands)
            action = replace(action, commands=words)
        return replace(action, job=job.whole)
    if job.phase is JobPhase.HOLDING and (mark is not None or job.needs(licence)):
        # Slurm changes the licences of a job that runs, but not the nodes that it requires.
        pinned = "; its nodes stay required" if mark is not None else ""
        return hand_over(job, licence, f"runs: mark and licence are off{pinned}")
    return None
