"""``aucsched man`` and ``completion``: for the shell, made of the same options as ``--help``."""

from collections.abc import Iterator
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from ..cluster.errors import system_errors
from ..cluster.text import one_line, plural

#: A page's width where help is laid out (characters).
_WIDTH = 78


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.pass_context
def man(context: click.Context, folder: Path) -> None:
    """Write the man pages into a folder.

    man FOLDER/aucsched-schedule.1 reads one.
    """
    from ..formats.writing import write_text

    with system_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    found = man_pages(context.find_root().command)
    for name, text in found.items():
        write_text(folder / name, text)
    click.echo(f"{plural(len(found), 'page')} written to {one_line(str(folder))}")


def walked(command: click.Command, path: str, parent: click.Context | None = None) -> Iterator[click.Context]:
    """Yield a context for a command and each below it."""
    name = path.rsplit(" ", 1)[-1]
    context = click.Context(
        command, info_name=name, parent=parent, terminal_width=_WIDTH, **command.context_settings
    )
    yield context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from walked(below, f"{path} {name}", context)


def man_pages(root: click.Command) -> dict[str, str]:
    """Return a man page (section 1, roff) of each command, by file name."""
    return {
        f"{context.command_path.replace(' ', '-')}.1": _man_page(context)
        for context in walked(root, "aucsched")
    }


def _man_page(context: click.Context) -> str:
    command, name = context.command, context.command_path.replace(" ", "-")
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [
        f'.TH "{name.upper()}" "1" "" "aucsched" "aucsched"',
        ".SH NAME",
        f"{_roff(name)} \\- {_roff(command.get_short_help_str(200))}",
        ".SH SYNOPSIS",
        f"\\fB{_roff(context.command_path)}\\fR {_roff(usage)}",
        ".SH DESCRIPTION",
        *(_roff(line.strip()) or ".PP" for line in (command.help or "").replace("\b", "").splitlines()),
    ]
    records = filter(None, (one.get_help_record(context) for one in command.get_params(context)))
    options = [line for flag, said in records for line in (".TP", f"\\fB{_roff(flag)}\\fR", _roff(said))]
    lines += [".SH OPTIONS", *options] if options else []
    if isinstance(command, click.Group):
        lines.append(".SH COMMANDS")
        for below in command.list_commands(context):
            lines += [".TP", f"\\fB{_roff(name)}\\-{_roff(below)}\\fR(1)"]
    return "\n".join(lines) + "\n"


def _roff(text: str) -> str:
    """Return a text as roff reads it: no command, no escape, minus signs that can be copied."""
    safe = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{safe}" if safe.startswith((".", "'")) else safe


#: The variable through which the script asks; click derives the same from the command's name.
_VARIABLE = "_AUCSCHED_COMPLETE"


@click.command()
@click.argument("shell", metavar="bash|zsh|fish", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell, to be read at its start.

    \b
    bash:  eval "$(aucsched completion bash)"                   in ~/.bashrc
    zsh:   eval "$(aucsched completion zsh)"                    in ~/.zshrc
    fish:  aucsched completion fish > ~/.config/fish/completions/aucsched.fish
    """  # noqa: D301 - click reads the \b
    root = context.find_root()
    writer = get_completion_class(shell)
    if writer is None:
        raise click.UsageError(f"click knows no completion for {shell}")
    script = writer(root.command, {}, root.info_name or "aucsched", _VARIABLE)
    # Not source(): for bash it would start a bash to look at its version.
    click.echo(script.source_template % script.source_vars(), nl=False)
