"""The options of a step, checked on construction; presets of the papers and of their published plugins."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..cluster.errors import OptionError
from ..cluster.option_table import OPTIONS, OPTIONS_BY_NAME
from ..cluster.promises import AUTO, BACKFILL, NONE
from ..models.aucsched1 import Aucsched1
from ..models.aucsched2 import Aucsched2
from ..models.aucsched3 import Aucsched3
from ..models.ipsched import Ipsched
from ..models.model import Model

#: The models in the order of the thesis.
MODELS_BY_NAME: Mapping[str, type[Model]] = {
    model.name: model for model in (Ipsched, Aucsched1, Aucsched2, Aucsched3)
}
#: Every model that can be asked for by name, and those whose jobs bid.
MODELS = tuple(MODELS_BY_NAME)
AUCTIONS = tuple(name for name, model in MODELS_BY_NAME.items() if model.has_bids)

EXPORTS = (".mps", ".lp")

#: Window of a step, and of one that keeps a balanced mix: a share is filled from many jobs of its shape.
WINDOW, BALANCED_WINDOW = 100, 400

#: Seconds that end a step where no limit is given and work does not.
TIME_LIMIT_S = float(str(OPTIONS_BY_NAME["time_limit_s"].default))

#: Preset → model → option values: the thesis's text, and the published plugins' code.
PRESETS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    preset: {name: model.presets[preset] for name, model in MODELS_BY_NAME.items() if preset in model.presets}
    for preset in ("paper", "plugin")
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOptions:
    """How a step is to run.

    Attributes:
        model: name in MODELS.
        window: jobs of highest priority that take part (MAX_JOB_COUNT).
        max_bids, max_bids_per_job: MAXBIDS and MAXBIDSPERJOB; None takes the model's .
        time_limit_s: wall time of the whole step: bids, programs, search and solves of all its attempts.
            Without ``work_limit`` it alone ends a search; with one, or by default, it ends what work does
            not. None: the table's, or no end where a work limit is given.
        weights: ``lexicographic``, priorities exactly before preference; ``paper``, the printed sum.
        objective: ``priority``, ``priority_cores`` (each priority times the job's cores) or ``response``
            (what a second less of the job's wait saves in bounded slowdown, worth.py).
        strategy: ``anytime``: greedy awards, prices and search, then the model in PuLP over the bids that
            could still be in a better award, solved by HiGHS from the award at hand; for AUCSCHED2 and 3
            under lexicographic weights. ``exact``, the papers': the model over all bids, solved by HiGHS.
            ``greedy``: first-fit and greedy awards over the bids; nothing is proved and no limit reached.
            None takes ``anytime`` where it can be had, else ``exact``; ``greedy`` where a balance is kept.
        balance: keep what runs in the proportions of what waits (docs/decisions/0038): shares of shapes and
            kept cores are rows of the program, each job counts what it is hard to place, first bids are made
            shape by shape. ``greedy`` awards are these first bids, and no other award is worth less.
        award_alone: who wins starts and nobody else; otherwise a step is complete: whoever of the queue could
            start on what the award leaves starts too, as on an empty machine on which nobody wins.
        work_limit: the same everywhere: steps of the search for ``anytime``, branch-and-bound nodes of each
            solve for ``exact``. None: the table's, or none where a time limit is given.
        part_nodes: for ``anytime``: a cluster of more nodes is auctioned in parts of at most this size, cut
            along its switches (parts.py); the time limit holds for all together, the work limit for each.
            None is the default of the table of options.
        workers: processes that auction parts of a cluster at once. Under a work limit their number changes
            nothing but the time. ``clock`` has to be one that another process can be given.
        dask: address of a Dask scheduler whose workers auction the parts instead.
        on_timeout: when a limit comes before a proof: ``halve``, the award found stands and the next step's
            window is halved (``exact`` tries halves at once while time is left); ``incumbent``, the award
            stands; ``discard``, nothing starts and the next window is halved (Soner, section 3.2). None:
            ``halve``, but a search that made all its steps has reached no limit.
        promise: ``none`` leaves the starts alone that jobs were promised (``Job.promised_start``); else
            nothing starts that would put them off. ``backfill`` starts besides every job that plain
            backfilling would start, in the order of the queue; the auction says where, and what else starts.
            None: see ``chosen_promise``.
        reserve: how many blocked jobs get a reservation; None: see ``reservations``.
        seed: HiGHS's random seed.
        preference_table: constants of (5.7): ``corrected`` or ``printed`` (table 5.2).
        bid_order: ``spec`` (the classes in turn), or ``figure-4.5``, in which high priorities use up the cap.
        export: file for the first attempt's integer program, ``.mps`` or ``.lp``; empty for none.
        clock: seconds of wall time.
        began: when the step's time began, by the clock; None: when it is asked to decide.
    """

    model: str = "aucsched3"
    window: int = WINDOW
    max_bids: int | None = None
    max_bids_per_job: int | None = None
    time_limit_s: float | None = None
    weights: str = "lexicographic"
    objective: str = "priority"
    strategy: str | None = None
    balance: bool = False
    award_alone: bool = False
    work_limit: int | None = None
    part_nodes: int | None = None
    workers: int = 1
    dask: str | None = None
    on_timeout: str | None = None
    promise: str | None = None
    reserve: int | None = None
    seed: int = 0
    preference_table: str = "corrected"
    bid_order: str = "spec"
    export: str = ""
    clock: Callable[[], float] = time.perf_counter
    began: float | None = None

    def __post_init__(self) -> None:
        for option in OPTIONS:
            value = getattr(self, option.name, None)
            if value is not None:
                option.check(value)
        self._check_ignored()
        self._check_strategy()

    def _check_ignored(self) -> None:
        """Refuse values that the model has no use for, and files of no known form."""
        if self.preference_table != "corrected" and not self.auction.reads_preference_table:
            readers = " and ".join(name for name, one in MODELS_BY_NAME.items() if one.reads_preference_table)
            raise OptionError(f"preference_table: table 5.2 is {readers}'s, {self.model} does not read it")
        if self.backfills:
            self._check_backfilled()
        if self.export and not self.export.endswith(EXPORTS):
            raise OptionError(f"export: {self.export!r} ends in neither {' nor '.join(EXPORTS)}")

    def _check_strategy(self) -> None:
        """Refuse combinations in which an option would be ignored."""
        if self.part_nodes is not None and not self.is_anytime:
            raise OptionError("part_nodes: only strategy anytime takes a cluster in parts")
        if self.workers > 1 and self.dask:
            raise OptionError("workers: with dask the cluster's own workers auction the parts")
        if (self.workers > 1 or self.dask) and not self.is_anytime:
            name = "dask" if self.dask else "workers"
            raise OptionError(f"{name}: only strategy anytime takes a cluster in parts")
        if self.balance:
            self._check_balance()
        has_bids = self.auction.has_bids
        if self.strategy == "greedy" and (not has_bids or self.weights == "paper"):
            what = "it has lexicographic weights only" if has_bids else f"{self.model} places without bids"
            raise OptionError(f"strategy: greedy is not available here: {what}")
        if self.is_greedy and self.work_limit is not None:
            raise OptionError("work_limit: strategy greedy reaches no limit")
        if self.strategy == "anytime" and not self._has_anytime:
            if self.weights == "paper":
                raise OptionError("strategy: anytime has lexicographic weights only")
            searched = " and ".join(name for name, one in MODELS_BY_NAME.items() if one.is_searched)
            raise OptionError(f"strategy: anytime is for {searched}, not {self.model}")

    @property
    def auction(self) -> type[Model]:
        """The model itself."""
        return MODELS_BY_NAME[self.model]

    def _check_balance(self) -> None:
        """Refuse what a balance would leave without meaning."""
        if not self.auction.has_bids:
            raise OptionError(f"balance: {self.model} places without bids")
        if self.weights == "paper":
            raise OptionError("balance: it has lexicographic weights only")
        if self.bid_order != "spec":
            raise OptionError(f"balance: bid_order {self.bid_order} makes no first bids")

    def _check_backfilled(self) -> None:
        """Refuse what would not start every job that it could."""
        if self.award_alone:
            raise OptionError("promise: backfill starts jobs beside the award, award_alone starts none")
        if self.balance:
            raise OptionError("promise: backfill starts jobs by priority, a balance by their shapes")
        if self.weights == "paper":
            raise OptionError("promise: backfill has lexicographic weights only")
        if self.bid_order != "spec":
            raise OptionError(f"promise: bid_order {self.bid_order} makes no first bids for backfill")

    @property
    def _has_anytime(self) -> bool:
        return self.auction.is_searched and self.weights == "lexicographic"

    @property
    def chosen_promise(self) -> str:
        """The promise, the default resolved; by default ``none`` keeps what jobs were promised.

        What starts by another value than its priority, alone, or beside no reservation is not backfilling.
        """
        if self.promise is not None:
            return self.promise
        if self.objective == "response":
            return AUTO
        is_plain = (self.objective, self.weights, self.bid_order) == ("priority", "lexicographic", "spec")
        is_backfilling = is_plain and self.reserve != 0 and not (self.balance or self.award_alone)
        return BACKFILL if is_backfilling else NONE

    @property
    def reservations(self) -> int:
        """How many blocked jobs get a reservation."""
        if self.reserve is not None:
            return self.reserve
        # What is kept under auto is kept for who is due first, not for whose start is worth most.
        return 0 if self.chosen_promise == AUTO else _default("reserve")

    @property
    def backfills(self) -> bool:
        """Whether every job starts that plain backfilling would start."""
        return self.chosen_promise == BACKFILL

    @property
    def is_anytime(self) -> bool:
        """Whether a step searches, then solves what is left; otherwise it solves at once or is greedy."""
        return self.chosen_strategy == "anytime"

    @property
    def chosen_strategy(self) -> str:
        """The strategy, the default resolved."""
        if self.strategy is not None:
            return self.strategy
        if self.balance:
            return "greedy"
        return "anytime" if self._has_anytime else "exact"

    @property
    def most_work(self) -> int | None:
        """The work limit, the default resolved; None where only the clock ends a step, or nothing has to."""
        if self.is_greedy or self.work_limit is not None or self.time_limit_s is not None:
            return self.work_limit
        return _default("work_limit")

    @property
    def most_s(self) -> float | None:
        """Seconds after which the clock ends a step; None: it never does."""
        if self.is_greedy or (self.work_limit is not None and self.time_limit_s is None):
            return None
        return TIME_LIMIT_S if self.time_limit_s is None else self.time_limit_s

    @property
    def chosen_on_timeout(self) -> str:
        """What a limit before a proof leads to, the default resolved."""
        return self.on_timeout or ("incumbent" if self.is_anytime and self.most_s is None else "halve")

    @property
    def is_greedy(self) -> bool:
        """Whether a step makes greedy awards only."""
        return self.chosen_strategy == "greedy"

    @property
    def nodes_of_a_part(self) -> int:
        """The most nodes that are auctioned in one piece."""
        if self.part_nodes is not None:
            return self.part_nodes
        return _default("part_nodes")

    @property
    def bids_in_all(self) -> int:
        """MAXBIDS."""
        return self.auction.caps[0] if self.max_bids is None else self.max_bids

    @property
    def bids_per_job(self) -> int:
        """MAXBIDSPERJOB."""
        return self.auction.caps[1] if self.max_bids_per_job is None else self.max_bids_per_job


def _default(name: str) -> int:
    """Return a number that the table of options has for a default."""
    return int(str(OPTIONS_BY_NAME[name].default))


def options_with_preset(preset: str | None, explicit: Mapping[str, Any]) -> StepOptions:
    """Return the options of a preset, overridden by those given explicitly.

    Raises:
        OptionError: there is no such preset, or it says nothing of the model.
    """
    if explicit.get("balance"):
        explicit = {"window": BALANCED_WINDOW, **explicit}
    if preset is None:
        return StepOptions(**explicit)
    OPTIONS_BY_NAME["preset"].check(preset)
    model = explicit.get("model", "aucsched3")
    OPTIONS_BY_NAME["model"].check(model)
    if model not in PRESETS[preset]:
        raise OptionError(f"preset: the constants of {model}'s published plugin are not known here")
    values = {**PRESETS[preset][model], **explicit}
    if "work_limit" in explicit and "time_limit_s" not in explicit:
        # Work counts instead of the papers' seconds.
        values.pop("time_limit_s", None)
    return StepOptions(**values)
