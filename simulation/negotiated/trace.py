"""A negotiation's messages as files: text for people, JSON that replays, a Mermaid diagram."""

import json
import re
from collections.abc import Iterable

import msgspec

from ...cluster.errors import InputError, errors_below
from ...cluster.text import one_line, plural
from ...formats.hostlist import join
from ...formats.jsontext import decode
from ...negotiation.batch.batch_state import Arrival
from ...negotiation.batch.mapping import BatchSettings
from ...negotiation.job_records import Known, MapEntry
from ...negotiation.message_rules import check
from ...negotiation.messages import (
    DynResponse,
    FromApplicationBase,
    NegotiationEnd,
    NegotiationEndResponse,
    NegotiationStart,
    NegotiationStartResponse,
    ProtocolError,
    RequestResourceOffer,
    ResourceOffer,
    ResponseResourceOffer,
    StatusReport,
    UrgentJob,
    UrgentJobResponse,
)
from ...negotiation.pair import Sent, StuckError
from ...negotiation.runtime.settings import RuntimeSettings
from ...negotiation.transport.framing import encode_message
from .negotiated_report import Negotiated
from .negotiated_run import check_run, negotiate
from .plays import Play

FORMAT = "aucsched-negotiation-trace/1"
#: What Mermaid takes for a comment or for HTML.
_MARKS = re.compile(r"[%<>&\"\\{}]")
#: When a message was sent, at the beginning of its line.
_TIME = re.compile(rb'\{"time_s":([0-9]{1,15}(?:\.[0-9]{1,15})?),')
#: Seconds that the clock may go on after the last message of a trace: it may come to nothing else.
_LONGER_S = 86_400.0
#: Names shown of a list before it is cut.
_SHOWN = 8


#: What the header has of the play.
_OF_PLAY = ("name", "nodes", "partitions", "arrivals", "runtimes")


