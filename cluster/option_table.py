"""Every option of an auction, once: click options, axes of sweeps, checks and docs/options.md come from it.

No numpy here: ``--help`` reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .errors import OptionError
from .promises import check_promise
from .text import not_one_of

#: Who reads an option: commands that take one step over a snapshot, simulations, sweeps over either, and
#: negotiations, for each Map, and winner determination over any bids.
STEP, SIMULATE, SWEEP, NEGOTIATE = "schedule, explain, compare", "simulate", "sweep", "negotiate, ibsched"
WINNERS = "winners"
SCHEDULE = "schedule"
_ALL = (STEP, SIMULATE, SWEEP)

#: The largest window, cap or count of steps; larger values are taken for typing errors.
LARGEST = 10**7
LARGEST_SEED = 2**31 - 1
#: What ends a step where no limit is given (docs/decisions/0112).
WORK_LIMIT = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOption:
    """An option of a step.

    Attributes:
        name: in Python, and a sweep's column.
        help: a sentence or two, for ``--help`` and the reference.
        choices: the texts it may be; empty where it is a number, a file or a switch.
        low, high: the least and the greatest number it may be; None where it is no number.
        is_whole: only integers.
        unit: of the number, as the command line shows it.
        is_switch: on or off.
        check_text: raises OptionError where a text is none; None: it is no text of its own form.
        default: where nothing is said; a text describes one that depends on something.
        other_defaults: the same where a reader asks another question, with the reason in brackets; commands
            that decide about a queue (schedule, simulate, slurm run and their like) have one default.
        readers: who takes it.
        auctions_with_bids: a simulation's policy ipsched does not read it.
    """

    name: str
    help: str
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    is_whole: bool = True
    unit: str = ""
    is_switch: bool = False
    check_text: Callable[[str], None] | None = None
    default: object = None
    other_defaults: Mapping[str, object] = field(default_factory=dict)
    readers: tuple[str, ...] = _ALL
    auctions_with_bids: bool = False

    @property
    def flag(self) -> str:
        """Its name on the command line."""
        return f"--{self.name.removesuffix('_s').replace('_', '-')}"

    @property
    def is_number(self) -> bool:
        """Whether it is a number."""
        return self.low is not None

    def default_of(self, reader: str) -> object:
        """Return the default for a reader, in words where it depends on something; None: there is none."""
        return self.other_defaults.get(reader, self.default)

    def check(self, value: Any) -> None:
        """Raise OptionError where a value is none of this option's."""
        if self.choices:
            if value not in self.choices:
                raise OptionError(f"{self.name}: {not_one_of(value, self.choices)}")
        elif self.is_switch:
            if not isinstance(value, bool):
                raise OptionError(f"{self.name}: {value!r} is neither True nor False")
        elif self.is_number:
            self._check_number(value)
        elif self.check_text is not None:
            self.check_text(value)

    def _check_number(self, value: Any) -> None:
        assert self.low is not None  # noqa: S101 - it is a number
        if not self.is_whole:
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not is_number or not self.low < value < float("inf"):
                raise OptionError(f"{self.name}: {value!r} is not a positive number of {self.unit.lower()}")
            return
        if not isinstance(value, int) or isinstance(value, bool):
            raise OptionError(f"{self.name}: {value!r} is not an integer")
        if value < self.low:
            raise OptionError(f"{self.name}: {value} is below {self.low:g}")
        if self.high is not None and value > self.high:
            raise OptionError(f"{self.name}: {value} is above {self.high:.0f}")


def _count(name: str, text: str, low: int = 1, high: int = LARGEST, **others: Any) -> StepOption:
    return StepOption(name=name, help=text, low=low, high=high, **others)


def _check_address(text: str) -> None:
    if not isinstance(text, str):
        raise OptionError(f"dask: {text!r} is no address")


