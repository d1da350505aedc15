"""Journals that load wherever they are read: digests of values, checkpoints that a fresh process has read."""

from __future__ import annotations

import shutil
import zlib
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.negotiation import malleable, pair, rigid

from aucsched.negotiation.batch import ibsched
from aucsched.negotiation.batch.batch_state import Arrival, BatchState
from aucsched.negotiation.batch.mapping import BatchSettings
from aucsched.negotiation.job_records import MapEntry
from aucsched.negotiation.messages import (
    Code,
    Connect,
    Message,
    NegotiationStart,
    ResponseResourceOffer,
    Send,
    Wake,
)
from aucsched.negotiation.runtime import irtsched
from aucsched.negotiation.runtime.irtsched import RuntimeState
from aucsched.negotiation.runtime.settings import RuntimeSettings
from aucsched.negotiation.transport.framing import encode_message
from aucsched.negotiation.transport.party import Party, StructCodec
from aucsched.negotiation.transport.party_journal import (
    CheckpointReader,
    PartyJournal,
    digest_of,
    fault_of,
    has_digest,
)
from aucsched.simulation.negotiated.negotiated_run import RunLog, settings_text

WHOSE = {"party": "ibsched"}
#: Runs of one name on several counts: what they took replaces the estimates of those that wait.
ARRIVALS = tuple(
    Arrival(
        time_s=15.0 * place,
        job=msgspec.structs.replace(
            rigid(f"r{place}", 3, 40 + place, priority=90 - place)
            if place % 2
            else malleable(f"m{place}", 1, 4, 50 + place, priority=90 - place),
            name="ab"[place % 2],
        ),
    )
    for place in range(16)
)
STATE = BatchState(settings=BatchSettings(mapper="greedy", ends_when_done=True), arrivals=ARRIVALS)


def heard() -> list[Message | Connect]:
    """Return what a batch scheduler hears of a runtime scheduler with four nodes."""
    both, sent = pair(4, ARRIVALS, ends_when_done=True)
    both.run()
    return [Connect(), *(one.message for one in sent if not one.from_batch)]


def read(path: Path) -> Party[BatchState]:
    """Return a batch scheduler that continues from a journal."""
    journal = PartyJournal(path, WHOSE)
    try:
        return Party(STATE, ibsched.step, journal)
    finally:
        journal.close()


def other(text: str) -> str:
    """Return another object of the same value, as a process has it that reads a file."""
    return text.encode().decode()


# Digests.


def test_equal_messages_have_equal_digests_whatever_objects_they_are_made_of() -> None:
    one, two = (
        Send("", ResponseResourceOffer(transaction=1, attempt=1, code=Code.ACCEPT, map=(entry,)))
        for entry in (
            malleable("m", 1, 4, 90),
            msgspec.structs.replace(
                malleable("m", 1, 4, 90.0), speedup=other("linear"), node_share=tuple(map(int, "11"))
            ),
        )
    )
    assert one == two
    assert encode_message(one.message) != encode_message(two.message)
    assert digest_of([one]) == digest_of([two])


@pytest.mark.parametrize(
    "change",
    [{"speedup": "amdahl:0.1"}, {"node_cnt": 1}, {"nodes": ("n1",)}, {"start_s": 0.0}, {"name": "linear"}],
)
def test_other_messages_have_other_digests(change: dict[str, Any]) -> None:
    entry = malleable("m", 1, 4, 90)

    def sent(entry: MapEntry) -> list[Send]:
        return [Send("", ResponseResourceOffer(transaction=1, attempt=1, code=Code.ACCEPT, map=(entry,)))]

    assert digest_of(sent(entry)) != digest_of(sent(msgspec.structs.replace(entry, **change)))


def test_what_sends_nothing_has_no_digest() -> None:
    assert digest_of([]) == ""
    start = [Send("", NegotiationStart(version=1, max_attempts=5, interval_s=60.0))]
    assert has_digest([], "")
    assert not has_digest(start, "")
    assert not has_digest([], digest_of(start))


# Copies of a live journal.


@pytest.mark.parametrize("every", [0, 1, 5, 25])
def test_every_copy_of_a_live_journal_loads(every: int, tmp_path: Path) -> None:
    """Copied after each transition, and continued from there: to the same state, with the same messages."""
    path, copy = tmp_path / "journal", tmp_path / "copy"
    journal = PartyJournal(path, WHOSE, checkpoint_entries=every)
    live, left = Party(STATE, ibsched.step, journal), deque(heard())
    restored: Party[BatchState] | None = None
    while left:
        happening = left.popleft()
        said = live.take(happening)
        if restored is not None:
            assert restored.take(happening) == said
        live.close()
        shutil.copy(path, copy)
        read_again = read(copy)
        assert read_again.state == live.state
        if restored is None or live.transitions % 7 == 0:
            restored = Party(read_again.state, ibsched.step)
    journal.close()
    assert len(live.state.done) == len(ARRIVALS)
    assert live.state.known  # else the estimates of named runs were never replaced


