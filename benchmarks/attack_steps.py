"""Snapshots × models × options: steps that must hold, whatever is asked of them.

Each case is a hostile snapshot (attack_snapshots.py) and random options. Rules: the award passes the
independent check of attack_checker.py (``invalid``), no job is ``lost``, no legal job or option ends the step
(``stopped``), the award is not ``worse`` than first-fit by priority, the step keeps its time limit
(``late``), and ``optimal`` is said of the window that was asked for only, of a sum that no bound over
placements is below (``claim``).
"""

from __future__ import annotations

import random
import shlex
from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import Any

import msgspec
from attack_cases import Cost, Outcome, Section, measured, summary
from attack_checker import problems, worth
from attack_snapshots import hostile_document

from aucsched import InputError, OptionError, Snapshot, schedule
from aucsched.auction.explain.comparison import first_fit_by_priority
from aucsched.auction.options import MODELS, PRESETS
from aucsched.formats.native.cluster_file import parse_snapshot
from aucsched.models.search.compiled_search import compiled_loop

#: What a step may take beyond its time limit: a share of it, and seconds.
LATE_SHARE, LATE_S = 0.1, 0.2
#: Nodes × jobs beyond which HiGHS at once gets a time limit.
_LARGE = 2000
#: Jobs that take no part, which first-fit must not count either.
_NO_PART = ("not_expressible", "set_aside")


def random_options(rng: random.Random) -> dict[str, Any]:
    """Return options of a step that may stand together, as the Python API names them."""
    options: dict[str, Any] = {"model": rng.choice(MODELS), "seed": rng.randint(0, 3)}
    if rng.random() < 0.2:
        preset = rng.choice(sorted(PRESETS))
        options |= {"preset": preset} if options["model"] in PRESETS[preset] else {}
    elif rng.random() < 0.2:
        options["weights"] = "paper"
    searches = options["model"] in ("aucsched2", "aucsched3") and not {"weights", "preset"} & {*options}
    if rng.random() < 0.5:
        options["strategy"] = rng.choice(["exact", "anytime"]) if searches else "exact"
    if searches and options.get("strategy") != "exact" and rng.random() < 0.25:
        options["part_nodes"] = rng.choice([1, 2, 7, 50])
    if options["model"] == "aucsched2" and rng.random() < 0.2:
        options["preference_table"] = rng.choice(["corrected", "printed"])
    if rng.random() < 0.3:
        options["work_limit"] = rng.randint(0, 3)
    else:
        options["time_limit_s"] = rng.choice([0.001, 0.003, 0.01, 0.03, 0.1, 0.3])
    chances: list[tuple[float, str, Any]] = [
        (0.4, "on_timeout", rng.choice(["halve", "incumbent", "discard"])),
        (0.3, "objective", rng.choice(["priority", "priority_cores"])),
        (0.7, "reserve", rng.choice((0, 0, 1, 2, 3))),
        (0.3, "window", rng.choice([1, 2, 5, 20, 10**7])),
    ]
    if options["model"] != "ipsched":
        chances += [
            (0.2, "max_bids", rng.choice([1, 2, 10, 100, 10**7])),
            (0.2, "max_bids_per_job", rng.choice([1, 2, 10, 100])),
        ]
    return options | {name: value for chance, name, value in chances if rng.random() < chance}


def command_line(options: Mapping[str, Any], file: str) -> str:
    """Return the command that takes the same step."""
    words = ["aucsched", "schedule", file]
    for name, value in options.items():
        words += ["--" + name.removesuffix("_s").replace("_", "-"), str(value)]
    return shlex.join(words)


def described(seed: int, folder: Path) -> Outcome:
    """Return a case without running it."""
    del folder
    name = f"steps-{seed}.json"
    document, options = drawn(seed)
    text = msgspec.json.encode(document)
    return Outcome(replay=command_line(options, name), files={name: text})


