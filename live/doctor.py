"""Is this Slurm one that the loop can work beside? Checked with questions only; nothing is changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from ..cluster.errors import AucschedError, InputError
from ..slurm.answers.live import Ask
from .gate import gates, licence_count
from .passes import take_look
from .rest.hand import asked_api, told
from .rest.server import Server

_KNOWN = ((21, 8), (25, 5))
_VERSION = re.compile(r"\b(\d{2})\.(\d{2})\.")
_AT = re.compile(r"sdiag output at .*\((\d{9,11})\)")
_SETTING = re.compile(r"^(\w+)\s*= (.*?)\s*$", re.MULTILINE)
#: The gate's end is told in whole seconds; a clock that is further off moves it.
_CLOCK_S = 5.0


class Level(StrEnum):
    """How much a finding matters."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a check found."""

    level: Level
    what: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient:
    """What the checks look at.

    Attributes:
        settings: of ``scontrol show config``.
        user: who would run the loop.
        now: seconds since the epoch.
        server: the slurmrestd that would change jobs, None for none.
    """

    ask: Ask
    settings: Mapping[str, str]
    licence: str
    user: str
    now: Callable[[], float]
    server: Server | None = None


def examine(
    ask: Ask, licence: str, user: str, now: Callable[[], float], server: Server | None = None
) -> Iterator[Finding]:
    """Yield what each check found; the first that fails for good ends them."""
    try:
        text = ask(("scontrol", "show", "config")).decode(errors="replace")
    except InputError as error:
        yield Finding(level=Level.FAIL, what="controller", text=str(error))
        return
    settings = dict(_SETTING.findall(text))
    patient = Patient(ask=ask, settings=settings, licence=licence, user=user, now=now, server=server)
    for what, check in CHECKS.items():
        try:
            level, said = check(patient)
        except AucschedError as error:
            level, said = Level.FAIL, str(error)
        yield Finding(level=level, what=what, text=said)


def _version(patient: Patient) -> tuple[Level, str]:
    text = patient.settings.get("SLURM_VERSION", "")
    found = _VERSION.match(text)
    if found is None:
        return Level.WARN, f"{text or 'no version'} is told"
    version = int(found[1]), int(found[2])
    if not _KNOWN[0] <= version <= _KNOWN[1]:
        return Level.WARN, f"Slurm {text}: its answers were not seen, 21.08 to 25.05 were"
    tried = ", where the loop was tried" if version == (22, 5) else "; the loop was tried on 22.05"
    return Level.OK, f"Slurm {text}{tried}"


def _clock(patient: Patient) -> tuple[Level, str]:
    found = _AT.search(patient.ask(("sdiag",)).decode(errors="replace"))
    if found is None:
        return Level.WARN, "sdiag does not tell the controller's time"
    off = abs(int(found[1]) - patient.now())
    text = f"the controller's clock differs by {off:.0f} s"
    return (Level.OK, text) if off <= _CLOCK_S else (Level.FAIL, f"{text}: the gate's end would be wrong")


def _rights(patient: Patient) -> tuple[Level, str]:
    owner = patient.settings.get("SlurmUser", "").partition("(")[0]
    if patient.user in {"root", owner}:
        return Level.WARN, f"{patient.user} may do all; an operator's rights are enough with --mark comment"
    question = ("sacctmgr", "-n", "-P", "show", "user", patient.user, "format=AdminLevel")
    try:
        said = patient.ask(question).decode(errors="replace").split()
    except InputError as error:
        return Level.FAIL, f"whether {patient.user} is an operator is not told: {error}"
    if said and said[0] == "Operator":
        return Level.OK, f"{patient.user} is an operator: slurm run --mark comment"
    if said and said[0] == "Administrator":
        return Level.OK, f"{patient.user} is an administrator"
    return (
        Level.FAIL,
        f"{patient.user} is no operator: sacctmgr modify user {patient.user} set adminlevel=operator",
    )


def _select(patient: Patient) -> tuple[Level, str]:
    plugin = patient.settings.get("SelectType", "")
    if plugin == "select/cons_tres":
        return Level.OK, plugin
    return Level.FAIL, f"{plugin or 'no SelectType'}: pins need select/cons_tres"


def _priority(patient: Patient) -> tuple[Level, str]:
    plugin = patient.settings.get("PriorityType", "")
    if plugin == "priority/multifactor":
        return Level.OK, plugin
    return Level.WARN, f"{plugin or 'no PriorityType'}: priorities do not change while jobs wait"


def _topology(patient: Patient) -> tuple[Level, str]:
    try:
        text = patient.ask(("scontrol", "show", "topology")).decode(errors="replace")
    except InputError as error:
        return Level.WARN, f"{error}; nodes stand in a row"
    switches = sum(line.lstrip().startswith("SwitchName=") for line in text.splitlines())
    return (
        (Level.OK, f"{switches} switches") if switches else (Level.WARN, "no switches: nodes stand in a row")
    )


def _licence(patient: Patient) -> tuple[Level, str]:
    total = licence_count(patient.ask, patient.licence)
    return Level.OK, f"{total} licences {patient.licence}: at most so many jobs behind the gate"


def _gate(patient: Patient) -> tuple[Level, str]:
    now = patient.now()
    found = [one for one in gates(patient.ask, patient.licence) if one.is_up(now)]
    if not found:
        return Level.WARN, "it is down: slurm run puts it up"
    return Level.OK, f"{found[0].name} is up, ends in {found[0].end - now:.0f} s"


def _submission(patient: Patient) -> tuple[Level, str]:
    plugins = patient.settings.get("JobSubmitPlugins", "")
    if "lua" in plugins.split(","):
        return Level.OK, "job_submit.lua is on: see that it puts the licence on"
    way = f"sbatch -L {patient.licence}:1, or aucsched slurm gate add"
    return Level.WARN, f"no job_submit.lua: jobs go behind the gate by {way}"


def _answers(patient: Patient) -> tuple[Level, str]:
    look = take_look(gate=patient.licence, ask=patient.ask, now=patient.now)
    snapshot = look.snapshot
    counts = (
        f"{len(snapshot.nodes)} nodes, {len(snapshot.jobs)} waiting and {len(snapshot.running)} running jobs"
    )
    return Level.OK, f"{counts} are read in {look.read_s:.2f} s, {len(snapshot.notes)} notes"


def _rest(patient: Patient) -> tuple[Level, str]:
    if patient.server is None:
        return Level.OK, "none is given: scontrol changes jobs"
    api = asked_api(patient.server)
    return (Level.WARN if api.lacking else Level.OK), told(api)


#: Each check by what it is about.
CHECKS: Mapping[str, Callable[[Patient], tuple[Level, str]]] = {
    "version": _version,
    "clock": _clock,
    "rights": _rights,
    "placing": _select,
    "priorities": _priority,
    "topology": _topology,
    "licence": _licence,
    "gate": _gate,
    "submission": _submission,
    "answers": _answers,
    "slurmrestd": _rest,
}
