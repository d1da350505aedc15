"""Journals that load wherever they are read: digests of values, checkpoints that are read back."""

from __future__ import annotations

import shutil
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
from aucsched.negotiation.transport.party import Party, PartyJournal, StructCodec, digest_of
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
    assert digest_of(start)


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


def test_settings_that_came_later_are_in_no_journal_s_head_by_default() -> None:
    """A head holds a negotiation's settings: a journal from before ``steps`` is still of this negotiation."""
    for settings in (BatchSettings(), RuntimeSettings()):
        assert "steps" not in settings_text(settings)
        assert '"steps":"printed"' in settings_text(replace(settings, steps="printed"))


# Checkpoints.


class Changed(StructCodec[BatchState]):
    """Writes what the state that was read is not, or what is written otherwise."""

    def __init__(self, old: bytes, new: bytes) -> None:
        super().__init__(BatchState)
        self._change = old, new

    def write(self, state: BatchState) -> bytes:
        """Return the text, changed."""
        return super().write(state).replace(*self._change, 1)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b'"settings":', b'"choices":', "unknown member 'choices'"),
        (b'"lost_node_s":0.0', b'"lost_node_s":1.0', "the state is another"),
    ],
)
def test_a_checkpoint_that_cannot_be_read_back_replaces_nothing_and_is_told(
    old: bytes, new: bytes, why: str, tmp_path: Path
) -> None:
    path = tmp_path / "journal"
    journal = PartyJournal(path, WHOSE, checkpoint_entries=2)
    told: list[str] = []
    party = Party(STATE, ibsched.step, journal, codec=Changed(old, new), tell=told.append)
    for happening in heard()[:5]:
        party.take(happening)
    party.close()
    journal.close()
    assert len(told) == 2
    assert why in told[0]
    assert told[0].startswith(f"{path}: the checkpoint is dropped: ")
    assert told[0].endswith("the journal is continued as it is")
    assert "\n" not in told[0]
    assert [one.name for one in tmp_path.iterdir()] == ["journal"]
    journal = PartyJournal(path, WHOSE)
    assert (journal.checkpoint, len(journal.happened)) == (None, 5)
    journal.close()
    assert read(path).state == party.state


class Rewritten(StructCodec[RuntimeState]):
    """Writes the same state otherwise each time, as one whose objects differ from those that are read."""

    times = 0

    def write(self, state: RuntimeState) -> bytes:
        """Return the text with more blanks behind it than before."""
        self.times += 1
        return super().write(state) + b" " * self.times


class Forgetful(RunLog):
    """Notes that are other when they are read back."""

    def __post_init__(self) -> None:
        """Take what the text does not say."""
        if self.sent:
            self.lost_node_s += 1.0


class Broken(RunLog):
    """Notes that nothing can be made of."""

    def __post_init__(self) -> None:
        """Fail as code does that reads what it does not know."""
        if self.sent:
            raise KeyError("sent")


@pytest.mark.parametrize(
    ("codec", "log", "why"),
    [
        (StructCodec(RuntimeState), RunLog(), ""),
        (Rewritten(RuntimeState), RunLog(), "the state is another"),
        (StructCodec(RuntimeState), Forgetful(), "what was noted with the state"),
        (StructCodec(RuntimeState), Broken(), "the checkpoint is dropped: 'sent'"),
    ],
    ids=["sound", "state", "notes", "error"],
)
def test_state_and_notes_are_written_again_and_compared(
    codec: StructCodec[RuntimeState], log: RunLog, why: str, tmp_path: Path
) -> None:
    both, _ = pair(4)
    journal = PartyJournal(tmp_path / "journal", {"party": "irtsched"}, checkpoint_entries=1)
    told: list[str] = []
    step, runtime = irtsched.step, both.runtimes[""]
    party = Party(runtime, step, journal, log.watch, memory=log, codec=codec, tell=told.append)
    party.take(NegotiationStart(version=1, max_attempts=5, interval_s=60.0))
    party.take(Wake(time_s=1.0))
    party.close()
    journal.close()
    assert bool(told) == bool(why)
    assert all(why in one for one in told)
