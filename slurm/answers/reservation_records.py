"""Advance reservations, from ``scontrol show reservation`` as text or JSON, or from slurmrestd.

Slurm lets a job into a reservation only when the job asks for it (tried on 22.05: a user's job that
does not ask stays outside its user's own reservation), except with the flag MAGNETIC. A snapshot
knows users only, so the nodes are closed to all jobs but those of a magnetic reservation's users.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ...cluster.checks import all_plain
from ...cluster.errors import InputError
from ...cluster.nodes import Reservation
from ...formats.hostlist import names_in
from ...formats.notes import Notes
from .answer_record import Record, answer_entries
from .answer_text import WORDS, Paragraph
from .consumables import counted_license, license_items, without_gate

#: The gate's licence unless another is given.
LICENCE = "auction"
#: The controller's clock may be so far ahead of this host's, in seconds.
_AHEAD_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationFigures:
    """A reservation as Slurm tells it.

    Attributes:
        start, end: seconds since the epoch.
        nodes: names as written, which the cluster may not have.
        cores: how many cores it holds on all nodes together, None when not told.
        access: who else may use it, in Slurm's words (``accounts physics``); empty for users only.
        licenses: the list that it holds, as written.
        path: its place in the file.
    """

    name: str
    nodes: tuple[str, ...]
    start: float
    end: float
    users: tuple[str, ...]
    flags: frozenset[str]
    cores: int | None
    access: str
    licenses: str
    path: str

    def is_up(self, now: float) -> bool:
        """Whether it keeps jobs; the controller's clock may be a little ahead of this host's."""
        return self.start - _AHEAD_S <= now < self.end

    def held(self, licence: str) -> int:
        """How many of a licence it holds as a gate: one with nodes is no gate.

        22.05 writes ANY_NODES in the place of LICENSE_ONLY, so its flags do not tell.
        """
        if self.nodes:
            return 0
        found = (counted_license(item) for _, item in license_items(self.licenses))
        return sum(one[1] for one in found if one and one[0].partition("@")[0] == licence)

    def coming_licenses(self, gate: str, now: float | None) -> str:
        """Return licences that it takes when it starts, save the gate's; Slurm shows them free."""
        has_started = now is not None and self.start - _AHEAD_S <= now
        return "" if has_started else without_gate(self.licenses, gate or LICENCE)


def gate_licence(reservations: Iterable[ReservationFigures], now: float | None) -> str:
    """Return the licence of a gate up now under its usual name (empty: none); no time: of any."""
    named = (entry for entry in reservations if entry.name.startswith(f"{LICENCE}_") and entry.held(LICENCE))
    return LICENCE if any(now is None or entry.is_up(now) for entry in named) else ""


def read_reservations(content: bytes, licence: str = "") -> tuple[ReservationFigures, ...]:
    """Return the reservations as they are told, with ``licence`` those that list it.

    Raises:
        InputError: the answer is malformed, of an unknown shape, or lists a reservation twice.
    """
    found: dict[str, ReservationFigures] = {}
    told = answer_entries(content, "ReservationName", "reservations", _keys)
    for entry in (_figures(one) for one in told if licence in one.text("Licenses")):
        all_plain((entry.name, *entry.users), entry.path)
        if entry.name in found:
            raise InputError(f"reservation {entry.name!r} is listed twice", path=entry.path)
        if entry.end <= entry.start:
            raise InputError("it ends before it starts", path=entry.path)
        found[entry.name] = entry
    return tuple(found.values())


def fitted_reservation(
    entry: ReservationFigures, cores: Mapping[str, int], inside: int, licenses: str, notes: Notes
) -> Reservation | None:
    """Return a reservation that keeps nodes from jobs, and note what it loses; None: it keeps none.

    Args:
        entry: the reservation.
        cores: cores (not threads) of each node of the cluster.
        inside: cores that the running jobs inside it hold.
        licenses: those that it takes when it starts.
        notes: takes what it loses.
    """

    def say(text: str) -> None:
        notes.add("reservations", f"reservation {entry.name}: {text}")

    if licenses:
        text = f"licences {licenses} are not kept for it before it starts"
        notes.unread("reservations", f"reservation {entry.name}: {text}")
    nodes = tuple(name for name in entry.nodes if name in cores)
    if dropped := len(entry.nodes) - len(nodes):
        say(f"nodes not of the cluster are dropped: {dropped}")
    if not nodes:
        if not licenses:
            say("it names no node of the cluster and is dropped")
        return None
    total = sum(cores[name] for name in nodes)
    if entry.cores and entry.cores < total and not dropped:
        if inside >= entry.cores:
            say(f"running jobs hold all its {entry.cores} cores: it keeps nothing else from jobs")
            return None
        say(f"it holds {entry.cores} of its nodes' {total} cores: taken as all of them")
    for flag in sorted(entry.flags):
        if change := WORDS["reservation_flags"].get(flag, "?"):
            say(f"the flag {flag} is not known and not looked at" if change == "?" else f"it {change}")
    return Reservation(
        name=entry.name, nodes=nodes, start=entry.start, end=entry.end, users=_users(entry, say)
    )


def _users(entry: ReservationFigures, say: Callable[[str], None]) -> tuple[str, ...]:
    """Return the users whose jobs may run inside without a request: none unless it is magnetic."""
    who = [entry.access] if entry.access else []
    if entry.users:
        who.insert(0, f"users {','.join(entry.users)}")
    if "MAGNETIC" not in entry.flags:
        say(f"only jobs that ask for it may use it ({'; '.join(who) or 'no user'}): closed to all others")
        return ()
    if entry.access or any(name.startswith("-") for name in entry.users):
        say(f"whose jobs it attracts is not known here ({'; '.join(who)}): closed to all")
        return ()
    return entry.users


def _names(text: str) -> tuple[str, ...]:
    """Return the names of a list once each: Slurm repeats some."""
    return tuple(dict.fromkeys(filter(None, text.split(","))))


#: Who else may use one, by key.
_ACCESS = {"Accounts": "accounts", "Groups": "groups", "AllowedPartitions": "partitions", "QOS": "qos"}


def _keys(record: Record) -> Mapping[str, str]:
    record.require("name", "node_list", "start_time", "end_time", "users", "flags")
    keys: Mapping[str, str] = WORDS["reservation_keys"]
    return keys


def _figures(entry: Paragraph) -> ReservationFigures:
    return ReservationFigures(
        name=entry.verbatim("ReservationName"),
        nodes=names_in(entry.text("Nodes"), entry.place("Nodes")),
        start=entry.moment("StartTime"),
        end=entry.moment("EndTime"),
        users=_names(entry.text("Users")),
        # A flag may have a value: PURGE_COMP=00:01:00.
        flags=frozenset(flag.partition("=")[0] for flag in _names(entry.text("Flags").upper())),
        cores=entry.count("CoreCnt"),
        access="; ".join(f"{what} {who}" for key, what in _ACCESS.items() if (who := entry.text(key))),
        licenses=entry.text("Licenses"),
        path=entry.path,
    )