def drawn(seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a case's snapshot and options.

    A work limit counts nodes of branch and bound, and the root of a large program takes HiGHS as long as it
    may: such a case has a time limit.
    """
    document = hostile_document(seed)
    options = random_options(random.Random(f"options {seed}"))  # noqa: S311 - not a secret
    is_large = len(document["nodes"]) * len(document["jobs"]) > _LARGE
    is_searched = options["model"] in ("aucsched2", "aucsched3") and not {"weights", "preset"} & {*options}
    is_exact = not is_searched or options.get("strategy") == "exact"
    if is_exact and is_large and options.pop("work_limit", None) is not None:
        options["time_limit_s"] = 0.3
    return document, options


def run_case(seed: int, folder: Path) -> Outcome:
    """Take one step and hold it against the rules."""
    outcome = described(seed, folder)
    judge(*drawn(seed), outcome)
    return outcome


def judge(document: Mapping[str, Any], options: Mapping[str, Any], outcome: Outcome) -> None:
    """Take a step over a snapshot's members and note in ``outcome`` which rules it broke."""
    snapshot = parse_snapshot(msgspec.json.encode(document))
    try:
        with measured() as cost:
            result = schedule(snapshot, **options).to_dict()
    except OptionError as error:
        outcome.fail("options", summary(error))
        return
    except InputError as error:
        # Documented: exact sums end there.
        if "above 2^53" not in str(error):
            outcome.fail("stopped", summary(error))
        outcome.counts["refused: weights above 2^53"] += 1
        return
    except Exception as error:  # noqa: BLE001 - none may end a step
        outcome.fail("stopped", summary(error))
        return
    outcome.counts["jobs started"] += len(result["started"])
    outcome.counts[f"status {result['status']}"] += 1
    window = _window(options)
    for rule, wrong in problems(document, result, window, _objective(options)):
        outcome.fail(rule, wrong)
    _judge_time(options, cost, outcome)
    _judge_worth(snapshot, document, result, options, outcome)
    _judge_proof(snapshot, result, options, outcome)


def _preset(options: Mapping[str, Any]) -> Mapping[str, Any]:
    return PRESETS[options["preset"]][options["model"]] if "preset" in options else {}


def _window(options: Mapping[str, Any]) -> int:
    return int({"window": 100, **_preset(options), **options}["window"])


def _objective(options: Mapping[str, Any]) -> str:
    return str({"objective": "priority", **_preset(options), **options}["objective"])


def _judge_time(options: Mapping[str, Any], cost: Cost, outcome: Outcome) -> None:
    """A step is late by both clocks, or the machine was busy with something else."""
    outcome.largest["MiB"] = cost.peak_mib
    if "time_limit_s" not in options:
        outcome.largest["CPU s without a time limit"] = cost.cpu_s
        return
    limit = options["time_limit_s"]
    outcome.largest["wall s beyond the time limit"] = cost.wall_s - limit
    outcome.largest["CPU s beyond the time limit"] = cost.cpu_s - limit
    most = limit * (1 + LATE_SHARE) + LATE_S
    if min(cost.wall_s, cost.cpu_s) > most:
        outcome.fail("late", f"{cost.wall_s:.2f} s, {cost.cpu_s:.2f} s of CPU, of a limit of {limit:g} s")
    elif cost.wall_s > most:
        outcome.counts["late by the wall clock only"] += 1


def _judge_worth(
    snapshot: Snapshot,
    document: Mapping[str, Any],
    result: Mapping[str, Any],
    options: Mapping[str, Any],
    outcome: Outcome,
) -> None:
    """Compare with first-fit, where that is promised: exact sums, no reservations, nothing discarded.

    Nor where the cap of all bids is below the number of jobs: those without a bid cannot start.
    """
    chosen = {**_preset(options), **options}
    is_capped = chosen.get("max_bids", inf) < len(document["jobs"])
    is_free = chosen.get("weights") != "paper" and not options.get("reserve", 1) and not is_capped
    if not is_free or result["status"] == "no_solution":
        outcome.counts["not compared with first-fit"] += 1
        return
    without = {entry["job"] for entry in result["pending"] if entry["reason"] in _NO_PART}
    held = first_fit(snapshot, document, _window(options), without)
    plain = worth(held, _objective(options))
    jobs = {job["id"]: job for job in document["jobs"]}
    ours = worth([(jobs[one["job"]], len(one["nodes"])) for one in result["started"]], _objective(options))
    if ours < plain:
        outcome.fail("worse", f"the award is worth {float(ours):.17g}, first-fit's {float(plain):.17g}")
    outcome.counts["better than first-fit"] += ours > plain


def first_fit(
    snapshot: Snapshot, document: Mapping[str, Any], window: int, without: set[str]
) -> list[tuple[Mapping[str, Any], int]]:
    """Return what first-fit by priority starts: jobs, with how many nodes they get."""
    if without:
        jobs = [job for job in document["jobs"] if job["id"] not in without]
        snapshot = parse_snapshot(msgspec.json.encode({**document, "jobs": jobs}))
    started = first_fit_by_priority(snapshot, window).started
    return [(job, len(started[job["id"]])) for job in document["jobs"] if job["id"] in started]


def _judge_proof(
    snapshot: Snapshot, result: Mapping[str, Any], options: Mapping[str, Any], outcome: Outcome
) -> None:
    """Let the other strategy prove the same window, where both can: neither may be beyond the other's bound.

    Each proves a sum over the bids that it made, and in rounds ``anytime`` makes others: the sums may differ,
    but no placement, whoever bid there, is worth more than the bounds over all placements say.
    """
    comparable = options["model"] in ("aucsched2", "aucsched3") and len(snapshot.nodes) <= 24
    differ = {"weights", "preset", "part_nodes", "reserve"}
    if result["status"] != "optimal" or not comparable or differ & {*options}:
        return
    other = "exact" if options.get("strategy") != "exact" else "anytime"
    limits = {"time_limit_s": 2.0, "work_limit": None, "strategy": other, "on_timeout": None}
    try:
        found = schedule(snapshot, **{**options, **limits}).to_dict()
    except (InputError, OptionError) as error:
        outcome.fail("stopped", f"under {other}: {summary(error)}")
        return
    if found["status"] == "optimal":
        outcome.counts["proved by both strategies"] += 1
        ours, others = (float(one["objective"]["priority"]) for one in (result, found))
        bounds = [one["objective"]["bound_over_placements"] for one in (result, found)]
        least = min((bound for bound in bounds if bound is not None), default=inf)
        if len(snapshot.jobs) > min(one["window"]["size"] for one in (result, found)):
            # Who starts behind the window counts as well, as far as there was time to look.
            return
        if max(ours, others) > least * (1 + 1e-9):
            outcome.fail("claim", f"{max(ours, others):.17g} is above the bound over placements {least:.17g}")


def section() -> Section:
    """Return the section."""
    # The compiled loop is loaded before a step's clock starts, once a process.
    return Section(
        name="steps", count=5000, quick=150, run=run_case, describe=described, prepare=compiled_loop
    )
