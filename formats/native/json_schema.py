"""JSON Schemas (2020-12) of the snapshot, workload, schedule and plan files, made from their types.

Types, members and defaults come from the wire types; ranges, texts and the rules between members of one
object are added here. What needs the whole file (names that exist, running jobs that fit) only reading tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from ...cluster.checks import LARGEST_COUNT
from ...cluster.jobs import JobKind
from ...cluster.limits import AMOUNTS, JOB_MEMBERS
from ...cluster.nodes import NodeState, PartitionState
from ...cluster.workload import SHORTEST_RUN_S
from . import wire, workload_wire
from .schedule_wire import PlanWire, ScheduleWire
from .topology_wire import MEMBERS, OPTIONAL

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_SUFFIX = "Wire"
#: Seconds since the epoch at which years get a fifth digit.
_YEAR_10000 = 253_402_300_800
#: A hostlist, as far as a short pattern tells: no groups, wildcards or set operators.
_HOSTLIST = {"minLength": 1, "pattern": r"^([A-Za-z0-9_.,-]|\[[0-9,-]+\])+$"}
_TEXT = {"minLength": 1}

Json = dict[str, Any]

#: Least value of counts, by type and member; of a mapping, of its values.
_LEAST: Mapping[str, Mapping[str, int]] = {
    "Node": {
        "cores": 1,
        "free_cores": 0,
        "memory_mib": 0,
        "free_memory_mib": 0,
        "gres": 0,
        "free_gres": 0,
    },
    "Job": {
        "cores": 1,
        "cores_per_node": 1,
        "min_cores_per_node": 1,
        "cores_per_task": 1,
        "memory_mib_per_node": 0,
        "memory_mib_per_core": 0,
        "max_switches": 1,
        "licenses": 1,
        "time_limit_s": 1,
        "min_nodes": 1,
        "max_nodes": 1,
    },
    "Use": {"cores": 0, "gres": 0, "memory_mib": 0},
    "License": {"total": 0, "free": 0},
    "Partition": {"max_nodes": 1, "max_time_limit_s": 1},
    "Limit": {"max": 0},
    "Topology": {
        "groups": 1,
        "routers": 1,
        "nodes_per_router": 1,
        "global_links": 1,
        "levels": 1,
        "radix": 2,
    },
}
#: Least first number of a range; a bare number and the second are at least 1.
_RANGES = {"nodes": 1, "gres_per_node": 0, "gres_total": 0}
#: Names and hostlists, by type.
_NAMES: Mapping[str, Iterable[str]] = {
    "Job": ["id"],
    "Running": ["id"],
    "Switch": ["name"],
    "Partition": ["name"],
    "Reservation": ["name"],
    "Limit": ["name"],
    "JobSet": ["user", "group", "account", "qos", "partition"],
}
_HOSTS: Mapping[str, Iterable[str]] = {
    "Node": ["name"],
    "Job": ["required_nodes", "excluded_nodes"],
    "Switch": ["nodes", "switches"],
    "Partition": ["nodes"],
    "Reservation": ["nodes"],
    "Topology": ["nodes"],
}
_TIMES: Mapping[str, Iterable[str]] = {
    "Snapshot": ["time"],
    "Job": ["submit_time", "expected_start_time", "promised_start"],
    "Running": ["end_time"],
    "Reservation": ["start", "end"],
}
#: Members of a snapshot's types that a workload leaves out: all is free, and jobs come at ``arrival_s``.
_WORKLOAD_NULLS: Mapping[str, Iterable[str]] = {
    "Node": ["free_cores", "free_memory_mib", "free_gres"],
    "License": ["free"],
    "Job": ["submit_time", "promised_start"],
}
_WORKLOAD_SECONDS: Mapping[str, Json] = {
    "arrival_s": {"minimum": 0, "maximum": LARGEST_COUNT},
    "run_time_s": {"minimum": SHORTEST_RUN_S, "maximum": LARGEST_COUNT},
    "gres_run_time_factor": {"exclusiveMinimum": 0},
    "not_before_s": {"exclusiveMinimum": 0, "maximum": LARGEST_COUNT},
    "deadline_s": {"exclusiveMinimum": 0, "maximum": LARGEST_COUNT},
    "budget_core_h": {"exclusiveMinimum": 0, "maximum": LARGEST_COUNT},
    "credits_per_core_h": {"minimum": 0, "maximum": LARGEST_COUNT},
    "started_s": {"minimum": 0, "maximum": LARGEST_COUNT},
}


def snapshot_schema() -> Json:
    """Return the schema of a snapshot file (``aucsched-snapshot/1``)."""
    schema = _generated(wire.SnapshotWire, "aucsched snapshot", "A cluster and its queue at one moment.")
    types = schema["$defs"]
    _common(types)
    types["Snapshot"]["properties"]["format"] = {"const": wire.FORMAT}
    types["Snapshot"]["properties"]["nodes"]["minItems"] = 1
    types["Running"]["properties"]["nodes"].update({"minProperties": 1, "propertyNames": dict(_HOSTLIST)})
    types["Running"]["properties"]["nodes"]["additionalProperties"] = {"$ref": "#/$defs/Use"}
    return schema


def workload_schema() -> Json:
    """Return the schema of a workload file (``aucsched-workload/1``)."""
    schema = _generated(
        workload_wire.WorkloadWire, "aucsched workload", "An empty cluster and the jobs that come to it."
    )
    types = schema["$defs"]
    _common(types)
    types["Workload"]["properties"]["format"] = {"const": workload_wire.FORMAT}
    types["Workload"]["properties"]["nodes"]["minItems"] = 1
    for name, members in _WORKLOAD_NULLS.items():
        for member in members:
            types[name]["properties"][member] = {"type": "null", "default": None}
    for member, least in _WORKLOAD_SECONDS.items():
        _add(types["Job"]["properties"][member], "number", least)
    return schema


def _common(types: Json) -> None:
    """Add ranges, texts and rules to those types that the file has."""
    for name, least in _LEAST.items():
        for member, minimum in least.items() if name in types else ():
            _at_least(types[name]["properties"][member], minimum)
    for member, minimum in _RANGES.items():
        _range(types["Job"]["properties"][member], minimum)
    for members, keywords in ((_NAMES, _TEXT), (_HOSTS, _HOSTLIST)):
        for name, listed in members.items():
            for member in listed if name in types else ():
                _add(types[name]["properties"][member], "string", keywords)
    for name, listed in _TIMES.items():
        for member in listed if name in types else ():
            _time(types[name]["properties"], member)
    _choices(types)
    _rules(types)
    _limits(types)


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


def _add(schema: Json, kind: str, keywords: Json) -> None:
    """Add keywords to a member's schema, or to those of its alternatives and values that are of a type."""
    if schema.get("type") == kind:
        schema.update(keywords)
    for branch in schema.get("anyOf", ()):
        _add(branch, kind, keywords)
    values = schema.get("additionalProperties")
    if isinstance(values, dict):
        schema["propertyNames"] = dict(_TEXT)
        _add(values, kind, keywords)


