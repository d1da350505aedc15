"""Is this Slurm one that the loop can work with? Checked by questions only; nothing is changed."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from ...cluster.errors import AucschedError, InputError
from ...cluster.text import plural
from ...formats.native.topology_wire import TITLES
from ...formats.notes import Notes
from ..answers.answer_record import read_document
from ..answers.answer_text import answered, paragraphs
from ..answers.consumables import read_licenses
from ..answers.live import CONFIG, LICENSES, NODES, PARTITIONS, TOPOLOGY, Ask, first_answer
from ..answers.node_records import read_nodes
from ..answers.partitions import read_partitions
from ..answers.policy import config_of
from ..answers.topology_conf import parse_topology
from ..answers.versions import (
    NEWEST,
    OLDEST,
    SEGMENTS_NAMED,
    SEGMENTS_SHOWN,
    SlurmRelease,
    parse_release,
)
from .actions import gates, licence_count
from .passes import take_look

#: Where the loop was tried on a real cluster.
_TRIED = (22, 5)
#: Releases from the first up to the second start requeued jobs without their licences.
_FORGETTING = SlurmRelease(25, 5), SlurmRelease(25, 11, 7)
#: From here on a restart holds waiting jobs whose licence is no longer there.
_HOLDING = SlurmRelease(26, 5)
_AT = re.compile(r"sdiag output at .*\((\d{9,11})\)")
#: The gate's end is told in whole seconds; a clock that is further off moves it.
_CLOCK_S = 5.0


class Severity(StrEnum):
    """How much a finding matters."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a check found."""

    level: Severity
    what: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient:
    """What the checks look at.

    Attributes:
        settings: of ``scontrol show config``.
        user: who would run the loop.
        now: seconds since the epoch.
    """

    ask: Ask
    settings: Mapping[str, str]
    licence: str
    user: str
    now: Callable[[], float]

    @property
    def release(self) -> SlurmRelease | None:
        """The release of slurmctld; None where its configuration does not tell."""
        return parse_release(self.settings.get("SLURM_VERSION", ""))


def examine(ask: Ask, licence: str, user: str, now: Callable[[], float]) -> Iterator[Finding]:
    """Yield what each check found; the first that fails for good ends them."""
    try:
        settings = config_of(answered(ask(CONFIG))).pairs
    except InputError as error:
        yield Finding(level=Severity.FAIL, what="controller", text=str(error))
        return
    patient = Patient(ask=ask, settings=settings, licence=licence, user=user, now=now)
    for what, check in CHECKS.items():
        try:
            level, said = check(patient)
        except AucschedError as error:
            level, said = Severity.FAIL, str(error)
        yield Finding(level=level, what=what, text=said)


def _version(patient: Patient) -> tuple[Severity, str]:
    text = patient.settings.get("SLURM_VERSION", "")
    release = patient.release
    if release is None:
        return Severity.WARN, f"scontrol gives no known version: {text or 'none'}"
    if release < OLDEST or release.is_newer:
        known = f"those of {OLDEST.series} to {NEWEST.series} are"
        return Severity.WARN, f"Slurm {text}: its answers are not known, {known}"
    if release[:2] == _TRIED:
        return Severity.OK, f"Slurm {text}, where the loop was tried"
    return Severity.OK, f"Slurm {text}; the loop was tried on 22.05"


def _requeues(patient: Patient) -> tuple[Severity, str]:
    """Say if a release lets jobs past the gate, or holds those behind it (Slurm's changes)."""
    release = patient.release
    if release is None:
        return Severity.WARN, "whether requeued jobs keep their licences depends on the version"
    if _FORGETTING[0] <= release < _FORGETTING[1]:
        text = "starts requeued jobs without their licences, so past the gate"
        return Severity.WARN, f"Slurm {release} {text}: 25.11.7 and 26.05.0 mend it"
    if release >= _HOLDING:
        text = "a restart of slurmctld holds waiting jobs whose licence is no longer in slurm.conf"
        return Severity.WARN, f"{text}: empty the gate before you take {patient.licence} out"
    return Severity.OK, "requeued jobs keep their licences"


#: Words of settings that bear on the loop, and what becomes of them; a key alone: any value.
_SETTINGS = {
    ("SchedulerParameters", "bf_topopt_enable"): "noted: Slurm may start pinned jobs later",
    ("SchedulerParameters", "enable_expedited_requeue"): "jobs of --requeue=expedite are handed over",
    ("LicenseParameters", "RemoteFuzzyMatch"): "jobs that ask for name, not name@server, are handed over",
    ("DataParserParameters", ""): "honoured: a fixed version of JSON is asked for, each form is read",
}


