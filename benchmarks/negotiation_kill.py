"""Kill either party of a negotiation at random points, restart it, and look for losses.

    python benchmarks/negotiation_kill.py --kills 50 --party either esp --malleable 50
    python benchmarks/negotiation_kill.py --kills 50 --checkpoint 25 esp --malleable 50

Two processes negotiate over a unix socket. Points are drawn evenly over what the party's journal grows to in
a run without kills; when the journal has come so far, and a random moment more, the party gets SIGKILL and
is started again with the same command. Afterwards the runtime scheduler's journal is played again (no
checkpoint shortens it): at no transition may two jobs share a node or a node be lost, and each job runs once
and is done once. The exit code is 1 when any of this fails.

With --checkpoint a journal shrinks now and then: moments are drawn by the clock instead, over the time of the
run without kills, and only the transitions after the last checkpoint are played again. That each job ran once
and did all of its work is then read from both parties' rows of jobs, which must be equal.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isclose
from pathlib import Path

from command_options import command_options

from aucsched.cluster.option_fields import taken_from
from aucsched.commands.negotiate import play_from
from aucsched.negotiation.messages import Send
from aucsched.negotiation.runtime import irtsched
from aucsched.negotiation.runtime.irtsched import RuntimeState
from aucsched.negotiation.runtime.runtime_machine import empty_machine
from aucsched.negotiation.runtime.settings import RuntimeSettings
from aucsched.negotiation.speedup import LINEAR
from aucsched.negotiation.transport.party import Happening, Party, PartyJournal
from aucsched.simulation.negotiated.negotiated_run import runtime_settings
from aucsched.simulation.negotiated.negotiation_options import NegotiationOptions
from aucsched.simulation.negotiated.plays import Play

_PARTIES = ("ibsched", "irtsched")
#: The longest delay, in seconds, of a kill after its point: kills fall between and inside a journal's lines.
_MOMENT_S = 0.02
_POLL_S = 0.002
_LIMIT_S = 1800.0


class LostError(AssertionError):
    """Something was lost or done twice."""


@dataclass
class Processes:
    """Both parties; each is started again when it was killed."""

    folder: Path
    workload: Sequence[str]
    mapper: str
    checkpoint: int = 0
    began_s: float = field(default_factory=time.monotonic)
    took_s: float = 0.0
    kills: Counter[str] = field(default_factory=Counter)
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, party: str) -> None:
        """Start a party, maybe again."""
        where = ["--listen", "unix:socket"] if party == "irtsched" else ["--connect", "unix:socket"]
        out = ["--jobs-out", f"{party}.csv"]
        if party == "irtsched":
            out += ["--format", "json", "-o", "metrics.json"]
        else:
            out += ["--mapper", self.mapper]
        program = [sys.executable, "-m", "aucsched"]
        keeps = ["--journal", "journals", "--checkpoint", str(self.checkpoint)]
        line = [*program, party, *self.workload, *where, *keeps, *out]
        with (self.folder / f"{party}.log").open("ab") as log:
            self.running[party] = subprocess.Popen(line, cwd=self.folder, stdout=log, stderr=log)  # noqa: S603 - our own

    def journal(self, party: str) -> Path:
        """Return where a party's journal stands."""
        return self.folder / "journals" / f"{party}.journal"

    def progress(self, party: str) -> float:
        """Return how far a party has come: bytes of its journal; with checkpoints, seconds of the run."""
        if self.checkpoint:
            return self.took_s or time.monotonic() - self.began_s
        try:
            return self.journal(party).stat().st_size
        except FileNotFoundError:
            return 0

    def kill(self, party: str) -> None:
        """Kill a party, and start it again; one that has ended already is not counted."""
        process = self.running[party]
        if process.poll():
            log = (self.folder / f"{party}.log").read_text()
            raise LostError(f"{party} ended with {process.returncode}: {log[-2000:]}")
        self.kills[party] += process.poll() is None
        process.kill()
        process.wait()
        self.start(party)

    def finish(self) -> None:
        """Wait for both to end by themselves."""
        for party, process in self.running.items():
            if process.wait(timeout=_LIMIT_S):
                log = (self.folder / f"{party}.log").read_text()
                raise LostError(f"{party} ended with {process.returncode}: {log[-2000:]}")
        self.took_s = time.monotonic() - self.began_s

    def stop(self) -> None:
        """End what still runs."""
        for process in self.running.values():
            process.kill()
            process.wait()


