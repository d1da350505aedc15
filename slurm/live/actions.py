"""What the loop does to a job, in scontrol's words: pin a winner, put it back, give it to Slurm.

Until the gate ends, reserved licences keep jobs waiting while their priorities grow. Each job that
waits for the auction asks for one of a licence that no program needs; a submit plugin shipped with
the package can see to that. A reservation of the kind LICENSE_ONLY holds all of them. When nobody
moves its end on, it ends, and Slurm starts the jobs itself.

Each is one update of the job, so that a loop that dies between two of them leaves every job behind
the gate, pinned, or Slurm's own. A pin touches nothing of the request that cannot be put back: the
licence goes, the nodes are named, the cores on each are fixed where they are equal. Other cores on
each node need a reservation made before, which Slurm removes by itself when it is idle.

One process fed on standard input carries the commands out, or nobody where they are only shown.
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pwd import getpwuid

from ...cluster.errors import InputError, OptionError
from ...cluster.schedule import Award
from ...cluster.snapshot import Snapshot
from ...formats.hostlist import names_in
from ...formats.notes import Notes
from ..answers.consumables import read_licenses, with_gate, without_gate
from ..answers.live import LICENSES, RESERVATIONS, Ask, run_slurm
from ..answers.reservation_records import ReservationFigures, read_reservations
from ..place import CannotPlaceError, JobCommands, check_id, reservation_words
from .live_queue import LiveJob, Mark, write_mark

_USER = re.compile(r"[\w.@+-]{1,64}", re.ASCII)


def gates(ask: Ask, licence: str) -> tuple[ReservationFigures, ...]:
    """Return reservations of licences only that hold some of the gate's; others may be unreadable.

    Raises:
        InputError: scontrol fails, or prints what is not known.
    """
    return tuple(entry for entry in read_reservations(ask(RESERVATIONS), licence) if entry.held(licence))


def licence_count(ask: Ask, licence: str) -> int:
    """Return how many of the gate's licence the cluster has.

    Raises:
        InputError: it has none.
    """
    found = read_licenses(ask(LICENSES), Notes()).get(licence)
    if found is None or not found.total:
        text = f"the cluster has no licence {licence!r}: slurm.conf needs Licenses={licence}:1000000"
        raise InputError(text, file=" ".join(LICENSES))
    return found.total


def gate_name(licence: str, host: str, user: str = "") -> str:
    """Return the name of a gate: a loop of this host and user leads, without user any."""
    whose = filter(None, (host.partition(".")[0] or "host", user))
    return "_".join((licence, *(re.sub(r"[^A-Za-z0-9-]", "-", one)[:40] for one in whose)))


def own_user() -> str:
    """Return the user whose rights this process has: LOGNAME may be that of whoever started it."""
    number = os.getuid()
    try:
        return getpwuid(number).pw_name
    except KeyError:
        return str(number)


def create_words(name: str, licence: str, held: int, seconds: int, user: str) -> tuple[str, ...]:
    """Return scontrol's words that put the gate up; refused while another gate holds the licences.

    Raises:
        OptionError: the user's name is none that scontrol reads as one word.
    """
    if not _USER.fullmatch(user):
        raise OptionError(f"user {user!r} is not a name that scontrol reads as it is")
    return (
        *("create", "reservation", f"ReservationName={name}", "StartTime=now", f"EndTime=now+{seconds}"),
        *(f"Licenses={licence}:{held}", "Flags=LICENSE_ONLY", f"Users={user}"),
    )


def extend_words(name: str, seconds: int) -> tuple[str, ...]:
    """Return scontrol's words that move the gate's end on."""
    return ("update", f"ReservationName={name}", f"EndTime=now+{seconds}")


def drop_words(name: str) -> tuple[str, ...]:
    """Return scontrol's words that put a gate down, or remove another reservation."""
    return ("delete", f"ReservationName={name}")


#: Reservations of this kind of name are the loop's own.
OWN = "aucsched-"
#: CPUs of a core, at most.
_MOST_THREADS = 8
#: What scontrol reads from standard input as one word: no blank, quote or backslash.
_WORD = re.compile(r"[!#-&(-\[\]-~]+")

Words = tuple[str, ...]


