"""The windows of one job on one field as drafts of bids, and the order in which kinds of bids are taken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import chain
from math import ceil

import numpy as np

from ..cluster.jobs import JobType
from ..cluster.resources.capacity import IntArray
from .assemble import EVEN, ChosenWindows, NodesetArena
from .candidates import Reading
from .choose import order_windows
from .first_fit import mode_of
from .windows import (
    Field,
    WindowRules,
    Windows,
    by_class,
    fewest_windows,
    fixed_windows,
    node_counts,
    whole_lengths,
    whole_nodesets,
)


class BidPhase(IntEnum):
    """The kinds of bids, each filled in its turn."""

    ALIGNED = 0
    SPREAD = 1
    JOINED = 2
    INNER = 3
    EXTRA = 4


@dataclass(frozen=True, slots=True)
class JobWindows:
    """The bids of one job on one field; ``by_figure`` sorts spread bids into classes by their place."""

    pool: NodesetArena
    field: Field
    asked: Reading
    rules: WindowRules
    group: int
    most: int
    stagger: int
    by_figure: bool = False

    def choices(self) -> Iterator[tuple[BidPhase, ChosenWindows]]:
        """Yield the bids of classes A, B and C, and spread bids for a cores-only job."""
        if self.asked.demand.type is not JobType.CORES:
            for count in node_counts(self.asked, len(self.field)):
                yield from self._by_class(self._fixed(count), mode_of(self.asked.demand))
            return
        forward = self._fewest(backward=False)
        yield from self._by_class(forward, mode_of(self.asked.demand))
        backward = self._fewest(backward=True)
        if len(backward):
            yield BidPhase.ALIGNED, self._drafted(backward, mode_of(self.asked.demand), backward=True)
        if not self.asked.demand.exclusive:
            for windows in self._spread(forward):
                if self.by_figure:
                    yield from self._by_class(windows, EVEN)
                else:
                    yield BidPhase.SPREAD, self._drafted(windows, EVEN)

    def unordered(self) -> Iterator[ChosenWindows]:
        """Yield bids of class C on nodes that are no neighbours."""
        if self.asked.demand.node_counts is None:
            fewest = self._fewest(backward=False)
            if not len(fewest):
                return
            yield self._drafted(fewest, mode_of(self.asked.demand))
            if not self.asked.demand.exclusive:
                yield from (self._drafted(windows, EVEN) for windows in self._spread(fewest))
            return
        for count in node_counts(self.asked, len(self.field)):
            windows = self._fixed(count)
            if len(windows):
                yield self._drafted(windows, mode_of(self.asked.demand))

    def _fixed(self, count: int) -> Windows:
        return fixed_windows(self.field, count, self.asked, self.rules)

    def _fewest(self, *, backward: bool) -> Windows:
        windows = fewest_windows(self.field, self.asked, self.rules, backward=backward)
        fits = windows.length <= self.asked.variant.max_nodes
        # The same windows again, not a copy, so that what is known of them is found.
        return windows if fits.all() else windows.only(fits)

    def _drafted(self, windows: Windows, mode: int, *, backward: bool = False) -> ChosenWindows:
        best = order_windows(self.field, windows, self.most, self.stagger)
        return self.pool.choose(self.field, best, self.group, mode, backward=backward)

    def _by_class(self, windows: Windows, mode: int) -> Iterator[tuple[BidPhase, ChosenWindows]]:
        phases = (BidPhase.ALIGNED, BidPhase.INNER, BidPhase.JOINED)
        for phase, part in zip(phases, by_class(self.field, windows), strict=True):
            if len(part):
                yield phase, self._drafted(part, mode)

    def _spread(self, fewest: Windows) -> Iterator[Windows]:
        """Yield windows on more nodes than needed: 2 and 4 times the fewest, whole nodesets, all joined."""
        most = min(
            len(self.field),
            self.asked.variant.max_nodes,
            (self.asked.demand.units or 0) // self.asked.demand.least,
        )
        if not len(fewest):
            return
        count = int(fewest.length.min())
        found = (self._fixed(length) for length in dict.fromkeys((2 * count, 4 * count)) if length <= most)
        whole = (
            whole_nodesets(self.field, length, self.asked, self.rules)
            for length in whole_lengths(self.field, most)
        )
        yield from (windows for windows in chain(found, whole) if len(windows))


def count_of(kept: dict[BidPhase, list[ChosenWindows]]) -> int:
    """Return how many windows there are."""
    return sum(len(draft) for drafts in kept.values() for draft in drafts)


def by_figure(kept: dict[BidPhase, list[ChosenWindows]], most: int) -> ChosenWindows:
    """Return a job's windows in the order of figure 4.5: A, then B, then C, spread bids among them."""
    phases = (BidPhase.ALIGNED, BidPhase.INNER, BidPhase.JOINED)
    ordered = ChosenWindows.joined([interleaved(kept[phase]) for phase in phases])
    return ordered.only(np.arange(min(most, len(ordered))))


def interleaved(drafts: list[ChosenWindows]) -> ChosenWindows:
    """Return several drafts as one: the best of each, then the second best of each."""
    if len(drafts) == 1:
        return drafts[0]
    ranks = np.concatenate([np.zeros(0, np.int64), *(np.arange(len(draft)) for draft in drafts)])
    return ChosenWindows.joined(drafts).only(np.argsort(ranks, kind="stable"))


def in_turn(kinds: dict[BidPhase, ChosenWindows], most: int, taken: int) -> ChosenWindows:
    """Return the best ``taken`` windows of all kinds in the order ``spec`` for a cap of ``most``.

    A job with more class A windows than half the cap leaves the other half to the other kinds.
    """
    quota = ceil(most / 2)
    turn = {BidPhase.INNER: 0, BidPhase.JOINED: 1, BidPhase.SPREAD: 2}
    keys: list[IntArray] = []
    for phase, draft in kinds.items():
        rank = np.arange(len(draft))
        if phase is BidPhase.ALIGNED:
            key = np.where(rank < quota, rank, rank + 10 * most)
        elif phase is BidPhase.EXTRA:
            key = quota + 2 + 3 * most + rank
        else:
            key = quota + 2 + 3 * rank + turn[phase]
            if phase is not BidPhase.INNER:
                key[:1] = quota + (phase is BidPhase.JOINED)
        keys.append(key)
    return ChosenWindows.joined(list(kinds.values())).only(
        np.argsort(np.concatenate(keys), kind="stable")[:taken]
    )