class _Header(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first line of a JSON trace: all that the messages after it follow from."""

    format: str
    name: str
    nodes: tuple[str, ...]
    partitions: dict[str, tuple[str, ...]]
    batch: BatchSettings
    runtime: RuntimeSettings
    arrivals: tuple[Arrival, ...]
    runtimes: int = 1
    known: Known | msgspec.UnsetType = msgspec.UNSET


def trace_json(result: Negotiated) -> str:
    """Return the trace that ``replayed`` reads: a header, then one message a line."""
    play = result.play
    of_play = {name: getattr(play, name) for name in _OF_PLAY}
    known = result.known or msgspec.UNSET
    header = _Header(format=FORMAT, batch=result.batch, runtime=result.runtime, known=known, **of_play)
    lines = [msgspec.json.encode(header).decode()]
    for sent in result.sent:
        sender = "ibsched" if sent.from_batch else "irtsched"
        message = encode_message(sent.message).decode()
        peer = f'"peer":"{sent.peer}",' if sent.peer else ""
        lines.append(f'{{"time_s":{json.dumps(sent.time_s)},"from":"{sender}",{peer}"message":{message}}}')
    return "\n".join(lines) + "\n"


def replayed(text: bytes) -> Negotiated:
    """Run a JSON trace again from its header, and return the run when every message is the same.

    Raises:
        InputError: it is no trace, or a message differs from the replayed run; names the line.
    """
    lines = text.splitlines()
    if not lines:
        raise InputError("the file is empty")
    header = decode(lines[0], _Header)
    if header.format != FORMAT:
        raise InputError(f"{header.format!r} is not {FORMAT!r}", path="format")
    play = Play(**{name: getattr(header, name) for name in _OF_PLAY})
    for place, arrival in enumerate(header.arrivals):
        with errors_below(f"arrivals[{place}].job"):
            check(arrival.job)
    known = header.known or {}
    for name, counts in known.items():
        for nodes, (_, mean_s) in counts.items():
            check_run(name, nodes, mean_s)
    try:
        sent = (_TIME.match(line) for line in lines[1:])
        last_s = max((float(match[1]) for match in sent if match), default=0.0)
        result = negotiate(play, header.batch, header.runtime, until_s=last_s + _LONGER_S, known=known)
    except (ProtocolError, StuckError) as error:
        raise InputError(f"line 1 leads nowhere: {one_line(str(error))}") from error
    again = trace_json(result).encode().splitlines()
    if lines != again:
        pairs = enumerate(zip(lines, again, strict=False), start=1)
        first = next((line for line, (one, other) in pairs if one != other), min(len(lines), len(again)) + 1)
        raise InputError(f"line {first} is not what the negotiation comes to")
    return result


# For people.


def trace_text(result: Negotiated) -> str:
    """Return a line a message: when, who to whom, what."""
    lines = []
    for sent in result.sent:
        runtime = f"iRTSched {sent.peer}".rstrip()
        arrow = f"iBSched  → {runtime}" if sent.from_batch else f"{runtime} → iBSched "
        lines.append(f"{_time(sent.time_s)}  {arrow}  {described(sent)}\n")
    return "".join(lines)


def _time(seconds: float) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{minutes:5.0f}:{rest:06.3f}"


def described(sent: Sent) -> str:
    """Return what a message says, in one line."""
    return one_line(f"{sent.message.__struct_config__.tag}{_said(sent)}")


def _said(sent: Sent) -> str:  # noqa: C901, PLR0911 - one line for each kind of message
    match sent.message:
        case NegotiationStart() as m:
            return f" version {m.version}, {plural(m.max_attempts, 'attempt')}, {m.queued} queued"
        case NegotiationStartResponse() as m:
            return f" {m.code}{_because(m.text)}, {plural(sum(map(len, m.partitions.values())), 'node')}"
        case RequestResourceOffer() as m:
            return f" for {_some([entry.job for entry in m.jobs])}"
        case ResourceOffer() as m:
            return _offer(m)
        case ResponseResourceOffer() as m:
            return f" {m.transaction}.{m.attempt} {m.code}: {_map(m.map)}{' (atomic)' if m.atomic else ''}"
        case StatusReport() as m:
            ons = ["" if one.state == "done" else f" on {one.node_count}" for one in m.reports]
            return f" {_some([f'{one.job} {one.state}{on}' for one, on in zip(m.reports, ons, strict=True)])}"
        case UrgentJob() as m:
            return f" {m.job.job} on {plural(m.job.node_count.max, 'node')}"
        case UrgentJobResponse() as m:
            paid = {"shrunk": m.shrunk, "suspended": m.suspended, "killed": m.killed}
            who_paid = "".join(f"; {how} {_some(list(who))}" for how, who in paid.items() if who)
            return f" {m.job} {m.code}{_because(m.text)}{who_paid}"
        case NegotiationEnd() | NegotiationEndResponse() as m:
            return _because(m.text)
        case FromApplicationBase() | DynResponse() as m:
            return f" {m.job}"


def _because(text: str) -> str:
    return f" ({text})" if text else ""


def _some(words: list[str]) -> str:
    if not words:
        return "nothing"
    more = f", … {len(words) - _SHOWN} more" if len(words) > _SHOWN else ""
    return ", ".join(words[:_SHOWN]) + more


def _offer(offer: ResourceOffer) -> str:
    if not offer.negotiation:
        return f" {offer.transaction}.{offer.attempt} closes, {len(offer.idle)} idle"
    idle = join(offer.idle) if offer.idle else "no node"
    now = [f"{entry.job} on {entry.node_count}" for entry in offer.reservations if entry.node_count]
    later = [
        f"{entry.job} at {_time(entry.start_s).strip()}"
        for entry in offer.reservations
        if not entry.node_count
    ]
    parts = [f" {offer.transaction}.{offer.attempt} {idle} idle"]
    parts += [f"now {_some(now)}"] if now else []
    parts += [f"later {_some(later)}"] if later else []
    parts += [offer.text] if offer.text and offer.code == "reject" else []
    return "; ".join(parts)


def _map(entries: tuple[MapEntry, ...]) -> str:
    mapped = [f"{entry.job} on {entry.node_cnt}" for entry in entries if entry.node_cnt]
    waiting = [entry.job for entry in entries if not entry.node_cnt]
    if not entries:
        return "an empty Map"
    return f"{_some(mapped)}; forwarded {_some(waiting)}" if waiting else _some(mapped)


# As a diagram.


def mermaid(sent: Iterable[Sent], limit: int) -> str:
    """Return the first messages as a Mermaid sequence diagram; transactions are framed."""
    every = list(sent)
    shown = every[:limit]
    lines = ["sequenceDiagram", "    participant B as iBSched"]
    peers = list(dict.fromkeys(one.peer for one in every))
    lines += [f"    participant R{peer} as {f'iRTSched {peer}'.rstrip()}" for peer in peers]
    openings = {
        id(one): one.message.transaction
        for one in shown
        if isinstance(one.message, ResourceOffer) and one.message.negotiation and one.message.attempt == 1
    }
    depth = 0
    for one, following in zip(shown, [*shown[1:], None], strict=True):
        if id(one) in openings:
            note = f"    Note over B,R{one.peer}: transaction {openings[id(one)]}"
            lines.append(f"    rect rgb(240, 244, 250)\n{note}")
            depth += 1
        arrow = f"B->>R{one.peer}" if one.from_batch else f"R{one.peer}->>B"
        lines.append(f"    {arrow}: {_plain(described(one))}")
        if depth and (_closes(one) or (following is not None and id(following) in openings)):
            lines.append("    end")
            depth -= 1
    lines += ["    end"] * depth
    if len(every) > len(shown):
        lines.append(f"    Note over B: {len(every) - len(shown)} more messages")
    return "\n".join(lines) + "\n"


def _closes(sent: Sent) -> bool:
    message = sent.message
    if isinstance(message, ResponseResourceOffer):
        return not message.map
    return isinstance(message, ResourceOffer) and message.negotiation == 0


def _plain(text: str) -> str:
    """Return a line without what Mermaid reads as its own.

    ``;`` ends a statement, ``%%`` begins a comment, and the rest begins an entity or a piece of
    HTML: these stand as Mermaid's entities.
    """
    plain = text.replace(";", " ·").replace("#", "no. ")
    return _MARKS.sub(lambda mark: f"#{ord(mark[0])};", plain)
