"""Trim Slurm's output to what ``aucsched snapshot slurm`` reads: for the examples, fixtures and bug reports.

    python trim_slurm.py jobs   < squeue.json > small.json   (squeue --json)
    python trim_slurm.py nodes  < nodes.json  > small.json   (scontrol show nodes --json, or sinfo --json)
    python trim_slurm.py detail < detail.txt  > small.txt    (scontrol -d show job)

Commands, directories, addresses and comments do not survive it. Names of jobs, users and accounts do.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from typing import Any

JOB_MEMBERS = """
    job_id name job_state state_reason priority flags dependency partition user_name group_name account qos
    cpus tasks cpus_per_task max_nodes node_count tres_req_str tasks_per_node minimum_cpus_per_node
    tres_per_node tres_per_job tres_per_task tres_per_socket cpus_per_tres memory_per_tres memory_per_node
    memory_per_cpu contiguous shared exclusive features batch_features cluster_features prefer required_nodes
    excluded_nodes licenses resv_name burst_buffer reboot minimum_tmp_disk_per_node core_spec thread_spec
    sockets_per_node cores_per_socket threads_per_core tasks_per_core tasks_per_socket tasks_per_board
    sockets_per_board time_limit time_minimum deadline submit_time eligible_time start_time end_time
    last_sched_evaluation array_job_id array_task_id array_task_string array_max_tasks het_job_id
    het_job_id_set nodes gres_detail tres_alloc_str job_resources required_switches minimum_switches
    tasks_per_tres segment_size
"""
NODE_MEMBERS = """
    name state state_flags cpus alloc_cpus real_memory alloc_memory sockets cores threads gres gres_used
    features active_features partitions effective_cpus specialized_memory weight
"""
# What a user wrote may hold blanks: a command is cut up to the next field, a comment to the line's end.
DETAIL_FIELDS = re.compile(
    r"\s*(?:Command=.*?(?=\s+WorkDir=)|\w*Comment=[^\n]*"
    r"|(?:WorkDir|StdErr|StdIn|StdOut|AllocNode:Sid|MailUser)=.*?(?=\s+[A-Z][\w:/]*=|\s*\Z))",
    re.DOTALL,
)


def trim(document: dict[str, Any], member: str, kept: list[str]) -> dict[str, Any]:
    """Return a Slurm answer with only the ``kept`` members of each record."""
    records = [{name: record[name] for name in kept if name in record} for record in document[member]]
    return {"meta": document.get("meta"), "errors": document.get("errors", []), member: records}


def lines(document: dict[str, Any], member: str) -> str:
    """Return JSON text with each record on a line of its own."""
    head = json.dumps({name: value for name, value in document.items() if name != member})[:-1]
    records = ",\n".join(json.dumps(record, separators=(",", ":")) for record in document[member])
    return f'{head}, "{member}": [\n{records}\n]}}\n'


def main(arguments: list[str]) -> None:
    """Trim standard input to standard output."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=("jobs", "nodes", "detail"))
    kind = parser.parse_args(arguments).kind
    text = sys.stdin.read()
    if kind == "detail":
        sys.stdout.write(DETAIL_FIELDS.sub("", text))
        return
    kept = {"jobs": JOB_MEMBERS, "nodes": NODE_MEMBERS}[kind].split()
    sys.stdout.write(lines(trim(json.loads(text), kind, kept), kind))


if __name__ == "__main__":
    main(sys.argv[1:])
