"""``aucsched ibsched`` and ``irtsched``: one party of a negotiation each, each in a process.

What they share comes first: the link, the journal, and a cluster's runtime side. One process may be
the runtime scheduler of several clusters, each with a clock and an ibsched of its own. Nothing is
shared between the clusters but the process: what becomes of one changes nothing for the others.
"""

from __future__ import annotations

import re
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..cluster.errors import AucschedError, InputError, OptionError, system_errors
from ..cluster.option_fields import Option, taken_from
from ..cluster.text import one_line
from ..formats.writing import write_text
from ..simulation.negotiated.negotiation_options import NegotiationOptions
from .built_options import INPUT, INPUT_FILE, OUTPUT, SectionCommand, in_section, is_same_file, record_options
from .groups import option_in
from .negotiate import (
    batch_options,
    check_result_options,
    keep_runs,
    known_runs,
    only_option,
    play_from,
    play_options,
    result_options,
    runtime_options,
    write_result,
)
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
    from ..simulation.negotiated import negotiated_run as run

    check_result_options(options)
    play = play_from(workload, options)
    settings = run.runtime_settings(taken_from(NegotiationOptions, options))
    identity = identity_of("irtsched", play, options, {}, run.batch_settings_in)
    with ExitStack() as stack:
        journal = stack.enter_context(journal_in(identity, run.settings_text(settings), options))
        progress = stack.enter_context(progress_over(len(play.arrivals))) if has_bar else None
        log = run.RunLog()

        def watch(before: Any, happening: Any, after: RuntimeState, sends: Any) -> None:
            log.watch(before, happening, after, sends)
            if progress is not None:
                progress(len(after.machine.done))

        state = RuntimeState(settings=settings, machine=play.machines(settings.parts)[""])
        party = Party(state, machine.step, journal, watch, memory=log, tell=tell)
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
            write_result(log.result(play, run.batch_settings_in(notes), party.state), options)

        yield serve, write


def tell(text: str) -> None:
    """Print a remark on stderr."""
    # Unauthenticated peers cause remarks: a closed stderr must not end the process.
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
    """Return the secret in a file, without the end of its line."""
    if path is None:
        return None
    with system_errors(path), path.open("rb") as file:
        secret = file.read(_SECRET_BYTES + 1).rstrip(b"\r\n")
    if len(secret) > _SECRET_BYTES:
        raise InputError(f"a secret of more than {_SECRET_BYTES} bytes", file=str(path))
    if not secret:
        raise InputError("the file holds no secret", file=str(path))
    return secret


def _tell_who_reads(path: Path | None, tell: Callable[[str], None]) -> None:
    """Tell when others may read or change a secret."""
    with system_errors(path or ""):
        mode = 0 if path is None else path.stat().st_mode
    if mode & _OTHERS:
        text = f"mode {stat.S_IMODE(mode):04o} lets others read or change the secret (chmod 600 ends that)"
        tell(f"{path}: {text}")


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
    try:
        # Not before all options and files are known to be good: a refusal is one line.
        _tell_who_reads(options["secret_file"], tell)
        if isinstance(link, Listener):
            tell(f"{identity.party} listens on {link.address}")
        yield link
    finally:
        link.close()


_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
#: What two clusters may not have alike: where they listen, and the files that they write.
_OWN = ("listen", "output", "trace", "mermaid", "jobs_out", "gantt", "journal")
_STANDARD_OUTPUT = "-"


def serve_clusters(path: Path, command: click.Command) -> int:
    """Serve each cluster of a file in a thread until all have ended; return 1 where one failed.

    Raises:
        InputError: the file, or what it names, cannot be used; nothing was begun then.
        OptionError: an option of a cluster cannot be used.
    """
    from ..formats.reading import read_document
    from ..formats.settings_text import toml_tables

    failed: list[str] = []
    output = threading.Lock()
    with ExitStack() as stack:
        threads = []
        found = read_document(path, lambda content: _clusters(toml_tables(content), command))
        for name, (workload, options) in found.items():
            told = partial(lambda name, text: tell(f"{name}: {text}"), name)
            try:
                side = stack.enter_context(runtime_side(workload, options, told, has_bar=False))
            except OptionError as error:
                raise OptionError(f"{path}: {name}: {error}") from error
            title = f"{name}:" if str(options["output"]) == _STANDARD_OUTPUT else ""
            run = partial(_run, *side, title, output, told, partial(failed.append, name))
            threads.append(threading.Thread(target=run, name=name, daemon=True))
        for thread in threads:
            thread.start()
        for thread in threads:
            # In slices: a signal is heard between them.
            while thread.is_alive():
                thread.join(0.2)
    return 1 if failed else 0


def _run(
    serve: Callable[[], None],
    write: Callable[[], None],
    title: str,
    output: threading.Lock,
    told: Callable[[str], None],
    fail: Callable[[], None],
) -> None:
    """Serve a cluster and write its result once it has ended, below a title on standard output."""
    try:
        serve()
        with output:
            if title:
                click.echo(title)
            write()
    except AucschedError as error:
        fail()
        told(str(error))
    except BaseException:
        fail()
        raise


