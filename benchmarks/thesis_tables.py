"""The thesis's result tables (Soner, appendix A) as printed, and which of our runs stand beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One run: a workload under a policy, and what the thesis prints for it.

    Attributes:
        workload: id in the thesis's table.
        policy: ours, a name of NODE_POLICIES.
        label: the policy and its options.
        options: of NodeOptions, beside the policy.
        printed: metric → the thesis's number.
        contiguity: whether jobs ask for what the table says.
        ranges: whether kinds C and D ask for ranges of GPUs.
        cores_per_gpu: x of section 7.3.2, by which kinds C to E take their nodes; None: x/4 or x/8 (8.5: x/8
            or x/16) of their cores.
        on_a_line: the machine has no switches, as section 8.3, which names none.
    """

    workload: str
    policy: str
    label: str
    options: Mapping[str, Any] = field(default_factory=dict)
    printed: Mapping[str, float] = field(default_factory=dict)
    contiguity: bool = False
    ranges: bool = False
    cores_per_gpu: int | None = None
    on_a_line: bool = False

    @property
    def key(self) -> str:
        """A name for the row's file."""
        shape = ("contiguous " if self.contiguity else "") + ("ranges " if self.ranges else "")
        return f"{self.workload} {shape}{self.label}".replace("/", "-")


