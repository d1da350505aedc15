"""Sizes of programs beside tables 3.2, 3.3, 4.2, 4.3 and 8.1 of Soner's thesis."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.build import snapshot
from thesis_sizes import sizes_of

from aucsched import load_snapshot

SIXTEEN = Path(__file__).parents[2] / "examples" / "thesis" / "sixteen-nodes.json"


def test_ipsched_has_the_variables_of_table_3_2_without_c() -> None:
    """Soner: tables 3.2, 3.3 size of IPSCHED."""
    jobs, nodes = 3, 5
    empty = snapshot(
        [{"name": f"n[1-{nodes}]", "cores": 4, "gres": {"gpu": 1}}],
        [{"cores": 3, "gres_per_node": {"gpu": 1}}] * jobs,
    )
    sizes = sizes_of(empty, "ipsched")
    # Every job may use every node: s, t and x; c_j stands in the objective.
    assert sizes.thesis_variables == 2 * jobs * (1 + nodes)
    assert sizes.variables == sizes.thesis_variables - jobs
    # (3.2), (3.4) of each node, (3.3) and one variant of each job, (3.6) twice a job, (3.7) twice a pair.
    assert sizes.constraints == 2 * nodes + 4 * jobs + 2 * jobs * nodes


def test_aucsched1_has_the_variables_of_table_4_2() -> None:
    """Soner: tables 4.2, 4.3 size of AUCSCHED1."""
    sizes = sizes_of(load_snapshot(SIXTEEN), "aucsched1")
    assert sizes.variables == sizes.thesis_variables == 2 * sizes.entries + sizes.bids
    # (4.2), (4.3) and (4.4) of each bid, (4.7) of each of its nodes; then (4.5), (4.6) of the nodes bid for.
    capacities = sizes.constraints - 5 - 2 * sizes.bids - sizes.entries
    assert 0 < capacities <= 2 * 16


@pytest.mark.parametrize("model", ["aucsched2", "aucsched3"])
def test_auctions_have_a_variable_a_bid_and_a_row_a_job_and_capacity(model: str) -> None:
    """Soner: table 8.1 sizes of all four."""
    sizes = sizes_of(load_snapshot(SIXTEEN), model)
    assert sizes.variables == sizes.thesis_variables == sizes.bids
    # Rows that bind nobody are left out: no cell of a full node, none of gres that nobody asks for.
    assert 5 < sizes.constraints <= sizes.thesis_constraints == 5 + 2 * 16
