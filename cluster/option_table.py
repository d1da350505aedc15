"""Every option of an auction, once: records from which step, simulations, commands, sweeps take.

No numpy here: ``--help`` reads it.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from .option_fields import Option, options_in
from .promises import check_promise

#: Who reads an option: commands that take one step over a snapshot, simulations, sweeps over
#: either, and negotiations, for each Map, and winner determination over any bids.
STEP, SIMULATE, SWEEP, NEGOTIATE = "schedule, explain, compare", "simulate", "sweep", "negotiate, ibsched"
WINNERS = "winners"
SCHEDULE = "schedule"
_ALL = (STEP, SIMULATE, SWEEP)

#: The models' names, those whose jobs bid, and how an award is found.
ModelName = Literal["ipsched", "aucsched1", "aucsched2", "aucsched3"]
StrategyName = Literal["exact", "anytime", "greedy"]
MODEL_NAMES: tuple[str, ...] = get_args(ModelName)
_BIDDING = MODEL_NAMES[1:]

#: The largest window, cap or count of steps; larger values are taken for typing errors.
LARGEST = 10**7
LARGEST_SEED = 2**31 - 1
#: What ends a step where no limit is given (docs/decisions/0112).
WORK_LIMIT = 20
#: Jobs of a plan where no number is given: some minutes at most; time rises with the square.
PLANNED_JOBS = 5_000


def _count(text: str, low: int = 1, high: int = LARGEST, **others: Any) -> Any:
    return Option(text, low=low, high=high, **{"readers": _ALL, "policies": MODEL_NAMES, **others})


def _option(text: str, **others: Any) -> Any:
    return Option(text, **{"readers": _ALL, "policies": MODEL_NAMES, **others})


@dataclass(kw_only=True, unsafe_hash=True)
class PresetOption:
    """The values of the papers or of their plugins, below what is given."""

    preset: Option[Literal["paper", "plugin"] | None] = _option(
        "Take the values of the papers or of their published plugins. A given option overrides them."
    )


@dataclass(kw_only=True, unsafe_hash=True)
class ModelOption:
    """Which model is solved."""

    model: Option[ModelName] = _option(
        "The model of the thesis (an integer program) to solve.", default="aucsched3", readers=(STEP, SWEEP)
    )


@dataclass(kw_only=True, unsafe_hash=True)
class ValueOptions:
    """What an auction maximises and promises, on counts as on nodes."""

    objective: Option[Literal["priority", "priority_cores", "response"]] = _option(
        "Worth of a started job: its priority, its priority times its cores, or (response) how much "
        "its bounded slowdown falls for each second that it starts earlier. response ignores "
        "priorities. On machines of nodes its value is multiplied by the job's cores.",
        default="priority",
    )
    #: none ignores promises made to jobs (Job.promised_start); else no start puts them off.
    promise: Option[str | None] = _option(
        "Starts that waiting jobs are guaranteed while jobs keep their time limits and nodes stay up. "
        "backfill: each job that plain backfilling starts now. plan: no start later than in a plan of the "
        "queue. A duration (15m, 2d; 300 is seconds): plan's start, or this long after submission if later. "
        "auto: a duration from past waits; with response overload ends it. none: no guarantee. schedule, "
        "explain, compare and slurm shadow refuse auto and durations; under plan they keep promised_start.",
        unit="plan|DURATION|auto|backfill|none",
        check_text=check_promise,
        default="backfill; with objective response auto, in slurm run 15m. docs/promises.md has exceptions",
    )


@dataclass(kw_only=True, unsafe_hash=True)
class BiddingOptions:
    """Which jobs bid, how many bids, and how their award is found."""

    window: Option[int] = _count(
        "Jobs that take part (MAX_JOB_COUNT): those of highest priority, with response of greatest worth.",
        default=100,
    )
    max_bids: Option[int | None] = _count(
        "Bids of all jobs together (MAXBIDS).",
        default="the model's: 6000, aucsched1 150",
        policies=_BIDDING,
    )
    max_bids_per_job: Option[int | None] = _count(
        "Bids of one job (MAXBIDSPERJOB).", default="the model's: 60, aucsched1 15", policies=_BIDDING
    )
    bid_order: Option[Literal["spec", "figure-4.5"]] = _option(
        "How --max-bids limits the bids. spec: each job has at least one bid, and jobs of high priority take "
        "the rest; figure-4.5: as in that figure of the thesis, where jobs of high priority use up the cap.",
        default="spec",
        policies=_BIDDING,
    )
    #: exact is the papers': the model over all bids, solved by HiGHS. anytime makes greedy awards,
    #: branch and bound, prices and search, then solves the model over the bids that could still be
    #: in a better award, from the award at hand. greedy proves nothing and reaches no limit.
    strategy: Option[StrategyName | None] = _option(
        "exact: with a work limit branch and bound, then HiGHS over all bids; anytime: branch and bound, "
        "search, then HiGHS over the bids that could still be in a better award; greedy: first-fit and "
        "greedy awards only.",
        default="anytime for aucsched2 and aucsched3 under lexicographic weights, else exact; "
        "greedy with --balance",
        other_defaults={
            NEGOTIATE: "greedy, with a limit anytime (a run makes hundreds of Maps)",
            WINNERS: "anytime (bids of any problem)",
        },
        readers=(*_ALL, NEGOTIATE, WINNERS),
        policies=_BIDDING,
    )
    #: Shares of shapes and kept cores are rows of the program, a job counts how hard it is to
    #: place, and first bids go shape by shape (docs/decisions/0038). A greedy award is those.
    balance: Option[bool] = _option(
        "Keep the mix of running jobs (small, wide, with GPUs) like that of waiting jobs. Then --window "
        "is 400 and --strategy greedy by default; greedy gives a job the fewest gres of a range.",
        default=False,
        policies=_BIDDING,
    )
    award_alone: Option[bool] = _option(
        "Start only the winners of the auction, as in the papers. By default jobs that still fit "
        "afterwards start, too; with this option only if the machine is empty and no job wins.",
        default=False,
    )
    #: The same everywhere: search steps for anytime, branch-and-bound nodes a solve for exact.
    work_limit: Option[int | None] = _count(
        "Steps of the search; with strategy exact, branch-and-bound nodes of each solve. If you "
        "give it and no --time-limit, the clock ends no search, and the result is the same on every "
        "machine. Exception: the clock ends a solve of N branch-and-bound nodes after 20 s + N · 20 s.",
        low=0,
        default=WORK_LIMIT,
        other_defaults={
            NEGOTIATE: "2 where a Map is searched (a run makes hundreds of Maps)",
            WINNERS: "none (bids of any problem: the time limit counts)",
        },
        readers=(*_ALL, NEGOTIATE, WINNERS),
    )
    #: halve: the award found stands, and exact tries halves at once while time is left (Soner,
    #: section 3.2). A search that made all its steps has reached no limit where nothing is said.
    on_timeout: Option[Literal["halve", "incumbent", "discard"] | None] = _option(
        "If a limit ends a pass before its proof: halve keeps the award and halves the next window; "
        "incumbent keeps the award and the window; discard starts nothing and halves the window.",
        default="halve; the default work limit is no such limit. With --work-limit and no "
        "--time-limit, and in simulations: incumbent if the strategy is anytime. In simulations with "
        "--preset: incumbent",
    )
    weights: Option[Literal["lexicographic", "paper"]] = _option(
        "Maximise priorities exactly before preference, or the papers' weighted sum of both.",
        default="lexicographic",
    )


@dataclass(kw_only=True, unsafe_hash=True)
class AuctionOptions(ValueOptions, BiddingOptions):
    """The options of every auction: of one step, and of each step of a simulation."""

    reserve: Option[int | None] = _count(
        "Reserve for this many of the first blocked jobs: nothing that delays them starts. The default is 0 "
        "with promise auto, with response if --promise is not given, and in slurm run with plan or a "
        "duration; 4 with policy reservations.",
        low=0,
        default=1,
    )
    seed: Option[int] = _count(
        "Seed of the search and of HiGHS.",
        low=0,
        high=LARGEST_SEED,
        default=0,
        readers=(*_ALL, WINNERS),
    )


@dataclass(kw_only=True, unsafe_hash=True)
class StepRecord(AuctionOptions, ModelOption):
    """The options of a step; ``auction.options.StepOptions`` checks them and resolves defaults."""

    #: Wall time of the whole step: bids, programs, search and solves of all its attempts.
    time_limit_s: Option[float | None] = _option(
        "Seconds of wall time in which a pass decides. schedule counts the reading of its file, too; "
        "slurm run does not count the reading of the queue. With --time-limit and no --work-limit "
        "the search runs until then. Otherwise the work limit usually ends a pass first.",
        low=0,
        unit="SECONDS",
        default=3.0,
        other_defaults={NEGOTIATE: "none (work counts, so that runs repeat)"},
        readers=(STEP, SWEEP, NEGOTIATE, WINNERS),
    )
    #: Parts are cut along the switches (parts.py); the time limit holds for all together, the work
    #: limit for each.
    part_nodes: Option[int | None] = _count(
        "Search a cluster of more nodes than this in parts of at most this size.",
        default=20_000,
        readers=(STEP,),
    )
    preference_table: Option[Literal["corrected", "printed"]] = _option(
        "Constants of aucsched2's preference: table 5.2 of the thesis corrected, or as printed.",
        default="corrected",
        readers=(STEP, SWEEP),
    )
    keep_whole: Option[bool | None] = _option(
        "Of awards of equal value prefer one that leaves blocks, switches and groups of them wholly free for "
        "what waits.",
        default="on with blocks, rings and three-dimensional tori under lexicographic weights, else off",
        readers=(STEP, SWEEP),
    )
    search_parameters: Option[str | Mapping[str, float] | None] = _option(
        "Numbers that steer the search of strategy anytime: moves=50, or several with colons between "
        "(moves=50:near=0.02).",
        unit="NAME=NUMBER:…",
        default="those that were measured",
        readers=(STEP, SWEEP, WINNERS),
    )
    workers: Option[int] = _count(
        "Processes that search: in winners each over all bids with a seed of its own, elsewhere "
        "each on a part of a cluster larger than --part-nodes. With parts and a work limit the award "
        "is the same with any number.",
        high=1024,
        default=1,
        readers=(STEP, WINNERS),
    )
    dask: Option[str | None] = _option(
        "Search the parts of a cluster (--part-nodes) on a Dask cluster: its scheduler's address.",
        unit="ADDRESS",
        readers=(STEP,),
    )
    export: Option[str] = Option(
        "Write the window's integer program, all bids: .mps or .lp. FILE.csv says what its columns are.",
        default="",
        unit="FILE",
    )
    #: Another process has to be able to get it where several work.
    clock: Option[Callable[[], float]] = Option(
        "A function that returns seconds, such as time.perf_counter.", default=time.perf_counter
    )


@dataclass(kw_only=True, unsafe_hash=True)
class StepKeywords(StepRecord, PresetOption, ModelOption):
    """What ``explain`` and ``compare`` take as keywords."""


@dataclass(kw_only=True)
class WithinOption:
    """What ``compare`` takes besides."""

    within_s: Option[int] = Option(
        "Count the jobs that Slurm's plan starts within this many seconds.", default=60, low=0, high=10**9
    )


@dataclass(kw_only=True, unsafe_hash=True)
class OtherOptions:
    """What ``schedule`` and ``winners`` take besides."""

    window_from: Option[Path | None] = _option(
        "Schedule file of the pass before: as many jobs take part as its window.next says, half as many "
        "after a timeout.",
        unit="FILE",
        readers=(SCHEDULE,),
    )
    round: Option[bool] = _option(
        "Round values to integers, halves to even.",
        default="on for CATS's files, off for JSON",
        readers=(WINNERS,),
    )


OPTIONS_BY_NAME: Mapping[str, Option[Any]] = {
    name: one for name, one in options_in(StepKeywords, OtherOptions).items() if one.readers
}
OPTIONS = tuple(OPTIONS_BY_NAME.values())
#: Options that repeat the papers' auctions, by name.
PAPERS = ("model", "preset", "weights", "bid_order", "award_alone", "preference_table")


def read_by(reader: str) -> tuple[Option[Any], ...]:
    """Return a reader's options, in order."""
    return tuple(option for option in OPTIONS if reader in option.readers)