#: Table A.5: level mean, level std, average spread (our span), utilisation (%).
_A5 = {
    "1": ((1.88, 0.41, 243.8, 98), (1.8, 0.53, 259.3, 97)),
    "2": ((1.77, 0.53, 236, 90), (1.81, 0.52, 271.5, 89)),
    "3": ((1.75, 0.55, 223.7, 97), (1.81, 0.53, 282.7, 89)),
    "4": ((1.87, 0.42, 243.7, 98), (1.81, 0.52, 259.7, 97)),
    "5": ((1.77, 0.52, 242.2, 90), (1.82, 0.50, 275.8, 89)),
    "6": ((1.74, 0.56, 218.4, 98), (1.8, 0.54, 281.3, 89)),
    "7": ((1.87, 0.42, 242.1, 98), (1.81, 0.52, 260.8, 97)),
    "8": ((1.76, 0.54, 234.4, 90), (1.82, 0.51, 272.8, 89)),
    "9": ((1.76, 0.54, 218.9, 97), (1.8, 0.53, 272.7, 90)),
}
#: Table A.4: the same but the level's deviation.
_A4 = {
    "1": ((1.05, 0.68, 77.2, 90), (1.06, 0.77, 110.7, 89)),
    "2": ((1.17, 0.62, 90.9, 96), (1.19, 0.69, 131.9, 95)),
    "3": ((1.04, 0.58, 65.4, 78), (1.26, 0.68, 139.4, 82)),
    "4": ((1.04, 0.58, 61.1, 85), (1.36, 0.69, 167.8, 88)),
    "5": ((1.01, 0.67, 63.5, 83), (1.24, 0.72, 144.3, 81)),
    "6": ((0.98, 0.56, 60.9, 89), (1.33, 0.70, 162.7, 87)),
    "5'": ((0.99, 0.65, 64.4, 86), (1.24, 0.72, 144.3, 81)),
    "6'": ((1.00, 0.59, 61.4, 91), (1.33, 0.70, 162.7, 87)),
}
#: Table A.3: AUCSCHED2, AUCSCHED1, Backfill: utilisation (%), run time (h), wait (h), fragmentation, spread.
_A3 = {
    "1": (
        (97.17, 6.45, 2.42, 17.80, 8.2),
        (91.01, 6.90, 2.45, 2.25, 11.87),
        (87.17, 7.18, 3.23, 2.42, 17.36),
    ),
    "2": ((93.83, 6.70, 2.51, 5.58, 4.47), (87.81, 7.14, 3.09, 1.98, 6.75), (86.00, 7.27, 2.96, 2.12, 11.68)),
    "3": ((92.17, 6.77, 2.71, 1.0, 1.0), (86.70, 7.22, 2.78, 1.0, 1.0), (82.50, 7.58, 2.98, 1.0, 1.0)),
    "4": (
        (98.0, 12.83, 4.52, 18.79, 8.31),
        (92.23, 13.59, 4.73, 2.13, 12.45),
        (88.0, 14.29, 4.91, 2.42, 17.24),
    ),
    "5": (
        (94.0, 13.33, 4.27, 5.66, 4.42),
        (89.87, 13.95, 4.63, 2.07, 8.79),
        (86.83, 14.48, 4.94, 2.14, 11.9),
    ),
    "6": ((92.67, 13.51, 4.79, 1.0, 1.0), (88.47, 14.11, 5.09, 1.0, 1.0), (83.0, 15.09, 5.43, 1.0, 1.0)),
    "7": ((86.33, 6.28, 2.60, 2.16, 1.98), (82.73, 6.56, 2.27, 2.07, 2.13), (81.17, 6.69, 1.94, 2.10, 4.16)),
    "8": ((84.0, 6.46, 2.60, 1.52, 1.52), (81.35, 6.67, 2.34, 1.3, 1.70), (79.0, 6.87, 1.95, 1.55, 2.35)),
    "9": ((84.0, 6.55, 2.72, 1.0, 1.0), (79.85, 6.89, 2.50, 1.0, 1.0), (76.83, 7.16, 1.98, 1.0, 1.0)),
    "10": (
        (87.0, 12.50, 5.63, 2.16, 1.93),
        (82.45, 13.20, 5.13, 2.05, 2.13),
        (81.67, 13.32, 4.05, 2.09, 3.88),
    ),
    "11": (
        (85.33, 12.44, 5.52, 1.5, 1.45),
        (81.24, 13.08, 4.29, 1.52, 1.74),
        (80.33, 13.25, 3.92, 1.61, 2.50),
    ),
    "12": ((82.83, 13.16, 5.88, 1.0, 1.0), (80.01, 13.62, 5.27, 1.0, 1.0), (78.83, 13.85, 4.08, 1.0, 1.0)),
}
#: Tables A.1 and A.2: experiment → wait (h), slowdown, utilisation (%); A.2 by mix.
_A1 = {
    "1": (1.60, 18.11, 90), "2": (0.91, 11.31, 93), "3": (0.77, 9.95, 92), "4": (1.88, 20.64, 94),
    "5": (2.42, 22.75, 89), "6": (0.88, 10.75, 94), "7": (2.08, 22.06, 93), "8": (2.69, 29.14, 95),
}  # fmt: skip
_A2 = {
    "I": ((1.69, 23.68, 95), (1.31, 21.45, 97), (1.26, 21.53, 97), (1.75, 27.98, 96),
          (2.28, 31.90, 96), (2.03, 32.87, 97), (2.06, 32.63, 97), (2.62, 41.87, 94)),
    "II": ((1.67, 23.60, 95), (1.35, 22.15, 96), (1.33, 22.16, 96), (1.75, 27.99, 96),
           (2.22, 30.91, 96), (2.00, 32.28, 97), (2.09, 33.41, 97), (2.60, 35.84, 94)),
    "III": ((1.74, 24.33, 95), (1.41, 22.95, 96), (1.34, 22.01, 96), (1.72, 27.38, 95),
            (2.14, 28.44, 96), (1.87, 28.27, 97), (1.77, 27.65, 96), (2.31, 36.07, 96)),
    "IV": ((1.68, 22.42, 88), (1.51, 21.87, 90), (1.43, 21.54, 89), (1.72, 27.23, 95),
           (1.95, 22.86, 88), (2.03, 25.17, 88), (1.93, 24.81, 88), (2.50, 39.53, 93)),
    "V": ((1.73, 21.36, 62), (1.71, 21.21, 62), (1.67, 20.98, 62), (1.93, 30.84, 65),
          (2.21, 26.30, 68), (2.12, 44.71, 58), (2.13, 40.19, 60), (3.72, 58.57, 70)),
}  # fmt: skip
#: Experiments of tables A.1 and A.2 as they number them → policy and objective: 1 to 4 with basic, 5 to 8
#: with multifactor priorities. Table 8.3 numbers the same eight otherwise.
_EXPERIMENTS = (("backfill-slurm", ""), ("ipsched", ""), ("ipsched", "priority_cores"), ("aucsched1", ""))
#: Experiment of tables A.1 and A.2 → its number in table 8.3, which pairs basic and multifactor priorities.
IN_TABLE_8_3 = {1: 1, 2: 3, 3: 5, 4: 7, 5: 2, 6: 4, 7: 6, 8: 8}

