"""Kill dynsched and two growing applications at random moments, restart them, and look for losses.

    python benchmarks/evolving_kill.py --kills 30

Three processes over a unix socket with a shared secret: ``aucsched dynsched`` and twice
``examples/growing_jacobi.py``. A victim and a moment are drawn; it gets SIGKILL and is started again with the
same command. When both applications are done, dynsched's journal is played again: at every transition each
core is free or held by one job, each grant and release happened once, and at the end everything is free. The
applications compare their results with a serial computation themselves. Rounds follow until the given number
of kills hit a running process. The exit code is 1 when any of this fails.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from aucsched.formats.native.cluster_file import load_snapshot
from aucsched.negotiation.evolving import dynamic_scheduler
from aucsched.negotiation.evolving.dynamic_scheduler import DynamicState
from aucsched.negotiation.evolving.fairness import Fairness, at_start
from aucsched.negotiation.evolving.iteration import Depths
from aucsched.negotiation.messages import DynResponse, DynState, Send
from aucsched.negotiation.transport.party import Happening, Party, PartyJournal

_APPLICATIONS = ("A", "B")
_EXAMPLE = Path(__file__).parent.parent / "examples" / "growing_jacobi.py"
_LIMIT_S = 300.0
_POLL_S = 0.01


class LostError(AssertionError):
    """Something was lost or done twice."""


def write_inputs(folder: Path) -> None:
    """Write a cluster of 4 nodes of 2 cores on which both applications hold a node, and the secret."""
    running = [
        {"id": job, "nodes": {f"n{place}": {"cores": 2}}, "end_time": 100_000, "user": job}
        for place, job in enumerate(_APPLICATIONS)
    ]
    document = {
        "format": "aucsched-snapshot/1",
        "time": 0,
        "nodes": [{"name": "n[0-3]", "cores": 2}],
        "running": running,
        "jobs": [],
    }
    (folder / "snapshot.json").write_text(json.dumps(document))
    secret = folder / "secret"
    secret.touch(mode=0o600)
    secret.write_text("of three\n")


@dataclass
class Processes:
    """dynsched and the applications; each is started again when it was killed."""

    folder: Path
    iterations: int
    kills: Counter[str] = field(default_factory=Counter)
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str) -> None:
        """Start one, maybe again."""
        common = ["--secret-file", "secret", "--journal"]
        if name == "dynsched":
            line = [
                "-m",
                "aucsched",
                "dynsched",
                "snapshot.json",
                "--listen",
                "unix:socket",
                *common,
                "server",
            ]
        else:
            sizes = ["--iterations", str(self.iterations)]
            line = [str(_EXAMPLE), name, "unix:socket", *common, f"{name}.journal", *sizes]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(  # noqa: S603 - our own
                [sys.executable, *line], cwd=self.folder, stdout=log, stderr=log
            )

    def kill(self, name: str) -> None:
        """Kill one that runs, and start it again."""
        process = self.running[name]
        if process.poll() is None:
            process.kill()
            process.wait()
            self.kills[name] += 1
            self.start(name)

    def are_done(self) -> bool:
        """Return whether both applications have ended well.

        Raises:
            LostError: one has ended otherwise.
        """
        codes = [self.running[name].poll() for name in _APPLICATIONS]
        for name, code in zip(_APPLICATIONS, codes, strict=True):
            if code:
                raise LostError(
                    f"{name} ended with {code}: {(self.folder / f'{name}.log').read_text()[-2000:]}"
                )
        return all(code == 0 for code in codes)

    def stop(self) -> None:
        """End what still runs."""
        for process in self.running.values():
            process.send_signal(signal.SIGKILL)
            process.wait()


def play_round(folder: Path, generator: random.Random, kills: int, iterations: int) -> Counter[str]:
    """Run all three until the applications are done; return whom a kill hit how often."""
    write_inputs(folder)
    processes = Processes(folder, iterations)
    until = time.monotonic() + _LIMIT_S
    try:
        for name in ("dynsched", *_APPLICATIONS):
            processes.start(name)
        next_kill = time.monotonic() + generator.uniform(0, 3)
        while not processes.are_done():
            if time.monotonic() > until:
                raise LostError("nothing goes on")
            if processes.kills.total() < kills and time.monotonic() >= next_kill:
                processes.kill(generator.choice(("dynsched", *_APPLICATIONS)))
                next_kill = time.monotonic() + generator.uniform(0, 3)
            time.sleep(_POLL_S)
        server = processes.running["dynsched"]
        if server.wait(timeout=30):
            raise LostError(f"dynsched: {(folder / 'dynsched.log').read_text()[-2000:]}")
    finally:
        processes.stop()
    return processes.kills


@dataclass
class Checked:
    """Looks at every transition of dynsched."""

    grants: Counter[tuple[str, int]] = field(default_factory=Counter)
    transitions: int = 0

    def watch(
        self, before: DynamicState, happening: Happening, after: DynamicState, sends: Sequence[Send]
    ) -> None:
        """Look at one."""
        self.transitions += 1
        held: Counter[str] = Counter()
        for job in after.snapshot.running:
            for place, use in job.nodes.items():
                held[place] += use.cores
        for node in after.snapshot.nodes:
            if held[node.name] + node.free.cores != node.total.cores:
                raise LostError(f"{node.name}: {held[node.name]} held and {node.free.cores} free")
        for name, answer in after.answers.items():
            known = before.answers.get(name)
            if answer.state is DynState.GRANTED and (known is None or known.state != answer.state):
                self.grants[name, answer.serial] += 1
                gained = sum(after.held(name).values()) - sum(before.held(name).values())
                if gained != sum(answer.nodes.values()):
                    raise LostError(f"{name} gained {gained}, was granted {answer.nodes}")
        for send in sends:
            if not isinstance(send.message, DynResponse):
                raise LostError(f"{send.message} is not an answer")
        del happening


def check(folder: Path) -> Checked:
    """Play a journal again and look at all of it."""
    snapshot = load_snapshot(folder / "snapshot.json")
    state = DynamicState(
        snapshot=snapshot, fairness=Fairness(), depths=Depths(), accounts=at_start(Fairness(), 0.0)
    )
    path = folder / "server" / "dynsched.journal"
    _, _, head = path.read_bytes().split(b"\n")[0].partition(b" ")
    checked = Checked()
    journal = PartyJournal(path, json.loads(head)["identity"])
    try:
        party = Party(state, dynamic_scheduler.step, journal, checked.watch)
    finally:
        journal.close()
    after = party.state
    if after.snapshot.running or any(node.free != node.total for node in after.snapshot.nodes):
        raise LostError("not everything is free at the end")
    if any(count != 1 for count in checked.grants.values()):
        raise LostError(f"granted more than once: {checked.grants}")
    for name in _APPLICATIONS:
        log = (folder / f"{name}.log").read_text()
        if "equal to the serial result" not in log and "had ended before" not in log:
            raise LostError(f"{name} is not done: {log[-2000:]}")
    return checked


def main() -> None:
    """Kill, and check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--per-round", type=int, default=6)
    parser.add_argument("--iterations", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    generator = random.Random(options.seed)  # noqa: S311 - moments, no secrets
    kills: Counter[str] = Counter()
    rounds = transitions = grants = 0
    while kills.total() < options.kills:
        with tempfile.TemporaryDirectory() as folder:
            most = min(options.per_round, options.kills - kills.total())
            kills += play_round(Path(folder), generator, most, options.iterations)
            checked = check(Path(folder))
        rounds += 1
        transitions += checked.transitions
        grants += len(checked.grants)
        print(f"round {rounds}: {dict(kills)}, {len(checked.grants)} grants", flush=True)
    print(
        f"{kills.total()} kills ({dict(kills)}) in {rounds} rounds: {transitions} transitions, "
        f"{grants} grants, nothing lost, no core held by two"
    )


if __name__ == "__main__":
    main()
