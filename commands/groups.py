"""Groups of commands: help on standard output where nothing is asked for, a suggestion for a slip.

Also ``aucsched --config FILE``: options from TOML, a table for each command; the command line wins.
"""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

import click
from click._textwrap import TextWrapper
from click.core import ParameterSource

from ..cluster.errors import InputError, OptionError, shown_name
from ..cluster.option_fields import flag_of, numbers_text
from ..cluster.text import did_you_mean, meant_or_known

# Click breaks lines within --work-limit: an option is one word.
TextWrapper.wordsep_re = TextWrapper.wordsep_simple_re


class HelpGroup(click.Group):
    """A group that prints its help when called alone and suggests what a mistyped command meant."""

    #: A line of the help for each command, where it is known without importing it.
    lines: Mapping[str, str] = MappingProxyType({})

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; without any print the help and be done."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error of a value that ``--config`` gave names its file."""
        try:
            return super().invoke(ctx)
        except OptionError as error:
            called, said = ctx.invoked_subcommand or "", str(error)
            # What was typed is read once more: the command's own context is gone.
            command, typed = self.get_command(ctx, called), ctx.meta[__name__]
            for name in (ctx.default_map or {}).get(called) or ():
                key = flag_of(name)
                if not (command and said.startswith((f"{name}:", f"{key}:", f"{key} "))):
                    continue
                read = command.make_context(called, [*typed], ctx, resilient_parsing=True)
                if read.get_parameter_source(name) is ParameterSource.DEFAULT_MAP:
                    path = ".".join((*ctx.command_path.split()[1:], called, key.removeprefix("--")))
                    config = shown_name(ctx.find_root().params["config"])
                    raise InputError(said, path=path, file=config) from error
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the commands, each with its whole sentence: click cuts it after a line."""
        names = {name: one.get_short_help_str(200) for name, one in sorted(self.commands.items())}
        with formatter.section("Commands"):
            formatter.write_dl(list((self.lines or names).items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is named.

        Raises:
            click.UsageError: there is none, or it is something else that looks like one.
        """
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            meant = did_you_mean(name, self.list_commands(ctx), 2) or "."
            raise click.UsageError(
                f"no such command '{name}'{meant} {ctx.command_path} --help lists them.", ctx
            )
        ctx.meta[__name__] = args[1:]
        return super().resolve_command(ctx, args)


class LazyGroup(HelpGroup):
    """A group that imports its commands when called; ``--help`` reads their lines from a table.

    Args:
        table: where each command stands and its line, in the order of the help: a module that is
            named like the command, or ``module:command``.
        package: the package that the modules are below.
    """

    def __init__(self, *, table: Mapping[str, str], package: str, **given: Any) -> None:
        super().__init__(**given)
        self.lines = {place.replace(":", ".").rpartition(".")[2]: line for place, line in table.items()}
        self._modules = dict(zip(self.lines, (place.partition(":")[0] for place in table), strict=True))
        self._package = package

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the commands' names in the order of the table."""
        return list(self.lines)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import and return a command, None when there is none of that name."""
        if cmd_name not in self._modules:
            return None
        module = import_module(f"{self._package}.{self._modules[cmd_name]}")
        command: click.Command = getattr(module, cmd_name)
        return command


def read_config(root: click.Group, context: click.Context, path: str) -> dict[str, Any]:
    """Return the defaults that a file gives to commands, as click keeps them.

    Raises:
        InputError: the file cannot be read, is no TOML, or names an unknown command or option.
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
    # A table gives numbers by name; the option says what is typed between them.
    _, _, between = (found.metavar or "").partition("NAME=NUMBER")
    if between and isinstance(value, dict | list):
        several = value if isinstance(value, list) else [value]
        value = ",".join(numbers_text(one, between[0]) for one in several)
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
        raise InputError(str(error), path=path) from error
    return found.name, value
