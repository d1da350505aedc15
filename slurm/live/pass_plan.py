"""What a pass changes, as a list of actions: pure, from what was seen and decided.

A moment later few words of Slurm's say whether the plan's jobs are still as they were, and their nodes free.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...auction.check_units import unit_fault
from ...cluster.errors import InputError
from ...cluster.nodes import NodeState
from ...cluster.schedule import Award, Reason
from ...cluster.snapshot import Snapshot
from ...formats.hostlist import names_in
from ...formats.reading import text_of
from ..answers.consumables import asks_for
from ..answers.live import Ask, Command
from ..answers.policy import config_of
from ..answers.reservation_records import ReservationFigures
from ..answers.states import JobPhase
from ..answers.versions import SEGMENTS_NAMED, parse_release
from ..place import CannotPlaceError
from .actions import OWN, Action, ActionKind, clear, hand_over, pin, unpin
from .live_queue import LiveJob
from .loop_options import Settings
from .loop_snapshot import is_pinned
from .passes import LivePass, Look

JOBS: Command = ("squeue", "-h", "-a", "-r", "-t", "all", "-o", "%i|%A|%T|%N|%n|%W")
NODES: Command = ("sinfo", "-h", "-a", "-N", "-o", "%N|%t|%C")
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


def jobs_now(ask: Ask) -> Mapping[str, Now]:
    """Return the jobs by id, waiting tasks of an array each by its own.

    Raises:
        InputError: squeue fails, or prints what is not known.
    """
    found: dict[str, Now] = {}
    for number, line in enumerate(ask(JOBS).decode(errors="replace").splitlines(), 1):
        name, *rest = line.split("|", 5)
        if len(rest) != 5:  # noqa: PLR2004 - as many as were asked for
            raise InputError(f"{line[:60]!r} is not what was asked for", path=f"line {number}", file="squeue")
        own, state, nodes, required, licenses = ("" if text in _NOTHING else text for text in rest)
        # A job that is requeued before all others waits, whatever word is shown (25.11).
        state = "PENDING" if state == "EXPEDITING" else state
        # A part of a heterogeneous job is printed as 99+1, and is job 100 in all other answers.
        now = Now(state=state, nodes=nodes, required=required, licenses=licenses)
        found[own if "+" in name else name] = now
    return found


def idle_now(ask: Ask) -> dict[str, int]:
    """Return the idle CPUs of each node that takes jobs.

    Raises:
        InputError: sinfo fails, or prints what is not known.
    """
    found: dict[str, int] = {}
    for number, line in enumerate(ask(NODES).decode(errors="replace").splitlines(), 1):
        parts = line.split("|")
        counts = parts[-1].split("/")
        if len(parts) != 3 or len(counts) != 4 or not counts[1].isdigit():  # noqa: PLR2004 - as asked for
            raise InputError(f"{line[:60]!r} is not what was asked for", path=f"line {number}", file="sinfo")
        if parts[1].removesuffix("-") in _USABLE:
            found[parts[0]] = int(counts[1])
    return found


#: States of nodes on which no job starts until somebody does something about it.
_GONE = {NodeState.DRAINED, NodeState.DRAINING, NodeState.DOWN, NodeState.FAIL, NodeState.UNKNOWN}
#: Refusals of jobs that the auction can never start: they are Slurm's.
_NEVER = {Reason.NOT_EXPRESSIBLE, Reason.SET_ASIDE}


def overdue(snapshot: Snapshot, queue: Mapping[str, LiveJob], settings: Settings, now: float) -> list[Action]:
    """Return what puts back the pinned jobs that do not start, as their nodes or their users changed."""
    usable = {node.name for node in snapshot.nodes if node.state not in _GONE}
    found: list[Action] = []
    for job in queue.values():
        if job.mark is not None and is_pinned(job, settings.licence):
            why = _why_back(job, usable, settings, now)
            if why:
                found += _put_back(job, settings, why)
    return found


def _why_back(job: LiveJob, usable: set[str], settings: Settings, now: float) -> str:
    gone = [name for name in names_in(job.required) if name not in usable]
    if gone:
        return f"node {gone[0]} takes no jobs"
    if job.is_expedited:
        return "Slurm starts it before all others"
    if job.breaks_rules or job.priority == 0:
        return f"Slurm holds it ({job.reason})" if job.breaks_rules else "it is held"
    waited = now - (job.mark.since if job.mark else 0)
    # A clock that was set back makes a pin of the future: its age is not known.
    if not 0 <= waited <= settings.pin_for:
        return f"it did not start within {settings.pin_for:g} s ({job.reason or 'no reason'})"
    return ""


def _put_back(job: LiveJob, settings: Settings, why: str) -> Iterator[Action]:
    assert job.mark is not None  # noqa: S101 - for the type; is_pinned says so
    behind = job.mark.tries + 1 < settings.tries and not (job.is_expedited or job.breaks_rules)
    try:
        yield unpin(job, job.mark, settings.licence, why, behind=behind)
    except CannotPlaceError:
        # It stays pinned: nothing that Slurm could read would put it back.
        return


def unused(reserved: Iterable[ReservationFigures], queue: Mapping[str, LiveJob]) -> list[Action]:
    """Return what removes the loop's reservations that no job asks for: a loop died between two commands."""
    used = {job.reservation for job in queue.values() if job.phase is not JobPhase.ENDED}
    names = [entry.name for entry in reserved if entry.name.startswith(OWN)]
    return [clear(name) for name in names if name not in used]


