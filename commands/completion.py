"""``aucsched completion``: the script that lets a shell complete commands, options and their values."""

import click
from click.shell_completion import get_completion_class

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
