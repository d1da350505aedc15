"""An independent check of a schedule, which reads the two files and nothing else.

It works on the members of a snapshot file and of a schedule file, in plain Python, and shares no line with
the package: where the package misreads a member, this does not misread it alike. Hostlists must be lists of
plain names with commas, as attack_snapshots.py writes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from fractions import Fraction
from typing import Any

#: The members of a file.
Document = Mapping[str, Any]
#: A problem's rule and what is wrong.
Problem = tuple[str, str]

#: Above every count that a file may hold.
HUGE = 10**15
_TAKES_JOBS = ("idle", "mixed")
#: Why a job has no place in the window.
_OUTSIDE = ("held", "not_eligible", "not_expressible", "ineligible", "set_aside")


def names_of(hostlist: str | None) -> list[str]:
    """Return the names of a hostlist without brackets."""
    return hostlist.split(",") if hostlist else []


def problems(snapshot: Document, schedule: Document, window: int, objective: str) -> Iterator[Problem]:
    """Give what is wrong with a schedule of a snapshot: (``lost`` or ``invalid``, a sentence)."""
    yield from _lists(snapshot, schedule)
    jobs = {job["id"]: job for job in snapshot.get("jobs", ())}
    checker = Checker(snapshot)
    known = [award for award in schedule["started"] if award["job"] in jobs]
    for award in known:
        for wrong in checker.award(jobs[award["job"]], award["nodes"]):
            yield "invalid", f"job {award['job']}: {wrong}"
    for wrong in (*checker.capacity(known), *_licenses(snapshot, known, jobs)):
        yield "invalid", wrong
    yield from _figures(schedule, [(jobs[award["job"]], len(award["nodes"])) for award in known], objective)
    yield from _claims(snapshot, schedule, window)


def worth(jobs: list[tuple[Document, int]], objective: str) -> Fraction:
    """Return what (job, its number of nodes) are worth together: priorities, or priorities times cores."""
    return sum((_weight(job, count, objective) for job, count in jobs), start=Fraction(0))


def _weight(job: Document, count: int, objective: str) -> Fraction:
    priority = Fraction(str(job["priority"]))
    if objective == "priority":
        return priority
    return priority * int(job["cores"] if job.get("cores") else job["cores_per_node"] * count)


def _lists(snapshot: Document, schedule: Document) -> Iterator[Problem]:
    asked = Counter(job["id"] for job in snapshot.get("jobs", ()))
    listed = Counter(entry["job"] for name in ("started", "pending") for entry in schedule[name])
    for job in sorted({*asked, *listed}):
        if asked[job] != listed[job]:
            yield "lost", f"job {job} stands {listed[job]} times among started and pending"
    for entry in schedule["pending"]:
        if not entry["reason"] or not entry["detail"]:
            yield "lost", f"job {entry['job']} waits without a reason"


def _licenses(snapshot: Document, awards: list[Document], jobs: Mapping[str, Document]) -> Iterator[str]:
    used: Counter[str] = Counter()
    for award in awards:
        used.update(jobs[award["job"]].get("licenses", {}))
    for name, count in used.items():
        entry = snapshot["licenses"][name]
        free = entry["total"] if entry.get("free") is None else entry["free"]
        if count > free:
            yield f"{count} licences {name} are awarded, {free} are free"


def _figures(schedule: Document, started: list[tuple[Document, int]], objective: str) -> Iterator[Problem]:
    said, found = schedule["objective"]["priority"], float(worth(started, objective))
    if abs(said - found) > 1e-9 * max(1.0, found):
        yield "invalid", f"the objective says {said}, the started jobs are worth {found}"
    bound = schedule["objective"]["bound"]
    if bound is not None and bound < found * (1 - 1e-9):
        yield "invalid", f"the bound {bound} is below the award's {found}"


def _claims(snapshot: Document, schedule: Document, window: int) -> Iterator[Problem]:
    """Optimal may only be said of the window that was asked for, without jobs that lack licences."""
    free = {name: one.get("free", one["total"]) for name, one in snapshot.get("licenses", {}).items()}
    asked_for = {job["id"]: job.get("licenses", {}) for job in snapshot.get("jobs", ())}
    outside = sum(
        entry["reason"] in _OUTSIDE
        or any(count > free[name] for name, count in asked_for[entry["job"]].items())
        for entry in schedule["pending"]
    )
    asked = min(window, len(snapshot.get("jobs", ())) - outside)
    size = schedule["window"]["size"]
    if schedule["status"] == "optimal" and size < asked:
        yield "claim", f"optimal is said of {size} jobs, the window asked for holds {asked}"


class Checker:
    """Checks awards against a snapshot's members."""

    def __init__(self, snapshot: Document) -> None:
        self._snapshot = snapshot
        self._nodes = {node["name"]: node for node in snapshot["nodes"]}
        self._places = {name: place for place, name in enumerate(self._nodes)}
        self._partitions = {entry["name"]: entry for entry in snapshot.get("partitions", ())}
        switches = (snapshot.get("topology") or {}).get("switches") or ()
        self._leaf = {name: one["name"] for one in switches for name in names_of(one.get("nodes"))}

    def award(self, job: Document, held: Mapping[str, Document]) -> Iterator[str]:
        """Give what is wrong with one award: (node name → cores, gres, memory_mib)."""
        if job.get("hold") is not None or job.get("unsupported") or not job["priority"]:
            yield "it must not start"
        unknown = [name for name in held if name not in self._nodes]
        if unknown or not held:
            yield f"it stands on {unknown or 'nothing'}"
            return
        for name, use in held.items():
            yield from self._node(job, self._nodes[name], use)
        yield from self._partition(job, list(held))
        yield from _counts(job, [use["cores"] for use in held.values()])
        yield from self._order(job, list(held))
        yield from _gres(job, [use.get("gres", {}) for use in held.values()])

    def capacity(self, awards: list[Document]) -> Iterator[str]:
        """Give what more is awarded than is free, on which node."""
        used: dict[str, Counter[tuple[str, str]]] = {}
        for award in awards:
            for name, use in award["nodes"].items():
                amounts = used.setdefault(name, Counter())
                amounts["cores", ""] += use["cores"]
                amounts["memory", ""] += use.get("memory_mib") or 0
                amounts.update({("gres", kind): count for kind, count in use.get("gres", {}).items()})
        for name, amounts in used.items():
            free = self._free(name) if name in self._nodes else {}
            for what, amount in amounts.items():
                if what in free and amount > free[what]:
                    yield f"{amount} of {what} are awarded on {name}, {free[what]} are free"

    def _free(self, name: str) -> dict[tuple[str, str], int]:
        """Return what is free on a node; no entry of memory where it is not limited."""
        node = self._nodes[name]
        running = [
            use
            for job in self._snapshot.get("running", ())
            for names, use in job["nodes"].items()
            if name in names_of(names)
        ]
        free = {("cores", ""): node.get("free_cores")}
        if free["cores", ""] is None:
            free["cores", ""] = node["cores"] - sum(use["cores"] for use in running)
        if node.get("memory_mib") is not None:
            left = node["memory_mib"] - sum(use.get("memory_mib") or 0 for use in running)
            given = node.get("free_memory_mib")
            free["memory", ""] = left if given is None else given
        for kind, count in node.get("gres", {}).items():
            left = count - sum(use.get("gres", {}).get(kind, 0) for use in running)
            given = node.get("free_gres")
            free["gres", kind] = left if given is None else given.get(kind, 0)
        return {what: int(amount or 0) for what, amount in free.items()}

    def _node(self, job: Document, node: Document, use: Document) -> Iterator[str]:
        name = node["name"]
        if node.get("state", "idle") not in _TAKES_JOBS:
            yield f"{name} is {node['state']}"
        if not {*job.get("features", ())} <= {*node.get("features", ())}:
            yield f"{name} lacks a feature"
        if name in names_of(job.get("excluded_nodes")):
            yield f"{name} is excluded"
        if job.get("exclusive"):
            yield from self._exclusive(node, use)
        memory = job.get("memory_mib_per_node") or (job.get("memory_mib_per_core") or 0) * use["cores"]
        if (use.get("memory_mib") or 0) != memory:
            yield f"it holds {use.get('memory_mib')} MiB on {name} instead of {memory}"
        for reservation in self._snapshot.get("reservations", ()):
            if name in names_of(reservation["nodes"]) and self._meets(job, reservation):
                yield f"it runs into the reservation {reservation['name']} on {name}"

    def _exclusive(self, node: Document, use: Document) -> Iterator[str]:
        name = node["name"]
        whole = {("cores", ""): node["cores"]}
        whole |= {("gres", kind): count for kind, count in node.get("gres", {}).items()}
        if node.get("memory_mib") is not None:
            whole["memory", ""] = node["memory_mib"]
        if self._free(name) != whole:
            yield f"{name} is not empty"
        if use["cores"] != node["cores"]:
            yield f"it holds {use['cores']} of the {node['cores']} cores of {name} alone"
        kept = {kind: count for kind, count in node.get("gres", {}).items() if count}
        if {kind: count for kind, count in use.get("gres", {}).items() if count} != kept:
            yield f"it does not hold all gres of {name} alone"

    def _meets(self, job: Document, reservation: Document) -> bool:
        if job.get("user", "") in reservation.get("users", ()):
            return False
        now, limit = _time(self._snapshot.get("time")), job.get("time_limit_s")
        if now is None:
            return True
        start, end = _time(reservation["start"]), _time(reservation["end"])
        assert start is not None
        assert end is not None
        return now < end and (limit is None or start < now + limit)

    def _partition(self, job: Document, held: list[str]) -> Iterator[str]:
        named = names_of(job.get("partition"))
        if named and not any(self._allows(name, job, held) for name in named):
            yield f"no partition of {job['partition']} allows {','.join(held)}"

    def _allows(self, name: str, job: Document, held: list[str]) -> bool:
        limits = self._partitions.get(name, {})
        listed = names_of(limits.get("nodes"))
        most, longest = limits.get("max_nodes"), limits.get("max_time_limit_s")
        return (
            limits.get("state", "up") == "up"
            and (most is None or len(held) <= most)
            and (longest is None or (job.get("time_limit_s") or 0) <= longest)
            and all(name in self._nodes[node].get("partitions", ()) or node in listed for node in held)
        )

    def _order(self, job: Document, held: list[str]) -> Iterator[str]:
        places = sorted(self._places[name] for name in held)
        if job.get("contiguous") and places != list(range(places[0], places[0] + len(places))):
            yield "its nodes are not contiguous"
        leaves = {self._leaf.get(name, "") for name in held}
        most = job.get("max_switches")
        if most is not None and len(leaves) > most:
            yield f"its nodes stand below {len(leaves)} leaf switches, {most} are allowed"
        if not {*names_of(job.get("required_nodes"))} <= {*held}:
            yield "a required node is missing"


