"""``aucsched ibsched`` and ``aucsched irtsched``: one party of a negotiation each, each in a process.

One process may be the runtime scheduler of several clusters, each with a clock and an ibsched of its own.
Nothing is shared between the clusters but the process: what becomes of one changes nothing for the others.
"""

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import click

from ..cluster.errors import AucschedError, InputError, OptionError
from ..cluster.option_fields import taken_from
from ..cluster.text import one_line
from ..simulation.negotiated.negotiation_options import NegotiationOptions
from .built_options import INPUT, INPUT_FILE, OUTPUT, SectionCommand, is_same_file
from .config import option_in
from .negotiate import (
    batch_options,
    keep_runs,
    known_runs,
    only_option,
    play_from,
    play_options,
    result_options,
    runtime_options,
)
from .party_links import identity_of, journal_in, link_of, link_options, runtime_side, tell

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
        raise InputError(f"{name!r} is no name of letters, digits, _ and -", path=name)
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


@click.command(
    cls=SectionCommand, short_help="Run the batch scheduler of a negotiation with an irtsched process."
)
@click.argument("workload", type=INPUT)
@play_options
@batch_options
@link_options
@click.option("--jobs-out", type=OUTPUT, help="CSV with one row for each job.")
def ibsched(workload: str, **options: Any) -> None:
    """Hold WORKLOAD's queue (esp, or a workload file) and map it to what irtsched offers.

    Both processes read the same WORKLOAD.
    """
    from ..formats.writing import write_text
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


@click.command(
    cls=SectionCommand, short_help="Run the runtime scheduler of a negotiation with an ibsched process."
)
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
    """Hold WORKLOAD's nodes and its running jobs, offer what is idle to ibsched, and print the metrics.

    Both processes read the same WORKLOAD. The simulated clock is kept here. With --clusters one
    process holds several clusters, each with an ibsched, a clock and a journal of its own.
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
