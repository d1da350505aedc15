"""What a search is given, its limits and the numbers that steer it, and what it gives back.

The numbers are one record that a caller can change and results can name. They say which operator
works when, for how long, and what HiGHS and branch and bound are given. Constants of the modules
are no parameters: they are places in the columns of compiled kernels, numbers that kernels compile
in, bounds of memory, or numbers of one operator that were measured together.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from typing import Any

from ...cluster.errors import OptionError
from ...cluster.resources.capacity import FloatArray, IntArray
from ...cluster.text import did_you_mean
from ..solve.lexicographic import NO_LIMIT_S, SolveSettings
from ..solve.program import IntegerProgram
from ..solve.solver import SolverStatus

#: Seconds that are left where a proof is begun.
PROOF_S = 0.5
#: The largest number that a parameter may be where it is no share: loops count in 64 bits.
_MOST = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchParameters:
    """What steers the search; the defaults are what was measured (benchmarks/notes/quality.md).

    "Without it" says what runs of 40 counted steps lose in the mean, at most and in processor time:
    benchmarks/notes/search-parameters.md has the runs. Parameters marked "clock" count only where a
    clock does, and no counted run shows them.

    Attributes:
        moves: exchanges of a step that is counted: its unit.
        move_share: share of the time for moves (clock); ``move_share_beside``: where repairs or
            swaps take turns with them.
        swap_share: share of the time for swaps (clock).
        step_s: seconds that a step lasts at least (clock).
        repair_choice: bids of a job, on average, from which on destroying and repairing pays though
            each bid takes all of its rows. Without it: the same in counted
            steps; a clock shows it on whole nodes (docs/decisions/0080).
        only_moves: counted steps before small auctions join in. Without it: a tenth more time.
        only_moves_share: share of the time before that (clock).
        auction_every: from then on, of so many steps one is a small auction or a repair. Two
            instead of three: up to 0.16 % less.
        auction_of_turns: of so many such turns one is an auction where repairs pay. Without it: the
            same in counted steps; there are no repairs then (docs/decisions/0070).
        swap_turn: the place among ``auction_every`` steps, from 0 on, at which swaps have their turn
            (clock); there are none if it is as large as that.
        prefer_every: of so many steps one betters preference. Without it: one of 15 awards is less
            preferred.
        merge_every: of so many steps one looks for the best award of all winners of several awards.
            Without it: the same in 40 steps, of which one is a merge; in 120 up to 0.23 % less.
        whole_at_once: bids that HiGHS is given whole at first (clock; counted, from ``first_whole`` on).
        whole_counted: the same where steps are counted. Without it: up to 1.6 % less.
        whole_later: the same once the gap is ``near``. Without it: up to 0.7 % less, three of 42
            awards not proved.
        first_whole: the step from which on, at powers of two, the whole program is tried again (not
            measured).
        whole_share: share of what is left of the time for a whole program (clock).
        branched: bids that branch and bound alone is given before a search and after its first
            step. Without it: up to twice the time; 35 of 79 passes of table 8.4, workload 1, end
            two steps with a gap above 1 %, up to 92 % (with it: one, of 15 %).
        near: gap below which HiGHS is given more bids than at once. Without it: as ``whole_later``.
        nearly_proved: gap below which any program is given whole. Without it: the award of
            a thousand equal jobs on 999 nodes is not proved most preferred within a minute.
        program_share: share of the time that is kept for HiGHS at the end (clock);
            ``stated_share``: of that, the share in which the program may be stated;
            ``stated_entry_s``: seconds that an entry takes.
        preference_share: share of the time for a proof of the preference once the sum of weights is
            proved (clock).
        patience: steps without a better preference after which a proved award is left as it is.
            Without it: more time; with 0 steps nine of 42 awards are not proved most preferred.
    """

    moves: int = 100
    move_share: float = 0.4
    move_share_beside: float = 0.1
    swap_share: float = 0.5
    step_s: float = 0.02
    repair_choice: int = 8
    only_moves: int = 16
    only_moves_share: float = 0.3
    auction_every: int = 3
    auction_of_turns: int = 2
    swap_turn: int = 2
    prefer_every: int = 16
    merge_every: int = 15
    whole_at_once: int = 700
    whole_counted: int = 250
    whole_later: int = 3000
    first_whole: int = 32
    whole_share: float = 0.6
    branched: int = 4000
    near: float = 0.01
    nearly_proved: float = 1e-4
    program_share: float = 0.15
    stated_share: float = 0.4
    stated_entry_s: float = 4e-5
    preference_share: float = 0.1
    patience: int = 40

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            default = _DEFAULTS[name]
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not is_number or (isinstance(default, int) and not isinstance(value, int)):
                kind = "a whole number" if isinstance(default, int) else "a number"
                raise OptionError(f"parameters: {name}: {value!r} is not {kind}")
            least = 1 if name.endswith(("_every", "_turns")) else 0
            most = 1.0 if isinstance(default, float) and "share" in name else _MOST
            if not least <= value <= most:
                raise OptionError(f"parameters: {name}: {value!r:.40} is not from {least} to {most:g}")

    @property
    def changed(self) -> dict[str, float]:
        """The numbers that are not the defaults, by name."""
        return {name: value for name, value in asdict(self).items() if value != _DEFAULTS[name]}


_DEFAULTS: dict[str, Any] = {one.name: one.default for one in fields(SearchParameters)}
DEFAULT_PARAMETERS = SearchParameters()


def parameters_of(
    given: SearchParameters | Mapping[str, float] | str | None, option: str = "parameters"
) -> SearchParameters:
    """Return the parameters that a caller gives, all of them or some by name; None: the defaults.

    A text is ``moves=50``, or several with colons between (``moves=50:near=0.02``).

    Raises:
        OptionError: there is no such parameter, or its value cannot be used; names the option.
    """
    if isinstance(given, SearchParameters):
        return given
    if isinstance(given, str):
        given = _named(given, option)
    if given is None or given == {}:
        return DEFAULT_PARAMETERS
    if not isinstance(given, Mapping):
        raise OptionError(f"{option}: {given!r:.40} is not a mapping of names to numbers")
    for name in given:
        if name not in _DEFAULTS:
            raise OptionError(f"{option}: the search has no parameter {name}{did_you_mean(name, _DEFAULTS)}")
    whole = {name: _as_whole(value, _DEFAULTS[name]) for name, value in given.items()}
    try:
        return SearchParameters(**whole)
    except OptionError as error:
        raise OptionError(f"{option}{str(error).removeprefix('parameters')}") from None


def _named(text: str, option: str) -> dict[str, float]:
    """Return the numbers of a text by name."""
    given: dict[str, float] = {}
    for part in filter(None, text.split(":")):
        name, _, number = part.partition("=")
        try:
            given[name] = float(number)
        except ValueError:
            raise OptionError(f"{option}: {part!r} is not NAME=NUMBER") from None
    return given


def _as_whole(value: Any, default: float) -> Any:
    """Return a float without a fraction as an integer, where the parameter is one."""
    is_whole = isinstance(default, int) and isinstance(value, float) and value.is_integer()
    return int(value) if is_whole else value


#: Builds the integer program over some bids, ascending.
ProgramBuilder = Callable[[IntArray], IntegerProgram]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchLimits:
    """What the search is given.

    Attributes:
        deadline: when to stop, by ``clock`` (seconds); None when only ``steps`` count.
        steps: steps to make at most; None when only the clock counts. Where there are both, steps
            count, and what is done depends on the clock only once the deadline has come.
        seed: of every random choice.
        solves: whether HiGHS gets programs that are small enough; otherwise there is search alone.
        parameters: what steers the search.
        ends: whether the model is built at the end though nothing is proved: not where more search
            follows.
    """

    deadline: float | None
    steps: int | None
    seed: int
    clock: Callable[[], float]
    parameters: SearchParameters = DEFAULT_PARAMETERS
    solves: bool = True
    ends: bool = True

    @property
    def counts_steps(self) -> bool:
        """Whether steps are counted, not seconds."""
        return self.deadline is None or self.steps is not None

    def left_s(self) -> float:
        """Return the seconds that may be shared out: endless where steps are counted."""
        return NO_LIMIT_S if self.counts_steps else self.ends_in_s()

    def ends_in_s(self) -> float:
        """Return the seconds until the deadline."""
        return NO_LIMIT_S if self.deadline is None else self.deadline - self.clock()

    def settings(
        self, share: float = 1.0, *, nodes: int | None = None, checks: int | None = None
    ) -> SolveSettings:
        """Return what HiGHS has: a share of the time that is left; nodes or checks in its place."""
        return SolveSettings(
            time_limit_s=max(0.0, min(share * self.left_s(), self.ends_in_s())),
            seed=self.seed,
            clock=self.clock,
            most_nodes=nodes,
            most_checks=checks,
        )

    @property
    def may_prove(self) -> bool:
        """Whether a proof by branch and bound may be begun: it ends by itself, soon."""
        return self.solves and self.ends_in_s() > PROOF_S

    def shortened(self, share: float) -> "SearchLimits":
        """Return the same limits without the last share of the time that is left now."""
        if self.deadline is None:
            return self
        return replace(self, deadline=self.deadline - share * max(0.0, self.ends_in_s()))

    def over(self, share: float) -> Callable[[], bool]:
        """Return what tells whether a share of the time that is left now is used up."""
        left = self.left_s()
        return lambda: self.is_over() or self.left_s() <= (1 - share) * left

    def is_over(self) -> bool:
        """Return whether the time is up."""
        return self.deadline is not None and self.ends_in_s() <= 0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Found:
    """What a search found.

    Attributes:
        award: bids, ascending.
        price: of each row of the packing at the bound, in units of weight, shape (rows,).
        status: optimal only where preference is proved too; ``proved``: the sum of weights is.
        bound: on the sum of weights; None: none is known.
        earlier: awards that were the best before it, where steps are counted, not time.
    """

    award: IntArray
    price: FloatArray
    status: SolverStatus = SolverStatus.FEASIBLE_AT_LIMIT
    proved: bool = False
    bound: int | Fraction | None = None
    earlier: tuple[IntArray, ...] = ()
