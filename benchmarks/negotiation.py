"""The thesis's experiment, and how long a large transaction takes: ``python benchmarks/negotiation.py``.

228 ESP jobs on 16 nodes, a share of them malleable or moldable (⌈n/2⌉ to 2n nodes), over many orders of
submission, both mappers paired by order. Means with standard deviations of the population stand beside what
the thesis's figures 7.1 and 7.3 show. ``--large`` times one transaction of five attempts at 1 024 nodes.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, pstdev

import msgspec

from aucsched.cluster.jobs import JobKind
from aucsched.negotiation.batch.batch_state import Arrival, BatchState
from aucsched.negotiation.batch.mapping import BatchSettings, DecisionName, MapperName
from aucsched.negotiation.messages import NegotiationStart, ResourceOffer, ResponseResourceOffer, Submit
from aucsched.negotiation.pair import Pair, Sent
from aucsched.negotiation.runtime.irtsched import RuntimeState
from aucsched.negotiation.runtime.runtime_machine import empty_machine
from aucsched.negotiation.runtime.settings import RuntimeSettings
from aucsched.simulation.negotiated.negotiated_report import negotiated_metrics
from aucsched.simulation.negotiated.negotiated_run import negotiate
from aucsched.simulation.negotiated.plays import Changeability, entry_of, esp_play
from aucsched.simulation.workloads.named_clusters import node_names

NODES, JOBS, BOUND_S = 16, 228, 12_899.25
#: What the thesis's figures show, in minutes (7.1: all malleable shares alike, worst at 10 %; 7.3).
PAPER = {JobKind.MALLEABLE: "about 230", JobKind.MOLDABLE: "about 240"}
MALLEABLE = tuple(range(0, 101, 10))
MOLDABLE = (10, 50, 100)
MAPPERS: tuple[MapperName, ...] = ("greedy", "auction")
COLUMNS = ("makespan_s", "wait_mean_s", "response_mean_s", "attempts_mean", "wait_max_s")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=30)
    parser.add_argument("--first", type=int, default=0, help="the first order's seed")
    parser.add_argument(
        "--shares", type=int, nargs="*", default=list(MALLEABLE), help="malleable, in percent"
    )
    parser.add_argument("--moldable", type=int, nargs="*", default=list(MOLDABLE))
    parser.add_argument("--arrivals", choices=("esp", "at-once"), default="esp")
    parser.add_argument("--decision", choices=("paper", "objective"), default="paper")
    parser.add_argument(
        "--rows", type=Path, help="keep every run here (JSON lines); runs found there are not made again"
    )
    parser.add_argument("--large", action="store_true", help="time a large transaction instead")
    options = parser.parse_args()
    if options.large:
        large()
        return
    runs = Runs(options.rows, options.arrivals, options.decision)
    orders = range(options.first, options.first + options.orders)
    settings = [(JobKind.MALLEABLE, share) for share in options.shares]
    settings += [(JobKind.MOLDABLE, share) for share in options.moldable]
    print(f"makespan in min, mean (sd) largest, over {options.orders} orders; work bound {BOUND_S / 60:.1f}")
    print(f"{'share':<16}{'thesis':<12}{'greedy':<22}{'auction':<22}{'wait':>8}{'response':>10}  attempts")
    for kind, share in settings:
        print(row(runs, kind, share, orders), flush=True)


class Runs:
    """Runs by their settings, kept in a file where one is named."""

    def __init__(self, file: Path | None, arrivals: str, decision: DecisionName) -> None:
        self._file, self._arrivals, self._decision = file, arrivals, decision
        lines = file.read_text().splitlines() if file is not None and file.exists() else []
        self._known = {json.dumps(line["key"]): line["values"] for line in map(json.loads, lines)}

    def of(self, kind: JobKind, share: int, order: int, mapper: MapperName) -> dict[str, float]:
        """Return a run's metrics."""
        key = [kind.value, share, order, mapper, self._arrivals, self._decision]
        text = json.dumps(key)
        if text not in self._known:
            self._known[text] = self._made(kind, share, order, mapper)
            if self._file is not None:
                with self._file.open("a") as file:
                    file.write(json.dumps({"key": key, "values": self._known[text]}) + "\n")
        values: dict[str, float] = self._known[text]
        return values

    def _made(self, kind: JobKind, share: int, order: int, mapper: MapperName) -> dict[str, float]:
        mix = Changeability(share=share / 100, kind=kind)
        play = esp_play(NODES, mix, order=order, arrivals="esp" if self._arrivals == "esp" else "at-once")
        batch = BatchSettings(mapper=mapper, decision=self._decision, ends_when_done=True)
        metrics = negotiated_metrics(negotiate(play, batch, RuntimeSettings()))
        # Nothing is timed or averaged that is wrong: all jobs ran, and their work is all the work there is.
        assert metrics["work_bound_s"] == BOUND_S
        makespan, used = metrics["makespan_s"], metrics["utilization"]
        assert makespan is not None and used is not None  # noqa: PT018 - both or none
        assert abs(used * makespan - BOUND_S) < 1e-3 * BOUND_S
        return {name: float(metrics[name] or 0.0) for name in COLUMNS}


