"""Pages of one auction: schedule, explain, compare."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..auction.explain.comparison import Baseline, Comparison
from ..auction.explain.explanation import Explanation
from ..auction.explain.overview import Overview
from ..auction.explain.words import number, request_words, waiting_rows
from ..auction.queue import in_order
from ..cluster.schedule import Schedule
from ..cluster.snapshot import Snapshot
from ..cluster.text import listed, plural
from ..formats.hostlist import join
from .explanation_text import facts_of, price_facts
from .page import Section, facts, page_of, table
from .schedule_text import size_in_words


def schedule_page(snapshot: Snapshot, schedule: Schedule, baseline: Baseline, name: str) -> str:
    """Return the page of a schedule: the machine, who starts where, who waits and why."""
    jobs = {job.id: job for job in snapshot.jobs}
    objective = schedule.objective
    cores = sum(use.cores for award in schedule.started for use in award.nodes.values())
    reasons = Counter(one.reason.value for one in schedule.pending)
    about = [
        ("the auction starts", f"{plural(len(schedule.started), 'job')} on {plural(cores, 'core')}"),
        ("priority", number(objective.priority)),
        ("first-fit by priority", f"{plural(len(baseline.started), 'job')}, {number(baseline.priority)}"),
        ("proof", schedule.status.value if objective.gap is None else f"gap {objective.gap:.2%}"),
        ("window", f"{schedule.window}; next {schedule.next_window}"),
        ("size", size_in_words(schedule)),
        ("seconds", round(schedule.seconds.total, 3)),
        ("waiting, by reason", ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())),
    ]
    started: dict[str, list[Any]] = {
        "job": [award.job for award in schedule.started],
        "priority": [float(jobs[award.job].priority) for award in schedule.started],
        "user": [jobs[award.job].user for award in schedule.started],
        "cores": [sum(use.cores for use in award.nodes.values()) for award in schedule.started],
        "nodes": [len(award.nodes) for award in schedule.started],
        "where": [join(award.nodes) for award in schedule.started],
        "bid": [award.bid.bid_class.value for award in schedule.started],
        "level": [award.bid.level for award in schedule.started],
        "first-fit": [award.job in baseline.started for award in schedule.started],
    }
    rows = waiting_rows(schedule.pending, lambda one: (jobs[one.job].priority, one.job in baseline.started))
    first = [jobs[row.jobs[0]] for row in rows]
    waiting: dict[str, list[Any]] = {
        "job": [row.name for row in rows],
        "priority": [float(job.priority) for job in first],
        "user": [job.user for job in first],
        "asks for": [", ".join(request_words(job)) for job in first],
        "reason": [row.reason.value for row in rows],
        "why": [row.detail for row in rows],
        "first-fit": [job.id in baseline.started for job in first],
    }
    sections = [
        facts("The auction", about),
        machine_section(snapshot, {award.job: award.nodes for award in schedule.started}),
        table(f"{plural(len(schedule.started), 'job')} start", started),
        table(f"{plural(len(schedule.pending), 'job')} wait", waiting),
    ]
    return page_of(f"Schedule of {name}", schedule.title(), sections)


def machine_section(snapshot: Snapshot, starts: Mapping[str, Mapping[str, Any]]) -> Section:
    """Return the machine by leaf switch, with what runs and what starts on each node."""
    place = {node.name: index for index, node in enumerate(snapshot.nodes)}

    def uses(nodes: Mapping[str, Any]) -> list[list[int]]:
        return [[place[name], use.cores] for name, use in nodes.items()]

    leaves = [
        [switch.name, [place[name] for name in switch.nodes]]
        for switch in snapshot.switches or ()
        if switch.nodes
    ]
    return {
        "kind": "machine",
        "title": "The machine by switch",
        "note": "point at a node to see who starts and runs there",
        "names": [node.name for node in snapshot.nodes],
        "total": [node.total.cores for node in snapshot.nodes],
        "free": [node.free.cores for node in snapshot.nodes],
        "closed": ["" if node.state.takes_jobs else node.state.value for node in snapshot.nodes],
        "leaves": leaves or [["nodes", list(range(len(snapshot.nodes)))]],
        "starts": [[job, uses(nodes)] for job, nodes in starts.items()],
        "running": [[job.id, uses(job.nodes)] for job in snapshot.running],
    }


def explanation_page(found: Explanation, name: str, more: Sequence[Section] = ()) -> str:
    """Return the page of one job: its request, bids and nodes, or why it never starts."""
    bids = {**found.columns, "nodes": [join(bid.nodes) for bid in found.bids]}
    groups: dict[str, list[Any]] = {
        "what": [group.what for group in found.groups],
        "count": [len(group.nodes) for group in found.groups],
        "nodes": [join(group.nodes) for group in found.groups],
        "held by": [listed(group.held_by) for group in found.groups],
    }
    about = list(facts_of(found, None))
    sections = [facts(f"Job {found.job.id}", about), table("Its bids, in the order they were made", bids)]
    if found.groups:
        sections.append(table("The nodes, as the job sees them", groups))
    return page_of(f"Job {found.job.id} of {name}", found.title(), [*sections, *more])


def prices_page(found: Overview, name: str, more: Sequence[Section] = ()) -> str:
    """Return the page of an auction's prices."""
    kinds = dict.fromkeys(kind for group in found.groups for kind in group.prices)
    groups: dict[str, list[Any]] = {
        **{f"a {kind}": [group.prices.get(kind) for group in found.groups] for kind in kinds},
        "all that is free, least": [group.least for group in found.groups],
        "most": [group.most for group in found.groups],
        "count": [len(group.nodes) for group in found.groups],
        "nodes": [join(group.nodes) for group in found.groups],
    }
    sections = [
        facts("The auction", list(price_facts(found))),
        table("What one of each costs", groups),
        table("Jobs of the window", found.columns),
    ]
    return page_of(f"Prices of {name}", found.title(), [*sections, *more])


def comparison_page(snapshot: Snapshot, found: Comparison, name: str) -> str:
    """Return the page of a comparison: totals, and every job."""
    rows = {"the auction": found.auction, "first-fit by priority": found.first_fit}
    if found.slurm is not None:
        rows[f"Slurm's plan within {found.within_s} s"] = found.slurm
    totals: dict[str, list[Any]] = {
        "starts": list(rows),
        **{
            what: [float(getattr(one, what)) for one in rows.values()]
            for what in ("jobs", "cores", "priority")
        },
    }
    users = [job.user for job in in_order(snapshot.jobs)]
    jobs = {**found.columns, "user": users}
    return page_of(
        f"Comparison over {name}",
        found.title(),
        [table("What each starts now", totals), table("Every job, highest priority first", jobs)],
    )