def decided(
    taken: LivePass,
    queue: Mapping[str, LiveJob],
    settings: Settings,
    now: float,
    refused: Mapping[str, int],
) -> list[Action]:
    """Return what pins the winners and hands over the jobs that the auction cannot start.

    ``refused``: how often in a row Slurm refused a job's pin; too often, and the job is Slurm's.
    """
    found: list[Action] = []
    for refusal in taken.refused:
        job = queue.get(refusal.job)
        if refusal.reason in _NEVER and job is not None and job.needs(settings.licence):
            found += _handed(job, settings, refusal.detail)
    for award in taken.schedule.started:
        job = queue[award.job]
        if (count := refused.get(award.job, 0)) >= settings.tries:
            found += _handed(job, settings, f"Slurm refused its pin (tries: {count})")
            continue
        try:
            _check_units(taken.look, award)
            found.append(pin(taken.look.snapshot, award, job, settings.licence, now))
        except CannotPlaceError as error:
            found += _handed(job, settings, str(error))
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
    if request.segment is not None and not _names_segments(look):
        raise CannotPlaceError("before Slurm 25.11 a job with --segment may name no nodes")
    if fault := unit_fault(network, request, award.nodes.keys()):
        raise CannotPlaceError(f"on these nodes it {fault}: Slurm would hold it")


def _names_segments(look: Look) -> bool:
    """Whether this Slurm takes named nodes for jobs of segments; not if its version is unknown."""
    if look.sources.config is None:
        return False
    release = parse_release(config_of(text_of(look.sources.config.content)).text("SLURM_VERSION"))
    return release is not None and release >= SEGMENTS_NAMED


def left_to_slurm(jobs: Iterable[LiveJob], settings: Settings, *, wakes: bool) -> list[Action]:
    """Return what hands over the jobs for which Slurm would stop others or wake nodes."""
    why = "Slurm may stop running jobs for it, the auction stops none"
    if wakes:
        why = "Slurm may wake nodes or stop running jobs for it, the auction does neither"
    return [action for job in jobs for action in _handed(job, settings, why)]


def _handed(job: LiveJob, settings: Settings, why: str) -> Iterator[Action]:
    try:
        yield hand_over(job, settings.licence, why)
    except CannotPlaceError:
        return


def still_true(
    actions: Iterable[Action], queue: Mapping[str, LiveJob], jobs: Mapping[str, Now], idle: Mapping[str, int]
) -> Iterator[tuple[Action, str]]:
    """Yield each action with why it is no longer true, empty where it is: jobs and nodes are as they were.

    Args:
        actions: in the order in which they are carried out.
        queue: the jobs that the plan was made on.
        jobs: the jobs as they are now.
        idle: the idle CPUs of nodes that take jobs, now.
    """
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
    if action.kind is ActionKind.CLEAR or now is None or now.state != "PENDING":
        held = names_in(now.nodes) if now is not None else ()
        return action.kind is not ActionKind.PIN or not held or set(held) == set(action.nodes)
    behind = asks_for(now.licenses, licence)
    if action.kind is ActionKind.PIN:
        return not behind and set(names_in(now.required)) == set(action.nodes)
    return behind == (action.kind in {ActionKind.UNPIN, ActionKind.PROMISE})


def within(actions: Sequence[Action], most: int) -> tuple[list[Action], int]:
    """Return the first actions whose commands are not above a number, and how many are left for later."""
    count = 0
    for index, action in enumerate(actions):
        count += len(action.commands)
        if count > most:
            return list(actions[:index]), len(actions) - index
    return list(actions), 0
