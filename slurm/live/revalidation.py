"""The cluster a moment later, in few words: is a plan's job still as it was, and are its nodes still free?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ...cluster.errors import InputError
from ...formats.hostlist import expand
from ..answers.live import Ask, Command
from ..answers.pending_jobs import array_tasks

JOBS: Command = ("squeue", "-h", "-a", "-t", "all", "-o", "%i|%T|%N|%n|%W")
NODES: Command = ("sinfo", "-h", "-a", "-N", "-o", "%N|%t|%C")
_ARRAY = re.compile(r"(\d+)_\[(.*?)(?:%\d+)?\]")
_NOTHING = {"", "(null)", "N/A"}
#: States in which a node takes jobs; a mark behind one, as of idle*, says that it does not.
_USABLE = {"idle", "mix", "alloc", "comp", "resv", "plnd"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """What a job is at a moment.

    Attributes:
        state: Slurm's word, ``PENDING``.
        nodes, required: where it runs, and the nodes it must have; hostlists.
    """

    state: str
    nodes: str
    required: str
    licenses: str

    def is_on(self, nodes: tuple[str, ...]) -> bool:
        """Whether it holds exactly these nodes."""
        return bool(self.nodes) and set(expand(self.nodes)) == set(nodes)

    def must_have(self, nodes: tuple[str, ...]) -> bool:
        """Whether it waits for exactly these nodes."""
        return bool(self.required) and set(expand(self.required)) == set(nodes)


def jobs_now(ask: Ask) -> Mapping[str, Now]:
    """Return the jobs by id, waiting tasks of an array each by its own.

    Raises:
        InputError: squeue fails, or prints what is not known.
    """
    found: dict[str, Now] = {}
    for number, line in enumerate(ask(JOBS).decode(errors="replace").splitlines(), 1):
        name, *rest = line.split("|", 4)
        if len(rest) != 4:  # noqa: PLR2004 - as many as were asked for
            raise InputError(f"{line[:60]!r} is not what was asked for", path=f"line {number}", file="squeue")
        state, nodes, required, licenses = ("" if text in _NOTHING else text for text in rest)
        now = Now(state=state, nodes=nodes, required=required, licenses=licenses)
        match = _ARRAY.fullmatch(name)
        tasks = array_tasks(match[2], f"line {number}") if match else ()
        found.update(dict.fromkeys([f"{match[1]}_{task}" for task in tasks] if match else [name], now))
    return found


def idle_now(ask: Ask) -> dict[str, int]:
    """Return the idle CPUs of each node that takes jobs.

    Raises:
        InputError: sinfo fails, or prints what is not known.
    """
    found: dict[str, int] = {}
    for number, line in enumerate(ask(NODES).decode(errors="replace").splitlines(), 1):
        parts = line.split("|")
        counts = parts[-1].split("/")
        if len(parts) != 3 or len(counts) != 4 or not counts[1].isdigit():  # noqa: PLR2004 - as asked for
            raise InputError(f"{line[:60]!r} is not what was asked for", path=f"line {number}", file="sinfo")
        if parts[1] in _USABLE:
            found[parts[0]] = int(counts[1])
    return found
