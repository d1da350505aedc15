"""A row of the thesis's tables is named for what ran; a table has one set of options for all workloads."""

from __future__ import annotations

import pytest
from thesis_tables import TABLES, label_of

from aucsched.simulation.nodes.policies import NodeOptions, step_options

AUCTIONS = ("aucsched1", "aucsched2", "aucsched3")


@pytest.mark.parametrize("table", ["A.3", "A.4", "A.5"])
def test_labels_say_what_ran(table: str) -> None:
    for row in TABLES[table]:
        assert row.label == label_of(row.policy, row.options, ranges=row.ranges)
        assert row.label.split()[0] == row.policy
        options = NodeOptions(policy=row.policy, **row.options)
        if row.policy in AUCTIONS:
            step = step_options(options)
            assert step.model == row.policy
            assert step.balance == ("--balance" in row.label)


@pytest.mark.parametrize("table", ["A.4", "A.5"])
def test_every_workload_has_the_same_methods(table: str) -> None:
    rows = [row for row in TABLES[table] if not row.contiguity]
    methods = {row.workload: {one.label for one in rows if one.workload == row.workload} for row in rows}
    plain = {frozenset(names) for workload, names in methods.items() if not workload.endswith("'")}
    assert len(plain) == 1
    assert "backfill-slurm" in next(iter(plain))


def test_models_of_a_table_differ_in_nothing_else() -> None:
    options = {str(sorted(row.options.items())) for row in TABLES["A.3"] if row.policy in AUCTIONS}
    assert len(options) == 1