def _clusters(document: Mapping[str, Any], command: click.Command) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the workload and the options of each cluster, by its name.

    Raises:
        InputError: it has no cluster, or two of them share what each needs of its own.
    """
    common = {key: value for key, value in document.items() if not isinstance(value, dict)}
    tables = {name: table for name, table in document.items() if isinstance(table, dict)}
    if not tables:
        raise InputError("it has no table of a cluster")
    found = {name: _cluster(command, name, table, common) for name, table in tables.items()}
    _check_own({name: options for name, (_, options) in found.items()})
    return found


def _cluster(
    command: click.Command, name: str, table: Mapping[str, Any], common: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Return a cluster's workload and options, as if they had been typed."""
    if not _NAME.fullmatch(name):
        raise InputError(f"{name!r} is not a name of letters, digits, _ and -", path=name)
    workload = table.get("workload")
    if not isinstance(workload, str) or workload == _STANDARD_OUTPUT:
        raise InputError("workload = is needed: a file, or esp", path=name)
    given = dict(_options(command, name, common)) | dict(_options(command, name, table))
    if "journal" in given and "journal" not in table:
        given["journal"] = str(Path(given["journal"]) / name)
    try:
        context = command.make_context(name, [workload], default_map=given)
    except (click.ClickException, AucschedError) as error:
        said = error.format_message() if isinstance(error, click.ClickException) else str(error)
        raise InputError(said, path=name) from error
    options = {key: value for key, value in context.params.items() if key not in ("workload", "clusters")}
    if options["form"] == "json" and str(options["output"]) == _STANDARD_OUTPUT:
        raise InputError("format = json needs an output of its own", path=name)
    return workload, options


def _options(command: click.Command, name: str, table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if key == "clusters":
            raise InputError("a cluster has no clusters", path=f"{name}.{key}")
        if key != "workload":
            yield option_in(command, key, value, name)


def _check_own(found: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse two clusters that listen at one place, or write one file."""
    seen: list[tuple[str, str]] = []
    for option, (name, options) in product(_OWN, found.items()):
        value, key = str(options[option]), option.replace("_", "-")
        if options[option] is None or value == _STANDARD_OUTPUT or value.endswith(":0"):
            continue
        for other, its in seen:
            if other != name and is_same_file(value.removeprefix("unix:"), its):
                raise InputError(f"{value} is {other}'s too: each needs its own", path=f"{name}.{key}")
        seen.append((name, value.removeprefix("unix:")))


@click.command(cls=SectionCommand)
@click.argument("workload", type=INPUT)
@play_options
@batch_options
@link_options
@click.option("--jobs-out", type=OUTPUT, help="CSV with one row for each job.")
def ibsched(workload: str, **options: Any) -> None:
    """Run the batch scheduler of a negotiation with an irtsched process.

    It holds WORKLOAD's queue (esp, or a workload file) and maps it to what irtsched offers. Both
    processes read the same WORKLOAD.
    """
    from ..negotiation.batch import ibsched as machine
    from ..negotiation.batch.batch_state import BatchState
    from ..negotiation.transport.party import Party
    from ..negotiation.transport.serve import serve_batch
    from ..simulation.negotiated.negotiated_report import job_columns_of
    from ..simulation.negotiated.negotiated_run import batch_notes, batch_settings, settings_text
    from ..simulation.report import csv_of

    play = play_from(workload, options)
    settings = batch_settings(play, taken_from(NegotiationOptions, options))
    identity = identity_of("ibsched", play, options, batch_notes(settings))
    known = known_runs(options)
    state = BatchState(settings=settings, arrivals=play.arrivals, known=known)
    begun_with = settings_text(settings) + (f" and {known!r}" if known else "")
    with journal_in(identity, begun_with, options) as journal:
        party = Party(state, machine.step, journal, tell=tell)
        is_new = not party.has_ended
        with link_of(identity, options) as link:
            serve_batch(party, link, tell)
    done = party.state.done
    if is_new:
        keep_runs(play, done, options)
    if options["jobs_out"] is not None:
        write_text(options["jobs_out"], csv_of(job_columns_of(play, done)))
    write_text("-", f"{one_line(play.name)}: {len(done)} of {len(play.arrivals)} jobs are done\n")


@click.command(cls=SectionCommand)
@click.argument("workload", type=INPUT, required=False)
@click.option(
    "--clusters",
    type=INPUT_FILE,
    metavar="FILE",
    help='TOML with a table of options for each of several clusters, WORKLOAD as workload = "..."; '
    "options in front of the tables are for all of them.",
)
@play_options
@runtime_options
@link_options
@result_options
def irtsched(*, workload: str | None, clusters: Path | None, **options: Any) -> int | None:
    """Run the runtime scheduler of a negotiation with an ibsched process.

    It holds WORKLOAD's nodes and running jobs, offers what is idle to ibsched, and prints the
    metrics. Both processes read the same WORKLOAD. The simulated clock is kept here. With
    --clusters one process holds several clusters, each with an ibsched, a clock and a journal of
    its own.
    """
    if clusters is not None:
        only_option("clusters", "its file has them")
        return serve_clusters(clusters, irtsched)
    if workload is None:
        raise OptionError("WORKLOAD or --clusters is needed")
    with runtime_side(workload, options, tell) as (serve, write):
        serve()
    write()
    return None
