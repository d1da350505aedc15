"""Limits that leave what Slurm leaves beside running jobs, as a snapshot counts these."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from ...cluster.checks import LARGEST_COUNT
from ...cluster.jobs import RunningJob
from ...cluster.limits import Limit, Owned, limited
from ...cluster.resources.capacity import Resource
from ...cluster.resources.pools import LimitPool, use_of_nodes
from ...formats.notes import Notes


def limits_beside(
    limits: Sequence[Limit], used: Mapping[str, int], running: Sequence[RunningJob], now: float | None
) -> Iterator[tuple[Limit, dict[str, dict[str, int]]]]:
    """Yield each limit, and its amounts for each user or account that Slurm counts otherwise.

    Slurm counts a node that jobs share once, and minutes times the UsageFactor of their QOS.

    Args:
        limits: of the site.
        used: the core-seconds that Slurm counts, by limit, where it says so.
        running: the jobs that run.
        now: the snapshot's time, seconds since the epoch.
    """
    pool = LimitPool(tuple(limits))
    held, told = Counter[Resource](), Counter[Resource]()
    #: A job of each that has some; of limits of all together anybody's.
    owners: dict[str, dict[str, Owned]] = {limit.name: {} if limit.per else {"": Owned()} for limit in limits}
    seen = set[tuple[Resource, str]]()
    for job in running:
        uses = dict(pool.held(job, use_of_nodes(job.nodes.values()), now))
        held.update(uses)
        told.update(uses)
        for limit in pool.limits_of(job):
            if limit.per and getattr(job, limit.per):
                owners[limit.name][getattr(job, limit.per)] = job
            if "nodes" in limit.most:
                resource = pool.resource(limit, "nodes", job)
                nodes = {(resource, node) for node in job.nodes}
                told[resource] -= len(nodes & seen)
                seen |= nodes
    for limit in limits:
        if limit.name in used:
            told[pool.resource(limit, "core_seconds", Owned())] = used[limit.name]
        most = {
            who: {
                what: min(max(count + held[resource] - told[resource], 0), LARGEST_COUNT)
                for what, count in limit.most.items()
                for resource in (pool.resource(limit, what, job),)
            }
            for who, job in owners[limit.name].items()
        }
        yield limit, {who: own for who, own in most.items() if own != limit.most}


def limits_of_each(
    limit: Limit, own: Mapping[str, Mapping[str, int]], names: Mapping[str, Collection[str]], notes: Notes
) -> Iterator[Limit]:
    """Yield a limit for each one in ``own`` and one for the rest; ``names``: of all, by ``per``."""
    others = set(names.get(limit.per or "", ())) - own.keys() - {""}
    if not own:
        yield limit
        return
    for who, most in own.items():
        name = f"{limit.name} {who}".strip()
        changed = [what for what in most if what != "core_seconds" and most[what] != limit.most[what]]
        if changed:
            words = ", ".join(limited(what, most[what]) for what in changed)
            notes.add("limits", f"{name}: by Slurm's count of running jobs it is {words}")
        jobs = replace(limit.jobs, **{limit.per: (who,)}) if limit.per else limit.jobs
        yield replace(limit, name=name, jobs=jobs, most=most)
    if others:
        yield replace(limit, jobs=replace(limit.jobs, **{str(limit.per): tuple(sorted(others))}))
