"""A slurmrestd in this process, in front of a fake cluster: with 22.05.8's answers, or a later schema.

What 22.05.8 was seen to do stands here: errors in the body, under status 500 or 200; unknown members are
refused; the connection ends after each status of failure.
"""

from __future__ import annotations

import json
import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from support.gated_slurm import FakeSlurm

META = {"plugin": {"type": "openapi/v0.0.38"}, "Slurm": {"release": "22.05.8"}}
_TEXT, _INTEGER = {"type": "string"}, {"type": "integer"}
#: By version: members of a job's update, of which only those that matter here are listed.
MEMBERS: dict[str, dict[str, Any]] = {
    "0.0.38": {
        "comment": _TEXT,
        "licenses": _TEXT,
        "minimum_cpus_per_node": _INTEGER,
        "minimum_nodes": {"type": "boolean"},
        "nodes": {"type": "array", "items": _INTEGER},
        "reservation": _TEXT,
        "tasks": _INTEGER,
    },
    "0.0.40": {
        "admin_comment": _TEXT,
        "comment": _TEXT,
        "licenses": _TEXT,
        "maximum_nodes": _INTEGER,
        "minimum_cpus": _INTEGER,
        "minimum_cpus_per_node": {"$ref": "#/components/schemas/number"},
        "minimum_nodes": _INTEGER,
        "nodes": _TEXT,
        "required_nodes": {"$ref": "#/components/schemas/names"},
        "reservation": _TEXT,
    },
}
_NUMBER = {"type": "object", "properties": {"set": {"type": "boolean"}, "number": _INTEGER}}


def openapi(*versions: str) -> dict[str, Any]:
    """Return the document that a slurmrestd of these versions tells."""
    paths: dict[str, Any] = {"/openapi/v3": {"get": {}}}
    schemas: dict[str, Any] = {"names": {"type": "array", "items": _TEXT}, "number": _NUMBER}
    for version in versions:
        name = f"v{version}_job_properties"
        body = {"content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}}
        paths[f"/slurm/v{version}/job/{{job_id}}"] = {"get": {}, "post": {"requestBody": body}}
        schemas[name] = {"properties": MEMBERS[version]}
    return {"paths": paths, "components": {"schemas": schemas}}


def error(number: int, text: str) -> dict[str, Any]:
    """Return an error as it stands in a body."""
    return {"description": "job update failed", "error_number": number, "error": text, "source": "_parse"}


@dataclass
class FakeRest:
    """The daemon.

    Attributes:
        trouble: what happens to requests that change something: ``lost before`` and ``lost after`` end the
            connection, ``late`` answers when nobody listens any more; a number is a status without JSON,
            anything else an error's text under status 200.
        posts: the jobs that updates came for.
        asked: the paths of questions.
        users: tokens and whom requests said they name.
    """

    cluster: FakeSlurm
    version: str = "0.0.38"
    token: str = ""
    trouble: list[str] = field(default_factory=list)
    posts: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    users: set[tuple[str | None, str | None]] = field(default_factory=set)

    def admit(self, token: str) -> None:
        """Take no requests but those that bear this token."""
        self.token = token

    def update(self, job: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Carry an update out as 22.05.8 does; later versions have their own names."""
        known = {"nodelist", *MEMBERS[self.version]}
        if set(body) - known:
            text = "Failure during parsing"
            return 200, {"meta": META, "errors": [{"description": "Unknown key"}, error(9001, text)]}
        values = {"JobId": job}
        for member, value in body.items():
            shown = value["number"] if isinstance(value, dict) else value
            values[_WORDS[member]] = ",".join(value) if isinstance(value, list) else str(shown)
        if "least" in values:
            values["NumNodes"] = f"{values.pop('least')}-{values.pop('most')}"
        if self.version == "0.0.38" and "MinCPUsNode" in values:
            raise AssertionError("it would change the job's CPUs too")
        if not self.cluster.is_up:
            return 500, {"errors": [error(1800, "Unable to contact slurm controller (connect failure)")]}
        problem = self.cluster.update(values)
        errors = [error(_NUMBERS.get(problem, 2000), problem)] if problem else []
        return (500 if problem else 200), {"meta": META, "errors": errors}


_WORDS = {
    "licenses": "Licenses",
    "nodelist": "ReqNodeList",
    "required_nodes": "ReqNodeList",
    "minimum_nodes": "least",
    "maximum_nodes": "most",
    "minimum_cpus_per_node": "MinCPUsNode",
    "minimum_cpus": "NumCPUs",
    "comment": "Comment",
    "admin_comment": "AdminComment",
}
_NUMBERS = {"Access/permission denied": 2002, "Invalid job id specified": 2017}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    rest: FakeRest

    def address_string(self) -> str:
        return "here"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's signature
        pass

    def do_GET(self) -> None:
        rest = self.rest
        rest.asked.append(self.path)
        rest.users.add((self.headers.get("X-SLURM-USER-TOKEN"), self.headers.get("X-SLURM-USER-NAME")))
        if rest.token and self.headers.get("X-SLURM-USER-TOKEN") != rest.token:
            self._plain(401, "Authentication failure")
        elif self.path == "/openapi/v3":
            self._json(200, openapi(rest.version))
        elif self.path == f"/slurm/v{rest.version}/ping":
            self._json(200, {"meta": META, "errors": [], "pings": []})
        else:
            self._plain(404, "Unable find requested URL. Please view /openapi/v3 for API reference.")

    def do_POST(self) -> None:
        rest = self.rest
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if rest.token and self.headers.get("X-SLURM-USER-TOKEN") != rest.token:
            self._plain(401, "Authentication failure")
            return
        job = self.path.removeprefix(f"/slurm/v{rest.version}/job/")
        rest.posts.append(job)
        trouble = rest.trouble.pop(0) if rest.trouble else ""
        if trouble == "lost before":
            self.close_connection = True
            return
        if trouble.isdigit():
            self._plain(int(trouble), "Bad gateway")
            return
        if trouble and trouble not in {"lost after", "late"}:
            self._json(200, {"meta": META, "errors": [error(2000, trouble)]})
            return
        status, document = rest.update(job, json.loads(content))
        if trouble == "late":
            time.sleep(0.4)
        if trouble == "lost after":
            self.close_connection = True
            return
        self._json(status, document)

    def _json(self, status: int, document: object) -> None:
        self._answer(status, json.dumps(document).encode(), "application/json")

    def _plain(self, status: int, text: str) -> None:
        self._answer(status, text.encode(), "text/plain")

    def _answer(self, status: int, content: bytes, kind: str) -> None:
        self.send_response(status)
        if status >= 400:
            self.send_header("Connection", "Close")
            self.close_connection = True
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class _UnixServer(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True

    def get_request(self) -> tuple[socket.socket, Any]:
        request, _ = super().get_request()
        return request, ("here", 0)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a client that is gone."""


@contextmanager
def listening(rest: FakeRest, path: Path) -> Iterator[str]:
    """Listen on a unix socket; yield the address as ``--rest`` takes it."""

    class Handler(_Handler):
        pass

    Handler.rest = rest
    path.unlink(missing_ok=True)
    with _UnixServer(str(path), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield f"unix:{path}"
        finally:
            server.shutdown()
            thread.join()
            path.unlink()
