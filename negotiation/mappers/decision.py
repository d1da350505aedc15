"""Whether the batch scheduler accepts an offer (Nagendra, 5.2.1, decision logic)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from ..messages import Code
from .mapping import MapRequest, Slot

#: Of what a third must be mapped: of the forwarded jobs, or of the whole queue (as the thesis also says).
ThirdOf = Literal["forwarded", "queue"]
#: Names of DECISIONS.
DecisionName = Literal["paper", "objective"]


class LastAttempt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a transaction remembers of its attempts.

    Attributes:
        code: this party's last decision, None at the first attempt.
        objective: the sum of priorities of the jobs mapped last.
        mapped: how many there were.
        relaxes: whether ranges still open: not once more jobs were mapped after an accept.
    """

    code: Code | None = None
    objective: int = 0
    mapped: int = 0
    relaxes: bool = True

    def after(self, code: Code, slots: Sequence[Slot]) -> LastAttempt:
        """Return what is remembered after an attempt."""
        mapped = sum(1 for slot in slots if slot.nodes)
        stops = self.code is Code.ACCEPT and mapped > self.mapped
        return LastAttempt(
            code=code, objective=objective(slots), mapped=mapped, relaxes=self.relaxes and not stops
        )


def objective(slots: Sequence[Slot]) -> int:
    """Return the sum of priorities of the mapped jobs."""
    return sum(slot.entry.priority for slot in slots if slot.nodes)


def paper_decision(
    request: MapRequest, slots: Sequence[Slot], memory: LastAttempt, third_of: ThirdOf
) -> Code:
    """Return the thesis's decision.

    (a) Reject while the front job is not mapped, or fewer than a third of the jobs are; waived past half
    the attempts. (b) After an accept: accept again if the objective did not fall. (c) After a reject:
    reject if it fell, else accept unless (a).
    """
    now = objective(slots)
    if memory.code is Code.ACCEPT:
        return Code.ACCEPT if now >= memory.objective else Code.REJECT
    if memory.code is Code.REJECT and now < memory.objective:
        return Code.REJECT
    return Code.REJECT if _asks_for_more(request, slots, third_of) else Code.ACCEPT


def _asks_for_more(request: MapRequest, slots: Sequence[Slot], third_of: ThirdOf) -> bool:
    """Rule (a)."""
    if 2 * request.offered.attempt > request.offered.attempts or not request.queue:
        return False
    mapped = {slot.entry.job for slot in slots if slot.nodes}
    total = len(slots) if third_of == "forwarded" else len(request.queue)
    return request.queue[0][0].job not in mapped or 3 * len(mapped) < total


def objective_decision(
    request: MapRequest,
    slots: Sequence[Slot],
    memory: LastAttempt,  # noqa: ARG001 - a decision's signature
    third_of: ThirdOf,  # noqa: ARG001
) -> Code:
    """Return accept once no further attempt could map more.

    Further attempts open ranges and let running jobs shrink: they help while an unmapped job is not at its
    least count, or while shrinking could still make room for one; else nothing is gained by talking on.
    """
    unmapped = [slot for slot in slots if not slot.nodes]
    if not unmapped:
        return Code.ACCEPT
    offered = request.offered
    for slot in unmapped:
        partition = slot.entry.partition
        mapped = [other for other in slots if other.nodes and other.entry.partition == partition]
        free = offered.idle_in(partition)
        for other in mapped:
            free &= ~other.nodes
        spare = sum(other.count - other.entry.min_nodes for other in mapped)
        reach = free.bit_count() + spare + offered.elastic.get(partition, 0)
        if slot.entry.min_nodes <= reach:
            return Code.REJECT
    return Code.ACCEPT


#: What ``--decision`` names.
DECISIONS: dict[DecisionName, Callable[[MapRequest, Sequence[Slot], LastAttempt, ThirdOf], Code]] = {
    "paper": paper_decision,
    "objective": objective_decision,
}