def _span(value: int | list[int]) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value[0], value[1])


def _counts(job: Document, cores: list[int]) -> Iterator[str]:
    """Compare nodes and cores with those asked for."""
    each, total, task = job.get("cores_per_node"), job.get("cores"), job.get("cores_per_task", 1)
    low, high = _span(job["nodes"]) if job.get("nodes") is not None else (1, len(cores))
    if each is not None and total is not None:
        low = high = total // each
    if not low <= len(cores) <= high:
        yield f"it has {len(cores)} nodes instead of {low} to {high}"
    if min(cores) < max(1, job.get("min_cores_per_node", 1)):
        yield f"it has {min(cores)} cores on a node"
    if job.get("exclusive"):
        if sum(cores) < (total or 0) or min(cores) < (each or 1):
            yield f"it has {cores} cores alone, too few"
        return
    if total is not None and sum(cores) != total:
        yield f"it has {sum(cores)} cores instead of {total}"
    if each is not None and {*cores} != {each}:
        yield f"it has {cores} cores instead of {each} on each node"
    if any(count % task for count in cores):
        yield f"a task of {task} cores is split: {cores}"


def _gres(job: Document, held: list[Mapping[str, int]]) -> Iterator[str]:
    """Compare each node's gres with what was asked for; alone on its nodes, a job holds all they have."""
    most = HUGE if job.get("exclusive") else None
    per_node, in_all = job.get("gres_per_node", {}), job.get("gres_total", {})
    for name, asked in per_node.items():
        low, high = _span(asked)
        for gres in held:
            found = _each_kind(name, gres)
            if max(found.values(), default=0) < low or sum(found.values()) > (most or high):
                yield f"it holds {found} on a node, asked for {name}: {asked}"
    for name, asked in in_all.items():
        low, high = _span(asked)
        count = sum(sum(_each_kind(name, gres).values()) for gres in held)
        if not low <= count <= (most or high):
            yield f"it holds {count} in all, asked for {name}: {asked}"
    if most is None:
        yield from _kinds((*per_node, *in_all), {kind for gres in held for kind in gres if gres[kind]})


def _kinds(asked: tuple[str, ...], held: set[str]) -> Iterator[str]:
    """Every gres held was asked for, and each request is served by one type."""
    for name in asked:
        kinds = sorted(_each_kind(name, dict.fromkeys(held, 1)))
        if len(kinds) > 1:
            yield f"it mixes {' and '.join(kinds)}"
    for kind in sorted(held):
        if not any(_is_kind(kind, name) for name in asked):
            yield f"it holds {kind}, which it did not ask for"


def _each_kind(name: str, gres: Mapping[str, int]) -> dict[str, int]:
    return {kind: count for kind, count in gres.items() if count and _is_kind(kind, name)}


def _is_kind(kind: str, name: str) -> bool:
    return kind == name or (":" not in name and kind.partition(":")[0] == name)


def _time(value: str | float | None) -> float | None:
    if isinstance(value, str):
        return datetime.fromisoformat(value).timestamp()
    return value
