"""The options of a step, checked on construction; presets of the papers and published plugins."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..bidgen.generate import BidOptions
from ..cluster.errors import OptionError
from ..cluster.option_fields import numbers_text, options_in
from ..cluster.option_table import OPTIONS_BY_NAME, StepRecord
from ..cluster.promises import AUTO, BACKFILL, DEFAULT, NONE
from ..models.auction_model import Aucsched1, Aucsched2, Aucsched3
from ..models.ipsched import Ipsched
from ..models.model import OBJECTIVES, Model, Valuation
from ..models.search.search_parameters import DEFAULT_PARAMETERS, SearchParameters, parameters_of
from ..models.solve.solver import EXPORTS

#: The models in the order of the thesis.
MODELS_BY_NAME: Mapping[str, type[Model]] = {
    model.name: model for model in (Ipsched, Aucsched1, Aucsched2, Aucsched3)
}
#: Every model that can be asked for by name, and those whose jobs bid.
MODELS = tuple(MODELS_BY_NAME)
AUCTIONS = tuple(name for name, model in MODELS_BY_NAME.items() if model.has_bids)

#: Window of a step that keeps a balanced mix: a share is filled from many jobs of its shape.
BALANCED_WINDOW = 400

#: Options that say how jobs bid, or which of equal awards of bids is preferred.
_CAPS = ("max_bids", "max_bids_per_job")
OF_BIDS = ("balance", "bid_order", "keep_whole", *_CAPS)

#: Seconds that end a step where no limit is given and work does not.
TIME_LIMIT_S = float(str(OPTIONS_BY_NAME["time_limit_s"].default))

#: Preset → model → option values: the thesis's text, and the published plugins' code.
PRESETS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    preset: {name: model.presets[preset] for name, model in MODELS_BY_NAME.items() if preset in model.presets}
    for preset in ("paper", "plugin")
}


@dataclass(kw_only=True, unsafe_hash=True)
class StepOptions(StepRecord):
    """How a step is to run: options (cluster/option_table.py) that exclude each other are refused.

    Attributes:
        began: when the step's time began, by the clock; None: when it is asked to decide.
    """

    began: float | None = None

    def __post_init__(self) -> None:
        given = vars(self)
        for name, option in OPTIONS_BY_NAME.items():
            if given.get(name) is not None:
                option.check(given[name])
        self._check_ignored()
        self._check_strategy()
        if isinstance(self.search_parameters, Mapping):
            given["search_parameters"] = numbers_text(self.search_parameters)

    def _check_ignored(self) -> None:
        """Refuse values that the model has no use for, and files of no known form."""
        for name in () if self.auction.has_bids else OF_BIDS:
            if getattr(self, name) not in (None, False, "spec"):
                raise OptionError(f"{name}: {self.model} places without bids")
        if self.preference_table != "corrected" and not self.auction.reads_preference_table:
            readers = " and ".join(name for name, one in MODELS_BY_NAME.items() if one.reads_preference_table)
            raise OptionError(f"preference_table: table 5.2 is {readers}'s, {self.model} does not read it")
        if self.keep_whole and self.weights == "paper":
            raise OptionError("keep_whole: it has lexicographic weights only")
        if self.backfills:
            self._check_backfilled()
        if self.export and not self.export.endswith(EXPORTS):
            raise OptionError(f"export: {self.export!r} ends in neither {' nor '.join(EXPORTS)}")

    def _check_strategy(self) -> None:
        """Refuse combinations in which an option would be ignored."""
        if self.workers > 1 and self.dask:
            raise OptionError("workers: with dask the cluster's own workers auction the parts")
        of_parts = {"part_nodes": self.part_nodes is not None, "dask": self.dask, "workers": self.workers > 1}
        asked = [name for name, is_given in of_parts.items() if is_given]
        if asked and not self.is_anytime:
            raise OptionError(f"{asked[0]}: only strategy anytime takes a cluster in parts")
        if self.steering is not DEFAULT_PARAMETERS and not self.is_anytime:
            raise OptionError("search_parameters: only strategy anytime searches")
        if self.balance:
            self._check_balance()
        has_bids = self.auction.has_bids
        if self.strategy == "greedy" and (not has_bids or self.weights == "paper"):
            what = "it has lexicographic weights only" if has_bids else f"{self.model} places without bids"
            raise OptionError(f"strategy: greedy is not available here: {what}")
        for name in unread_by_greedy(self.strategy, balance=self.balance):
            if getattr(self, name) is not None:
                why = "awards the first bids of a balance, one a job" if name in _CAPS else "reaches no limit"
                default = "" if self.strategy else " (the default with a balance)"
                raise OptionError(f"{name}: strategy greedy {why}{default}")
        if self.strategy == "anytime" and not self._has_anytime:
            if self.weights == "paper":
                raise OptionError("strategy: anytime has lexicographic weights only")
            searched = " and ".join(name for name, one in MODELS_BY_NAME.items() if one.is_searched)
            raise OptionError(f"strategy: anytime is for {searched}, not {self.model}")

    @cached_property
    def steering(self) -> SearchParameters:
        """What steers the search."""
        return parameters_of(self.search_parameters, "search_parameters")

    @cached_property
    def auction(self) -> type[Model]:
        """The model itself."""
        return MODELS_BY_NAME[self.model]

    @property
    def valuation(self) -> Valuation:
        """What a started job counts."""
        return OBJECTIVES[self.objective]

    def _check_balance(self) -> None:
        """Refuse what a balance would leave without meaning."""
        if self.weights == "paper":
            raise OptionError("balance: it has lexicographic weights only")
        if self.bid_order != "spec":
            raise OptionError(f"balance: bid_order {self.bid_order} makes no first bids")
        if self.objective == "priority_cores":
            raise OptionError("balance: a job counts by how hard it is to place, not by priority_cores")

    def _check_backfilled(self) -> None:
        """Refuse what would not start every job that it could."""
        if self.award_alone:
            raise OptionError("promise: backfill starts jobs next to the award, award_alone starts none")
        if self.balance:
            raise OptionError("promise: backfill starts jobs by priority, a balance by their classes")
        if self.weights == "paper":
            raise OptionError("promise: backfill has lexicographic weights only")
        if self.bid_order != "spec":
            raise OptionError(f"promise: bid_order {self.bid_order} makes no first bids for backfill")

    @property
    def _has_anytime(self) -> bool:
        return self.auction.is_searched and self.weights == "lexicographic"

    @cached_property
    def chosen_promise(self) -> str:
        """The promise, the default resolved; by default ``none`` keeps what jobs were promised.

        Starts by a value other than priority, alone, or without a reservation are no backfilling.
        """
        if self.promise is not None:
            return self.promise
        promise = DEFAULT.get(self.objective, NONE)
        is_plain = (self.weights, self.bid_order) == ("lexicographic", "spec") and self.reserve != 0
        is_backfilling = is_plain and not (self.balance or self.award_alone)
        return promise if promise != BACKFILL or is_backfilling else NONE

    @cached_property
    def reservations(self) -> int:
        """How many blocked jobs get a reservation."""
        if self.reserve is not None:
            return self.reserve
        # What is kept under auto is kept for who is due first, not for whose start is worth most.
        return 0 if self.chosen_promise == AUTO else _default("reserve")

    @property
    def jobs_in_sight(self) -> int | None:
        """The jobs that a step may start: its window, or all (None) if it completes its award."""
        return self.window if self.award_alone or self.balance else None

    @cached_property
    def backfills(self) -> bool:
        """Whether every job starts that plain backfilling would start."""
        return self.chosen_promise == BACKFILL

    @cached_property
    def is_anytime(self) -> bool:
        """Whether a step searches, then solves the rest; else it solves at once or is greedy."""
        return self.chosen_strategy == "anytime"

    @cached_property
    def chosen_strategy(self) -> str:
        """The strategy, the default resolved."""
        if self.strategy is not None:
            return self.strategy
        if self.balance:
            return "greedy"
        return "anytime" if self._has_anytime else "exact"

    @cached_property
    def most_work(self) -> int | None:
        """The work limit, or its default; None if only the clock ends a step, or nothing has to."""
        if self.is_greedy or self.work_limit is not None or self.time_limit_s is not None:
            return self.work_limit
        return _default("work_limit")

    @cached_property
    def most_s(self) -> float | None:
        """Seconds after which the clock ends a step; None: it never does."""
        if self.is_greedy or (self.work_limit is not None and self.time_limit_s is None):
            return None
        return TIME_LIMIT_S if self.time_limit_s is None else self.time_limit_s

    @cached_property
    def chosen_on_timeout(self) -> str:
        """What a limit before a proof leads to, the default resolved."""
        return self.on_timeout or ("incumbent" if self.is_anytime and self.most_s is None else "halve")

    @cached_property
    def selects(self) -> bool:
        """Whether only the jobs chosen by counts bid, if first-fit starts them all or they are few.

        First bids are where first-fit starts jobs: where none are made, all jobs bid.
        """
        has_first_bids = self.auction.has_bids and self.bid_order == "spec"
        is_searched = has_first_bids and not (self.is_greedy or self.export or self.award_alone)
        return is_searched and self.weights == "lexicographic"

    @property
    def counts_may_prove(self) -> bool:
        """Whether counts may say that no other award of the jobs is worth more, or preferred."""
        return self.is_anytime and not self.export

    @cached_property
    def is_greedy(self) -> bool:
        """Whether a step makes greedy awards only."""
        return self.chosen_strategy == "greedy"

    @property
    def nodes_of_a_part(self) -> int:
        """The most nodes that are auctioned in one piece."""
        return _default("part_nodes") if self.part_nodes is None else self.part_nodes

    @property
    def bids_in_all(self) -> int:
        """MAXBIDS."""
        return self.auction.caps[0] if self.max_bids is None else self.max_bids

    @cached_property
    def bids(self) -> BidOptions:
        """How bids are made."""
        return BidOptions(
            max_bids=self.bids_in_all,
            max_bids_per_job=self.bids_per_job,
            use_switches=self.auction.uses_switches,
            spreads_jobs=self.auction.spreads_jobs or self.bid_order == "spec",
            order=self.bid_order,
        )

    def resolved(self) -> dict[str, Any]:
        """Return what each option is, its default resolved, by name; None where nobody bids."""
        found = {name: getattr(self, _RESOLVED.get(name, name)) for name in options_in(StepOptions)}
        unread = unread_by_greedy(self.strategy, balance=self.balance)
        return found | dict.fromkeys(unread if self.auction.has_bids else OF_BIDS)

    @property
    def bids_per_job(self) -> int:
        """MAXBIDSPERJOB."""
        return self.auction.caps[1] if self.max_bids_per_job is None else self.max_bids_per_job


#: Option whose default depends on others -> what resolves it.
_RESOLVED = {
    "strategy": "chosen_strategy",
    "promise": "chosen_promise",
    "on_timeout": "chosen_on_timeout",
    "reserve": "reservations",
    "max_bids": "bids_in_all",
    "max_bids_per_job": "bids_per_job",
    "time_limit_s": "most_s",
    "work_limit": "most_work",
    "part_nodes": "nodes_of_a_part",
}


def _default(name: str) -> int:
    """Return the number that an option has where nothing is said."""
    return int(str(OPTIONS_BY_NAME[name].default))


def unread_by_greedy(strategy: object, *, balance: bool) -> tuple[str, ...]:
    """Return the options that a greedy step ignores; with a balance steps are greedy by default."""
    if strategy != "greedy" and not (balance and strategy is None):
        return ()
    return ("work_limit", "time_limit_s", "on_timeout", *(_CAPS if balance else ()))


def options_with_preset(given: Mapping[str, Any]) -> StepOptions:
    """Return the options that are given, above those of the preset among them.

    Raises:
        OptionError: there is no such preset, or it says nothing of the model.
    """
    explicit = {name: value for name, value in given.items() if value is not None}
    preset = explicit.pop("preset", None)
    if explicit.get("balance"):
        explicit = {"window": BALANCED_WINDOW, **explicit}
    if preset is None:
        return StepOptions(**explicit)
    OPTIONS_BY_NAME["preset"].check(preset)
    model = explicit.get("model", OPTIONS_BY_NAME["model"].default)
    OPTIONS_BY_NAME["model"].check(model)
    if model not in PRESETS[preset]:
        raise OptionError(f"preset: the constants of {model}'s published plugin are not known here")
    # Work counts, not the papers' seconds; of what a greedy step ignores nothing is the preset's.
    unread = {"time_limit_s"} if "work_limit" in explicit else set[str]()
    unread.update(unread_by_greedy(explicit.get("strategy"), balance=bool(explicit.get("balance"))))
    of_preset = {name: value for name, value in PRESETS[preset][model].items() if name not in unread}
    StepOptions(**explicit)
    try:
        return StepOptions(**{**of_preset, **explicit})
    except OptionError as error:
        raise OptionError(f"preset: {preset} has values that do not allow this: {error}") from None
