"""Which policy over logs reads which of PolicyOptions' members; no numpy here: ``--help`` reads it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

#: Member of PolicyOptions -> the policy that reads it.
READ_BY: Mapping[str, str] = {
    "reservations": "reservations",
    "lookahead_depth": "lookahead",
    "lookahead_ties": "lookahead",
    "slack": "slack",
    "expansion_factor": "selective",
    "class_limits_s": "partitioned",
    "candidates": "adaptive",
    "adapt_every": "adaptive",
    "adapt_window": "adaptive",
    "speculation": "speculative",
    "stops": "speculative",
    "test_run_s": "speculative",
    "advance": "planning",
    "release_unused_s": "planning",
    "start_rule": "planning",
    "queue": "queues",
    "heads": "queues",
    "replan": "planning",
    "objective": "aucsched3",
    "promise": "aucsched3",
}


def is_read(member: str, policy: str, candidates: Collection[str] = ()) -> bool:
    """Return whether a policy reads a member; ``adaptive`` passes on what its candidates read."""
    reader = READ_BY[member]
    return policy == reader or (policy == "adaptive" and reader in candidates)