def negotiated(processes: Processes, kills: Sequence[tuple[str, float]]) -> Processes:
    """Run both parties to their end; ``kills`` are (party, its progress), as they should come."""
    (processes.folder / "journals").mkdir(parents=True)
    generator = random.Random(len(kills))  # noqa: S311 - moments, no secrets
    try:
        for party in reversed(_PARTIES):
            processes.start(party)
        until = time.monotonic() + _LIMIT_S
        for party, far in kills:
            while processes.progress(party) < far and processes.running[party].poll() is None:
                if time.monotonic() > until:
                    raise LostError(f"{party} does not go on")
                time.sleep(_POLL_S)
            if processes.running[party].poll() is None:
                time.sleep(generator.uniform(0, _MOMENT_S))
            processes.kill(party)
        processes.finish()
    finally:
        processes.stop()
    return processes


@dataclass
class Checked:
    """Looks at every transition of a runtime scheduler: nodes are held once, jobs run once."""

    started: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    transitions: int = 0
    checkpoints: dict[str, int] = field(default_factory=dict)

    def watch(
        self, before: RuntimeState, happening: Happening, after: RuntimeState, sends: Sequence[Send]
    ) -> None:
        """Look at one transition."""
        del happening, sends
        self.transitions += 1
        held = after.machine.idle
        for job, record in after.machine.running.items():
            if held & record.nodes or not record.nodes:
                raise LostError(f"{job} shares nodes at {after.machine.now_s:g} s")
            held |= record.nodes
        if held != (1 << len(after.machine.names)) - 1:
            raise LostError(f"nodes are lost at {after.machine.now_s:g} s")
        was, now = before.machine, after.machine
        known = {*was.running, *was.suspended}
        self.started.update({*now.running, *now.done} - known - {*was.done})
        self.done.update({*now.done} - {*was.done})


def check(processes: Processes, play: Play, settings: RuntimeSettings) -> Checked:
    """Play the runtime scheduler's journal again, look at each transition, and compare both parties' rows."""
    checked = Checked()
    state = RuntimeState(settings=settings, machine=empty_machine(play.nodes, play.partitions))
    journals = {party: _opened(processes.journal(party)) for party in _PARTIES}
    try:
        ended = Party(state, irtsched.step, journals["irtsched"], checked.watch).state
    finally:
        for journal in journals.values():
            journal.close()
    marks = ((party, journal.checkpoint) for party, journal in journals.items())
    checked.checkpoints = {party: mark.entries for party, mark in marks if mark is not None}
    jobs = Counter(arrival.job.job for arrival in play.arrivals)
    if checked.checkpoints:
        checked.started = checked.done = Counter(list(ended.machine.done))
    if checked.done != jobs:
        raise LostError(f"not done once each: {(jobs - checked.done) + (checked.done - jobs)}")
    again = checked.started - jobs
    if jobs - checked.started or (again and settings.urgency != "kill"):
        raise LostError(f"not started once each: {(jobs - checked.started) + again}")
    rows = [(processes.folder / f"{party}.csv").read_text() for party in _PARTIES]
    if rows[0] != rows[1]:
        raise LostError("the parties' rows of jobs differ")
    _check_rows(rows[0], play)
    return checked


def _opened(path: Path) -> PartyJournal:
    head = json.loads(path.read_bytes().split(b"\n", 1)[0].partition(b" ")[2])
    return PartyJournal(path, head["identity"])


def _check_rows(text: str, play: Play) -> None:
    """Compare each job's row with what it asked for: after its arrival, and all of its work."""
    rows = {row["job"]: row for row in csv.DictReader(io.StringIO(text))}
    for arrival in play.arrivals:
        row, entry = rows[arrival.job.job], arrival.job
        if float(row["start_s"]) < arrival.time_s:
            raise LostError(f"{entry.job} started before it came")
        work = entry.min_nodes * (entry.true_time_at_min_s or entry.time_at_min_s)
        if entry.speedup == LINEAR and not isclose(float(row["node_s"]), work, rel_tol=1e-6, abs_tol=1e-3):
            raise LostError(f"{entry.job} was given {row['node_s']} node-seconds of {work:g}")


