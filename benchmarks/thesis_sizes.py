"""Print the sizes of the four programs beside tables 3.2, 3.3, 4.2, 4.3 and 8.1 of Soner's thesis.

    python benchmarks/thesis_sizes.py examples/thesis/sixteen-nodes.json

The thesis counts |J| jobs, |N| nodes, |B| bids and Σ|N_c| nodes of all bids. Ours differ: c_j of IPSCHED is
no variable ((3.5) stands in the objective), x and t are made for nodes that a job may use only, (4.4) is
a row of each bid and (4.7) of each node of a bid, rows that bind nobody are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from aucsched import Snapshot, load_snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """A program's size, ours and as the thesis counts it.

    Attributes:
        variables, constraints: of the program that was built.
        thesis_variables, thesis_constraints: tables 3.2 and 3.3, 4.2 and 4.3, 8.1, worked out.
        bids, entries: |B| and Σ|N_c|; 0 of IPSCHED.
    """

    model: str
    variables: int
    constraints: int
    thesis_variables: int
    thesis_constraints: int
    bids: int
    entries: int


def sizes_of(snapshot: Snapshot, model: str) -> Sizes:
    """Return the sizes of one model's program over a whole snapshot."""
    from aucsched.auction.options import options_with_preset
    from aucsched.auction.queue import queue_of
    from aucsched.auction.strategies import build_model
    from aucsched.bidgen.families.registry import columns_of
    from aucsched.bidgen.first_fit import Cluster
    from aucsched.bidgen.generate import generate_bids
    from aucsched.cluster.resources.demand import DemandReader
    from aucsched.topology.tree import topology_of

    options = options_with_preset({"preset": "paper", "model": model})
    columns, topology = columns_of(snapshot), topology_of(snapshot)
    window = queue_of(snapshot, DemandReader(snapshot, columns), options).window
    table = generate_bids(window, Cluster(columns, topology), options.bids).table
    program = build_model(table, Cluster(columns=columns, topology=topology), options).program
    jobs, nodes = len(window), len(columns.names)
    has_bids = model != "ipsched"
    bids, entries = (len(table), len(table.node)) if has_bids else (0, 0)
    printed = {
        "ipsched": (2 * jobs * (1 + nodes), 2 * (jobs + 2 * nodes + jobs * nodes)),
        "aucsched1": (2 * entries + bids, 2 * nodes + 2 * jobs + bids + entries),
    }
    variables, constraints = printed.get(model, (bids, jobs + 2 * nodes))
    return Sizes(
        model=model,
        variables=program.columns,
        constraints=program.rows,
        thesis_variables=variables,
        thesis_constraints=constraints,
        bids=bids,
        entries=entries,
    )


@click.command()
@click.argument("snapshot", type=click.Path(path_type=Path))
def main(snapshot: Path) -> None:
    """Print a line for each model."""
    cluster = load_snapshot(snapshot)
    click.echo("model      variables  thesis  constraints  thesis   |B|  Σ|N_c|")
    for model in ("ipsched", "aucsched1", "aucsched2", "aucsched3"):
        one = sizes_of(cluster, model)
        click.echo(
            f"{one.model:10} {one.variables:9} {one.thesis_variables:7} {one.constraints:12}"
            f" {one.thesis_constraints:7} {one.bids:5} {one.entries:7}"
        )


if __name__ == "__main__":
    main()
