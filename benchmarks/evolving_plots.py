"""Prabhakaran's figures 7 to 12 (``python benchmarks/evolving_plots.py --figures FOLDER``).

Waits are those of one order of submission; figure 12 is measured here: the time from an application's request
to its answer, over a unix socket, with and without a queue.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, stdev
from threading import Thread
from typing import TYPE_CHECKING

from evolving import Config
from marked_part import can_draw

from aucsched import DynState, EvolvingClient
from aucsched.cluster.jobs import Job, Request, RunningJob, Span
from aucsched.cluster.nodes import Node, Resources
from aucsched.cluster.snapshot import Snapshot
from aucsched.negotiation.evolving import dynamic_scheduler
from aucsched.negotiation.evolving.dynamic_scheduler import DynamicState
from aucsched.negotiation.evolving.fairness import at_start, same_for_every_user
from aucsched.negotiation.evolving.iteration import Depths
from aucsched.negotiation.transport.handshake import Identity
from aucsched.negotiation.transport.link import LinkLimits, address_of
from aucsched.negotiation.transport.listener import Listener
from aucsched.negotiation.transport.party import Party, PartyJournal
from aucsched.negotiation.transport.serve import TERMS, serve_applications
from aucsched.reports.canvas import new_figure, styled
from aucsched.reports.curves import waits_in_order
from aucsched.simulation.evolving.evolving_loop import simulate_evolving
from aucsched.simulation.workloads.evolving import QUADFLOW, dynamic_esp, quadflow_phases

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DPI = 110
_NODES, _CORES = 15, 8
_REPEATS = 20
_CONFIGS = {
    "Static": Config("emulated", "Static", serves=False),
    "Dyn-HP": Config("emulated", "Dyn-HP"),
    "Dyn-500": Config("emulated", "Dyn-500", target=500),
    "Dyn-600": Config("emulated", "Dyn-600", target=600),
}
_FIGURES = {
    8: ("Static", "Dyn-HP"),
    9: tuple(_CONFIGS),
    10: ("Static", "Dyn-HP", "Dyn-500"),
    11: ("Static", "Dyn-HP", "Dyn-600"),
}
_OF_TYPE_L = 9


def draw_waits(seed: int, folder: Path) -> None:
    """Draw figures 8 to 11."""
    workload = dynamic_esp(seed)
    found = {name: simulate_evolving(workload, config.options) for name, config in _CONFIGS.items()}
    for number, names in _FIGURES.items():
        figure, axes = new_figure(2.6, 1, 1, dpi=_DPI)
        runs = {name: found[name] for name in names}
        waits_in_order(axes, runs, "L" if number == _OF_TYPE_L else None)
        axes.legend()
        figure.savefig(folder / f"figure-{number}.png")


def draw_quadflow(folder: Path) -> None:
    """Draw figure 7: both test cases on 16 processes, on 32, and grown at the last adaptation."""
    figure, grid = new_figure(2.6, 1, 2, dpi=_DPI)
    for axes, case, growth in zip(grid, QUADFLOW, (2.0, 0.84 / (0.84 - 0.33)), strict=True):
        phases = quadflow_phases(case, growth)
        runs = {
            "16": [phase.seconds for phase in phases],
            "32": [phase.on(32, case.threshold) for phase in phases],
            "16 → 32": [phase.seconds for phase in phases[:-1]] + [phases[-1].on(32, case.threshold)],
        }
        for place, (label, seconds) in enumerate(runs.items()):
            left = 0.0
            for number, part in enumerate(seconds):
                shade = 0.25 + 0.6 * number / len(seconds)
                axes.barh(place, part / 3600, left=left, color=str(shade), edgecolor="white")
                left += part / 3600
            axes.text(left, place, f" {left:.1f} h", va="center", fontsize=7)
            del label
        axes.set_yticks(range(len(runs)), list(runs))
        axes.set_xlabel("hours")
        axes.set_title(case.name, fontsize=8)
    figure.savefig(folder / "figure-7.png")


def _finish(axes: Axes, horizontal: str, vertical: str) -> None:
    axes.set_xlabel(horizontal)
    axes.set_ylabel(vertical)
    axes.set_ylim(bottom=0)
    axes.legend()


@contextmanager
def _server(folder: Path, *, loaded: bool) -> Iterator[str]:
    """Run dynsched in a thread, with journal and secret: one job on one of 15 nodes, maybe a workload."""
    full, none = Resources(cores=_CORES), Resources(cores=0)
    busy = 5 if loaded else 1
    running = [RunningJob(id="evolves", nodes={"n00": full}, end_time=10_000.0, user="user06")]
    if loaded:
        nodes = {f"n{place:02}": full for place in range(1, busy)}
        running.append(RunningJob(id="rigid", nodes=nodes, end_time=3600.0, user="user01"))
    queue = [
        Job(
            id=f"J{place}",
            priority=1000 - place,
            request=Request(nodes=Span.exactly(11 + place % 4), cores_per_node=_CORES),
            time_limit_s=600 + 60 * place,
            user=f"user{place % 9:02}",
        )
        for place in range(50 if loaded else 0)
    ]
    snapshot = Snapshot(
        nodes=tuple(
            Node(name=f"n{place:02}", total=full, free=none if place < busy else full)
            for place in range(_NODES)
        ),
        running=tuple(running),
        jobs=tuple(queue),
        time=0.0,
    )
    fairness = same_for_every_user(10**8)
    state = DynamicState(
        snapshot=snapshot, fairness=fairness, depths=Depths(), accounts=at_start(fairness, 0.0)
    )
    secret = b"of both"
    identity = Identity(party="dynsched", terms=TERMS, notes={}, secret=secret)
    journal = PartyJournal(folder / "server.journal", {"party": "dynsched"})
    party = Party(state, dynamic_scheduler.step, journal)
    link = Listener(address_of(f"unix:{folder}/socket"), identity, LinkLimits(), lambda _: None)
    is_over = [False]
    arguments = (party, link, lambda: 0.0, lambda _: None, lambda: is_over[0])
    thread = Thread(target=serve_applications, args=arguments)
    thread.start()
    try:
        yield f"unix:{folder}/socket"
    finally:
        is_over[0] = True
        thread.join()
        link.close()
        journal.close()


def overhead(*, loaded: bool, repeats: int) -> dict[int, list[float]]:
    """Return milliseconds from request to answer, by nodes asked for."""
    found: dict[int, list[float]] = {}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            with (
                _server(folder, loaded=loaded) as address,
                EvolvingClient("evolves", address, secret=b"of both", journal=folder / "journal") as client,
            ):
                client.status()
                for nodes in range(1, 11):
                    began = time.perf_counter()
                    answer = client.request(nodes=nodes, cores_per_node=_CORES)
                    found.setdefault(nodes, []).append(1000 * (time.perf_counter() - began))
                    assert answer.state is DynState.GRANTED, answer
                    client.release(answer.nodes)
    return found


def draw_overhead(folder: Path, repeats: int) -> None:
    """Measure and draw figure 12, and print it."""
    figure, axes = new_figure(2.6, 1, 1, dpi=_DPI)
    for label, loaded in (("no workload", False), ("50 jobs wait, delay depth 5", True)):
        found = overhead(loaded=loaded, repeats=repeats)
        axes.errorbar(
            list(found),
            [mean(values) for values in found.values()],
            [stdev(values) if len(values) > 1 else 0 for values in found.values()],
            marker=".",
            linewidth=0.8,
            label=label,
        )
        text = ", ".join(f"{nodes}: {mean(values):.1f}" for nodes, values in found.items())
        print(f"figure 12, {label} (ms by nodes, mean of {repeats}): {text}", flush=True)
    _finish(axes, "nodes asked for", "request to answer (ms)")
    figure.savefig(folder / "figure-12.png")


def main() -> None:
    """Draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figures", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0, help="the order of figures 8 to 11")
    parser.add_argument("--repeats", type=int, default=_REPEATS, help="of figure 12")
    options = parser.parse_args()
    if not can_draw():
        parser.error("--figures needs matplotlib: pip install 'aucsched[plot]'")
    options.figures.mkdir(parents=True, exist_ok=True)
    with styled():
        draw_quadflow(options.figures)
        draw_waits(options.seed, options.figures)
        draw_overhead(options.figures, options.repeats)


if __name__ == "__main__":
    main()