def written(text: bytes) -> bytes:
    return b"%08x %s\n" % (zlib.crc32(text), text)


@pytest.mark.parametrize("omits", [True, False])
def test_a_journal_of_digests_of_json_still_loads(tmp_path: Path, *, omits: bool) -> None:
    """As earlier versions wrote them, in either form that their processes gave a member with its default."""
    path = tmp_path / "journal"
    journal = PartyJournal(path, WHOSE)
    lines = [path.read_bytes()]
    state = STATE
    for one in heard():
        happening = one if omits else msgspec.convert(msgspec.to_builtins(one), type(one))
        state, sends = ibsched.step(state, happening, "")
        checksum = 0
        for send in sends:
            checksum = zlib.crc32(encode_message(send.message), checksum)
        kind = "event" if isinstance(happening, Connect) else "message"
        line = {kind: happening, "sent": f"{checksum:08x}"} if sends else {kind: happening}
        lines.append(written(msgspec.json.encode(line)))
    journal.close()
    path.write_bytes(b"".join(lines))
    assert read(path).state == state
    damaged = msgspec.json.encode({"event": Connect(), "sent": "00000000"})
    path.write_bytes(lines[0] + written(damaged))
    with pytest.raises(Exception, match="entry 1 leads elsewhere"):
        read(path)


def test_settings_that_came_later_are_in_no_journal_s_head_by_default() -> None:
    """A head holds a negotiation's settings: a journal from before ``steps`` is still of this negotiation."""
    for settings in (BatchSettings(), RuntimeSettings()):
        assert "steps" not in settings_text(settings)
        assert '"steps":"printed"' in settings_text(replace(settings, steps="printed"))


# Checkpoints.


def checkpointed(path: Path) -> None:
    """Write a runtime scheduler's journal that begins with a checkpoint."""
    both, _ = pair(4)
    journal = PartyJournal(path, {"party": "irtsched"}, checkpoint_entries=1)
    log = RunLog()
    party = Party(both.runtimes[""], irtsched.step, journal, log.watch, memory=log)
    party.take(NegotiationStart(version=1, max_attempts=5, interval_s=60.0))
    party.take(Wake(time_s=1.0))
    party.close()
    journal.close()


def test_a_checkpoint_is_read_back_by_another_process(tmp_path: Path) -> None:
    """By one for all of them; one that has died is started anew."""
    path = tmp_path / "journal"
    checkpointed(path)
    reader = CheckpointReader(StructCodec(RuntimeState), RunLog)
    try:
        assert reader.fault_in(path) == ""
        content = path.read_bytes()
        path.write_bytes(content.replace(b'"now_s":0.0', b'"now_s":2.0'))
        assert "line 2 is damaged" in reader.fault_in(path)
        process = reader._process  # noqa: SLF001 - which process it is
        assert process is not None
        process.kill()
        process.join()
        path.write_bytes(content)
        assert reader.fault_in(path) != ""
        assert reader.fault_in(path) == ""
    finally:
        reader.close()


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b'"running":{', b'"walking":{', "unknown member 'walking'"),
        (b'"lost_node_s":0.0', b'"lost_node_s":0.00', "what was noted"),
        (b'"now_s":0.0', b'"now_s":0.00', "the state is another"),
        (b'"checkpoint":', b'"event":', "line|event|object"),
    ],
)
def test_what_a_restart_would_not_continue_from_is_a_fault(
    old: bytes, new: bytes, why: str, tmp_path: Path
) -> None:
    path = tmp_path / "journal"
    checkpointed(path)
    assert fault_of(path, StructCodec(RuntimeState), RunLog) == ""
    head, checkpoint, *_ = path.read_bytes().splitlines()
    text = checkpoint[9:].replace(old, new, 1)
    assert text != checkpoint[9:]
    path.write_bytes(head + b"\n" + written(text))
    fault = fault_of(path, StructCodec(RuntimeState), RunLog)
    assert any(word in fault for word in why.split("|")), fault
    assert "\n" not in fault


def test_a_checkpoint_with_a_fault_replaces_nothing_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal"
    journal = PartyJournal(path, WHOSE, checkpoint_entries=2)
    asked: list[Path] = []

    def fault_in(self: CheckpointReader, path: Path) -> str:
        del self
        asked.append(path)
        assert path.read_bytes().count(b'"checkpoint"') == 1
        return "it is not what it was"

    monkeypatch.setattr(CheckpointReader, "fault_in", fault_in)
    told: list[str] = []
    party = Party(STATE, ibsched.step, journal, tell=told.append)
    for happening in heard()[:5]:
        party.take(happening)
    party.close()
    journal.close()
    assert len(asked) == len(told) == 2
    assert told[0].endswith(
        "the checkpoint is dropped: it is not what it was; the journal is continued as it is"
    )
    assert [one.name for one in tmp_path.iterdir()] == ["journal"]
    journal = PartyJournal(path, WHOSE)
    assert (journal.checkpoint, len(journal.held)) == (None, 5)
    journal.close()
    assert read(path).state == party.state
