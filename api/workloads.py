"""A log's jobs on nodes, from Python."""

from __future__ import annotations

from pathlib import Path

from ..cluster.workload import ClusterWorkload
from ..formats.swf import SwfLog, read_swf
from ..simulation.workloads.from_swf import workload_of_log
from ..simulation.workloads.named_clusters import EvenCluster


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

    Examples:
        >>> import aucsched
        >>> log = aucsched.parse_swf(b"; MaxProcs: 4\n1 0 -1 10 3 -1 -1 3 10\n")
        >>> workload_from_swf(log, nodes=2, cores=2).jobs[0].job.request.cores
        3
    """
    read = log if isinstance(log, SwfLog) else read_swf(log)
    name = "log" if isinstance(log, SwfLog) else Path(log).name
    tree = {"tree": False} if leaf_nodes is None else {"tree": True, "leaf_nodes": leaf_nodes}
    cluster = EvenCluster(nodes=nodes, cores=cores, gpus=gpus, **tree)
    return workload_of_log(name, read, cluster.empty())[0]
