"""The auctions with a balanced mix: one auction for each shape of job, the scarcest shape first.

A pass of node_auction.py lets the first jobs of the queue bid at once. Here the jobs of one shape bid
together, no more of them than its share of the machine holds (mix.py) and those that fill it best, on the
nodes that they leave least of. Jobs that may stand anywhere bid last, on what no waiting job with gres needs.
Once what waits would not fill the machine for as long as its longest job takes, the machine is drained: all
bid at once, the longest first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...auction.options import StepOptions
from ...bidgen.columns import BoolArray, Capacity, Columns, IntArray
from ...bidgen.demand import Demand
from ..subset import Candidate, fullest
from .auction import Auction, Reserved, starts_of
from .machine import Machine, Start, add_spot, use_of
from .mix import Mix, Shape
from .queue import NodeQueue
from .select import GuardedViews, shape_of
from .sparing import Sparing, is_tied, narrowed_to

#: Jobs that bid for gaps ask together for at most so many times what is free.
_ENOUGH = 2
#: The same of contiguous jobs: many find no stretch of neighbours.
_TRIES = 5
#: Once what waits would fill the machine for so many times its longest job's time, long jobs go first.
_NEAR_END = 3


class BalancedAuction(Auction):
    """Passes of several auctions.

    Args:
        machine: where jobs run.
        options: of each auction; awards are greedy, as no window is halved here.
    """

    def __init__(self, machine: Machine, options: StepOptions) -> None:
        super().__init__(machine, options, is_quick=True)
        self._mix = Mix(machine.columns)
        self._queue: NodeQueue | None = None

    def _pass(
        self, now: float, queue: NodeQueue, window: list[Demand], fitting: list[Demand]
    ) -> Sequence[Start]:
        # Whether a job could start changes from one of a pass's auctions to the next.
        del fitting
        if self._queue is not queue:
            self._queue = queue
            queue.watch(self._mix.note)
        reserved = Reserved(self._machine, now, self._options.reserve, is_final=True)
        state = _Pass(self._machine, reserved)
        left = self._first_in_line(window, state, reserved)
        longest = max((self._mix.ask(demand).limit_s for demand in left), default=0.0)
        if self._mix.waiting_s() < longest:
            self._drain(left, state, reserved)
            return state.started
        rooms = self._mix.rooms(self._holders(state), longest)
        shapes: dict[Shape, list[Demand]] = {}
        for demand in left:
            shapes.setdefault(self._mix.ask(demand).shape, []).append(demand)
        if self._mix.waiting_s() < _NEAR_END * longest:
            for demands in shapes.values():
                demands.sort(key=lambda demand: -self._mix.ask(demand).limit_s)
        for shape in sorted(shapes, key=_scarcity):
            if not shape.fills_gaps:
                self._of_shape(shapes[shape], rooms.get(shape, 0.0), state, reserved)
        self._in_gaps(shapes, state, reserved)
        if not state.started and not self._machine.running:
            # What no even part of a job fits, or no share holds, must not wait for ever.
            self._drain(left, state, reserved)
        return state.started

    def _holders(self, state: _Pass) -> list[Demand]:
        running = [holding.demand for holding in self._machine.running.values()]
        return running + [start.demand for start in state.started]

    def _first_in_line(self, window: list[Demand], state: _Pass, reserved: Reserved) -> list[Demand]:
        """Start the first jobs or reserve for them; return the others."""
        for place, demand in enumerate(window):
            if not reserved.wants_more:
                return window[place:]
            if not state.could_start(demand) or not self._start([demand], state, reserved):
                reserved.reserve(demand, state.started)
                state.look()
        return []

    def _start(self, demands: list[Demand], state: _Pass, reserved: Reserved, *, keep: int = 0) -> int:
        """Auction what is free among jobs, and return how many start."""
        columns = state.beside_gres(keep)
        found = self._attempt(demands, columns, reserved.guards)
        starts = starts_of(demands, found)
        state.take(starts, reserved)
        return len(starts)

    def _of_shape(self, demands: list[Demand], room: float, state: _Pass, reserved: Reserved) -> None:
        """Let the jobs of one shape start that fill its room best."""
        fitting = [demand for demand in demands if state.could_start(demand)]
        if not fitting:
            return
        first = self._mix.ask(fitting[0])
        if room < first.nodes and self._mix.nothing_runs(first.shape, self._holders(state)):
            room = first.nodes
        left = int(room)
        for alike in _alike(fitting, state):
            left = self._in_runs([one for one in alike if one.contiguous], left, state, reserved)
        for alike in _alike(fitting, state):
            left = self._anywhere([one for one in alike if not one.contiguous], left, state, reserved)

    def _anywhere(self, alike: list[Demand], room: int, state: _Pass, reserved: Reserved) -> int:
        """Let jobs start whose nodes need not be neighbours; return the room that is left."""
        sizes = {demand.index: self._mix.ask(demand).nodes for demand in alike}
        waiting = alike
        for variant in range(len(alike[0].variants) if alike else 0):
            places = {one.index: self._places(one, variant, state) for one in waiting}
            most = min(room, max((len(nodes) for nodes in places.values()), default=0))
            fitting = [one for one in waiting if sizes[one.index] <= min(most, len(places[one.index]))]
            started: set[int] = set()
            while not started and (chosen := _fullest(fitting, sizes, most)):
                total = sum(sizes[demand.index] for demand in chosen)
                bidding = [self._narrowed(one, places[one.index], total, state) for one in chosen]
                before = len(state.started)
                self._start(bidding, state, reserved)
                started = {start.demand.index for start in state.started[before:]}
                # Jobs that more than nodes decide on may bid in vain: others then do.
                tried = {demand.index for demand in chosen}
                fitting = [one for one in fitting if one.index not in tried]
            room -= sum(sizes[index] for index in started)
            waiting = [one for one in waiting if one.index not in started]
        return room

    def _in_runs(self, alike: list[Demand], room: int, state: _Pass, reserved: Reserved) -> int:
        """Fill runs of neighbouring nodes with contiguous jobs; return the room that is left."""
        bidding: list[Demand] = []
        waiting = alike
        taken = np.zeros(len(state.gres), np.bool_)
        for variant in range(len(alike[0].variants) if alike else 0):
            runs = Runs(self._spare(waiting, variant, state, taken))
            blocked = []
            for demand in waiting:
                count = self._mix.ask(demand).nodes
                place = (
                    None if count > room else np.zeros(0, np.int64) if is_tied(demand) else runs.take(count)
                )
                if place is None:
                    blocked.append(demand)
                    continue
                bidding.append(demand if is_tied(demand) else narrowed_to(demand, place))
                taken[place] = True
                room -= count
            waiting = blocked
            if not waiting:
                break
        if bidding:
            self._start(bidding, state, reserved)
        return room

    def _spare(self, alike: list[Demand], variant: int, state: _Pass, taken: BoolArray) -> IntArray:
        """Return the gres that jobs which ask alike leave on each node, −1 where they cannot stand."""
        largest = max(alike, key=lambda demand: self._mix.ask(demand).each)
        nodes = self._places(largest, variant, state)
        nodes = nodes[~taken[nodes]]
        spare = np.full(len(state.gres), -1)
        spare[nodes] = state.gres[nodes] - _gres_asked(self._mix.ask(largest).shape)
        return spare

    def _places(self, demand: Demand, variant: int, state: _Pass) -> IntArray:
        """Return the nodes that could each give an even part of a job, read in one of its ways."""
        each = -(-self._mix.ask(demand).each // demand.unit)
        found = state.views.of(demand).candidates(demand)[variant]
        return found.nodes[found.units[found.nodes] >= each]

    def _narrowed(self, demand: Demand, nodes: IntArray, count: int, state: _Pass) -> Demand:
        """Return the demand on the ``count`` nodes with the least to spare, and those that equal the last."""
        if is_tied(demand):
            return demand
        ask = self._mix.ask(demand)
        spare = (state.gres[nodes] - _gres_asked(ask.shape)) * (1 << 20)
        # Nodes that could hold equally many more are equal: the auction chooses by topology among them.
        spare += state.free.cores[nodes] // ask.each
        order = np.sort(spare)
        return narrowed_to(demand, nodes[spare <= order[min(count, len(order)) - 1]])

    def _in_gaps(self, shapes: dict[Shape, list[Demand]], state: _Pass, reserved: Reserved) -> None:
        """Let jobs that may stand anywhere start on what jobs with gres cannot need.

        Beside scarce gres that are free they leave the cores of the largest waiting shape with gres;
        contiguous ones, which would find few stretches of neighbours then, those of the smallest.
        """
        is_scarce = self._mix.is_gres_scarce()
        with_gres = [shape.cores for shape in shapes if shape.gres and is_scarce]
        waiting = [demand for shape, demands in shapes.items() if shape.fills_gaps for demand in demands]
        together = [demand for demand in waiting if demand.contiguous]
        others = [demand for demand in waiting if not demand.contiguous]
        self._until_none(together, state, reserved, keep=min(with_gres, default=0), enough=_TRIES)
        self._until_none(others, state, reserved, keep=max(with_gres, default=0))

    def _drain(self, waiting: list[Demand], state: _Pass, reserved: Reserved) -> None:
        longest_first = sorted(waiting, key=lambda demand: -self._mix.ask(demand).limit_s)
        self._until_none(longest_first, state, reserved, keep=0)

    def _until_none(
        self, waiting: list[Demand], state: _Pass, reserved: Reserved, *, keep: int, enough: int = _ENOUGH
    ) -> None:
        """Auction what is free beside gres among jobs, some at a time, until all have bid in vain."""
        left = waiting
        while left:
            views = GuardedViews(state.columns, state.beside_gres(keep).free, reserved.guards)
            fitting = [
                demand for demand in left if state.has_pools(demand) and views.of(demand).could_hold(demand)
            ]
            free, asked, bidding = int(views.free.cores.sum()), 0, []
            for demand in fitting:
                bidding.append(demand)
                asked += self._mix.ask(demand).cores
                if asked > enough * free:
                    break
            sparing = Sparing(views, left)
            if not bidding:
                return
            before = len(state.started)
            self._start([sparing.narrowed(demand) for demand in bidding], state, reserved, keep=keep)
            # Where none of them starts, those behind them bid; where some do, the others bid again.
            gone = {start.demand.index for start in state.started[before:]} or {one.index for one in bidding}
            left = [demand for demand in fitting if demand.index not in gone]


class Runs:
    """Neighbouring nodes that are taken piece by piece, those with the least to spare first.

    Args:
        spare: what each node has beyond what a job asks for, −1 where it has too little; shape (n,).
    """

    def __init__(self, spare: IntArray) -> None:
        self._spare = spare
        self._levels = range(int(spare.max(initial=-1)) + 1)
        self._known: dict[int, list[IntArray]] = {}

    def _of(self, most: int) -> list[IntArray]:
        """Return the runs of nodes with at most so much to spare, shortest first."""
        if most not in self._known:
            nodes = np.flatnonzero((self._spare >= 0) & (self._spare <= most))
            self._known[most] = sorted(np.split(nodes, np.flatnonzero(np.diff(nodes) > 1) + 1), key=len)
        return self._known[most]

    def take(self, count: int) -> IntArray | None:
        """Take neighbours from the shortest run that holds them, None where there is none."""
        for most in self._levels:
            for run in self._of(most):
                if len(run) >= count:
                    taken = run[:count]
                    self._spare[taken] = -1
                    self._known.clear()
                    return taken
        return None


class _Pass:
    """What is free while a pass starts jobs.

    Attributes:
        columns: the machine's, with what is still free.
        gres: free gres of all kinds on each node, shape (n,).
        views: which nodes could hold a job beside reservations.
        started: so far.
    """

    def __init__(self, machine: Machine, reserved: Reserved) -> None:
        self._machine = machine
        self._reserved = reserved
        self.columns = replace(
            machine.columns,
            free=machine.columns.free.copy(),
            is_empty=machine.columns.is_empty.copy(),
            pools=machine.columns.pools.copy(),
        )
        self.started: list[Start] = []
        self.look()

    @property
    def free(self) -> Capacity:
        """What is still free."""
        return self.columns.free

    def look(self) -> None:
        """See what is free, beside the reservations made."""
        self.views = GuardedViews(self.columns, self.free, self._reserved.guards)
        self.gres = sum(self.free.gres.values(), np.zeros_like(self.free.cores))

    def has_pools(self, demand: Demand) -> bool:
        """Return whether there is enough for a job of what stands on no node."""
        return self.columns.pools.hold(demand.job)

    def could_start(self, demand: Demand) -> bool:
        """Return whether there is enough for a job, wherever it stands."""
        return self.has_pools(demand) and self.views.of(demand).could_hold(demand)

    def beside_gres(self, keep: int) -> Columns:
        """Return the columns with ``keep`` cores less on every node whose gres are free."""
        if not keep:
            return self.columns
        free = self.free.copy()
        free.cores = np.where(self.gres > 0, np.maximum(free.cores - keep, 0), free.cores)
        return replace(self.columns, free=free)

    def take(self, starts: Sequence[Start], reserved: Reserved) -> None:
        """Start jobs."""
        for start in starts:
            reserved.take(start)
            add_spot(self.free, start.spot, -1, self._machine.limited)
            self.columns.is_empty[start.spot.nodes] = False
            self.columns.pools.take(start.demand.job, use_of(start.spot))
            self.started.append(start)
        if starts:
            self.look()


def _fullest(waiting: list[Demand], sizes: Mapping[int, int], room: int) -> list[Demand]:
    """Return the jobs that fill a number of nodes best, earlier ones where that is equal."""
    candidates = [
        Candidate(demand.index, sizes[demand.index], long=False)
        for demand in waiting
        if sizes[demand.index] <= room
    ]
    chosen = set(fullest(candidates, room, 0)) if candidates else ()
    return [demand for demand in waiting if demand.index in chosen]


def _alike(demands: list[Demand], state: _Pass) -> list[list[Demand]]:
    """Return the jobs that may use the same nodes together, in the order of the first of each."""
    alike: dict[object, list[Demand]] = {}
    for demand in demands:
        alike.setdefault((shape_of(demand), state.views.limits(demand)), []).append(demand)
    return list(alike.values())


def _gres_asked(shape: Shape) -> int:
    return sum(count for _, count in shape.gres)


def _scarcity(shape: Shape) -> tuple[int, int, Shape]:
    """Order shapes: most gres on a node first, then most cores."""
    return (-_gres_asked(shape), -shape.cores, shape)