def points(processes: Processes, party: str, count: int, seed: int) -> list[tuple[str, float]]:
    """Draw when to kill whom: shares of the way that journals went without kills, rising."""
    generator = random.Random(seed)  # noqa: S311 - points, no secrets
    shares = sorted(generator.uniform(0.0, 0.98) for _ in range(count))
    victims = [generator.choice(_PARTIES) if party == "either" else party for _ in shares]
    pairs = zip(shares, victims, strict=True)
    return [(victim, share * processes.progress(victim)) for share, victim in pairs]


@dataclass(frozen=True, slots=True, kw_only=True)
class Killed:
    """A negotiation whose parties were killed; nothing was lost.

    Attributes:
        play: what was negotiated.
        kills: by party.
        took_s: seconds on the clock.
        checked: what its transitions came to.
        makespans_min: without kills and with them.
        said: what both parties wrote to stderr.
    """

    play: Play
    kills: Counter[str]
    took_s: float
    checked: Checked
    makespans_min: tuple[float, float]
    said: str


def run(
    workload: Sequence[str], *, mapper: str, party: str, kills: int, seed: int, checkpoint: int = 0
) -> Killed:
    """Run without kills, run with them, and look at every transition.

    Raises:
        LostError: something was lost or done twice.
    """
    options = command_options("irtsched", workload)
    play = play_from(options.pop("workload"), options)
    settings = runtime_settings(taken_from(NegotiationOptions, options))
    with tempfile.TemporaryDirectory() as place:
        alone = negotiated(Processes(Path(place) / "alone", workload, mapper, checkpoint), [])
        check(alone, play, settings)
        when = points(alone, party, kills, seed)
        killed = negotiated(Processes(Path(place) / "killed", workload, mapper, checkpoint), when)
        return Killed(
            play=play,
            kills=killed.kills,
            took_s=killed.took_s,
            checked=check(killed, play, settings),
            makespans_min=(_makespan_min(alone), _makespan_min(killed)),
            said="".join((killed.folder / f"{name}.log").read_text() for name in _PARTIES),
        )


def main() -> int:
    """Kill, and print what came of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--party", choices=["either", *_PARTIES], default="either")
    parser.add_argument("--mapper", choices=["greedy", "auction"], default="auction")
    parser.add_argument("--seed", type=int, default=0, help="of the points")
    parser.add_argument("--checkpoint", type=int, default=0, help="entries between checkpoints; 0: none")
    arguments, workload = parser.parse_known_args()
    done = run(
        workload or ["esp", "--malleable", "50"],
        mapper=arguments.mapper,
        party=arguments.party,
        kills=arguments.kills,
        seed=arguments.seed,
        checkpoint=arguments.checkpoint,
    )
    each = ", ".join(f"{party} {done.kills[party]}" for party in _PARTIES)
    print(f"{done.play.name}, {len(done.play.arrivals)} jobs, mapper {arguments.mapper}")
    print(f"  kills        {done.kills.total()} ({each}), {done.took_s:.0f} s")
    print(f"  transitions  {done.checked.transitions}, no node held twice or lost at any")
    starts, ends = done.checked.started.total(), done.checked.done.total()
    if done.checked.checkpoints:
        marks = ", ".join(f"{party} after {entries}" for party, entries in done.checked.checkpoints.items())
        print(f"  checkpoints  {marks} entries (the last ones)")
        print(f"  jobs         {ends} jobs, each done once")
    else:
        back = f" ({starts - ends} again, killed for an urgent job)" if starts > ends else ""
        print(f"  jobs         {starts} starts{back}, {ends} ends: each job once")
    lost, refused = done.said.count("aucsched: lost "), done.said.count("refuse")
    print(f"  connections  {lost} lost, {refused} lines of refusals")
    print("  makespan     {:.1f} min without kills, {:.1f} min with them".format(*done.makespans_min))
    for line in done.said.splitlines():
        if "refuse" in line:
            print(f"  {line}")
    return 0


def _makespan_min(processes: Processes) -> float:
    document = json.loads((processes.folder / "metrics.json").read_text())
    return float(document["metrics"]["makespan_s"]) / 60


if __name__ == "__main__":
    try:
        sys.exit(main())
    except LostError as error:
        sys.exit(f"LOST: {error}")
