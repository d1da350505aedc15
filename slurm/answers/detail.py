"""``scontrol -d show job``: what 22.05's JSON leaves out, switches above all, and use per node.

Read in both forms, a paragraph or (``-o``) a line for each job.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...cluster.checks import all_plain
from ...cluster.errors import InputError
from ...cluster.nodes import Resources
from ...formats.hostlist import expand
from ...formats.notes import Notes
from .answer_record import Known, Record
from .answer_text import pairs_in
from .consumables import parse_gres

_START = re.compile(r"^(?=JobId=)", re.MULTILINE)
_ID = re.compile(r"JobId=(\d{1,18})\b", re.ASCII)
_NAME = re.compile(r"\sJobName=")
_BEHIND_NAME = re.compile(r"(?<=\s)(?:HetJobIdSet|UserId)=")
# What users write freely could look like a field: it is cut out before fields are looked for.
_FREE = re.compile(r"\s(JobName|Command|Comment)=")
_BEHIND_FREE = {
    "JobName": re.compile(r"(?<=\s)UserId="),
    "Command": re.compile(r"(?<=\s)WorkDir="),
    "Comment": re.compile(r"\n|\Z"),
}
_NUMBER = re.compile(r"\d{1,18}", re.ASCII)
_YES = re.compile(r"Yes\b", re.IGNORECASE)
#: Keys of its text whose numbers JSON may leave out, and the members that they are.
_NUMBERS = {
    # Switches=1@00:05:00, and Switches=0 where none were asked for.
    "Switches": "required_switches",
    "CPUs/Task": "cpus_per_task",
    "SegmentSize": "segment_size",
    "NtasksPerTRES": "tasks_per_tres",
}
_CPU_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_USE = re.compile(r"\sNodes=(\S++) CPU_IDs=(\S*+) Mem=(\d{1,18}) GRES=(\S*+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetail:
    """What scontrol adds to a job's JSON.

    Attributes:
        name: the job's name, to know that both are about the same job.
        numbers: counts above 0 that its JSON may leave out, by its members (``_NUMBERS``).
        segments: ``SPREAD_SEGMENTS``, ``CONSOLIDATE_SEGMENTS`` (25.11), as the flags of its JSON.
        sharing: ``OverSubscribe=``: ``NO`` (whole nodes), ``OK``, ``YES``, ``USER``, ``MCS``, ``TOPO``;
            empty: absent.
        use: what it holds by node, CPUs as Slurm counts them; empty while pending.
    """

    name: str
    numbers: Mapping[str, int] = field(default_factory=dict)
    segments: tuple[str, ...] = ()
    sharing: str = ""
    use: Mapping[str, Resources] = field(default_factory=dict)

    def joined(self, record: Record) -> Record:
        """Return a job's JSON with what it leaves out, ``sharing`` as a member of its own."""
        lacking = {name: count for name, count in self.numbers.items() if not record.asked(name)}
        told: dict[str, Any] = {"sharing": self.sharing}
        if self.segments and "flags" in record.members:
            told["flags"] = [*record.texts("flags"), *self.segments]
        return Record({**record.members, **lacking, **told}, record.path)


def parse_job_detail(
    text: str, known: Known | None = None, notes: Notes | None = None
) -> dict[int, JobDetail]:
    """Return the details by job id; those whose text is ``known`` are not read anew.

    A line feed in a user's text may begin what looks like a record. One that cannot be read
    is left out with a note, and so are all of a job that has several.

    Raises:
        InputError: the text is not scontrol's, or no record can be read.
    """
    notes = Notes() if notes is None else notes
    details: dict[int, JobDetail] = {}
    twice = dict[int, InputError]()
    spoiled: list[InputError] = []
    head, *records = _START.split(text)
    if head.strip() and not head.startswith("No jobs"):
        raise InputError(f"{head.strip()[:60]!r} is not what scontrol -d show job prints", path="line 1")
    for number, detail in (Known() if known is None else known).details(records, _detail_or_error):
        if isinstance(detail, InputError):
            spoiled.append(detail)
        elif number in details:
            twice[number] = InputError("the job is listed twice", path=f"JobId={number}")
        else:
            details[number] = detail
    if spoiled and not details:
        raise spoiled[0]
    for error in (*spoiled, *twice.values()):
        notes.add("job detail", f"job detail: {error}: the record is not read")
    return {number: detail for number, detail in details.items() if number not in twice}


def _detail_or_error(record: str) -> tuple[int, JobDetail | InputError]:
    try:
        return _detail(record)
    except InputError as error:
        return 0, error


def _detail(record: str) -> tuple[int, JobDetail]:
    match = _ID.match(record)
    if match is None:
        raise InputError(f"{record[:40].split(maxsplit=1)[0]!r} is not a job id", path="JobId")
    fields = _without_free(record)
    # What looks like a key in a text of users stands behind the keys.
    pairs = dict(reversed([*pairs_in(fields)]))
    numbers = {member: _NUMBER.match(pairs.get(key, "")) for key, member in _NUMBERS.items()}
    # Not all that follows is a key of ours: NtasksPerN:B:S:C=0:0:*:*.
    words = (w for w in ("Spread", "Consolidate") if _YES.match(pairs.get(f"{w}Segments", "")))
    return int(match[1]), JobDetail(
        name=_name(record),
        numbers={name: count for name, one in numbers.items() if one and (count := int(one[0]))},
        segments=tuple(f"{word.upper()}_SEGMENTS" for word in words),
        sharing="".join(pairs.get("OverSubscribe", "").split()[:1]),
        use=_use(fields, f"JobId={match[1]}"),
    )


def _name(record: str) -> str:
    """Return the job's name, empty where nothing follows it that does in every record."""
    begin = _NAME.search(record)
    end = _BEHIND_NAME.search(record, begin.end()) if begin else None
    return record[begin.end() : end.start()].rstrip() if begin and end else ""


def _without_free(record: str) -> str:
    """Cut out what users write; a text without its end stays, as do all others of its kind."""
    kept: list[str] = []
    place, endless = 0, set[str]()
    for begin in _FREE.finditer(record):
        if begin.start() < place or begin[1] in endless:
            continue
        end = _BEHIND_FREE[begin[1]].search(record, begin.end())
        if end is None:
            endless.add(begin[1])
            continue
        kept.append(record[place : begin.start()])
        place = end.start()
        while begin[1] != "Comment" and place > begin.end() and record[place - 1].isspace():
            place -= 1
    return "".join([*kept, record[place:]])


def _use(fields: str, path: str) -> dict[str, Resources]:
    use: dict[str, Resources] = {}
    for nodes, cpus, memory, gres in _USE.findall(fields):
        held = parse_gres(gres, f"{path} GRES", [])
        all_plain(held, f"{path} GRES")
        amount = Resources(
            cores=_cpu_count(cpus, path),
            memory_mib=int(memory) or None,
            gres=held,
        )
        use.update(dict.fromkeys(expand(nodes, f"{path} Nodes"), amount))
    return use


def _cpu_count(text: str, path: str) -> int:
    """Return how many CPUs ``0-3,8`` names."""
    total = 0
    for part in filter(None, text.split(",")):
        match = _CPU_RANGE.fullmatch(part)
        if match is None:
            raise InputError(f"{text[:60]!r} is not a list of CPUs", path=f"{path} CPU_IDs")
        total += int(match[2] or match[1]) - int(match[1]) + 1
    return total