class ActionKind(StrEnum):
    """What is done to a job."""

    PIN = "pin"
    UNPIN = "unpin"
    HAND_OVER = "hand over"
    CLEAR = "clear"
    PROMISE = "promise"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One change.

    Attributes:
        job: its id.
        commands: scontrol's, in order; the last is the change, what stands before prepares it.
        nodes, cores: those of a pin, and the cores on each.
        why: in words.

    Raises:
        CannotPlaceError: scontrol would read a word as something else.
    """

    kind: ActionKind
    job: str
    commands: tuple[Words, ...]
    nodes: tuple[str, ...] = ()
    cores: tuple[int, ...] = ()
    why: str = ""

    def __post_init__(self) -> None:
        for words in self.commands:
            line(words)


def line(words: Words) -> str:
    """Return a command as a line of scontrol's standard input.

    Raises:
        CannotPlaceError: scontrol would read a word as something else.
    """
    for word in words:
        if not _WORD.fullmatch(word):
            raise CannotPlaceError(f"{word!r} is not a word that scontrol reads as it is")
    return " ".join(words)


def pin(snapshot: Snapshot, award: Award, job: LiveJob, licence: str, now: float) -> Action:
    """Return what starts a winner on exactly its nodes.

    Raises:
        CannotPlaceError: Slurm's commands cannot put it there.
    """
    jobs = {one.id: one for one in snapshot.jobs}
    nodes = {name: node for node in snapshot.nodes if (name := node.name) in award.nodes}
    placing = JobCommands(snapshot, jobs[award.job], award, nodes)
    words = ["update", f"JobId={check_id(job.id)}", f"Licenses={without_gate(job.licenses, licence)}"]
    words.append(f"ReqNodeList={placing.hosts}")
    count, cores = len(award.nodes), placing.cores
    if job.most_nodes and job.most_nodes != job.least_nodes:
        # Only then: a job without a range of its own could not be given back none.
        words.append(f"NumNodes={count}-{count}")
    allowed = jobs[award.job].partition
    if allowed != job.partition:
        # 22.05 starts no job with named nodes in a partition that refuses it, nor any behind it.
        words.append(f"Partition={allowed}")
    before: list[Words] = []
    # Slurm itself rounds up to whole cores; to more CPUs than tasks ask for it gives no gres.
    is_rounded = placing.counts_threads and count == 1 and job.cpus < cores[0] < job.cpus + _MOST_THREADS
    if placing.is_whole or is_rounded:
        pass
    elif len(set(cores)) == 1:
        # A new MinCPUsNode alone would change the job's CPUs as well.
        words += [f"MinCPUsNode={cores[0]}", f"NumCPUs={sum(cores)}"]
    else:
        reservation = f"{OWN}{job.id}"
        before.append(reservation_words(placing, reservation))
        words.append(f"ReservationName={reservation}")
    words.append(f"{job.carrier.word}={write_mark(_mark(award, job, allowed, now))}")
    commands = (*before, tuple(words))
    return Action(
        kind=ActionKind.PIN, job=job.id, commands=commands, nodes=tuple(award.nodes), cores=tuple(cores)
    )


def _mark(award: Award, job: LiveJob, allowed: str, now: float) -> Mark:
    most: dict[str, int] = {}
    for use in award.nodes.values():
        for name, count in use.gres.items():
            most[name] = max(most.get(name, 0), count)
    return Mark(
        since=max(1, int(now)),
        tries=job.mark.tries if job.mark else 0,
        cores=tuple(use.cores for use in award.nodes.values()),
        gres={name: count for name, count in most.items() if count},
        nodes=job.required,
        span=(job.least_nodes, job.most_nodes),
        cpus=job.cpus,
        min_cpus=job.min_cpus,
        partition=job.partition if allowed != job.partition else "",
        comment=job.mark.comment if job.mark else job.comment,
        promised=job.mark.promised if job.mark else 0,
    )


def unpin(job: LiveJob, mark: Mark, licence: str, why: str, *, behind: bool = True) -> Action:
    """Return what puts a pinned job back as it was: behind the gate, or Slurm's own.

    Raises:
        CannotPlaceError: what it had asked for cannot be said in scontrol's words.
    """
    others = without_gate(job.licenses, licence)
    licenses = with_gate(others, licence) if behind else others
    words = ["update", f"JobId={check_id(job.id)}", f"Licenses={licenses}"]
    words += _given_back(job, mark)
    if job.reservation.startswith(OWN):
        words.append("ReservationName=")
    left = Mark(tries=mark.tries, comment=mark.comment, promised=mark.promised)
    kept = write_mark(left) if behind else ""
    words.append(f"{job.carrier.word}={kept or _comment(mark.comment)}")
    # Without its pin it can be placed again: Slurm took its priority away.
    after: list[Words] = [("release", job.id)] if job.breaks_rules else []
    if job.reservation.startswith(OWN):
        after.append(drop_words(job.reservation))
    kind = ActionKind.UNPIN if behind else ActionKind.HAND_OVER
    return Action(kind=kind, job=job.id, commands=(tuple(words), *after), why=why)


def _given_back(job: LiveJob, mark: Mark) -> list[str]:
    """Return the words that restore what the pin changed; what was changed since stays as it is."""
    count, (low, high) = len(mark.cores), mark.span
    words = [f"ReqNodeList={mark.nodes}"] if len(names_in(job.required)) == count else []
    if set(job.partition.split(",")) < set(mark.partition.split(",")):
        words.append(f"Partition={mark.partition}")
    if high and high != low and job.most_nodes == count:
        words.append(f"NumNodes={low}-{high}")
    if count and mark.cpus and job.min_cpus == mark.cores[0] and job.cpus == sum(mark.cores):
        words += [f"MinCPUsNode={mark.min_cpus}", f"NumCPUs={mark.cpus}"]
    return words


def promise(job: LiveJob, start: int) -> Action:
    """Return what writes a waiting job's promised start (seconds since the epoch) into its mark.

    Raises:
        CannotPlaceError: scontrol cannot read its id.
    """
    mark = replace(job.mark or Mark(comment=job.comment), promised=start)
    words = ("update", f"JobId={check_id(job.id)}", f"{job.carrier.word}={write_mark(mark)}")
    return Action(kind=ActionKind.PROMISE, job=job.id, commands=(words,), why="its start is promised")


def hand_over(job: LiveJob, licence: str, why: str) -> Action:
    """Return what leaves a job to Slurm: it waits behind the gate no longer, and is not pinned.

    Raises:
        CannotPlaceError: its other licences cannot be said in scontrol's words.
    """
    words = ["update", f"JobId={check_id(job.id)}", f"Licenses={without_gate(job.licenses, licence)}"]
    if job.mark:
        words.append(f"{job.carrier.word}={_comment(job.mark.comment)}")
    return Action(kind=ActionKind.HAND_OVER, job=job.id, commands=(tuple(words),), why=why)


def clear(reservation: str) -> Action:
    """Return what removes a reservation of ours that no job uses."""
    words = drop_words(reservation)
    return Action(kind=ActionKind.CLEAR, job=reservation, commands=(words,), why="no job uses it")


def _comment(text: str) -> str:
    """Return a site's comment unchanged; a mark without pin keeps one scontrol cannot read."""
    return text if not text or _WORD.fullmatch(text) else write_mark(Mark(comment=text))