OPTIONS: tuple[StepOption, ...] = (
    StepOption(
        name="model",
        help="The model of the thesis (an integer program) to solve.",
        choices=("ipsched", "aucsched1", "aucsched2", "aucsched3"),
        default="aucsched3",
        readers=(STEP, SWEEP),
    ),
    StepOption(
        name="preset",
        help="Take the values of the papers or of their published plugins. A given option overrides them.",
        choices=("paper", "plugin"),
    ),
    _count("window", "Jobs of highest priority that take part (MAX_JOB_COUNT).", default=100),
    _count(
        "max_bids",
        "Bids of all jobs together (MAXBIDS).",
        default="the model's: 6000, aucsched1 150",
        auctions_with_bids=True,
    ),
    _count(
        "max_bids_per_job",
        "Bids of one job (MAXBIDSPERJOB).",
        default="the model's: 60, aucsched1 15",
        auctions_with_bids=True,
    ),
    StepOption(
        name="bid_order",
        help="How --max-bids limits the bids. spec: the jobs add a bid each in turn; figure-4.5: as in that "
        "figure of the thesis, where jobs of high priority use up the cap.",
        choices=("spec", "figure-4.5"),
        default="spec",
        auctions_with_bids=True,
    ),
    StepOption(
        name="strategy",
        help="exact: HiGHS over all bids; anytime: search, then HiGHS over the bids that could still be in a "
        "better award; greedy: first-fit and greedy awards only.",
        choices=("exact", "anytime", "greedy"),
        default="anytime for aucsched2 and aucsched3 under lexicographic weights, else exact; "
        "greedy with --balance",
        other_defaults={
            NEGOTIATE: "greedy, with a limit anytime (a run decides about thousands of Maps)",
            WINNERS: "anytime (bids of any problem)",
        },
        readers=(*_ALL, NEGOTIATE, WINNERS),
        auctions_with_bids=True,
    ),
    StepOption(
        name="balance",
        help="Keep the shapes of running jobs in the proportions of the waiting ones. The window is then "
        "400; the default strategy is then greedy, which gives a job the fewest gres of a range.",
        is_switch=True,
        default=False,
        auctions_with_bids=True,
    ),
    StepOption(
        name="award_alone",
        help="Start only the winners of the auction, as in the papers. By default jobs that still fit "
        "afterwards start, too. On an empty machine without a winner they start in any case.",
        is_switch=True,
        default=False,
    ),
    StepOption(
        name="time_limit_s",
        help="Seconds of wall time for the whole step, from reading the file to the answer. By default the "
        "work limit ends a step first. With --time-limit and no --work-limit the search runs until then.",
        low=0,
        is_whole=False,
        unit="SECONDS",
        default=3.0,
        other_defaults={NEGOTIATE: "none (work counts, so that runs repeat)"},
        readers=(STEP, SWEEP, NEGOTIATE, WINNERS),
    ),
    _count(
        "work_limit",
        "Steps of the search; with strategy exact, branch-and-bound nodes of each solve. The result is the "
        "same on every machine. With --work-limit and no --time-limit the clock ends no search; a solve of "
        "N nodes ends after 20 s + N · 20 s.",
        low=0,
        default=WORK_LIMIT,
        other_defaults={
            NEGOTIATE: "2 where a Map is searched (a run decides about thousands of Maps)",
            WINNERS: "none (bids of any problem: the time limit counts)",
        },
        readers=(*_ALL, NEGOTIATE, WINNERS),
    ),
    _count(
        "part_nodes",
        "Search a cluster of more nodes than this in parts of at most this size.",
        default=20_000,
        readers=(STEP,),
    ),
    StepOption(
        name="on_timeout",
        help="What to do when a limit ends a step before its proof. halve: the next pass takes half as many "
        "jobs. incumbent: as many. discard: start nothing now, and take half as many.",
        choices=("halve", "incumbent", "discard"),
        default="halve; the default work limit ends no step in this sense",
    ),
    StepOption(
        name="window_from",
        help="Schedule file of the pass before: as many jobs take part as its window.next says, half as many "
        "after a timeout.",
        unit="FILE",
        readers=(SCHEDULE,),
    ),
    StepOption(
        name="weights",
        help="Maximise priorities exactly before preference, or the papers' weighted sum of both.",
        choices=("lexicographic", "paper"),
        default="lexicographic",
    ),
    StepOption(
        name="objective",
        help="Value of a started job: its priority, its priority times its cores, or the bounded slowdown "
        "that a second less of its wait saves.",
        choices=("priority", "priority_cores", "response"),
        default="priority",
    ),
    StepOption(
        name="promise",
        help="The latest start that the scheduler promises to waiting jobs. backfill: each job that plain "
        "backfilling starts now starts now. plan: no job starts later than in a plan of the queue. A "
        "duration (15m, 2d): the later of that plan's start and so long after submission. auto: a time that "
        "follows from the log's past waits. none: no promise. A promise holds while time limits and nodes "
        "do.",
        unit="plan|DURATION|auto|backfill|none",
        check_text=check_promise,
        default="backfill; auto with objective response; with --reserve 0, --balance, --award-alone, "
        "--preempt, --bid-order figure-4.5, priority_cores or the papers' weights only what jobs were "
        "promised (promised_start)",
        other_defaults={"slurm run with objective response": "15m (auto needs a log's waits)"},
    ),
    _count(
        "reserve",
        "Reserve for this many of the first blocked jobs: nothing that delays them starts.",
        low=0,
        default=1,
        other_defaults={
            "with promise auto": "0 (promises are reservations)",
            "slurm run with plan or a duration": "0 (the same)",
        },
    ),
    StepOption(
        name="preference_table",
        help="Constants of aucsched2's preference: table 5.2 of the thesis corrected, or as printed.",
        choices=("corrected", "printed"),
        default="corrected",
        readers=(STEP, SWEEP),
    ),
    _count(
        "seed",
        "Seed of the search and of HiGHS.",
        low=0,
        high=LARGEST_SEED,
        default=0,
        readers=(*_ALL, WINNERS),
    ),
    _count(
        "workers",
        "Processes that search in parallel, each on parts of the cluster (--part-nodes). Under a work limit "
        "their number changes only the time.",
        high=1024,
        default=1,
        readers=(STEP, WINNERS),
    ),
    StepOption(
        name="dask",
        help="Search the parts of a cluster (--part-nodes) on a Dask cluster: its scheduler's address.",
        unit="ADDRESS",
        check_text=_check_address,
        readers=(STEP,),
    ),
    StepOption(
        name="round",
        help="Round values to integers, halves to even.",
        is_switch=True,
        default="on for CATS's files, off for JSON",
        readers=(WINNERS,),
    ),
)
OPTIONS_BY_NAME: Mapping[str, StepOption] = {option.name: option for option in OPTIONS}


def read_by(reader: str) -> tuple[StepOption, ...]:
    """Return a reader's options, in order."""
    return tuple(option for option in OPTIONS if reader in option.readers)