#: What every method of every table is told: a pass each SCHED_INTERVAL, as many jobs in sight.
SCHED_INTERVAL_S, WINDOW = 3.0, 100
_ALL: dict[str, Any] = {"interval_s": SCHED_INTERVAL_S, "window": WINDOW}
_BACKFILL: dict[str, Any] = {**_ALL, "backfill_interval_s": 0.0}
_AUCTION: dict[str, Any] = {**_ALL, "reserve": 0}
#: More jobs than any queue of these tables has.
WHOLE_QUEUE = 100_000
#: A pass without a proof leaves the next one's window as it is, like Slurm's.
_KEPT: dict[str, Any] = {**_AUCTION, "on_timeout": "incumbent"}
#: HiGHS over the whole program, for one node of branch and bound each pass; search and then HiGHS.
_SOLVED: dict[str, Any] = {**_KEPT, "work_limit": 1}
_SEARCHED: dict[str, Any] = {**_KEPT, "strategy": "anytime", "work_limit": 2}
_DISCARDED: dict[str, Any] = {**_AUCTION, "work_limit": 1, "on_timeout": "discard"}
#: Caps of AUCSCHED1 (section 4).
_FEW_BIDS: dict[str, Any] = {"max_bids": 150, "max_bids_per_job": 15}

#: The thesis's integer programs, as policies.
MODELS = ("ipsched", "aucsched1", "aucsched2", "aucsched3")

#: Table → nodes of a machine that the thesis does not name; and the generator's largest job, in whole nodes.
MACHINES = {"A.1": 32, "A.2": 48}
MOST_NODES_OF_A_JOB = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordering:
    """An ordering of two methods that the thesis's text claims of a table.

    Attributes:
        metric: by which the first is better.
        first, second: labels; of A.1 and A.2 without the experiment's number.
        more: whether more is better.
        workloads: where it is claimed; empty: everywhere.
        as_run: of what the thesis ran (more bids, ranges of GPUs), not of the models alone.
    """

    table: str
    metric: str
    first: str
    second: str
    more: bool = False
    workloads: tuple[str, ...] = ()
    as_run: bool = False


#: AUCSCHED1 without the bids that the engine adds; AUCSCHED2 with as many bids as AUCSCHED1.
_OWN_BIDS, _SAME_BIDS = "AUCSCHED1, bids of figure 4.5", "AUCSCHED2, 150 bids"
#: Behind the name of a model whose award starts jobs, and nothing beside it.
_ALONE = ", award alone"
_PLUG_IN_NAME = "AUCSCHED3, plug-in" + _ALONE
#: Workloads of table A.3 whose jobs may be in several pieces.
_IN_PIECES = ("1", "2", "4", "5", "7", "8", "10", "11")

#: Those whose jobs ask for cores alone, and those whose jobs ask for GPUs as well.
_CORES_ONLY, _GPUS_TOO = tuple("123456"), ("7", "8", "9", "10", "11", "12")

