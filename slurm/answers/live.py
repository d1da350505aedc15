"""Slurm's answers: read from the files that were given, asked of the live cluster for the rest."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ...cluster.errors import InputError, OptionError, shown_name
from ...cluster.keywords import checked
from ...cluster.option_fields import options_in
from ...cluster.snapshot import Snapshot
from ...formats.notes import Notes
from ...formats.reading import read_document
from .answer_text import answered
from .slurm_files import SlurmFiles
from .snapshot_of_answers import SlurmSources, SlurmText, import_slurm
from .topology_any import is_sizes
from .versions import SlurmRelease, json_option, parse_release

Command = tuple[str, ...]
#: Returns what a command prints; raises InputError where it fails.
Ask = Callable[[Command], bytes]

#: The commands of which one gives an answer, the newest Slurm's first.
Question = tuple[Command, ...]

_JSON = "--json"
#: Asks for the queue.
JOBS: Command = ("squeue", _JSON)
#: Ask for one thing each in text, as every release writes it.
CONFIG: Command = ("scontrol", "show", "config")
TOPOLOGY: Command = ("scontrol", "show", "topology")
LICENSES: Command = ("scontrol", "-o", "show", "licenses")
PARTITIONS: Command = ("scontrol", "-o", "show", "partitions")
RESERVATIONS: Command = ("scontrol", "-o", "show", "reservations")
#: Asks which release the commands here are of: they answer as it does, and no controller is needed.
_RELEASE: Command = ("scontrol", "--version")
_NODES: Command = ("scontrol", "show", "nodes", _JSON)
#: Asks for nodes one by one, whatever the version.
EACH_NODE: Question = (_NODES, ("scontrol", "-o", "show", "nodes"))
#: Asks for nodes in JSON: 22.05's scontrol writes none.
NODES: Question = (_NODES, ("sinfo", _JSON))

_RESERVATIONS: Question = (("scontrol", "show", "reservations", _JSON), RESERVATIONS)
_LIMITS: Command = ("scontrol", "show", "assoc_mgr", "flags=qos,assoc")

#: By the names of the files that could be given instead, with what it means to do without the
#: answer; empty: a snapshot needs it. From 23.02 ``sinfo --json`` groups nodes; of a Slurm without
#: accounting assoc_mgr says nothing. Of licences only text tells how layers count, of partitions
#: before 26.05 whose jobs are stopped and which flags they have.
_QUESTIONS: dict[str, tuple[Question, str]] = {
    "jobs": ((JOBS,), ""),
    "nodes": (NODES, ""),
    "topology": ((TOPOLOGY,), "the topology is taken as linear"),
    "job_detail": ((("scontrol", "-d", "show", "job"),), "job detail is not known"),
    "licenses": ((LICENSES,), "licences are not known"),
    "partitions": ((PARTITIONS,), "limits of partitions are not known"),
    "reservations": (_RESERVATIONS, "reservations are not known"),
    "limits": ((_LIMITS,), "limits of QOS and associations are not known"),
    "conf": ((CONFIG,), "the cluster's defaults are not known"),
}
#: By which rules jobs start; those of now belong to no saved queue.
_RULES = {"licenses", "partitions", "reservations", "limits", "conf"}

#: Of JSON that reports errors, before or behind what was asked for; commands then exit with 0.
_ERRORS = re.compile(rb'"errors":\s*\[\s*\{')
_ENDS = 2000
#: What commands say of a slurmctld that is down, and of one that hangs.
_IS_DOWN = re.compile(rb"contact slurm controller|Socket timed out")
_LOCAL_TIME = re.compile(rb"\bStartTime=\d+-")

#: What changes of which jobs, nodes and cluster a command speaks, how, and what else it says: debug
#: flags write to the stderr on which refusals stand.
_CHANGING = re.compile(
    r"(?:SQUEUE|SINFO|SCONTROL|SACCT)_(?!ALL$)|SLURM_(?:CLUSTERS|\w+_(?:LEN|FORMAT|FLAGS)|JSON|YAML)$"
)
#: Commands asked of a live Slurm at a time: as many as take longer than a moment.
AT_ONCE = 4
#: A controller under load answers late; one that does not answer at all should not hang a cron job.
_TIMEOUT_S = 120


class UnreachableError(InputError):
    """The controller does not answer: each further question would wait for as long."""


def ask_slurm(command: Command, timeout_s: float = _TIMEOUT_S) -> bytes:
    """Return what a command of Slurm's prints, in English, times in seconds of the epoch.

    Raises:
        UnreachableError: slurmctld cannot be reached.
        InputError: it is not installed, fails, or does not answer in time; names the command.
    """
    shown = " ".join(command)
    # 22.05 cuts lists of array tasks after 64 characters unless told not to.
    own = {"SLURM_BITSTR_LEN": "0", "SLURM_TIME_FORMAT": "%s", "LC_ALL": "C"}
    answer = run_slurm(command, timeout_s=timeout_s, environment=own)
    # If slurmctld is down or hangs, 22.05's scontrol may exit with 0, and JSON does not say so.
    is_down = _IS_DOWN.search(answer.stderr) is not None
    if not is_down and _ERRORS.search(answer.stdout[:_ENDS] + answer.stdout[-_ENDS:]):
        try:
            ask_slurm(("scontrol", "ping"))
        except InputError:
            is_down = True
    if is_down:
        raise UnreachableError("slurmctld cannot be reached (scontrol ping tells more)", file=shown)
    if answer.returncode:
        said = answered(answer.stderr).strip().splitlines()
        reason = said[-1] if said else f"exit code {answer.returncode}"
        raise InputError(f"the command failed: {reason}", file=shown)
    return answer.stdout


def run_slurm(
    command: Command,
    *,
    told: bytes | None = None,
    timeout_s: float = _TIMEOUT_S,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.CompletedProcess[bytes]:
    """Run a command of Slurm's; ``told`` is its standard input, ``environment`` is set besides.

    It has its own process group: after Ctrl-C a loop finishes its pass and needs its answer.

    Raises:
        InputError: it is not installed, or does not end in time; names the command.
    """
    shown = " ".join(command)
    program = shutil.which(command[0])
    if program is None:
        raise InputError("the command is not installed here: give a file of its output", file=shown)
    words = [program, *command[1:]]
    kept = {name: value for name, value in os.environ.items() if not _CHANGING.match(name)}
    pipes: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    try:
        with subprocess.Popen(words, **pipes, env={**kept, **environment}, process_group=0) as process:  # noqa: S603 - no shell
            try:
                answers = process.communicate(told, timeout=timeout_s)
            except BaseException:
                # Where a site's wrapper stands for the command: with what it has started.
                os.killpg(process.pid, signal.SIGKILL)
                raise
    except subprocess.TimeoutExpired:
        raise UnreachableError(f"no answer in {timeout_s:g} s", file=shown) from None
    except OSError as error:
        raise InputError(f"the command failed: {error}", file=shown) from error
    return subprocess.CompletedProcess(command, process.returncode, *answers)


def collect(files: SlurmFiles, *, ask: Ask = ask_slurm, at_once: int = 1) -> tuple[SlurmSources, Notes]:
    """Return Slurm's answers, from files where their names are given, else from the live commands.

    Jobs and nodes are needed. If a command for another answer fails, that is a note, unless slurmctld
    cannot be reached. Rules, licences and reservations are asked for only with the jobs: current
    ones fit no saved queue. ``at_once`` commands run in parallel. JSON has a fixed version
    (versions.py), or the release's own.

    Raises:
        InputError: a file cannot be read, ``squeue`` or both commands for nodes fail, or no answer.
        OptionError: two of the files are standard input.
    """
    notes = Notes()
    names = {name: getattr(files, name) for name in options_in(SlurmFiles)}
    given = [f"--{name.replace('_', '-')}" for name, value in names.items() if value == "-"]
    if len(given) > 1:
        raise OptionError(f"only one of {' and '.join(given)} can be standard input")
    wanted = {
        name: question
        for name, (question, _) in _QUESTIONS.items()
        if names[name] is None and not (name in _RULES and files.jobs is not None)
    }
    asked, unreachable = _fixed(wanted, ask, notes), list[UnreachableError]()
    with _asking(asked.values(), ask, at_once) as told:

        def answer(name: str) -> SlurmText | None:
            if name not in asked:
                return _known_value(name, names[name])
            try:
                if unreachable:
                    raise unreachable[0]
                return told(asked[name])
            except InputError as error:
                unreachable.extend([error] if isinstance(error, UnreachableError) else ())
                is_lost = isinstance(error, UnreachableError) and files.jobs is None
                if is_lost or not (without := _QUESTIONS[name][1]):
                    raise
                tell = notes.unread if name in _RULES else notes.add
                tell("live commands", f"{error}; {without}")
                return None

        found = {"config" if name == "conf" else name: answer(name) for name in names}
    here = [name.replace("_", " ") for name in asked if found.get(name)]
    if files.jobs is not None and here:
        notes.add("live commands", f"asked of Slurm here, next to a saved queue: {', '.join(here)}")
    sources = SlurmSources(**found)  # type: ignore[arg-type]
    # Live commands are told to print seconds of the epoch.
    if sources.reservations and _LOCAL_TIME.search(sources.reservations.content):
        notes.add("time", "times of reservations have no zone: read as this machine's local time")
    return sources, notes


def snapshot_from_slurm(
    *,
    time: float | None = None,
    schedule_held: bool = False,
    **files: str | Path | None,
) -> Snapshot:
    """Return a snapshot of a live cluster, or of Slurm's saved output (21.08 to 26.05).

    Args:
        time: of the snapshot, in seconds since the epoch; None: the last scheduling pass.
        schedule_held: schedule jobs that were held by hand, with their saved priorities, those
            without one behind all others; those saved with priority 0 stay held.
        files: plain or gzip, of ``jobs`` (squeue --json), ``nodes`` (scontrol show nodes --json, or
            22.05's sinfo --json), ``topology``, ``job_detail`` (scontrol -d show job),
            ``licenses``, ``partitions``, ``reservations``, ``limits``, ``conf`` (scontrol show
            config), ``priorities`` (sprio); for files not given the commands are run.

    Returns:
        The snapshot; ``notes`` and each job's ``unsupported`` say what it could not express.

    Raises:
        InputError: a file cannot be read, or Slurm does not answer; names the file or the command.
        OptionError: there is no such file, or two of the files are standard input.

    Examples:
        >>> snapshot_from_slurm(jobs="no-such-file.json", nodes="neither.json")
        Traceback (most recent call last):
            ...
        aucsched.cluster.errors.InputError: no-such-file.json: No such file or directory
    """
    names = {name: None if path is None else str(path) for name, path in files.items()}
    sources, notes = collect(SlurmFiles(**checked(names, SlurmFiles, "snapshot_from_slurm")))
    made, _ = import_slurm(sources, time=time, schedule_held=schedule_held, notes=notes)
    return made


def release_here(ask: Ask = ask_slurm) -> SlurmRelease | None:
    """Return the release of Slurm's commands here, None where they do not tell."""
    try:
        return parse_release(answered(ask(_RELEASE)))
    except InputError:
        return None


def _fixed(questions: Mapping[str, Question], ask: Ask, notes: Notes) -> dict[str, Question]:
    """Return the questions with a fixed version of JSON first, the release's own behind."""
    if not any(_JSON in command for question in questions.values() for command in question):
        return dict(questions)
    release = release_here(ask)
    if release is not None and release.is_newer:
        notes.add("version", release.warning)
    option = json_option(release)
    return {name: tuple(_pinned(question, option)) for name, question in questions.items()}


def _pinned(question: Question, option: str) -> Iterator[Command]:
    for command in question:
        if _JSON in command and option != _JSON:
            yield tuple(option if word == _JSON else word for word in command)
        yield command


def _known_value(what: str, name: str | None) -> SlurmText | None:
    """Return what a file holds; a topology's sizes stand for themselves."""
    if name is None:
        return None
    if what == "topology" and is_sizes(name):
        return SlurmText(name=name, content=name.encode())
    return SlurmText(name=shown_name(name), content=read_document(name, bytes))


@contextmanager
def _asking(
    questions: Iterable[Question], ask: Ask, at_once: int
) -> Iterator[Callable[[Question], SlurmText]]:
    """Yield what answers each question; with several at once, all of them are asked from now on."""
    if at_once == 1:
        yield lambda question: first_answer(question, ask)
        return
    pool = ThreadPoolExecutor(at_once)
    try:
        begun = {question: pool.submit(first_answer, question, ask) for question in questions}
        yield lambda question: begun[question].result()
    finally:
        pool.shutdown(cancel_futures=True)


def first_answer(commands: tuple[Command, ...], ask: Ask = ask_slurm) -> SlurmText:
    """Return the first answer that one of the commands gives; the last one's error if none does."""
    *others, last = commands
    for command in others:
        try:
            return SlurmText(name=" ".join(command), content=ask(command))
        except UnreachableError:
            raise
        except InputError:
            continue
    return SlurmText(name=" ".join(last), content=ask(last))
