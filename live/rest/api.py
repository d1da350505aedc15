"""What a slurmrestd can say: updates of jobs, by its own OpenAPI schema, each as the body of one POST.

An update is said in one piece or not at all: where the schema lacks one of its members, scontrol carries out
the whole of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ...cluster.errors import InputError
from ...formats.hostlist import expand
from ..actions import Words

_UPDATE = re.compile(r"/slurm/v(\d{1,3})\.(\d{1,3})\.(\d{1,3})/job/\{job_id\}/?")
_OLDEST = (0, 0, 38)
#: No task of an array: 22.05 answers updates of ``17_3`` as done, and carries out nothing.
_JOB = re.compile(r"JobId=([1-9]\d{0,9})", re.ASCII)
_COUNT = re.compile(r"\d{1,9}", re.ASCII)


class Shape(StrEnum):
    """How a member is written."""

    TEXT = "text"
    NAMES = "names"
    NUMBER = "number"
    SET_NUMBER = "set number"


#: scontrol's words and the members that say the same, each alternative by itself. 0.0.38 has none for a range
#: of nodes: its ``nodes`` is accepted for a waiting job and changes nothing.
_MEMBERS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "Licenses": (("licenses",),),
    "ReqNodeList": (("required_nodes",), ("nodelist",)),
    "NumNodes": (("minimum_nodes", "maximum_nodes"),),
    "MinCPUsNode": (("minimum_cpus_per_node",),),
    "NumCPUs": (("minimum_cpus",),),
    "AdminComment": (("admin_comment",),),
    "Comment": (("comment",),),
}
#: What a version reads though its schema does not list it, as tried on Slurm 22.05.8.
_UNLISTED: Mapping[tuple[int, int, int], Mapping[str, Shape]] = {(0, 0, 38): {"nodelist": Shape.TEXT}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """An update as a request.

    Attributes:
        job: its id.
        body: the members that change.
    """

    job: str
    path: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """The newest version that a slurmrestd serves.

    Attributes:
        version: ``0.0.38``.
        members: those of a job's update that can be used, and how each is written.
    """

    version: str
    members: Mapping[str, Shape]

    def post(self, words: Words) -> Post | None:
        """Return scontrol's words as one request; None where they are no update that can be said in one."""
        if len(words) < 2 or words[0] != "update" or (job := _JOB.fullmatch(words[1])) is None:  # noqa: PLR2004
            return None
        body: dict[str, Any] = {}
        for word in words[2:]:
            said = self._said(*word.partition("=")[::2])
            if said is None:
                return None
            body |= said
        return Post(job=job[1], path=f"/slurm/v{self.version}/job/{job[1]}", body=body)

    def _said(self, name: str, value: str) -> dict[str, Any] | None:
        """Return the members that say a word, None where none do."""
        values = value.split("-") if name == "NumNodes" else [value]
        for members in _MEMBERS.get(name, ()):
            if len(members) != len(values) or any(member not in self.members for member in members):
                continue
            pairs = zip(members, values, strict=True)
            said = {member: _written(text, self.members[member]) for member, text in pairs}
            if None not in said.values():
                return said
        return None

    @property
    def lacking(self) -> tuple[str, ...]:
        """Names in scontrol of what this version cannot change: updates that do go by scontrol."""
        return tuple(
            name
            for name, ways in _MEMBERS.items()
            if not any(all(member in self.members for member in way) for way in ways)
        )


def _written(text: str, shape: Shape) -> Any:
    """Return a value as the member has it, None where it cannot be written so."""
    if shape is Shape.TEXT:
        return text
    if shape is Shape.NAMES:
        # Whether no names at all take those away that stand there is not known of any version.
        return _names(text) if text else None
    if not _COUNT.fullmatch(text):
        return None
    return int(text) if shape is Shape.NUMBER else {"set": True, "infinite": False, "number": int(text)}


def _names(text: str) -> list[str] | None:
    try:
        return list(expand(text))
    except InputError:
        return None


def read_api(document: Any) -> Api:
    """Return what the newest version can say that an OpenAPI document describes.

    Raises:
        InputError: it is no such document, or serves no version from 0.0.38 on.
    """
    paths = document.get("paths") if isinstance(document, dict) else None
    if not isinstance(paths, dict):
        raise InputError("the answer is no OpenAPI document")
    served = {
        (int(match[1]), int(match[2]), int(match[3])): item
        for path, item in paths.items()
        if (match := _UPDATE.fullmatch(path)) and isinstance(item, dict) and "post" in item
    }
    version = max((one for one in served if one >= _OLDEST), default=None)
    if version is None:
        raise InputError(f"updates of jobs are not served, or only before {'.'.join(map(str, _OLDEST))}")
    properties = _properties(document, served[version]["post"])
    shapes = {name: _shape(document, schema) for name, schema in properties.items()}
    wanted = {member for ways in _MEMBERS.values() for way in ways for member in way}
    listed = {name: shape for name, shape in shapes.items() if shape is not None and name in wanted}
    return Api(version=".".join(map(str, version)), members={**_UNLISTED.get(version, {}), **listed})


def _properties(document: Any, post: Any) -> Mapping[str, Any]:
    """Return the members of an update's body."""
    schema: Any = post
    for name in ("requestBody", "content", "application/json", "schema"):
        schema = _resolved(document, schema).get(name)
    properties = _resolved(document, schema).get("properties")
    if not isinstance(properties, dict):
        raise InputError("the body of a job's update is not described")
    return properties


def _resolved(document: Any, schema: Any) -> Mapping[str, Any]:
    """Return what a schema or a reference to one stands for."""
    reference = schema.get("$ref") if isinstance(schema, dict) else None
    if isinstance(reference, str):
        schema = document
        for name in reference.removeprefix("#/").split("/"):
            schema = schema.get(name) if isinstance(schema, dict) else None
    return schema if isinstance(schema, dict) else {}


def _shape(document: Any, schema: Any) -> Shape | None:
    """Return how a member of this schema is written, None for one that is of no use here."""
    found = _resolved(document, schema)
    match found.get("type"):
        case "string":
            return Shape.TEXT
        case "integer":
            return Shape.NUMBER
        case "array":
            names = _resolved(document, found.get("items")).get("type") == "string"
            return Shape.NAMES if names else None
        case "object":
            members = found.get("properties")
            is_number = isinstance(members, dict) and {"set", "number"} <= set(members)
            return Shape.SET_NUMBER if is_number else None
    return None
