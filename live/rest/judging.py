"""What an answer of slurmrestd says of an update: done, refused, surely not carried out, or not known."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from ...cluster.text import one_line
from .server import Answer

#: Slurm's ESLURM_ACCESS_DENIED: whom slurmrestd speaks for may not do this; scontrol's user may.
_DENIED = 2002
_UNAUTHORISED = frozenset({401, 403})
_NOT_READ = frozenset({400, 404, 405, 406, 415})
WELL = range(200, 300)


class Outcome(StrEnum):
    """What became of an update."""

    DONE = "done"
    REFUSED = "refused"
    NOT_DONE = "not done"
    UNKNOWN = "unknown"


#: What may have been carried out is not sent again, whatever else is said.
_GRAVEST = (Outcome.UNKNOWN, Outcome.REFUSED, Outcome.NOT_DONE)


def judged(answer: Answer) -> tuple[Outcome, str]:
    """Return what an answer says of an update, and in its words why.

    Errors stand in the body, also under status 200. Entries without a number are no errors: 22.05 adds one to
    each update of an array that it carried out.
    """
    errors = _errors(answer.document)
    if errors and answer.status not in _UNAUTHORISED:
        found = {_of_error(number): text for number, text in reversed(errors)}
        return next((outcome, found[outcome]) for outcome in _GRAVEST if outcome in found)
    if answer.status in WELL and isinstance(answer.document, dict):
        return Outcome.DONE, ""
    said = f"status {answer.status}: {answer.text or _first(answer.document)}"
    return (Outcome.NOT_DONE if answer.status in _UNAUTHORISED | _NOT_READ else Outcome.UNKNOWN), said


def _of_error(number: int) -> Outcome:
    if _is_of_the_line(number):
        return Outcome.UNKNOWN
    is_of_the_road = number == _DENIED or _is_of_the_request(number)
    return Outcome.NOT_DONE if is_of_the_road else Outcome.REFUSED


def _is_of_the_request(number: int) -> bool:
    """Whether slurmrestd itself could not read a request: 9001 is ESLURM_REST_FAIL_PARSING."""
    return 9000 <= number < 10000  # noqa: PLR2004 - slurm_errno.h's numbers of REST and of data


def _is_of_the_line(number: int) -> bool:
    """Whether slurmctld's own answer is what was lost."""
    return 1000 <= number < 2000 or 5000 <= number < 5100  # noqa: PLR2004 - slurm_errno.h's of communication


def _errors(document: Any) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    if not isinstance(document, dict):
        return found
    for entry in _entries(document, "errors"):
        number = entry.get("error_number", entry.get("errno"))
        if isinstance(number, int) and number:
            found.append((number, _text(entry)))
    for entry in _entries(document, "results"):
        number = entry.get("error_code")
        if isinstance(number, int) and number:
            found.append((number, _text(entry)))
    return found


def _entries(document: dict[str, Any], name: str) -> list[dict[str, Any]]:
    entries = document.get(name)
    return [one for one in entries if isinstance(one, dict)] if isinstance(entries, list) else []


def _text(entry: dict[str, Any]) -> str:
    for name in ("error", "description", "why"):
        if entry.get(name):
            return one_line(str(entry[name]))
    return "no reason is given"


def _first(document: Any) -> str:
    entries = _entries(document, "errors") if isinstance(document, dict) else []
    return _text(entries[0]) if entries else "no reason is given"
