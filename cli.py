"""The command line: one thin command per use, each in the room it drives.

Commands load on first use, so that ``aucsched --help`` costs no numpy and no solver. Every error
becomes one line on stderr and an exit code: 0 done, 1 failed, 2 bad usage or bad input.
"""

import gc
import os
import sys
import warnings
from time import perf_counter, process_time
from typing import Any

import click

from . import __version__
from .cluster.errors import AucschedError, InputError, OptionError
from .commands.built_options import INPUT
from .commands.groups import LazyGroup, read_config
from .commands.outputs import say
from .commands.streams import OutputLostError, give_up_output, prepare_streams

#: Where each command stands here (and its name, where not its file's) -> its help's first line.
COMMANDS = {
    "commands.schedule": "Run one auction over a snapshot and print who starts where.",
    "commands.schedule:explain": "Say why one job starts or waits, and what it bid on.",
    "commands.snapshot:check": "Read a snapshot, check it, and report what it holds.",
    "commands.schedule:compare": "Compare the auction with first-fit by priority and Slurm's own plan.",
    "commands.schedule:plan": "Plan a snapshot: when and where each of its jobs will start.",
    "commands.history:forecast": "Say when pending jobs will start: P10, P50 and P90 of each.",
    "commands.evolve": "Serve running jobs' requests for more resources, then start the queue.",
    "commands.negotiate": "Let the batch scheduler and the runtime scheduler negotiate.",
    "commands.parties:ibsched": "Run the batch scheduler of a negotiation with an irtsched process.",
    "commands.parties:irtsched": "Run the runtime scheduler of a negotiation with an ibsched process.",
    "commands.evolve:dynsched": "Answer running applications that ask for more cores.",
    "commands.snapshot:schema": "Print the JSON Schema of a snapshot, workload, schedule or plan.",
    "commands.examples": "List or copy the bundled examples; make the benchmarks' snapshots.",
    "commands.shell:man": "Write the man pages into a folder.",
    "commands.shell:completion": "Print the completion script of a shell, to be read at its start.",
    "commands.snapshot": "Make a snapshot of a live cluster or of its saved output.",
    "commands.slurm": "Schedule a live Slurm from outside: watch it, run behind a gate, hand back.",
    "commands.snapshot:topology": "Check a network as a graph; describe it and draw it.",
    "commands.history:gain": "Compare a site's history with backfill and the auction on the same jobs.",
    "commands.simulate": "Simulate a log under a policy and print the metrics.",
    "commands.simulate:board": "Compare published policies and ours on a log.",
    "commands.sweep": "Run every combination of options in parallel; can be resumed.",
    "commands.winners": "Determine the winning bids of a file, with a bound and prices of items.",
    "commands.workload": "Describe logs; make and import workloads.",
}


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    package=__package__,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="aucsched")
@click.option(
    "--config",
    type=INPUT,
    help="TOML file of options, with a table for each command: [schedule] window = 50.",
)
@click.pass_context
def cli(context: click.Context, config: str | None) -> None:
    """Schedule an HPC queue by auction: jobs bid on nodes, an integer program picks the winners."""
    if config is not None:
        context.default_map = read_config(cli, context, config)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code; 1 where standard output takes nothing."""
    # Arrays of an auction are small: further threads of numpy's would only wait for work, busily.
    if "OMP_NUM_THREADS" not in os.environ:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    prepare_streams()
    # What the process has done so far, loading most of all, is part of a command's time limit.
    began = perf_counter() - process_time() if arguments is None else None
    try:
        code = run(arguments, began)
        sys.stdout.flush()
    except OutputLostError as error:
        give_up_output()
        if str(error):
            say(f"aucsched: standard output: {error}")
        code = 1
    # A last search for cycles in all that was read takes 0.2 s on a large cluster.
    gc.freeze()
    sys.exit(code)


def run(arguments: list[str] | None = None, began: float | None = None) -> int:
    """Run the command line and return its exit code; errors become one line on stderr.

    ``began``: since when time limits count (``perf_counter``, seconds); None: the command's start.
    """
    # What Python code is warned of is one line here.
    setattr(warnings, "showwarning", _say_warning)  # noqa: B010 - its parameters do not matter here
    try:
        result: Any = cli.main(args=arguments, prog_name="aucsched", standalone_mode=False, obj=began)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (click.exceptions.Abort, click.ClickException, AucschedError) as error:
        message, code = _explained(error)
        say(message)
        return code
    return result if isinstance(result, int) else 0


def _say_warning(message: Warning | str, *_where: Any, **_line: Any) -> None:
    say(f"aucsched: {message}")


def _explained(error: Exception) -> tuple[str, int]:
    """Return an error's one line and exit code."""
    if isinstance(error, InputError):
        return str(error), 2
    if isinstance(error, click.ClickException):
        return f"aucsched: {error.format_message()}", 2
    if isinstance(error, AucschedError):
        return f"aucsched: {error}", 2 if isinstance(error, OptionError) else 1
    return "aucsched: interrupted", 1