#: What the thesis says of its tables (sections 8.2 to 8.4); ``cpu_utilization`` is better where it is more.
ORDERINGS = (
    *(
        Ordering(table=table, metric=metric, first=first, second=second, more=more, workloads=of)
        for table, metric, first, second, more, of in (
            ("A.1", "cpu_utilization", "AUCSCHED1", "IPSCHED", True, ()),
            ("A.1", "cpu_utilization", "IPSCHED", "Backfill", True, ()),
            ("A.1", "wait_h", "IPSCHED", "Backfill", False, ()),
            ("A.1", "wait_h", "Backfill", "AUCSCHED1", False, ()),
            ("A.1", "packing_factor_mean", "AUCSCHED1", "IPSCHED", False, ()),
            ("A.1", "packing_factor_mean", "IPSCHED", "Backfill", False, ()),
            ("A.1", "fragmentation_mean", "Backfill", "AUCSCHED1", False, ()),
            ("A.1", "spread_mean", "AUCSCHED1", "Backfill", False, ()),
            ("A.1", "cpu_utilization", _OWN_BIDS, "IPSCHED", True, ()),
            ("A.1", "wait_h", "Backfill", _OWN_BIDS, False, ()),
            ("A.1", "packing_factor_mean", _OWN_BIDS, "IPSCHED", False, ()),
            ("A.1", "fragmentation_mean", "Backfill", _OWN_BIDS, False, ()),
            ("A.1", "spread_mean", _OWN_BIDS, "Backfill", False, ()),
            ("A.1", "cpu_utilization", "AUCSCHED1" + _ALONE, "IPSCHED" + _ALONE, True, ()),
            ("A.1", "wait_h", "Backfill", "AUCSCHED1" + _ALONE, False, ()),
            ("A.1", "fragmentation_mean", "Backfill", "AUCSCHED1" + _ALONE, False, ()),
            ("A.1", "spread_mean", "AUCSCHED1" + _ALONE, "Backfill", False, ()),
            ("A.2", "cpu_utilization", "IPSCHED", "Backfill", True, ("I", "II", "III")),
            ("A.2", "cpu_utilization", "AUCSCHED1", "Backfill", True, ("IV", "V")),
            ("A.2", "wait_h", "IPSCHED", "Backfill", False, ()),
            ("A.2", "wait_h", "Backfill", "AUCSCHED1", False, ()),
            ("A.2", "fragmentation_mean", "Backfill", "AUCSCHED1", False, ()),
            ("A.2", "spread_mean", "AUCSCHED1", "Backfill", False, ()),
            ("A.3", "cpu_utilization", _SAME_BIDS, "AUCSCHED1", True, ()),
            ("A.3", "cpu_utilization", "AUCSCHED1", "Backfill", True, ()),
            ("A.3", "spread_mean", _SAME_BIDS, "AUCSCHED1", False, _IN_PIECES),
            ("A.3", "spread_mean", "AUCSCHED1", "Backfill", False, _IN_PIECES),
            ("A.3", "cpu_utilization", _SAME_BIDS + _ALONE, "AUCSCHED1" + _ALONE, True, ()),
            ("A.3", "cpu_utilization", "AUCSCHED1" + _ALONE, "Backfill", True, ()),
            ("A.3", "spread_mean", _SAME_BIDS + _ALONE, "AUCSCHED1" + _ALONE, False, _IN_PIECES),
            ("A.3", "spread_mean", "AUCSCHED1" + _ALONE, "Backfill", False, _IN_PIECES),
            ("A.4", "level_mean", _PLUG_IN_NAME, "Backfill", False, ()),
            ("A.4", "span_mean", _PLUG_IN_NAME, "Backfill", False, ()),
            ("A.4", "cpu_utilization", _PLUG_IN_NAME, "Backfill", True, ("1", "2", "5", "6")),
            ("A.4", "cpu_utilization", "Backfill", _PLUG_IN_NAME, True, ("3", "4")),
            ("A.5", "level_mean", _PLUG_IN_NAME, "Backfill", False, ("2", "3", "5", "6", "8", "9")),
            ("A.5", "span_mean", _PLUG_IN_NAME, "Backfill", False, ()),
            ("A.5", "cpu_utilization", _PLUG_IN_NAME, "Backfill", True, ()),
            ("A.4", "level_mean", "AUCSCHED3", "Backfill", False, ()),
            ("A.4", "span_mean", "AUCSCHED3", "Backfill", False, ()),
            ("A.4", "cpu_utilization", "AUCSCHED3", "Backfill", True, ("1", "2", "5", "6")),
            ("A.4", "cpu_utilization", "Backfill", "AUCSCHED3", True, ("3", "4")),
            ("A.4", "level_mean", "AUCSCHED3" + _ALONE, "Backfill", False, ()),
            ("A.4", "span_mean", "AUCSCHED3" + _ALONE, "Backfill", False, ()),
            ("A.4", "cpu_utilization", "AUCSCHED3" + _ALONE, "Backfill", True, ("1", "2", "5", "6")),
            ("A.4", "cpu_utilization", "Backfill", "AUCSCHED3" + _ALONE, True, ("3", "4")),
            ("A.5", "level_mean", "AUCSCHED3", "Backfill", False, ("2", "3", "5", "6", "8", "9")),
            ("A.5", "level_mean", "Backfill", "AUCSCHED3", False, ("1", "4", "7")),
            ("A.5", "span_mean", "AUCSCHED3", "Backfill", False, ()),
            ("A.5", "cpu_utilization", "AUCSCHED3", "Backfill", True, ()),
        )
    ),
    *(
        Ordering(table="A.3", metric=metric, first=first, second=second, more=more, workloads=of, as_run=True)
        for auction, workloads in (("AUCSCHED2", _CORES_ONLY), ("AUCSCHED2, GPU ranges", _GPUS_TOO))
        for metric, more, of in (
            ("cpu_utilization", True, workloads),
            ("wait_h", False, workloads),
            ("spread_mean", False, tuple(one for one in workloads if one in _IN_PIECES)),
        )
        for first, second in ((auction, "AUCSCHED1"), (auction, "Backfill"))
    ),
    # "The fragmentation is high in AUCSCHED2" in 1, 2, 4 and 5.
    *(
        Ordering(
            table="A.3",
            metric="fragmentation_mean",
            first="AUCSCHED2",
            second=second,
            more=True,
            workloads=("1", "2", "4", "5"),
            as_run=True,
        )
        for second in ("AUCSCHED1", "Backfill")
    ),
)