def _settings(patient: Patient) -> tuple[Severity, str]:
    """Say of settings of 24.11 and later whether they are honoured, noted or left to Slurm."""
    found = []
    for (key, word), text in _SETTINGS.items():
        value = patient.settings.get(key, "").replace("(null)", "").lower()
        if value if not word else word.lower() in re.split("[,=]", value):
            found.append(f"{word or key}: {text}")
    is_late = any(": noted" in text for text in found)
    level = Severity.WARN if is_late else Severity.OK
    return level, "; ".join(found) or "none that bears on the loop"


def _nodes(patient: Patient) -> tuple[Severity, str]:
    """Say which nodes Slurm alone could use: asleep, or with features that take a reboot."""
    figures = read_nodes(read_document(first_answer(NODES, patient.ask).content), Notes())
    if asleep := sum(node.is_asleep for node in figures):
        text = "asleep: the loop wakes none, jobs that fit no others are handed over"
        return Severity.OK, f"{plural(asleep, 'node')} {text}"
    if names := sorted(frozenset[str]().union(*(node.inactive for node in figures))):
        text = f"features that take a reboot: {', '.join(names)}"
        return Severity.OK, f"{text}; a job for which no node has them is handed over"
    return Severity.OK, "none is asleep, no feature takes a reboot"


def _licences(patient: Patient) -> tuple[Severity, str]:
    """Say what becomes of jobs that ask for remote licences, some in layers, or one of two."""
    notes, content = Notes(), patient.ask(LICENSES)
    read_licenses(content, notes)
    entries = paragraphs(answered(content), "LicenseName")
    remote = [entry.pairs["LicenseName"] for entry in entries if entry.text("Remote") == "yes"]
    said = [text for text in notes.texts() if "layer" in text or "not expressible" in text]
    if remote:
        said.append(f"remote, honoured as counted now: {', '.join(remote)}")
    if patient.release is not None and patient.release >= _FORGETTING[0]:
        said.append("jobs that ask for one or another (-L a|b) are Slurm's")
    level = Severity.WARN if notes.policies else Severity.OK
    return level, "; ".join(said) or "none is remote or has layers"


def _clock(patient: Patient) -> tuple[Severity, str]:
    found = _AT.search(answered(patient.ask(("sdiag",))))
    if found is None:
        return Severity.WARN, "sdiag does not tell the controller's time"
    off = abs(int(found[1]) - patient.now())
    text = f"the controller's clock differs by {off:.0f} s"
    return (
        (Severity.OK, text) if off <= _CLOCK_S else (Severity.FAIL, f"{text}: the gate's end would be wrong")
    )


def _rights(patient: Patient) -> tuple[Severity, str]:
    owner = patient.settings.get("SlurmUser", "").partition("(")[0]
    if patient.user in {"root", owner}:
        return (
            Severity.WARN,
            f"{patient.user} may do all; an operator's rights are enough with --mark comment",
        )
    question = ("sacctmgr", "-n", "-P", "show", "user", patient.user, "format=AdminLevel")
    try:
        said = answered(patient.ask(question)).split()
    except InputError as error:
        return Severity.FAIL, f"whether {patient.user} is an operator is not told: {error}"
    if said and said[0] == "Operator":
        return Severity.OK, f"{patient.user} is an operator: slurm run --mark comment"
    if said and said[0] == "Administrator":
        return Severity.OK, f"{patient.user} is an administrator"
    # Slurm modifies no user whom it does not know.
    words = f"modify user {patient.user} set" if said else f"add user {patient.user} account=root"
    return Severity.FAIL, f"{patient.user} is not an operator: sacctmgr {words} adminlevel=admin"


def _plugin(
    key: str, wanted: str, otherwise: Severity, why: str
) -> Callable[[Patient], tuple[Severity, str]]:
    """Return the check that a plugin is the one that the loop works with, and why."""

    def check(patient: Patient) -> tuple[Severity, str]:
        plugin = patient.settings.get(key, "")
        if plugin == wanted:
            return Severity.OK, plugin
        return otherwise, f"{plugin or f'no {key}'}: {why}"

    return check