#: scontrol reads 4096 characters of a line of standard input; a longer command is its own process.
LONGEST_LINE = 4000

#: Carries out commands in order; returns what Slurm said of refused ones, which end nothing.
CommandRunner = Callable[[Sequence[Words]], tuple[str, ...]]


def one_scontrol(commands: Sequence[Words]) -> tuple[str, ...]:
    """Carry out commands as lines of standard input of one ``scontrol``: no shell reads them.

    Raises:
        InputError: scontrol is not here, or hangs.
    """
    said: list[str] = []
    lines: list[str] = []
    for words in commands:
        text = line(words)
        if len(text) < LONGEST_LINE:
            lines.append(text)
            continue
        said += _fed(lines)
        lines = []
        said += _run(words, "")
    return tuple(said + _fed(lines))


def _fed(lines: Sequence[str]) -> list[str]:
    return _run((), "".join(f"{text}\n" for text in lines)) if lines else []


def _run(words: Words, text: str) -> list[str]:
    done = run_slurm(("scontrol", *words), told=text.encode())
    # Slurm prints names as users wrote them, in any encoding or none.
    return [said for said in done.stderr.decode(errors="replace").splitlines() if said.strip()]


def shown_by(show: Callable[[str], None]) -> CommandRunner:
    """Return what shows commands, a line each, instead of carrying them out."""

    def run(commands: Sequence[Words]) -> tuple[str, ...]:
        for words in commands:
            show(f"scontrol {line(words)}")
        return ()

    return run


def require_done(runner: CommandRunner, words: Words) -> None:
    """Carry out one command that everything else rests on.

    Raises:
        InputError: Slurm refused it.
    """
    said = runner((words,))
    if said:
        raise InputError(said[0], file=f"scontrol {line(words)}")
