"""A snapshot from Slurm, from Python."""

from __future__ import annotations

from pathlib import Path

from ..cluster.snapshot import Snapshot
from ..slurm.answers.live import SlurmFiles, collect
from ..slurm.answers.snapshot_of_answers import import_slurm


def snapshot_from_slurm(
    *,
    time: float | None = None,
    schedule_held: bool = False,
    **files: str | Path | None,
) -> Snapshot:
    """Return a snapshot of a live cluster, or of Slurm's saved output (21.08 to 26.05).

    Args:
        time: of the snapshot, in seconds since the epoch; None: the last scheduling pass.
        schedule_held: schedule jobs that were held by hand, with their saved priorities, those without one
            behind all others.
        files: plain or gzip, of ``jobs`` (squeue --json), ``nodes`` (scontrol show nodes --json, or 22.05's
            sinfo --json), ``topology``, ``job_detail`` (scontrol -d show job), ``licenses``,
            ``partitions``, ``reservations``, ``limits``, ``conf`` (scontrol show config), ``priorities``
            (sprio); for files not given the commands are run.

    Returns:
        The snapshot; ``notes`` and each job's ``unsupported`` say what it could not express.

    Raises:
        InputError: a file cannot be read, or Slurm does not answer; names the file or the command.
        OptionError: two of the files are standard input.

    Examples:
        >>> snapshot_from_slurm(jobs="no-such-file.json", nodes="neither.json")
        Traceback (most recent call last):
            ...
        aucsched.cluster.errors.InputError: no-such-file.json: No such file or directory
    """
    names = {name: None if path is None else str(path) for name, path in files.items()}
    sources, notes = collect(SlurmFiles(**names))
    made, _ = import_slurm(sources, time=time, schedule_held=schedule_held, notes=notes)
    return made
