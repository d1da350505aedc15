"""The kind of a file of unexpected content, with the command that reads it."""

import re
from codecs import BOM_UTF8
from dataclasses import dataclass

import msgspec

from ..cluster.errors import InputError

SNAPSHOT, WORKLOAD, LOG, SCHEDULE = "snapshot", "workload", "log", "schedule"
#: How many bytes of a file are examined.
_BEGINNING = 65_536
#: A row of a log: 18 numbers.
_ROW = re.compile(rb"(?:-?[0-9.]+\s+){17}-?[0-9.]+\s*")
_SQUEUE = re.compile(rb"\s*JOBID\b.*\b(?:PARTITION|ST|STATE)\b", re.IGNORECASE)
_SINFO = re.compile(rb"\s*(?:PARTITION\b.*\bAVAIL|NODELIST\b|HOSTNAMES\b)", re.IGNORECASE)
_SCONTROL = re.compile(rb"\s*(?:JobId|NodeName|PartitionName|SwitchName|ReservationName|LicenseName)=")
_SACCT = re.compile(rb"\s*(?:JobID|User)\|.*\|")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKind:
    """What a file is, in words, and what to do with it."""

    title: str
    advice: str
    name: str = ""


_OURS = {
    "aucsched-snapshot/1": FileKind(
        name=SNAPSHOT, title="a snapshot", advice="aucsched schedule, explain, compare and plan read it"
    ),
    "aucsched-workload/1": FileKind(
        name=WORKLOAD, title="a workload of nodes", advice="aucsched simulate and sweep play it"
    ),
    "aucsched-schedule/1": FileKind(
        name=SCHEDULE, title="a schedule", advice="aucsched explain SNAPSHOT --award FILE explains it"
    ),
    "aucsched-plan/1": FileKind(name="plan", title="a plan", advice="aucsched plan made it of a snapshot"),
}
_LOG_FILE = FileKind(
    name=LOG,
    title="a log in the Standard Workload Format",
    advice="aucsched simulate and sweep play it, aucsched workload describe looks at it",
)
_FROM_SLURM = "aucsched snapshot slurm makes a snapshot of squeue --json and its like"


#: How the first line of a text begins, what prints it, and what to do with it.
_TEXTS = (
    (_SACCT, "what sacct prints", "aucsched gain --sacct and workload from-sacct read it"),
    (_SQUEUE, "what squeue prints, as text", _FROM_SLURM),
    (_SINFO, "what sinfo prints, as text", _FROM_SLURM),
    (_SCONTROL, "what scontrol prints", _FROM_SLURM),
)


def is_json(content: bytes) -> bool:
    """Return whether a file, unpacked, is JSON and no log: an object or a list."""
    return content.removeprefix(BOM_UTF8).lstrip()[:1] in (b"{", b"[")


def kind_of(content: bytes) -> FileKind | None:
    """Return what a file, unpacked, is; None where nothing is known of it."""
    beginning = content[:_BEGINNING].lstrip()
    if beginning.startswith(b"{"):
        return _kind_of_json(content)
    first = next((line for line in beginning.splitlines() if line.strip()), b"")
    if first.startswith(b";") or _ROW.fullmatch(first):
        return _LOG_FILE
    for pattern, title, advice in _TEXTS:
        if pattern.match(first):
            return FileKind(title=title, advice=advice)
    return None


def _kind_of_json(content: bytes) -> FileKind | None:
    try:
        members = msgspec.json.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(members, dict):
        return None
    if "format" in members:
        return _OURS.get(str(members["format"]))
    if "meta" in members and ("jobs" in members or "nodes" in members):
        what = "jobs" if "jobs" in members else "nodes"
        return FileKind(title=f"Slurm's JSON of its {what}", advice=_FROM_SLURM)
    return None


def instead(content: bytes, wanted: str, error: InputError) -> InputError:
    """Return the error to raise of a file that is not what was wanted: it says what the file is."""
    found = kind_of(content)
    if found is None or found.name == wanted:
        return error
    article = "" if wanted.endswith("s") else "an " if wanted[0] in "aeiou" else "a "
    path = error.path if error.path == "format" else ""
    return InputError(
        f"this is {found.title}, not {article}{wanted.replace('-', ' ')}: {found.advice}", path=path
    )