def row(runs: Runs, kind: JobKind, share: int, orders: Sequence[int]) -> str:
    """Return a line: both mappers' makespans, the auction's waits over greedy's, attempts."""
    found = {
        mapper: {name: [runs.of(kind, share, order, mapper)[name] for order in orders] for name in COLUMNS}
        for mapper in MAPPERS
    }
    greedy, auction = found["greedy"], found["auction"]
    cells = [f"{share} % {kind.value}", PAPER[kind]]
    waits = [fmean(auction[name]) / fmean(greedy[name]) - 1 for name in ("wait_mean_s", "response_mean_s")]
    tries = [fmean(found[mapper]["attempts_mean"]) for mapper in MAPPERS]
    return (
        f"{cells[0]:<16}{cells[1]:<12}{_shown(greedy):<22}{_shown(auction):<22}"
        f"{waits[0]:>+8.1%}{waits[1]:>+10.1%}  {tries[0]:.2f} {tries[1]:.2f}"
    )


def _shown(columns: dict[str, list[float]]) -> str:
    minutes = [seconds / 60 for seconds in columns["makespan_s"]]
    return f"{fmean(minutes):.1f} ({pstdev(minutes):.1f}) {max(minutes):.1f}"


# One large transaction.


def large(nodes: int = 1024, running: int = 200, queued: int = 500, repeats: int = 3) -> None:
    """Print how long a transaction of five attempts takes, best of a few, both mappers."""
    print(f"{nodes} nodes, {running} running, {queued} queued, depth 100: one transaction of five attempts")
    for mapper, limit in (("greedy", 0.2), ("auction", 2.0)):
        found = [_transaction(nodes, running, queued, mapper) for _ in range(repeats)]  # type: ignore[arg-type]
        (worked, wall), attempts, forwarded = min(found)
        print(
            f"  {mapper:<8} {worked:.3f} s of processor time, {wall:.3f} s of wall time (target {limit} s), "
            f"{attempts} attempts, {forwarded} jobs forwarded"
        )


def _transaction(
    nodes: int, running: int, queued: int, mapper: MapperName
) -> tuple[tuple[float, float], int, int]:
    """Return a transaction's processor and wall seconds, its attempts, and the entries of its largest Map."""
    sent: list[Sent] = []
    pair = _busy(nodes, running, mapper, sent)
    jobs = tuple(
        entry_of(
            f"q{n}",
            1 + n * 37 % 160,
            600.0 + n * 53 % 7200,
            priority=10_000 - n,
            kind=JobKind.RIGID if n % 2 else JobKind.MALLEABLE,
            bounds=(max(1, (1 + n * 37 % 160) // 2), 2 * (1 + n * 37 % 160)),
        )
        for n in range(queued)
    )
    sent.clear()
    began, worked = time.perf_counter(), time.process_time()
    pair.submit(Submit(jobs=jobs))
    seconds = (time.process_time() - worked, time.perf_counter() - began)
    maps = [one.message for one in sent if isinstance(one.message, ResponseResourceOffer)]
    assert len(pair.runtimes[""].machine.running) >= running
    if not any(isinstance(one.message, ResourceOffer) and not one.message.negotiation for one in sent):
        sys.exit("the transaction did not close")
    return seconds, len(maps), max(len(message.map) for message in maps)


def _busy(nodes: int, running: int, mapper: MapperName, sent: list[Sent]) -> Pair:
    """Return both parties with this many running jobs, half of them malleable, and none waiting."""
    size = nodes * 9 // (10 * running)
    first = tuple(
        Arrival(
            time_s=0.0,
            job=entry_of(
                f"r{n}",
                size,
                3600.0 + 97 * n,
                priority=100_000 - n,
                kind=JobKind.RIGID if n % 2 else JobKind.MALLEABLE,
                bounds=(max(1, size // 2), size),
            ),
        )
        for n in range(running)
    )
    state = BatchState(settings=BatchSettings(mapper=mapper, depth=running, max_attempts=5), arrivals=first)
    pair = Pair(
        state,
        {"": RuntimeState(settings=RuntimeSettings(), machine=empty_machine(node_names(nodes)))},
        sent.append,
    )
    pair.connect()
    assert len(pair.runtimes[""].machine.running) == running
    assert isinstance(sent[0].message, NegotiationStart)
    # This decision talks on while running jobs could give nodes: all five attempts are made.
    settings = BatchSettings(mapper=mapper, depth=100, max_attempts=5, decision="objective")

    pair.batch = msgspec.structs.replace(pair.batch, settings=settings)
    return pair


if __name__ == "__main__":
    main()
