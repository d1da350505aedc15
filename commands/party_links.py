"""What the processes of a negotiation share: the link, the journal, and a cluster's runtime side."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..cluster.errors import InputError, OptionError, system_errors
from ..cluster.option_fields import Option, taken_from
from ..simulation.negotiated.negotiation_options import NegotiationOptions
from .built_options import INPUT_FILE, in_section, record_options
from .negotiate import check_result_options, play_from, write_result
from .outputs import progress_over, say

if TYPE_CHECKING:
    from ..negotiation.transport.handshake import Hello, Identity, PartyName
    from ..negotiation.transport.listener import Link
    from ..negotiation.transport.party import PartyJournal
    from ..simulation.negotiated.plays import Play

_MIB = 2**20
#: The longest secret, in bytes: more is another file, or a device without end.
_SECRET_BYTES = 4096
#: The bits of a mode that let a group or everybody read or write.
_OTHERS = stat.S_IRGRP | stat.S_IWGRP | stat.S_IROTH | stat.S_IWOTH


@dataclass(kw_only=True)
class LinkOptions:
    """How two parties meet, and what outlives one."""

    listen: Option[str | None] = Option(
        "Address to listen on for the other party: unix:PATH, HOST:PORT, [IPv6]:PORT.", unit="ADDRESS"
    )
    connect: Option[str | None] = Option("Address on which the other party listens.", unit="ADDRESS")
    secret_file: Option[Path | None] = Option(
        "Shared secret of both parties; needed to listen where other machines connect."
    )
    journal: Option[Path | None] = Option(
        "Folder of the journal, from which a killed process resumes.", unit="DIR"
    )
    checkpoint: Option[int] = Option(
        "Entries after which a journal begins again with the state that they led to; 0: never.",
        default=1000,
        low=0,
        high=10**9,
        unit="ENTRIES",
    )
    timeout: Option[float] = Option(
        "Longest silence of the other party, in seconds, while its message is due.", default=60.0, low=0
    )
    wait: Option[float] = Option(
        "Longest time without a connection to the other party, in seconds.",
        default=60.0,
        low=0,
        includes_low=True,
    )
    max_mib: Option[int] = Option("Size limit of a message, in MiB.", default=16, low=1, high=4095)


_PATHS: dict[str, dict[str, Any]] = {
    "secret_file": {"type": INPUT_FILE},
    "journal": {"type": click.Path(file_okay=False, path_type=Path)},
}
link_options = in_section("Link to the other party", record_options(LinkOptions, more=_PATHS))


@contextmanager
def runtime_side(
    workload: str, options: dict[str, Any], tell: Callable[[str], None], *, has_bar: bool = True
) -> Iterator[tuple[Callable[[], None], Callable[[], None]]]:
    """Give a cluster's runtime scheduler as its journal left it, listening or about to connect.

    It is two functions: one negotiates until the batch scheduler ends it, one writes the result
    where the options say.
    """
    from ..negotiation.runtime import irtsched as machine
    from ..negotiation.runtime.irtsched import RuntimeState
    from ..negotiation.transport.party import Party
    from ..negotiation.transport.serve import serve_runtime
    from ..simulation.negotiated.negotiated_run import (
        RunLog,
        batch_settings_in,
        runtime_settings,
        settings_text,
    )

    check_result_options(options)
    play = play_from(workload, options)
    settings = runtime_settings(taken_from(NegotiationOptions, options))
    identity = identity_of("irtsched", play, options, {}, batch_settings_in)
    with ExitStack() as stack:
        journal = stack.enter_context(journal_in(identity, settings_text(settings), options))
        progress = stack.enter_context(progress_over(len(play.arrivals))) if has_bar else None
        log = RunLog(progress)
        state = RuntimeState(settings=settings, machine=play.machines(settings.parts)[""])
        party = Party(state, machine.step, journal, log.watch, memory=log, tell=tell)
        notes = dict(journal.notes if journal is not None else {})
        # Without a link its journal says that all has ended.
        link = None if party.has_ended else stack.enter_context(link_of(identity, options, tell))

        def meet(hello: Hello) -> None:
            notes.update(hello.notes)
            if journal is not None:
                journal.note(hello.notes)

        def serve() -> None:
            if link is not None:
                serve_runtime(party, link, tell, meet)

        def write() -> None:
            write_result(log.result(play, batch_settings_in(notes), party.state), options)

        yield serve, write


def tell(text: str) -> None:
    """Print a remark on stderr."""
    # Unauthenticated peers cause remarks: that nobody reads stderr any more must not end the process.
    with suppress(OSError):
        say(f"aucsched: {text}")


def identity_of(
    party: PartyName,
    play: Play,
    options: dict[str, Any],
    notes: Mapping[str, str],
    check_notes: Callable[[Mapping[str, str]], object] | None = None,
) -> Identity:
    """Return what a party says of itself when it meets the other."""
    from ..negotiation.transport.handshake import Identity
    from ..simulation.negotiated.negotiated_run import terms_of

    # Before the secret draws a remark: a refusal is one line.
    if (options["listen"] is None) == (options["connect"] is None):
        raise OptionError("give one of --listen and --connect")
    return Identity(
        party=party,
        terms=terms_of(play, options["urgent"] or "suspend"),
        notes=dict(notes),
        secret=secret_in(options["secret_file"]),
        check_notes=check_notes,
    )


def secret_in(path: Path | None) -> bytes | None:
    """Return the secret in a file, without the end of its line; tell when others may read or change it."""
    if path is None:
        return None
    with system_errors(path), path.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        secret = file.read(_SECRET_BYTES + 1).rstrip(b"\r\n")
    if len(secret) > _SECRET_BYTES:
        raise InputError(f"a secret of more than {_SECRET_BYTES} bytes", file=str(path))
    if not secret:
        raise InputError("the file holds no secret", file=str(path))
    if mode & _OTHERS:
        text = f"mode {stat.S_IMODE(mode):04o} lets others read or change the secret (chmod 600 ends that)"
        tell(f"{path}: {text}")
    return secret


@contextmanager
def journal_in(identity: Identity, settings: str, options: dict[str, Any]) -> Iterator[PartyJournal | None]:
    """Give the party's journal, None where none is asked for."""
    from ..negotiation.transport.party import PartyJournal

    folder: Path | None = options["journal"]
    if folder is None:
        yield None
        return
    with system_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    begun_with = {"party": identity.party, **identity.terms, "settings": settings}
    path = folder / f"{identity.party}.journal"
    entries = taken_from(LinkOptions, options).checkpoint
    with PartyJournal(path, begun_with, checkpoint_entries=entries) as journal:
        yield journal


@contextmanager
def link_of(
    identity: Identity, options: dict[str, Any], tell: Callable[[str], None] = tell
) -> Iterator[Link]:
    """Give the way to the other party."""
    from ..negotiation.transport.link import Connector, LinkLimits, address_of
    from ..negotiation.transport.listener import Listener

    given = taken_from(LinkOptions, options)
    limits = LinkLimits(timeout_s=given.timeout, wait_s=given.wait, message_bytes=given.max_mib * _MIB)
    listen, connect = options["listen"], options["connect"]
    link: Link
    if listen is None:
        link = Connector(address_of(connect), identity, limits)
    else:
        link = Listener(address_of(listen), identity, limits, tell)
        tell(f"{identity.party} listens on {link.address}")
    try:
        yield link
    finally:
        link.close()
