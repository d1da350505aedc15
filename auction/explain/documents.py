"""Explanations and prices as plain values, for their JSON files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...bidgen.families.registry import POOLED
from ...formats.hostlist import join
from ..forecast import ShadowStart
from .bids import BidView
from .job_changes import Change
from .unit_prices import Quote
from .words import asked

if TYPE_CHECKING:
    from .explanation import Explanation
    from .overview import JobPrice, Overview, PriceGroup

EXPLANATION = "aucsched-explanation/1"
PRICES = "aucsched-prices/1"


def explanation_document(found: Explanation) -> dict[str, Any]:
    """Return an explanation as plain dicts, lists, numbers and text (``aucsched-explanation/1``)."""
    award, refusal = found.award, found.refusal
    return {
        "format": EXPLANATION,
        "model": found.model,
        "job": found.job.id,
        "priority": float(found.job.priority),
        "place": found.place,
        "queued": found.queued,
        "asked": asked(found.job),
        "starts": None
        if award is None
        else {
            "nodes": join(award.nodes),
            "bid": {
                "class": award.bid.bid_class.value,
                "level": award.bid.level,
                "preference": award.bid.preference,
            },
        },
        "waits": None if refusal is None else {"reason": refusal.reason.value, "detail": refusal.detail},
        "latest_start": {"alone": _when(found.alone), "after_award": _when(found.after_award)},
        "reserved": _when(found.reserved),
        "expected_start_time": found.job.expected_start_time,
        "award": {"worth": found.award_worth, "bound": found.bound},
        "price": None if found.quote is None else quote_document(found.quote),
        "changes": None if found.changes is None else [_change_document(one) for one in found.changes],
        "bids": [_bid_document(bid) for bid in found.bids],
        "nodes": [
            {
                "what": group.what,
                "count": len(group.nodes),
                "nodes": join(group.nodes),
                "held_by": list(group.held_by),
            }
            for group in found.groups
        ],
    }


def _when(start: ShadowStart | None) -> dict[str, Any] | None:
    if start is None:
        return None
    return {"time": start.time, "at_once": start.at_once, "nodes": join(start.nodes)}


def _change_document(change: Change) -> dict[str, Any]:
    return {
        "instead": list(change.words),
        "given_up": round(change.given_up, 6),
        "asks": asked(change.job),
        "nodes": join(change.nodes),
        "count": len(change.nodes),
    }


def _bid_document(bid: BidView) -> dict[str, Any]:
    return {
        "class": bid.bid_class.value,
        "nodes": join(bid.nodes),
        "count": len(bid.nodes),
        "cores": bid.cores,
        "cores_by_node": list(bid.cores_by_node),
        "gres": dict(bid.gres),
        "level": bid.level,
        "preference": bid.preference,
        "worth": bid.worth,
        "price": bid.price,
        "won": bid.won,
        "lacks": [
            {"what": lack.what, "nodes": join(lack.nodes), "held_by": list(lack.held_by)}
            for lack in bid.lacks
        ],
    }


def overview_document(found: Overview) -> dict[str, Any]:
    """Return the prices as plain dicts, lists, numbers and text (``aucsched-prices/1``)."""
    return {
        "format": PRICES,
        "model": found.model,
        "objective": found.objective,
        "award": {
            "jobs": found.started,
            "worth": found.worth,
            "price": found.pay,
            "bound": found.bound,
        },
        "nodes": [_group_document(group) for group in found.groups],
        "unwanted": {"count": len(found.unwanted), "nodes": join(found.unwanted)},
        **{family.name: _of_family(family.name, found) for family in POOLED},
        "reservations": [
            {"job": job, "nodes": [_group_document(group) for group in groups]}
            for job, groups in found.rooms.items()
        ],
        "jobs": [_job_document(one) for one in found.jobs],
    }


def _of_family(family: str, found: Overview) -> dict[str, float]:
    return {resource.name: price for resource, price in found.pools.items() if resource.family == family}


def _group_document(group: PriceGroup) -> dict[str, Any]:
    return {
        "prices": dict(group.prices),
        "free": {"least": group.least, "most": group.most},
        "count": len(group.nodes),
        "nodes": join(group.nodes),
    }


def _job_document(one: JobPrice) -> dict[str, Any]:
    return {
        "job": one.job.id,
        "priority": float(one.job.priority),
        "starts": one.starts,
        "price": None if one.quote is None else quote_document(one.quote),
    }


def quote_document(quote: Quote) -> dict[str, Any]:
    """Return what a job pays, or would have paid, as plain numbers and text."""
    return {"worth": quote.worth, "price": quote.price, "gain": quote.gain, "nodes": join(quote.nodes)}
