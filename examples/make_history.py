"""Make examples/history.txt.gz and history-nodes.txt: a week of an invented site.

    python examples/make_history.py

Twenty nodes of two kinds, 12 users in three accounts. The site's own starts are those of a scheduler that
looks behind the first blocked job every ten minutes, at 20 jobs, on one node fewer: so that simulated
backfill, here as at any site, does not reproduce them exactly.
"""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import aucsched

SEED = 20261124
JOBS, BEGIN = 300, 1_767_225_600
#: Name, how many, cores, GPUs, MiB, partition.
KINDS = (("c", 16, 16, 0, 64_000, "batch"), ("g", 4, 32, 4, 256_000, "gpu"))
ROUND_MIN = (30, 60, 120, 240, 480, 1440)
HEADER = (
    "JobID|User|Account|Partition|QOS|State|Priority|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|"
    "NNodes|NCPUS|ReqMem|ReqTRES|AllocTRES"
)


def nodes() -> list[aucsched.Node]:
    """Return the site's nodes, free."""
    return [
        aucsched.Node(
            name=f"{kind}{number:02}",
            cores=cores,
            memory_mib=memory,
            gres={"gpu": gpus} if gpus else {},
            partitions=(partition,),
        )
        for kind, count, cores, gpus, memory, partition in KINDS
        for number in range(1, count + 1)
    ]


def jobs(rng: random.Random) -> list[aucsched.ArrivingJob]:
    """Return the jobs in order of arrival: by day more than by night, round limits, powers of two."""
    made: list[aucsched.ArrivingJob] = []
    now = 0.0
    for number in range(1, JOBS + 1):
        now += rng.expovariate(1 / 2000) * (1.8 if now % 86_400 < 28_800 else 0.8)  # noqa: PLR2004 - 8 o'clock
        on_gpus = rng.random() < 0.2  # noqa: PLR2004 - a share
        user = rng.randint(1, 12)
        run = max(20, round(rng.lognormvariate(8.3, 1.2)))
        limit = next((minutes for minutes in ROUND_MIN if minutes * 60 >= run), 2880)
        nodes_asked = rng.choice((1, 1, 1, 2)) if on_gpus else rng.choice((1, 1, 1, 2, 4, 8))
        cores = nodes_asked * rng.choice((8, 16) if on_gpus or nodes_asked == 1 else (16,))
        request = aucsched.Request(
            nodes=nodes_asked,
            cores=cores,
            memory_mib_per_core=2000,
            gres_per_node={"gpu": rng.choice((1, 2, 4))} if on_gpus else {},
        )
        job = aucsched.Job(
            id=str(1000 + number),
            priority=4_294_901_760 - number,
            request=request,
            time_limit_s=limit * 60,
            user=f"user{user:02}",
            account=("astro", "bio", "chem")[user % 3],
            partition="gpu" if on_gpus else "batch",
        )
        made.append(aucsched.ArrivingJob(job=job, arrival_s=round(now), run_time_s=min(run, limit * 60)))
    return made


def rows(made: list[aucsched.ArrivingJob]) -> list[str]:
    """Return what sacct prints of the jobs, started as the site would."""
    fewer = [node for node in nodes() if node.name != "c16"]
    site = aucsched.ClusterWorkload(name="site", nodes=fewer, jobs=made)
    played = aucsched.simulate(site, "backfill-slurm", window=20, backfill_interval_s=600)
    starts = [None if start is None else start + made[0].arrival_s for start in played.columns["start_s"]]
    return [row(one, start) for one, start in zip(made, starts, strict=True) if start is not None]


def row(one: aucsched.ArrivingJob, start: float) -> str:
    """Return a job's line."""
    job, asked = one.job, one.job.request
    count = asked.nodes.minimum if asked.nodes else 1
    limit = job.time_limit_s or 0
    gpus = count * sum(span.minimum for span in asked.gres_per_node.values())
    cores = asked.cores or count
    tres = f"cpu={cores},mem={cores * 2000}M,node={count}" + (f",gres/gpu={gpus}" if gpus else "")
    state = "TIMEOUT" if one.run_time_s >= limit else "COMPLETED"
    submit, began = (BEGIN + int(moment) for moment in (one.arrival_s, start))
    times = f"{submit}|{submit}|{began}|{began + int(one.run_time_s)}|{int(one.run_time_s)}|{limit // 60}"
    owner = f"{job.user}|{job.account}|{job.partition}|normal|{state}|{int(job.priority)}"
    return f"{job.id}|{owner}|{times}|{count}|{cores}|{cores * 2000}M|{tres}|{tres}"


def main() -> None:
    """Write the two files beside this script."""
    folder = Path(__file__).parent
    text = "\n".join([HEADER, *rows(jobs(random.Random(SEED)))]) + "\n"  # noqa: S311 - not a secret
    (folder / "history.txt.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    lines = [
        f"NodeName={node.name} CPUAlloc=0 CPUTot={node.total.cores} Gres="
        + (f"gpu:{node.total.gres['gpu']}" if node.total.gres else "(null)")
        + f" RealMemory={node.total.memory_mib} State=IDLE ThreadsPerCore=1 Partitions={node.partitions[0]}"
        for node in nodes()
    ]
    (folder / "history-nodes.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