#: x of section 7.3.2 (12 cores and 3 GPUs): the same reading for both machines.
_CORES_PER_GPU = 4

#: Whose jobs ask for GPUs as well, in table A.3: there ranges of GPUs and fixed numbers differ.
_WITH_GPUS = range(7, 13)


def name_of(policy: str, options: Mapping[str, Any], *, ranges: bool = False) -> str:
    """Return a model's name where it ran as the thesis has it, with whatever was otherwise behind it."""
    if policy in ("backfill-slurm", "backfill-planned"):
        words = ["Backfill"]
    else:
        words = [policy.upper()]
        words += ["balanced"] if options.get("balance") else []
        strategy = options.get("strategy", "greedy" if options.get("balance") else "")
        words += ["greedy"] if strategy == "greedy" else []
    name = " ".join(words)
    name += ", planned" if policy == "backfill-planned" else ""
    name += ", plug-in" if options.get("preset") == "plugin" else ""
    name += ", whole queue" if options.get("window") == WHOLE_QUEUE else ""
    name += ", P·R" if options.get("objective") == "priority_cores" else ""
    name += ", 150 bids" if policy != "aucsched1" and options.get("max_bids") == _FEW_BIDS["max_bids"] else ""
    name += ", bids of figure 4.5" if options.get("bid_order") == "figure-4.5" else ""
    name += _ALONE if options.get("award_alone") else ""
    name += ", discard" if options.get("on_timeout") == "discard" else ""
    name += ", multifactor" if options.get("order") == "multifactor" else ""
    return name + (", GPU ranges" if ranges else "")


