"""``aucsched topology``: describes a network and draws it."""

from pathlib import Path

import click

from ..cluster.errors import errors_in
from .built_options import INPUT
from .outputs import Output, output_options, plot_option


@click.command()
@click.argument("topology", metavar="TOPOLOGY", type=INPUT)
@plot_option("Picture of the network: nodes by leaf group, and their order")
@output_options
def topology(topology: str, plot: Path | None, out: Output) -> None:
    """Check a network as a graph and describe it: levels, groups, distances, the order of its nodes.

    TOPOLOGY is topology.conf, topology.yaml, scontrol show topology, a snapshot or workload, the
    topology member of one, GraphML, node-link JSON (- for standard input); or torus:16x8x8,
    dragonfly:9x4x2x2 (groups, routers of each, nodes and global links of a router), fat-tree:3x16
    (levels, radix), blocks:8x18 (blocks, nodes of each).
    """
    from ..auction.explain.network_levels import network_document, network_report, render_network
    from ..formats.notes import Notes
    from ..slurm.answers.topology_any import load_topology
    from .outputs import tell

    notes = Notes()
    with errors_in(topology):
        named = load_topology(topology, None, notes)
        report = network_report(named.names, named.laid.switches, named.laid.network)
    tell(notes.summary())
    if plot is not None:
        from ..reports.machine_picture import draw_network

        draw_network(report, plot)
    out.write(lambda: network_document(report), lambda console: render_network(report, console))
