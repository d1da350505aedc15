"""Parts of a Slurm request that no native member expresses, named the way a user asked for them."""

from __future__ import annotations

from collections.abc import Iterator

from ...formats.notes import Notes
from .answer_record import Record

#: Counts that constrain the job when they are above 0, and the option that sets each.
_COUNTS = {
    "sockets_per_node": "--sockets-per-node",
    "cores_per_socket": "--cores-per-socket",
    "tasks_per_socket": "--ntasks-per-socket",
    "tasks_per_board": "--ntasks-per-board",
    "tasks_per_tres": "--ntasks-per-gpu",
    "sockets_per_board": "--sockets-per-board",
    "minimum_tmp_disk_per_node": "--tmp",
    "core_spec": "--core-spec",
    # 22.05 writes --core-spec here too.
    "thread_spec": "--core-spec or --thread-spec",
    # 25.05 and later; its rules are those of blocks, which are not looked at.
    "segment_size": "--segment",
}
#: Counts that a node with one thread a core satisfies by itself when they are 1.
_THREAD_COUNTS = {"threads_per_core": "--threads-per-core", "tasks_per_core": "--ntasks-per-core"}
_TEXTS = {
    "burst_buffer": "--bb",
    "batch_features": "--batch",
    "resv_name": "--reservation",
    "tres_per_socket": "tres_per_socket",
}
_FLAGS = {
    "GRES_ENFORCE_BIND": "--gres-flags=enforce-binding",
    "GRES_BINDING_ENFORCED": "--gres-flags=enforce-binding",
    # 25.11 and later: requeued, it starts before all others on nodes that Slurm keeps for it.
    "EXPEDITED_REQUEUE": "--requeue=expedite",
}
#: What the job may be started without, by member and by flag.
_PREFERRED = {
    "prefer": "preferred features are not looked at",
    "cluster_features": "cluster features are not looked at",
    "deadline": "the deadline is not looked at",
    "time_minimum": "only the full time limit is looked at, not --time-min",
}
_PREFERRED_FLAGS = {
    "SPREAD_JOB": "is not spread over as many nodes as possible",
    "USE_MIN_NODES": "may get more nodes than the fewest",
    "PREFER_MINIMUM_NODE_COUNT": "may get more nodes than the fewest",
}
#: Slurm's INFINITE16 and NO_VAL16, which some versions write for a count that is not set; later ones
#: write --thread-spec without the bit that tells it from --core-spec.
_NOT_SET = {0xFFFF, 0xFFFE, 0x7FFF, 0x7FFE}


def unsupported_parts(record: Record, *, threads: bool) -> Iterator[str]:
    """Yield what a job asks for that cannot be expressed; ``threads`` when a core may be several CPUs."""
    for member, option in _COUNTS.items():
        if value := _count(record, member):
            yield f"{option}={value}"
    for member, option in _THREAD_COUNTS.items():
        if (value := _count(record, member)) and (threads or value > 1):
            yield f"{option}={value}"
    for member, option in _TEXTS.items():
        if text := record.text(member):
            yield f"{option} {text}"
    flags = record.words("flags")
    yield from (option for flag, option in _FLAGS.items() if flag in flags)
    if "EXPEDITING" in record.texts("job_state"):
        yield "it starts again before all others (EXPEDITING)"
    if record.flag("reboot"):
        yield "--reboot"
    if record.number("het_job_id"):
        yield f"parts of a heterogeneous job start together ({record.text('het_job_id_set') or 'het_job_id'})"


def _count(record: Record, member: str) -> int:
    value = record.number(member) or 0
    return 0 if value in _NOT_SET else value


def note_preferences(record: Record, notes: Notes, label: str) -> None:
    """Note what a job would like and may be started without."""
    for member, text in _PREFERRED.items():
        value = record.members.get(member)
        wanted = record.number(member) if isinstance(value, (int, dict)) else record.text(member)
        if wanted:
            notes.add("preferences", f"{label}: {text}")
    flags = record.words("flags")
    for flag, text in _PREFERRED_FLAGS.items():
        if flag in flags:
            notes.add("preferences", f"{label}: {text}")
