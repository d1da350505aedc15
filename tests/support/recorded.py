"""Three hundred cases with recorded answers: commands under a work limit, on inputs made from seeds.

    python tests/support/recorded.py            compare with tests/fixtures/recorded.json, name what differs
    python tests/support/recorded.py --record   write that file anew; its commit says what moved

A refactoring changes no answer. An intended change names the cases whose digest moved.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import itertools
import json
import random
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "benchmarks"))

import msgspec  # noqa: E402
from random_snapshots import random_document  # noqa: E402

from aucsched import cli  # noqa: E402

DIGESTS = ROOT / "tests" / "fixtures" / "recorded.json"
MODELS = ("ipsched", "aucsched1", "aucsched2", "aucsched3")
STRATEGIES = {
    "ipsched": ("exact",),
    "aucsched1": ("exact", "greedy"),
    "aucsched2": ("exact", "greedy", "anytime"),
    "aucsched3": ("exact", "greedy", "anytime"),
}
#: Options that change what an award keeps free, promises or is worth, each on other snapshots.
VARIANTS: tuple[tuple[str, ...], ...] = (
    ("--promise", "none", "--reserve", "0"),
    ("--promise", "none", "--reserve", "3"),
    ("--promise", "plan"),
    ("--award-alone",),
    ("--balance", "--strategy", "anytime"),
    ("--on-timeout", "discard"),
    ("--objective", "priority_cores"),
    ("--objective", "response"),
    ("--weights", "paper"),
    ("--preset", "plugin", "--model", "aucsched3"),
    ("--preset", "paper", "--model", "aucsched1"),
    ("--bid-order", "figure-4.5", "--model", "aucsched2"),
)
COUNT_POLICIES = [
    "fcfs",
    "first-fit",
    "best-fit",
    "next-fit",
    "queues",
    "easy",
    "conservative",
    "reservations",
    "lookahead",
    "slack",
    "selective",
    "partitioned",
    "adaptive",
    "speculative",
    "planning",
    "promised",
    "ischeduler",
    "ideal-only",
    "moldable",
    "ideal-backfill",
]
NODE_POLICIES = [
    "fcfs",
    "easy",
    "reservations",
    "backfill-slurm",
    "backfill-planned",
    "aucsched2",
    "aucsched3",
]
NEGOTIATE = ("negotiate", "esp", "--nodes", "16", "--malleable", "50")
ORDERS = ["sjf", "ljf", "area", "width", "widest", "weight", "smith", "slowdown", "multifactor"]


@dataclass(frozen=True, slots=True)
class Case:
    """One command line; ``{…}`` in an argument names an input of :func:`inputs`."""

    name: str
    arguments: tuple[str, ...]


def cases() -> Iterator[Case]:
    """Yield the cases, each with a name that says what it plays."""
    yield from _of_snapshots()
    yield from _of_counts()
    yield from _of_nodes()
    for mapper, preset in itertools.product(("greedy", "auction"), ((), ("--preset", "thesis"))):
        arguments = (*NEGOTIATE, "--mapper", mapper, *preset, "--format", "json")
        yield Case(f"negotiate {mapper} {' '.join(preset)}", arguments)
    yield _simulate("dynamic-esp", "evolving", "--seed", "1", name="dynamic-esp evolving")
    for seed in range(6):
        arguments = ("winners", f"{{bids-{seed}}}", "--work-limit", "20", "--format", "json")
        yield Case(f"winners {seed}", arguments)


def _of_snapshots() -> Iterator[Case]:
    for seed, model in itertools.product(range(14), MODELS):
        for strategy in STRATEGIES[model]:
            limit = () if strategy == "greedy" else ("--work-limit", "5")
            yield _schedule(seed, ("--model", model, "--strategy", strategy, *limit))
    for seed, variant in itertools.product(range(14, 20), VARIANTS):
        yield _schedule(seed, (*variant, "--work-limit", "5"))
    for seed, command in itertools.product(range(20, 24), ("explain", "compare", "plan")):
        job = ("{job}",) if command == "explain" else ()
        yield Case(f"{command} {seed}", (command, f"{{snapshot-{seed}}}", *job, "--format", "json"))


def _of_counts() -> Iterator[Case]:
    for seed, policy in itertools.product(range(3), COUNT_POLICIES):
        yield _simulate(f"log-{seed}", policy)
    for order in ORDERS:
        yield _simulate("log-0", "easy", "--order", order)
        yield _simulate("log-1", "conservative", "--order", order)
    for promise in ("plan", "1h", "auto", "none"):
        yield _simulate("log-2", "promised", "--promise", promise)
    yield _simulate("log-2", "promised", "--objective", "response")


def _of_nodes() -> Iterator[Case]:
    for workload, policy in itertools.product(("nodes-0", "nodes-1"), NODE_POLICIES):
        yield _simulate(workload, policy, "--interval", "30")
    for variant in VARIANTS[:8]:
        yield _simulate("nodes-1", "aucsched3", *variant, "--interval", "60", "--work-limit", "2")


def _schedule(seed: int, options: tuple[str, ...]) -> Case:
    arguments = ("schedule", f"{{snapshot-{seed}}}", *options, "--format", "json")
    return Case(f"schedule {seed} {' '.join(options)}", arguments)


def _simulate(log: str, policy: str, *options: str, name: str = "") -> Case:
    source = log if name else f"{{{log}}}"
    arguments = ("simulate", source, "--policy", policy, *options, "--format", "json")
    return Case(name or f"simulate {log} {policy} {' '.join(options)}".strip(), arguments)


def inputs(folder: Path) -> dict[str, str]:
    """Write the inputs into a folder and return their paths by name."""
    made: dict[str, str] = {}
    for seed in range(24):
        document = random_document(9_000 + seed, most_nodes=40, most_jobs=70)
        if seed >= 20:
            document["jobs"] = document["jobs"] or [{"id": "1", "priority": 5, "cores": 2}]
        made[f"snapshot-{seed}"] = _write(folder / f"snapshot-{seed}.json", msgspec.json.encode(document))
        made[f"job-{seed}"] = document["jobs"][0]["id"] if document["jobs"] else ""
    for seed in range(3):
        made[f"log-{seed}"] = _write(folder / f"log-{seed}.swf", _log(seed).encode())
    for seed in range(6):
        made[f"bids-{seed}"] = _write(folder / f"bids-{seed}.txt", _bids(seed).encode())
    for place, kind in enumerate(("iii", "iv")):
        path = folder / f"nodes-{place}.json"
        options = ("--nodes", "64", "--hours", "0.2", "--max-cores", "60", "--seed", str(place))
        run("workload", "soner", "--id", kind, *options, "-o", str(path))
        made[f"nodes-{place}"] = str(path)
    return made


def _write(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return str(path)


def _log(seed: int) -> str:
    rng, lines, submit = random.Random(seed), ["; MaxProcs: 64"], 0
    for job in range(1, 221):
        submit += int(rng.expovariate(1 / 90))
        width = min(64, 2 ** rng.randrange(7) + rng.randrange(3))
        estimate = rng.choice((300, 900, 3600, 7200))
        run_s = max(1, int(estimate * rng.choice((0.05, 0.3, 0.8, 1.0))))
        fields = [job, submit, -1, run_s, width, -1, -1, width, estimate, -1, 1, 1 + rng.randrange(9)]
        lines.append(" ".join(map(str, [*fields, rng.randrange(3), -1, rng.randrange(3), -1, -1, -1])))
    return "\n".join(lines) + "\n"


def _bids(seed: int) -> str:
    """Return a CATS file: 60 bids on 20 goods, some with a dummy good."""
    rng, goods, dummies = random.Random(seed), 20, 6
    lines = [f"goods {goods}", "bids 60", f"dummy {dummies}"]
    for bid in range(60):
        wanted = sorted(rng.sample(range(goods), rng.randint(1, 5)))
        price = sum(rng.randint(5, 25) for _ in wanted) + rng.randint(0, 9)
        extra = [goods + rng.randrange(dummies)] if rng.random() < 0.4 else []
        lines.append("\t".join(map(str, [bid, price, *wanted, *extra, "#"])))
    return "\n".join(lines) + "\n"


def run(*arguments: str) -> str:
    """Run a command in this process; return what it printed, or its exit code and error."""
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        code = cli.run(list(arguments))
    return out.getvalue() if code == 0 else f"exit {code}: {error.getvalue()}"


def answer(case: Case, made: dict[str, str]) -> str:
    """Return the canonical text of a case's answer: no seconds, no paths."""
    seed = case.name.split()[1] if case.name[:7] == "explain" else ""
    filled = [part.format_map({**made, "job": made.get(f"job-{seed}", "")}) for part in case.arguments]
    said = run(*filled)
    for name, path in made.items():
        if path and not name.startswith("job-"):
            said = said.replace(path, name)
    try:
        return json.dumps(_without_seconds(json.loads(said)), sort_keys=True)
    except ValueError:
        return said


def _without_seconds(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_seconds(one) for key, one in value.items() if "second" not in key}
    return [_without_seconds(one) for one in value] if isinstance(value, list) else value


def digests(only: str = "") -> dict[str, str]:
    """Return the digest of each case's answer, by name."""
    with tempfile.TemporaryDirectory() as folder:
        made = inputs(Path(folder))
        return {
            case.name: hashlib.sha256(answer(case, made).encode()).hexdigest()[:16]
            for case in cases()
            if only in case.name
        }


def differences() -> list[str]:
    """Return the names of cases with another answer than the recorded one, or with none."""
    recorded, now = json.loads(DIGESTS.read_text()), digests()
    return sorted(name for name in recorded | now if recorded.get(name) != now.get(name))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--show", metavar="CASE", help="print one case's answer")
    options = parser.parse_args()
    if options.show is not None:
        with tempfile.TemporaryDirectory() as folder:
            made = inputs(Path(folder))
            print(*(answer(case, made) for case in cases() if case.name == options.show), sep="\n")  # noqa: T201
    elif options.record:
        DIGESTS.write_text(json.dumps(digests(), indent=1) + "\n")
    else:
        print("\n".join(differences()) or "all as recorded")  # noqa: T201
