"""Good files of evolving jobs, small: requests, configurations of fairness, delays so far."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from aucsched.negotiation.evolving.fairness import Accounts
from aucsched.negotiation.evolving.fairness_file import save_accounts

_HOUR = 3600
_SNAPSHOT: dict[str, Any] = {
    "format": "aucsched-snapshot/1",
    "time": 100,
    "nodes": [{"name": "n[0-5]", "cores": 8, "partitions": ["p"]}],
    "running": [
        {"id": "A", "nodes": {"n[0-1]": {"cores": 8}}, "end_time": 8 * _HOUR, "user": "a", "partition": "p"},
        {"id": "B", "nodes": {"n[2-3]": {"cores": 8}}, "end_time": 4 * _HOUR, "user": "b"},
        {"id": "L", "nodes": {"n4": {"cores": 3}}, "end_time": 9 * _HOUR, "user": "l"},
    ],
    "jobs": [
        {"id": "C", "priority": 2, "nodes": 4, "cores_per_node": 8, "time_limit_s": 4 * _HOUR, "user": "c"},
        {"id": "D", "priority": 1, "cores": 5, "time_limit_s": 600, "user": "d", "group": "g"},
    ],
}
_REQUESTS: dict[str, Any] = {
    "format": "aucsched-requests/1",
    "requests": [{"job": "A", "nodes": 1, "cores_per_node": 8}, {"job": "B", "cores": 4}],
    "releases": [{"job": "B", "nodes": {"n3": 3, "n2": 8}}],
    "preemptible": ["L"],
    "malleable": [{"job": "A", "min_nodes": 1}],
}
_MAUI = b"""\
# figure 6, in small
DFSPOLICY          DFSSINGLEANDTARGETDELAY
DFSINTERVAL        06:00:00
DFSDECAY           0.4
SERVERHOST         head
USERCFG[c]         DFSDYNDELAYPERM=1 DFSTARGETDELAYTIME=20000 \\
                   DFSSINGLEDELAYTIME=0
USERCFG[DEFAULT]   DFSDYNDELAYPERM=1 DFSTARGETDELAYTIME=02:00:00
GROUPCFG[g]        DFSSINGLEDELAYTIME=04:00:00 PRIORITY=10
GROUPCFG[other]    DFSDYNDELAYPERM=0
"""
_TOML = b"""\
policy = "single_target_delay"
interval = "06:00:00"
decay = 0.4
[user.c]
permission = true
target_delay = 20_000
[user.DEFAULT]
target_delay = "02:00:00"
[group.g]
single_delay = 14400.5
[qos.none]
permission = false
"""


@cache
def _delays() -> bytes:
    accounts = Accounts(since_s=0.0, targets={"user": {"c": 12.5}, "qos": {"": 3.0}}, singles={"C": 12.5})
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "delays.json"
        save_accounts(accounts, path)
        return path.read_bytes()


def evolving_files(seed: int) -> Mapping[str, bytes]:
    """Return all of them, which go together."""
    del seed
    return {
        "snapshot.json": json.dumps(_SNAPSHOT).encode(),
        "requests.json": json.dumps(_REQUESTS).encode(),
        "maui.cfg": _MAUI,
        "fairness.toml": _TOML,
        "delays.json": _delays(),
    }


_EVOLVE = "evolve snapshot.json --requests requests.json"
#: Files that are mutated, with the commands that read them.
EVOLVING: Mapping[str, tuple[str, ...]] = {
    "requests.json": (_EVOLVE, f"{_EVOLVE} --format json --fairness maui.cfg -o evolved.json"),
    "maui.cfg": (
        f"{_EVOLVE} --fairness maui.cfg",
        f"{_EVOLVE} --fairness maui.cfg --snapshot-out after.json",
    ),
    "fairness.toml": (f"{_EVOLVE} --fairness fairness.toml --accounts delays.json",),
    "delays.json": (f"{_EVOLVE} --fairness maui.cfg --accounts delays.json",),
}
