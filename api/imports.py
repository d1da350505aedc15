"""From Python: a log's jobs on nodes, a snapshot from Slurm."""

from pathlib import Path

from ..cluster.keywords import checked, refuses_unknown, whole
from ..cluster.snapshot import MAX_NODES, Snapshot
from ..cluster.workload import ClusterWorkload
from ..formats.swf import SwfLog, load_swf
from ..simulation.workloads.imported import workload_of_log
from ..simulation.workloads.named_clusters import LEAF_NODES, EvenCluster
from ..slurm.answers.live import collect
from ..slurm.answers.slurm_files import SlurmFiles
from ..slurm.answers.snapshot_of_answers import import_slurm


@refuses_unknown
def workload_from_swf(
    log: SwfLog | str | Path, *, nodes: int, cores: int, gpus: int = 0, leaf_nodes: int | None = None
) -> ClusterWorkload:
    r"""Put a log's jobs on equal nodes, so that auctions run on it.

    Args:
        log: what ``load_swf`` returns, or a file.
        nodes: number of nodes.
        cores: number on each node.
        gpus: number on each node.
        leaf_nodes: nodes below a leaf switch; None: no switches.

    Returns:
        The workload: processors are cores, which spread freely over nodes; ``notes`` says what was left out.

    Raises:
        InputError: the file cannot be read, or no job is left.
        OptionError: a number is out of its range.

    Examples:
        >>> import aucsched
        >>> log = aucsched.parse_swf(b"; MaxProcs: 4\n1 0 -1 10 3 -1 -1 3 10\n")
        >>> workload_from_swf(log, nodes=2, cores=2).jobs[0].job.request.cores
        3
    """
    read = log if isinstance(log, SwfLog) else load_swf(log)
    name = "log" if isinstance(log, SwfLog) else Path(log).name
    cluster = EvenCluster(
        nodes=whole("nodes", nodes, 1, MAX_NODES),
        cores=whole("cores", cores, 1, 10**6),
        gpus=whole("gpus", gpus, 0, 1000),
        tree=leaf_nodes is not None,
        leaf_nodes=LEAF_NODES if leaf_nodes is None else whole("leaf_nodes", leaf_nodes, 1, MAX_NODES),
    )
    return workload_of_log(name, read, cluster.empty())[0]


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
            ``partitions``, ``reservations``, ``limits``, ``conf`` (scontrol show config),
            ``priorities`` (sprio); for files not given the commands are run.

    Returns:
        The snapshot; ``notes`` and each job's ``unsupported`` say what it could not express.

    Raises:
        InputError: a file cannot be read, or Slurm does not answer; names the file or the command.
        OptionError: there is no such file, or two of the files are standard input.

    Examples:
        >>> snapshot_from_slurm(jobs="no-such-file.json", nodes="neither.json")
        Traceback (most recent call last):
            ...
        aucsched.cluster.errors.InputError: no-such-file.json: No such file or directory
    """
    names = {name: None if path is None else str(path) for name, path in files.items()}
    sources, notes = collect(SlurmFiles(**checked(names, SlurmFiles, "snapshot_from_slurm")))
    made, _ = import_slurm(sources, time=time, schedule_held=schedule_held, notes=notes)
    return made
