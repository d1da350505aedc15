"""JSON Schemas (2020-12) of the snapshot, workload, schedule and plan files, made from their types.

Types, members, defaults, ranges and texts come from the types; rules between an object's members
are added here. Only reading tells what needs the whole file (names exist, running jobs fit).
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ..file_kinds import SCHEDULE, SNAPSHOT, WORKLOAD
from .cluster_file import FORMATS, SNAPSHOT_FILE, WORKLOAD_FILE
from .schedule_file import PlanWire, ScheduleWire
from .topology_wire import MEMBERS, OPTIONAL

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
#: The end of types' names that schemas leave out, with the mark that ends a text of JSON.
_SUFFIX = b'Wire"'

Json = dict[str, Any]

#: Members of a snapshot's types not in a workload: all is free, jobs come at ``arrival_s``.
_WORKLOAD_NULLS: Mapping[str, Iterable[str]] = {
    "Node": ["free_cores", "free_memory_mib", "free_gres"],
    "License": ["free"],
    "Job": ["submit_time", "promised_start"],
}


#: The files: what msgspec decodes each as, and what it is.
_FILES: Mapping[str, tuple[Any, str]] = {
    SNAPSHOT: (SNAPSHOT_FILE.struct, "A cluster and its queue at one moment."),
    WORKLOAD: (WORKLOAD_FILE.struct, "An empty cluster and the jobs that come to it."),
    SCHEDULE: (ScheduleWire, "Who starts where, who waits and why."),
    "plan": (PlanWire, "When and where each job of a snapshot will start."),
}
SCHEMAS = tuple(_FILES)


def schema_of(name: str) -> Json:
    """Return the schema of one of the files, its types named without their suffix."""
    struct, description = _FILES[name]
    made = msgspec.json.decode(msgspec.json.encode(msgspec.json.schema(struct)).replace(_SUFFIX, b'"'))
    schema = {"$schema": _DIALECT, "title": f"aucsched {name}", "description": description, **made}
    if name in FORMATS:
        types = schema["$defs"]
        top = types[struct.__name__]["properties"]
        top["format"] = {"const": FORMATS[name]}
        top["nodes"]["minItems"] = 1
        _rules(types)
        for kind, members in _WORKLOAD_NULLS.items() if name == WORKLOAD else ():
            types[kind]["properties"] |= {one: {"type": "null", "default": None} for one in members}
    return schema


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