#: Of blocks: releases from one up to before another, whether something is amiss there, and what.
_BLOCKS = (
    (OLDEST, SEGMENTS_SHOWN, True, "--segment is not told: jobs that Slurm holds for it are handed over"),
    (SEGMENTS_SHOWN, SEGMENTS_NAMED, False, "jobs with --segment are handed over: they may name no nodes"),
    (SEGMENTS_NAMED, SlurmRelease(25, 11, 2), True, "--consolidate-segments may end slurmctld"),
    (SEGMENTS_NAMED, SlurmRelease(25, 11, 3), True, "cloud nodes leave blocks for good when powered down"),
)
#: Open in all releases since 25.05 that are known.
_REPEATED = (
    "never update a node's Topology= to the block that it is in: the rules may be off then "
    "(Slurm's pull request 225)"
)


def _topology(patient: Patient) -> tuple[Severity, str]:
    try:
        text = answered(patient.ask(TOPOLOGY))
    except InputError as error:
        return Severity.WARN, f"{error}; nodes are in a row"
    notes = Notes()
    read = parse_topology(text, notes)
    if not read.entries:
        return Severity.WARN, "no switches: nodes are in a row"
    sizes = f" of {', '.join(map(str, read.sizes))} nodes" if read.sizes else ""
    what = f"{plural(len(read.entries), TITLES[read.kind])}{sizes}"
    if read.kind == "tree":
        return Severity.OK, what
    said, is_amiss = [f"{what}: the rules are honoured", *notes.policies], bool(notes.policies)
    release = patient.release
    if release is not None and read.kind == "block":
        facts = [row for row in _BLOCKS if row[0] <= release < row[1]]
        said += [fact for *_, fact in facts] + [_REPEATED] * (release >= SEGMENTS_SHOWN)
        is_amiss |= any(is_bad for _, _, is_bad, _ in facts)
    names = {entry.topology for entry in read_partitions(patient.ask(PARTITIONS), (), Notes())}
    if len(names) > 1:
        named = ", ".join(sorted(names - {"", "default"}))
        said.append(f"jobs of partitions with Topology={named} are handed over: it may be another")
    return Severity.WARN if is_amiss or len(names) > 1 else Severity.OK, "; ".join(said)


def _licence(patient: Patient) -> tuple[Severity, str]:
    total = licence_count(patient.ask, patient.licence)
    return Severity.OK, f"{plural(total, 'licence')} {patient.licence}: the most jobs behind the gate"


def _gate(patient: Patient) -> tuple[Severity, str]:
    now = patient.now()
    found = [one for one in gates(patient.ask, patient.licence) if one.is_up(now)]
    if not found:
        return Severity.WARN, "it is down: slurm run puts it up"
    return Severity.OK, f"{found[0].name} is up, ends in {found[0].end - now:.0f} s"


def _submission(patient: Patient) -> tuple[Severity, str]:
    plugins = patient.settings.get("JobSubmitPlugins", "")
    if "lua" in plugins.split(","):
        return Severity.OK, "job_submit.lua is on: see that it puts the licence on"
    way = f"sbatch -L {patient.licence}:1, or aucsched slurm gate add"
    return Severity.WARN, f"no job_submit.lua: jobs go behind the gate by {way}"


def _answers(patient: Patient) -> tuple[Severity, str]:
    look = take_look(gate=patient.licence, ask=patient.ask, now=patient.now)
    snapshot = look.snapshot
    jobs = f"{len(snapshot.jobs)} waiting and {plural(len(snapshot.running), 'running job')}"
    read = f"are read in {look.read_s:.2f} s, {plural(len(snapshot.notes), 'note')}"
    return Severity.OK, f"{plural(len(snapshot.nodes), 'node')}, {jobs} {read}"


#: Each check by what it is about.
CHECKS: Mapping[str, Callable[[Patient], tuple[Severity, str]]] = {
    "version": _version,
    "requeues": _requeues,
    "clock": _clock,
    "rights": _rights,
    "placing": _plugin("SelectType", "select/cons_tres", Severity.FAIL, "pins need select/cons_tres"),
    "priorities": _plugin(
        *("PriorityType", "priority/multifactor", Severity.WARN),
        "priorities do not change while jobs wait",
    ),
    "topology": _topology,
    "nodes": _nodes,
    "settings": _settings,
    "licences": _licences,
    "licence": _licence,
    "gate": _gate,
    "submission": _submission,
    "answers": _answers,
}