def _at_least(schema: Json, minimum: int) -> None:
    _add(schema, "integer", {"minimum": minimum, "maximum": LARGEST_COUNT})


def _range(schema: Json, minimum: int) -> None:
    """Bound a bare number from 1, a range's first from ``minimum`` and its second from 1."""
    _at_least(schema, 1)
    first, second = (
        {"type": "integer", "minimum": least, "maximum": LARGEST_COUNT} for least in (minimum, 1)
    )
    _add(schema, "array", {"prefixItems": [first, second]})


def _time(properties: Json, member: str) -> None:
    """Let a time be a text (ISO 8601) or seconds since the epoch."""
    before = properties[member]
    null = [{"type": "null"}] if {"type": "null"} in before["anyOf"] else []
    properties[member] = {
        **before,
        "anyOf": [
            {"type": "string", "minLength": 1},
            {"type": "number", "minimum": 0, "exclusiveMaximum": _YEAR_10000},
            *null,
        ],
        "description": "ISO 8601, UTC where it names no zone; or seconds since 1970.",
    }


def _limits(types: Json) -> None:
    """Name what may be limited, and the members of a set of jobs."""
    most = types["Limit"]["properties"]["max"]
    most |= {"minProperties": 1, "propertyNames": {"pattern": f"^({'|'.join(AMOUNTS)}|gres/[^/\\s]+)$"}}
    per = types["Limit"]["properties"]["per"]
    per["anyOf"] = [{"enum": list(JOB_MEMBERS)}, {"type": "null"}]
    for member in types["JobSet"]["properties"].values():
        for branch in member["anyOf"]:
            _add(branch.get("items", {}), "string", _TEXT)


def _choices(types: Json) -> None:
    """Name the values of texts that are one of a few."""
    types["Node"]["properties"]["state"].update(_one_of(NodeState))
    types["Job"]["properties"]["kind"].update(_one_of(JobKind))
    # Partition states are read in either case, as Slurm prints them.
    states = "|".join("".join(f"[{letter.upper()}{letter}]" for letter in state) for state in PartitionState)
    types["Partition"]["properties"]["state"]["pattern"] = f"^({states})$"


def _one_of(choices: type[StrEnum]) -> Json:
    return {"enum": [choice.value for choice in choices]}


def _stated_value(member: str, kinds: list[str]) -> Json:
    """Return the condition that a member stands and is not null."""
    return {"required": [member], "properties": {member: {"type": kinds}}}


def _rules(types: Json) -> None:
    """Add what must hold between the members of one object."""
    job = types["Job"]
    job["properties"]["priority"] = {
        "type": "number",
        "minimum": 0,
        "description": "Compared exactly as written; 0 is held.",
    }
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
        if name in ("switches", "links", "shape")
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
