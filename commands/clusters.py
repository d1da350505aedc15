"""One process that is the runtime scheduler of several clusters, each with a clock and an ibsched of its own.

Nothing is shared between the clusters but the process: what becomes of one changes nothing for the others.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from ..cluster.errors import AucschedError, InputError, OptionError
from .config import option_in
from .party_links import RuntimeSide, runtime_side, tell

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
#: What two clusters may not have alike: where they listen, and the files that they write.
_OWN = ("listen", "output", "trace", "mermaid", "jobs_out", "gantt", "journal")
_STANDARD_OUTPUT = "-"


def only_option(context: click.Context, name: str) -> None:
    """Refuse what is typed or configured beside an option that stands for all others.

    Raises:
        OptionError: something is.
    """
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name != name and source not in (ParameterSource.DEFAULT, None):
            shown = parameter.opts[0] if isinstance(parameter, click.Option) else "WORKLOAD"
            raise OptionError(f"--{name} cannot be combined with {shown}: its file has them")


def serve_clusters(path: Path, command: click.Command) -> int:
    """Serve each cluster of a file in a thread until all have ended; return 1 where one failed.

    Raises:
        InputError: the file, or what it names, cannot be used; nothing was begun then.
        OptionError: an option of a cluster cannot be used.
    """
    from ..formats.reading import read_document
    from ..formats.tomltext import toml_tables

    failed: list[str] = []
    output = threading.Lock()
    with ExitStack() as stack:
        threads = []
        found = read_document(path, lambda content: _clusters(toml_tables(content), command))
        for name, (workload, options) in found.items():
            told = partial(_tell_of, name)
            try:
                side = stack.enter_context(runtime_side(workload, options, told, has_bar=False))
            except OptionError as error:
                raise OptionError(f"{path}: {name}: {error}") from error
            run = partial(_run, name, side, failed, output)
            threads.append(threading.Thread(target=run, name=name, daemon=True))
        for thread in threads:
            thread.start()
        for thread in threads:
            # In slices: a signal is heard between them.
            while thread.is_alive():
                thread.join(0.2)
    return 1 if failed else 0


def _tell_of(name: str, text: str) -> None:
    tell(f"{name}: {text}")


def _run(name: str, side: RuntimeSide, failed: list[str], output: threading.Lock) -> None:
    """Serve a cluster and write its result as soon as it has ended."""
    try:
        side.serve()
        with output:
            if str(side.options["output"]) == _STANDARD_OUTPUT:
                click.echo(f"{name}:")
            side.write()
    except AucschedError as error:
        failed.append(name)
        side.tell(str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}")
    except BaseException:
        failed.append(name)
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
    except click.ClickException as error:
        raise InputError(error.format_message(), path=name) from error
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
    for option in _OWN:
        seen: dict[str, str] = {}
        for name, options in found.items():
            value = options[option]
            if value is None or str(value) == _STANDARD_OUTPUT or str(value).endswith(":0"):
                continue
            other = seen.setdefault(str(value), name)
            if other != name:
                key = option.replace("_", "-")
                raise InputError(f"{value} is {other}'s too: each needs its own", path=f"{name}.{key}")
