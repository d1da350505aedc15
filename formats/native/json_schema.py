"""JSON Schemas (2020-12) of the snapshot, workload, schedule and plan files, made from their types.

Types, members, defaults, ranges and texts come from the types; the rules between members of one object are
added here. What needs the whole file (names that exist, running jobs that fit) only reading tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from ..file_kinds import SNAPSHOT, WORKLOAD
from .cluster_file import FORMATS, SNAPSHOT_FILE, WORKLOAD_FILE
from .file_objects import FileForm
from .schedule_file import PlanWire, ScheduleWire
from .topology_wire import MEMBERS, OPTIONAL

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_SUFFIX = "Wire"

Json = dict[str, Any]

#: Members of a snapshot's types that a workload leaves out: all is free, and jobs come at ``arrival_s``.
_WORKLOAD_NULLS: Mapping[str, Iterable[str]] = {
    "Node": ["free_cores", "free_memory_mib", "free_gres"],
    "License": ["free"],
    "Job": ["submit_time", "promised_start"],
}


def snapshot_schema() -> Json:
    """Return the schema of a snapshot file (``aucsched-snapshot/1``)."""
    return _cluster_schema(SNAPSHOT_FILE, SNAPSHOT, "A cluster and its queue at one moment.")


def workload_schema() -> Json:
    """Return the schema of a workload file (``aucsched-workload/1``)."""
    schema = _cluster_schema(WORKLOAD_FILE, WORKLOAD, "An empty cluster and the jobs that come to it.")
    for name, members in _WORKLOAD_NULLS.items():
        for member in members:
            schema["$defs"][name]["properties"][member] = {"type": "null", "default": None}
    return schema


def _cluster_schema(form: FileForm[Any], kind: str, description: str) -> Json:
    schema = _generated(form.struct, f"aucsched {kind}", description)
    top = schema["$defs"][form.struct.__name__]["properties"]
    top["format"] = {"const": FORMATS[kind]}
    top["nodes"]["minItems"] = 1
    _rules(schema["$defs"])
    return schema


def schedule_schema() -> Json:
    """Return the schema of a schedule file (``aucsched-schedule/1``)."""
    return _generated(ScheduleWire, "aucsched schedule", "Who starts where, who waits and why.")


def plan_schema() -> Json:
    """Return the schema of a plan file (``aucsched-plan/1``)."""
    return _generated(PlanWire, "aucsched plan", "When and where each job of a snapshot will start.")


#: The schemas by the file they are of.
SCHEMAS: Mapping[str, Callable[[], Json]] = {
    "snapshot": snapshot_schema,
    "workload": workload_schema,
    "schedule": schedule_schema,
    "plan": plan_schema,
}


def schema_json(name: str) -> str:
    """Return a schema's text."""
    return msgspec.json.format(msgspec.json.encode(SCHEMAS[name]()), indent=2).decode() + "\n"


def _generated(struct: type[msgspec.Struct], title: str, description: str) -> Json:
    """Return what msgspec says of a type, its types named without their suffix."""
    made = _renamed(msgspec.json.schema(struct))
    return {"$schema": _DIALECT, "title": title, "description": description, **made}


def _renamed(value: Any) -> Any:
    if isinstance(value, list):
        return [_renamed(item) for item in value]
    if isinstance(value, dict):
        return {key.removesuffix(_SUFFIX): _renamed(item) for key, item in value.items()}
    is_type = isinstance(value, str) and value.endswith(_SUFFIX)
    return value.removesuffix(_SUFFIX) if is_type else value


def _stated_value(member: str, kinds: list[str]) -> Json:
    """Return the condition that a member stands and is not null."""
    return {"required": [member], "properties": {member: {"type": kinds}}}


def _rules(types: Json) -> None:
    """Add what must hold between the members of one object."""
    job = types["Job"]
    cores, per_node = (_stated_value(name, ["integer"]) for name in ("cores", "cores_per_node"))
    job["anyOf"] = [cores, {"allOf": [_stated_value("nodes", ["integer", "array"]), per_node]}]
    memory = [_stated_value(f"memory_mib_per_{name}", ["integer"]) for name in ("node", "core")]
    job["not"] = {"allOf": memory}
    types["Switch"]["oneOf"] = [_stated_value(name, ["string"]) for name in ("nodes", "switches")]
    _kinds_of_topology(types["Topology"])


def _kinds_of_topology(topology: Json) -> None:
    """Say which members a topology of each kind has: a list of none stands for none."""
    members = topology["properties"]
    absent = {
        name: {"type": ["array", "null"], "maxItems": 0}
        if name in ("switches", "links", "shape", "sizes", "blocks", "rings", "toruses")
        else {"type": "null"}
        for name in members
        if name != "kind"
    }
    topology["allOf"] = [
        {"if": {"properties": {"kind": {"const": kind}}}, "then": _members_of(wanted, absent)}
        for kind, wanted in MEMBERS.items()
    ]


def _members_of(wanted: Iterable[str], absent: Mapping[str, Json]) -> Json:
    needed = [name for name in wanted if name not in OPTIONAL]
    lists = {name: {"minItems": 1} for name in needed if absent[name]["type"] != "null"}
    return {
        "required": needed,
        "properties": {name: rule for name, rule in absent.items() if name not in wanted}
        | {name: {"not": {"type": "null"}} | lists.get(name, {}) for name in needed},
    }