def reading_of(cores_per_gpu: int | None, *, on_a_line: bool) -> str:
    """Return what a row's workload and machine have that the table's other rows do not."""
    name = "" if cores_per_gpu is None else f", {cores_per_gpu} cores a GPU"
    return name + (", on a line" if on_a_line else "")


def _named(workload: str, policy: str, options: Mapping[str, Any], **others: Any) -> Row:
    label = name_of(policy, options, ranges=others.get("ranges", False))
    label += reading_of(others.get("cores_per_gpu"), on_a_line=others.get("on_a_line", False))
    return Row(workload=workload, policy=policy, label=label, options=options, **others)


def _percent(names: tuple[str, ...], values: tuple[float, ...]) -> dict[str, float]:
    pairs = zip(names, values, strict=True) if values else ()
    return {name: value / 100 if name == "cpu_utilization" else value for name, value in pairs}


#: The published plug-in (window of 250, 25 000 bids, 500 a job, P·cores, figure 4.5): its awards alone.
_PLUG_IN: dict[str, Any] = {
    "preset": "plugin", "interval_s": SCHED_INTERVAL_S, "reserve": 0, "on_timeout": "incumbent",
    "weights": "lexicographic", "strategy": "anytime", "work_limit": 2, "award_alone": True,
}  # fmt: skip


def _levels(
    table: Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]], with_gpus: tuple[str, ...]
) -> list[Row]:
    """Return AUCSCHED3 by search, its awards alone, the plug-in, backfill, and a balance's first bids.

    A complete step starts jobs of the whole queue: backfill with that sight is a row, too.
    """
    names = ("level_mean", "level_std", "span_mean", "cpu_utilization")
    rows = [
        _named(workload, "aucsched3", options, printed=_percent(names, ours))
        for options in (_SEARCHED, {**_SEARCHED, "award_alone": True}, _PLUG_IN)
        for workload, (ours, _) in table.items()
    ]
    for workload, (_, backfill) in table.items():
        # Slurm knows no ranges of GPUs, and first bids take the fewest: the fixed ones are run for them.
        if not workload.endswith("'"):
            rows.append(_named(workload, "backfill-slurm", _BACKFILL, printed=_percent(names, backfill)))
            rows.append(_named(workload, "aucsched3", {**_AUCTION, "balance": True}))
            rows.append(_named(workload, "backfill-slurm", {**_BACKFILL, "window": WHOLE_QUEUE}))
            rows.append(_named(workload, "backfill-planned", _BACKFILL))
    for workload in with_gpus:
        printed, slurm = (_percent(names, values) for values in table[workload])
        read = {"cores_per_gpu": _CORES_PER_GPU}
        rows.append(_named(workload, "aucsched3", _SEARCHED, printed=printed, **read))
        rows.append(
            _named(workload, "aucsched3", {**_SEARCHED, "award_alone": True}, printed=printed, **read)
        )
        rows.append(_named(workload, "backfill-slurm", _BACKFILL, printed=slurm, **read))
        rows.append(_named(workload, "aucsched3", {**_AUCTION, "balance": True}, **read))
        if table is _A5:
            # Sections 8.3 and 8.4.2: AUCSCHED2 chooses from ranges of GPUs, and "the job fractions" stay.
            rows.append(_named(workload, "aucsched3", _SEARCHED, printed=printed, ranges=True))
    return rows


