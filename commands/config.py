"""``aucsched --config FILE``: options from TOML, one table for each command; the command line wins."""

from collections.abc import Mapping
from typing import Any

import click

from ..cluster.errors import InputError, OptionError
from ..cluster.text import meant_or_known


def read_config(root: click.Group, context: click.Context, path: str) -> dict[str, Any]:
    """Return the defaults that a file gives to commands, as click keeps them.

    Raises:
        InputError: the file cannot be read, is no TOML, or names a command or an option there is not.
    """
    from ..formats.reading import read_document
    from ..formats.settings_text import toml_tables

    return read_document(path, lambda content: _defaults(root, context, toml_tables(content), ""))


def _defaults(
    group: click.Group, context: click.Context, tables: Mapping[str, Any], where: str
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, table in tables.items():
        path = f"{where}{name}"
        command = group.get_command(context, name)
        if command is None:
            raise InputError(f"no command{meant_or_known(name, group.list_commands(context))}", path=path)
        if not isinstance(table, dict):
            raise InputError(f"{table!r} is not a table of options", path=path)
        if isinstance(command, click.Group):
            found[name] = _defaults(command, context, table, f"{path}.")
        else:
            found[name] = dict(option_in(command, key, value, path) for key, value in table.items())
    return found


def option_in(command: click.Command, key: str, value: Any, where: str) -> tuple[str, Any]:
    """Return an option's parameter and value as if it had been typed."""
    known = {
        flag.removeprefix("--"): one
        for one in command.params
        if isinstance(one, click.Option)
        for flag in one.opts
        if flag.startswith("--")
    }
    path = f"{where}.{key}"
    name = getattr(command, "current_name", str)(key.replace("_", "-"))
    found = known.get(name)
    if found is None or found.name is None:
        raise InputError(f"no option{meant_or_known(key, known)}", path=path)
    if isinstance(value, dict) or (isinstance(value, bool) and not found.is_flag):
        raise InputError(f"{value!r} is not a value of --{name}", path=path)
    if found.is_flag and not isinstance(value, bool):
        raise InputError(f"{value!r} is neither true nor false", path=path)
    if isinstance(found.type, type(click.INT)) and isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, list) != found.multiple:
        value = [value] if found.multiple else ",".join(map(str, value))
    try:
        # A file need not be there before its command runs, which names it.
        if not (found.is_flag or isinstance(found.type, click.Path)):
            typed = list(map(str, value)) if found.multiple else str(value)
            found.process_value(click.Context(command), typed)
    except (click.BadParameter, OptionError) as error:
        raise InputError(str(error).removeprefix(f"{found.name}: "), path=path) from error
    return found.name, value
