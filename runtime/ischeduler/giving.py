"""The harvest policies for jobs that another scheduler knows: who of them gives how many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .columns import NO_LIMIT, Rules, empty_active
from .execution import LINEAR
from .harvesting import take
from .policies import HARVESTS

#: Policies that can choose among such jobs; prices need an execution model of each, which is its scheduler's.
CHOOSING = tuple(name for name in HARVESTS if name not in {"never", "priced"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Giver:
    """A running job.

    Attributes:
        held: processors; ``floor``: those that it keeps.
        ideal: the most that it can use.
        start_s: of its run; ``end_s``: expected.
        harvests: how often it was harvested.
    """

    held: int
    floor: int
    ideal: int
    start_s: float
    end_s: float
    harvests: int


def gifts(givers: Sequence[Giver], need: int, now_s: float, policy: str) -> list[int]:
    """Return how many processors each job gives under a policy of CHOOSING.

    Args:
        givers: in order of their starts; among equals the first gives.
        need: processors, at most those that the jobs hold above their floors.
        now_s: the time.
        policy: its name.
    """
    active = empty_active(len(givers))
    for place, giver in enumerate(givers):
        active.held[place], active.floor[place] = giver.held, giver.floor
        active.ideal[place], active.harvests[place] = giver.ideal, giver.harvests
        active.start[place], active.end[place] = giver.start_s, giver.end_s
    rules = Rules(
        admission=NO_LIMIT,
        harvest=HARVESTS[policy],
        distribution=0,
        model=LINEAR,
        max_harvests=NO_LIMIT,
        protected_s=0.0,
        weighs=0,
    )
    take(active, len(givers), need, now_s, rules)
    return [int(count) for count in active.taken]
