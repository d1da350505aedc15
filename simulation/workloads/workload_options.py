"""The options of the thesis's workloads.

Nothing heavy here: ``--help`` reads it.
"""

from dataclasses import dataclass
from typing import Literal

from ...cluster.option_fields import Option


@dataclass(kw_only=True)
class SpreadOption:
    """When jobs arrive."""

    arrival_share: Option[float] = Option(
        "Arrivals are uniform over this share of the theoretical run time.",
        default=0.25,
        low=0,
        high=1000,
        includes_low=True,
        spelling="arrival-spread",
    )


@dataclass(kw_only=True)
class SonerOptions(SpreadOption):
    """The options of a mix of section 7.3.2."""

    hours: Option[float] = Option("Theoretical run time of the workload.", default=4.0, low=0, high=10_000)
    max_cores: Option[int | None] = Option(
        "Cores of the largest job.", default="those of 43 whole nodes", low=1
    )
    for_ipsched: Option[bool] = Option(
        "Write node jobs as (cores, nodes): ipsched has no cores per node.", default=False
    )


@dataclass(kw_only=True)
class TableRecord(SpreadOption):
    """The options of every table of chapter 8."""

    divisors: Option[tuple[int, ...] | None] = Option(
        "Kinds B to E ask for (cores / one of these) nodes.",
        default="4,8 (8.5: 8,16)",
        unit="N,…",
        is_text=True,
    )
    cores_per_gpu: Option[tuple[int, ...] | None] = Option(
        "Kinds C to E ask for cores / (one of these · GPUs a node) nodes, as in section 7.3.2 of the thesis.",
        default="as kind B, by --divisors",
        unit="N,…",
        is_text=True,
    )
    gpu_ranges: Option[bool] = Option(
        "Kinds C and D ask for 1-3 and 2-3 GPUs per node (C', D').", default=False
    )


@dataclass(kw_only=True)
class ContiguityOption:
    """Whether jobs ask for consecutive nodes."""

    contiguity: Option[Literal["honour", "drop"]] = Option(
        "Jobs ask for consecutive nodes as in the table, or none does (table A.5).", default="honour"
    )


@dataclass(kw_only=True)
class TableOptions(TableRecord, ContiguityOption):
    """What may differ from a table of chapter 8."""