def _a3() -> list[Row]:
    """Return the methods of table A.3; AUCSCHED2 with 150 bids differs from AUCSCHED1 by its model only.

    Both besides with their awards alone, as in the thesis: nothing starts on what an award leaves.
    """
    names = ("cpu_utilization", "makespan_h", "wait_h", "fragmentation_mean", "spread_mean")
    solved = {**_SOLVED, "strategy": "exact", **_FEW_BIDS}
    methods = (("aucsched2", _SEARCHED), ("aucsched1", solved), ("backfill-slurm", _BACKFILL))
    rows = []
    for workload, printed in _A3.items():
        with_gpus = int(workload) in _WITH_GPUS
        for (policy, options), values in zip(methods, printed, strict=True):
            told = _percent(names, values)
            ranges = policy == "aucsched2" and with_gpus
            rows.append(_named(workload, policy, options, printed=told, contiguity=True, ranges=ranges))
        if with_gpus:
            rows.append(_named(workload, "aucsched2", _SEARCHED, contiguity=True))
        rows.append(_named(workload, "aucsched2", solved, contiguity=True))
        alone = {**solved, "award_alone": True}
        told = _percent(names, printed[1])
        rows.append(_named(workload, "aucsched1", alone, printed=told, contiguity=True))
        # The thesis's AUCSCHED2 chooses from ranges of GPUs where there are any.
        told = {} if with_gpus else _percent(names, printed[0])
        rows.append(_named(workload, "aucsched2", alone, printed=told, contiguity=True))
        rows.append(_named(workload, "aucsched2", {**_AUCTION, "balance": True}, contiguity=True))
        if workload in _ON_A_LINE:
            # Section 8.3 names no switches, and spread bids are a choice of AUCSCHED2's (pages 84 and 85).
            own = {**alone, "bid_order": "figure-4.5"}
            for policy, options, values in (("aucsched1", own, printed[1]), (*methods[2], printed[2])):
                told = _percent(names, values)
                rows.append(_named(workload, policy, options, printed=told, contiguity=True, on_a_line=True))
    return rows


#: Workloads of table A.3 that run on a machine without switches as well.
_ON_A_LINE = ("1", "2", "7")


#: Workloads in which AUCSCHED1 runs by the thesis's bids alone besides, and both models' awards alone.
_OWN_BIDS_TOO = ("esp-gpu",)
#: Experiments with basic priorities that run so: IPSCHED and AUCSCHED1.
_ALONE_TOO = (2, 4)


def _experiments(workload: str, values: list[tuple[float, float, float]]) -> list[Row]:
    names = ("wait_h", "slowdown_mean", "cpu_utilization")
    rows = []
    for number, printed in enumerate(values, start=1):
        policy, objective = _EXPERIMENTS[(number - 1) % 4]
        options = _BACKFILL if policy == "backfill-slurm" else {**_SOLVED, "weights": "paper"}
        options = {**options, **({"objective": objective} if objective else {})}
        options = {**options, **({"order": "multifactor"} if number > 4 else {})}
        told = [options]
        if workload in _OWN_BIDS_TOO:
            # AUCSCHED1 as the engine bids, and by the thesis's bids alone: neither first-fit's nor packings'.
            told += [{**options, "bid_order": "figure-4.5"}] if policy == "aucsched1" else []
            told += [{**options, "award_alone": True}] if number in _ALONE_TOO else []
        # A pass that its nodes of branch and bound do not prove starts nothing (page 36). By the papers'
        # weights nothing is said to be proved where nodes are counted (decision 58).
        told += [_DISCARDED] if number in _ALONE_TOO else []
        rows += [
            Row(
                workload=workload,
                policy=policy,
                label=f"{number}: {name_of(policy, one)}",
                options=one,
                printed=_percent(names, printed),
            )
            for one in told
        ]
    return rows


#: Table → its runs.
TABLES: dict[str, list[Row]] = {
    "A.1": _experiments("esp-gpu", list(_A1.values())),
    "A.2": [row for mix, values in _A2.items() for row in _experiments(mix, list(values))],
    "A.3": _a3(),
    "A.4": _levels(_A4, ("5", "6")),
    "A.5": _levels(_A5, ("3", "6", "9")),
}
