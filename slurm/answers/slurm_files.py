"""Which of Slurm's answers are read from files. No numpy here: ``--help`` reads it."""

from dataclasses import dataclass

from ...cluster.option_fields import Option

_RUN, _WITH_SQUEUE = "run it", "run it with squeue"


@dataclass(kw_only=True)
class SlurmFiles:
    """A file for each of Slurm's answers, in place of the live one; ``-`` is standard input."""

    jobs: Option[str | None] = Option("Output of squeue --json.", default=_RUN)
    nodes: Option[str | None] = Option(
        "Output of scontrol show nodes, text or --json, or 22.05's sinfo --json.", default=_RUN
    )
    topology: Option[str | None] = Option(
        "topology.conf, topology.yaml, or output of scontrol show topology.", default=_RUN
    )
    job_detail: Option[str | None] = Option("Output of scontrol -d show job.", default=_RUN)
    partitions: Option[str | None] = Option(
        "Output of scontrol show partitions, text or --json.", default=_WITH_SQUEUE
    )
    licenses: Option[str | None] = Option(
        "Output of scontrol show licenses, text or --json.", default=_WITH_SQUEUE
    )
    reservations: Option[str | None] = Option(
        "Output of scontrol show reservations, text or --json.", default=_WITH_SQUEUE
    )
    limits: Option[str | None] = Option(
        "Limits of QOS and associations: scontrol show assoc_mgr flags=qos,assoc, or sacctmgr -P show qos "
        "and assoc, one after the other; assoc with a format that has ParentName.",
        default=_WITH_SQUEUE,
    )
    conf: Option[str | None] = Option("Output of scontrol show config.", default=_WITH_SQUEUE)
    priorities: Option[str | None] = Option(
        "Output of sprio, or of squeue -o '%i %Q': saved priorities.", default="the queue's"
    )
