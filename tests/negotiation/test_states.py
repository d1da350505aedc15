"""The states of a job as the batch scheduler sees it (Nagendra, figures 5.2, 6.1, 6.2): the page's diagram.

What the parties do is compared with the diagram of docs/negotiation.md, in both directions: no job goes a way
that it does not show, and every way that it shows is gone.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from support.negotiation import machine, malleable, moldable, rigid

from aucsched.negotiation import pair
from aucsched.negotiation.batch import ibsched
from aucsched.negotiation.batch.batch_state import Arrival, BatchState
from aucsched.negotiation.batch.mapping import BatchSettings, MapperName
from aucsched.negotiation.job_records import MapEntry
from aucsched.negotiation.messages import ResponseResourceOffer
from aucsched.negotiation.runtime.irtsched import RuntimeState
from aucsched.negotiation.runtime.settings import RuntimeSettings, Urgency

PAGE = Path(__file__).parents[2] / "docs" / "negotiation.md"
BEGINNING = "[*]"


def drawn() -> set[tuple[str, str]]:
    """Return the ways of the page's diagram."""
    block = re.search(r"```mermaid\nstateDiagram-v2\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert block is not None
    return set(re.findall(r"^ *(\S+) --> (\w+|\[\*\])", block[1], re.MULTILINE))


def state_of(batch: BatchState, job: str, mapped: dict[str, bool]) -> str | None:
    if job in batch.done:
        return "done"
    if job in batch.dispatched:
        return str(batch.dispatched[job].report.state)
    if job in batch.urgent:
        return "urgent"
    if job not in batch.queue:
        return None
    if not any(job in session.forwarded for session in batch.sessions.values()):
        return "waiting"
    return "mapped" if mapped.get(job) else "reserved"


def gone(
    monkeypatch: pytest.MonkeyPatch, seed: int, mapper: MapperName, urgency: Urgency
) -> set[tuple[str, str]]:
    """Return the ways that the jobs of a small workload go."""
    rng = random.Random(seed)
    arrivals: list[Arrival] = []
    for number in range(18):
        least = rng.randint(1, 4)
        most, seconds = min(8, least + rng.randint(0, 4)), float(rng.randint(5, 200))
        make = rng.choice([malleable, moldable])
        priority = rng.randint(1, 50)
        job: MapEntry = (
            rigid(f"j{number}", least, seconds, priority=priority)
            if rng.random() < 0.4
            else make(f"j{number}", least, most, seconds, priority=priority)
        )
        urgent = rng.random() < 0.2
        arrivals.append(Arrival(time_s=float(rng.randint(0, 200)), job=job, urgent=urgent))
    arrivals.sort(key=lambda arrival: arrival.time_s)
    found: set[tuple[str, str]] = set()
    last: dict[str, str] = {}
    mapped: dict[str, bool] = {}
    original = ibsched.step

    def watched(state: BatchState, event: object, peer: str = "") -> object:
        after, sends = original(state, event, peer)  # type: ignore[arg-type]
        for send in sends:
            if isinstance(send.message, ResponseResourceOffer):
                mapped.update({entry.job: entry.node_cnt > 0 for entry in send.message.map})
        for arrival in arrivals:
            job = arrival.job.job
            now = state_of(after, job, mapped)
            if now is not None and now != last.get(job, BEGINNING):
                found.add((last.get(job, BEGINNING), now))
                last[job] = now
        return after, sends

    monkeypatch.setattr(ibsched, "step", watched)
    settings = BatchSettings(mapper=mapper, depth=2, ends_when_done=True, patience_s=100)
    runtimes = {"": RuntimeState(settings=RuntimeSettings(urgency=urgency), machine=machine(8))}
    pair.Pair(BatchState(settings=settings, arrivals=tuple(arrivals)), runtimes).run()
    monkeypatch.undo()
    assert set(last.values()) == {"done"}
    return found | {("done", BEGINNING)}


def test_jobs_go_the_ways_of_the_diagram_and_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nagendra: figure 5.2 job states."""
    found: set[tuple[str, str]] = set()
    for seed in range(36):
        mapper: MapperName = "auction" if seed % 4 == 3 else "greedy"
        urgency: Urgency = ("shrink", "suspend", "kill")[seed % 3]
        found |= gone(monkeypatch, seed, mapper, urgency)
    assert found == drawn()
