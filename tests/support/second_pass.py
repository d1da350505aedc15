"""A snapshot as it is once an award has been placed."""

from __future__ import annotations

from dataclasses import replace

from aucsched import Resources, RunningJob, Schedule, Snapshot


def after(cluster: Snapshot, schedule: Schedule) -> Snapshot:
    """Return the cluster with a schedule's winners running, and the others waiting."""
    jobs = {job.id: job for job in cluster.jobs}
    free = {node.name: node.free for node in cluster.nodes}
    licenses = dict(cluster.licenses)
    running = list(cluster.running)
    for award in schedule.started:
        job = jobs.pop(award.job)
        for name, held in award.nodes.items():
            free[name] = _less(free[name], held)
        for name, count in job.request.licenses.items():
            licenses[name] = replace(licenses[name], free=licenses[name].free - count)
        # A job without a limit never ends, as far as anybody knows.
        end = None if job.time_limit_s is None else (cluster.time or 0.0) + job.time_limit_s
        running.append(
            RunningJob(
                id=job.id,
                nodes=award.nodes,
                end_time=end,
                user=job.user,
                group=job.group,
                account=job.account,
                qos=job.qos,
                partition=job.partition.split(",")[0],
            )
        )
    return replace(
        cluster,
        nodes=tuple(replace(node, free=free[node.name]) for node in cluster.nodes),
        licenses=licenses,
        running=tuple(running),
        jobs=tuple(jobs.values()),
    )


def _less(free: Resources, held: Resources) -> Resources:
    memory = None if free.memory_mib is None else free.memory_mib - (held.memory_mib or 0)
    gres = {kind: count - held.gres.get(kind, 0) for kind, count in free.gres.items()}
    return Resources(cores=free.cores - held.cores, memory_mib=memory, gres=gres)
