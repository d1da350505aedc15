"""Journals: what they hold is what happened, cut anywhere; deaths at any moment, replayed in this process."""

from __future__ import annotations

import contextlib
import os
import socket
import zlib
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from support.negotiation import check_jobs, check_machine, conserved, machine, malleable, pair, rigid

from aucsched.cluster.errors import InputError
from aucsched.cluster.nodes import Switch
from aucsched.negotiation.batch import ibsched
from aucsched.negotiation.batch.batch_state import Arrival, BatchState
from aucsched.negotiation.batch.mapping import BatchSettings, Engine
from aucsched.negotiation.messages import (
    Code,
    Connect,
    Disconnect,
    Message,
    ProtocolError,
    ResponseResourceOffer,
    Wake,
)
from aucsched.negotiation.runtime import irtsched
from aucsched.negotiation.runtime.irtsched import RuntimeState
from aucsched.negotiation.runtime.settings import RuntimeSettings, Urgency
from aucsched.negotiation.transport.framing import decode_message, encode_message
from aucsched.negotiation.transport.party import Party, PartyJournal

WHOSE = {"party": "irtsched"}
ARRIVALS = (
    Arrival(time_s=0.0, job=rigid("a", 3, 100)),
    Arrival(time_s=0.0, job=malleable("m", 1, 4, 90, priority=99)),
    Arrival(time_s=20.0, job=rigid("b", 4, 30, priority=98)),
    Arrival(time_s=300.0, job=rigid("c", 2, 10, priority=97)),
)


def played(path: Path) -> tuple[Party[RuntimeState], list[Message]]:
    """Run a small workload; return the runtime scheduler's party, journalled, and what it sent."""
    both, sent = pair(4, ARRIVALS, ends_when_done=True)
    both.run()
    journal = PartyJournal(path, WHOSE)
    party = fresh(journal)
    said: list[Message] = []
    heard = deque(one.message for one in sent if one.from_batch)
    while not party.has_ended:
        time = party.state.next_wake_s()
        said += party.take(heard.popleft() if time is None else Wake(time_s=time))
    journal.close()
    assert said == [one.message for one in sent if not one.from_batch]
    return party, said


def fresh(journal: PartyJournal) -> Party[RuntimeState]:
    return Party(RuntimeState(settings=RuntimeSettings(), machine=machine(4)), irtsched.step, journal)


def test_a_journal_leads_to_the_same_state(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    party, _ = played(path)
    journal = PartyJournal(path, WHOSE)
    again = fresh(journal)
    assert again.state == party.state
    assert again.has_ended
    journal.close()


def test_a_journal_cut_anywhere_holds_what_was_whole(tmp_path: Path) -> None:
    path, short = tmp_path / "journal", tmp_path / "short"
    played(path)
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    head, last = len(lines[0]), content.rfind(b"\n", 0, -1) + 1
    for cut in (
        0,
        5,
        head - 1,
        head,
        head + 1,
        head + len(lines[1]),
        last - 1,
        last,
        last + 9,
        len(content) - 1,
    ):
        short.write_bytes(content[:cut])
        journal = PartyJournal(short, WHOSE)
        assert len(journal.happened) == max(0, content[:cut].count(b"\n") - 1)
        fresh(journal)
        journal.note({"k": "v"})  # and it goes on behind the last whole line
        journal.close()
        journal = PartyJournal(short, WHOSE)
        assert journal.notes == {"k": "v"}
        journal.close()


def test_what_is_no_journal_of_this_party_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    played(path)
    content = path.read_bytes()
    with pytest.raises(InputError, match="begun with party irtsched, this run has ibsched"):
        PartyJournal(path, {"party": "ibsched"})
    journal = PartyJournal(path, WHOSE)
    with pytest.raises(InputError, match="another process is writing it"):
        PartyJournal(path, WHOSE)
    journal.close()
    spoilt = bytearray(content)
    spoilt[content.find(b"\n") + 40] ^= 1
    path.write_bytes(spoilt)
    with pytest.raises(InputError, match="line 2 is damaged"):
        PartyJournal(path, WHOSE)
    path.write_bytes(b"something else\n")
    with pytest.raises(InputError, match="not a journal of a negotiation"):
        PartyJournal(path, WHOSE)


@pytest.mark.parametrize("target", ["/dev/null", "/dev/zero", "/dev/full", "fifo", "folder", "socket"])
def test_what_is_no_regular_file_is_no_journal(target: str, tmp_path: Path) -> None:
    """Nor is it opened first: that alone rewinds a tape, or waits for the other end of a FIFO."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    path = tmp_path / "journal"
    path.symlink_to(tmp_path / target)  # joined to what begins with a slash, it is that
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as bound:
        bound.bind(str(tmp_path / "socket"))
        with pytest.raises(InputError, match="journal: it is not a regular file, and not a journal of"):
            PartyJournal(path, WHOSE)


def test_a_journal_may_be_a_link_to_a_file(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    path = tmp_path / "journal"
    path.symlink_to(tmp_path / "elsewhere" / "journal")
    PartyJournal(path, WHOSE).close()
    PartyJournal(path, WHOSE).close()
    assert path.is_symlink()
    assert (tmp_path / "elsewhere" / "journal").stat().st_size


def test_a_journal_that_this_program_would_not_have_written_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    played(path)
    journal = PartyJournal(path, WHOSE)
    other = RuntimeState(settings=RuntimeSettings(last_backfill=False), machine=machine(3))
    with pytest.raises(InputError, match="leads elsewhere"):
        Party(other, irtsched.step, journal)
    journal.close()


def test_what_cannot_have_happened_is_refused_in_one_line(tmp_path: Path) -> None:
    """A journal whose last line is listed twice is signed, and well-formed, and no history."""
    path = tmp_path / "journal"
    played(path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines, lines[-1]]))
    journal = PartyJournal(path, WHOSE)
    with pytest.raises(InputError, match=r"entry \d+ cannot have happened then") as refused:
        fresh(journal)
    journal.close()
    assert "\n" not in str(refused.value)


def test_a_refused_message_is_not_noted(tmp_path: Path) -> None:
    journal = PartyJournal(tmp_path / "journal", WHOSE)
    party = fresh(journal)
    before = party.state
    with pytest.raises(ProtocolError):
        party.take(ResponseResourceOffer(transaction=1, attempt=1, code=Code.ACCEPT))
    assert party.state is before
    assert not party.has_history
    journal.close()
    journal = PartyJournal(tmp_path / "journal", WHOSE)
    assert journal.happened == ()
    journal.close()


# Deaths.


@dataclass
class World:
    """Two parties with journals, what is on its way, and what each was seen to say."""

    folder: Path
    arrivals: tuple[Arrival, ...]
    urgency: Urgency
    checkpoint_entries: int
    batch: Party[BatchState] = field(init=False)
    runtime: Party[RuntimeState] = field(init=False)
    journals: dict[str, PartyJournal] = field(default_factory=dict)
    to_batch: deque[Message] = field(default_factory=deque)
    to_runtime: deque[Message] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.revive("batch")
        self.revive("runtime")
        self.connect()

    def revive(self, name: str, *, forgetful: bool = False) -> None:
        """Start a party from its journal alone; what it had not flushed is lost, as with its process."""
        if name in self.journals:
            self.journals[name].close()
        if forgetful:
            (self.folder / name).unlink()
        journal = self.journals[name] = PartyJournal(
            self.folder / name, {"party": name}, checkpoint_entries=self.checkpoint_entries
        )
        if name == "batch":
            batch = BatchSettings(mapper="greedy", ends_when_done=True)
            state = BatchState(settings=batch, arrivals=self.arrivals)
            self.batch = Party(state, ibsched.step, journal)
        else:
            runtime = RuntimeState(settings=RuntimeSettings(urgency=self.urgency), machine=machine(5))
            self.runtime = Party(runtime, irtsched.step, journal)

    def connect(self) -> None:
        """Lose what is on its way, and begin again."""
        self.to_batch.clear()
        self.to_runtime.clear()
        if self.runtime.has_history:
            self.runtime.take(Disconnect())
        self.tell_runtime(self.batch.take(Connect()))

    def tell_runtime(self, messages: tuple[Message, ...]) -> None:
        """Put messages on their way."""
        self.to_runtime.extend(decode_message(encode_message(message)) for message in messages)

    def tell_batch(self, messages: tuple[Message, ...]) -> None:
        """Put messages on their way."""
        self.to_batch.extend(decode_message(encode_message(message)) for message in messages)

    def go_on(self, *, runtime_first: bool) -> None:
        """Deliver one message, else let the clock go on."""
        turns = ["runtime", "batch"] if runtime_first else ["batch", "runtime"]
        for name in turns:
            if name == "runtime" and self.to_runtime:
                self.tell_batch(self.runtime.take(self.to_runtime.popleft()))
                return
            if name == "batch" and self.to_batch:
                self.tell_runtime(self.batch.take(self.to_batch.popleft()))
                return
        time = self.runtime.state.next_wake_s()
        if time is not None:
            self.tell_batch(self.runtime.take(Wake(time_s=time)))

    def check(self) -> None:
        """Assert what must hold at any time."""
        check_machine(self.runtime.state.machine)
        batch = self.batch.state
        assert set(batch.done) <= set(self.runtime.state.machine.done)
        together = [*batch.queue, *batch.urgent, *batch.dispatched, *batch.done]
        assert len(together) == len(set(together))


@pytest.mark.parametrize("urgency", ["suspend", "kill"])
@settings(max_examples=25, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(data=st.data())
def test_deaths_at_any_moment_lose_nothing(
    urgency: Urgency, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    arrivals = tuple(
        Arrival(
            time_s=float(data.draw(st.integers(0, 120))),
            job=malleable(
                f"j{number}",
                least := data.draw(st.integers(1, 5)),
                data.draw(st.integers(least, 5)),
                float(data.draw(st.integers(1, 80))),
                priority=100 - number,
            ),
            urgent=data.draw(st.integers(0, 5)) == 0,
        )
        for number in range(data.draw(st.integers(1, 8)))
    )
    arrivals = tuple(sorted(arrivals, key=lambda arrival: arrival.time_s))
    every = data.draw(st.sampled_from([0, 1, 3, 10]))
    world = World(tmp_path_factory.mktemp("world"), arrivals, urgency, every)
    for _ in range(data.draw(st.integers(0, 60))):
        match data.draw(st.sampled_from(["on"] * 8 + ["batch", "runtime", "cut", "forget"])):
            case "on":
                world.go_on(runtime_first=data.draw(st.booleans()))
            case "cut":
                world.connect()
            case "forget":
                # Its journal is lost: it knows the workload, and what has run it is told.
                world.revive("batch", forgetful=True)
                world.connect()
            case name:
                world.revive(name)
                world.connect()
        world.check()
    for _ in range(3000):
        if world.runtime.has_ended and world.batch.has_ended:
            break
        world.go_on(runtime_first=True)
        world.check()
    machine_, batch = world.runtime.state.machine, world.batch.state
    names = sorted(arrival.job.job for arrival in arrivals)
    assert sorted(machine_.done) == sorted(batch.done) == names
    check_jobs(batch, machine_)
    conserved(machine_, {arrival.job.job: arrival.job for arrival in arrivals})
    for journal in world.journals.values():
        journal.close()


# Checkpoints.


def served(path: Path, every: int) -> tuple[Party[RuntimeState], list[Message]]:
    """Run the small workload with a process for each transition, and a checkpoint every so often."""
    both, sent = pair(4, ARRIVALS, ends_when_done=True)
    both.run()
    said: list[Message] = []
    heard = deque(one.message for one in sent if one.from_batch)
    while True:
        journal = PartyJournal(path, WHOSE, checkpoint_entries=every)
        party = fresh(journal)
        if not party.has_ended:
            time = party.state.next_wake_s()
            said += party.take(heard.popleft() if time is None else Wake(time_s=time))
            party.close()
        journal.close()
        if party.has_ended:
            assert said == [one.message for one in sent if not one.from_batch]
            return party, said


@pytest.mark.parametrize("every", [1, 2, 7])
def test_a_party_goes_on_from_its_checkpoint(every: int, tmp_path: Path) -> None:
    plain, _ = played(tmp_path / "plain")
    party, _ = served(tmp_path / "journal", every)
    assert party.state == plain.state
    journal = PartyJournal(tmp_path / "journal", WHOSE)
    assert journal.checkpoint is not None
    assert journal.checkpoint.entries + len(journal.happened) == plain.transitions == party.transitions
    again = fresh(journal)
    assert again.state == plain.state
    assert (again.has_ended, again.last_words) == (plain.has_ended, plain.last_words)
    journal.close()


def test_a_journal_stays_as_short_as_its_state_lets_it(tmp_path: Path) -> None:
    """However long the clock goes on: only twice a checkpoint's length is written, and read."""
    path = tmp_path / "journal"
    journal = PartyJournal(path, WHOSE, checkpoint_entries=10)
    party = fresh(journal)
    longest = 0
    for second in range(400):
        party.take(Wake(time_s=float(second)))
        if second % 10 == 0:
            party.close()
        longest = max(longest, path.stat().st_size)
    party.close()
    journal.close()
    assert longest < 4000
    journal = PartyJournal(path, WHOSE, checkpoint_entries=10)
    assert len(journal.happened) < 100
    assert fresh(journal).state == party.state
    journal.close()


def test_a_kill_between_writing_and_renaming_leaves_the_journal_that_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal"
    journal = PartyJournal(path, WHOSE, checkpoint_entries=3)
    party = fresh(journal)
    party.take(Wake(time_s=1.0))
    party.take(Wake(time_s=2.0))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    def removes_nothing(*_: object) -> None:
        raise FileNotFoundError

    with monkeypatch.context() as context:
        context.setattr(Path, "rename", killed)
        # What is interrupted takes its file away; what is killed cannot.
        context.setattr(Path, "unlink", removes_nothing)
        with pytest.raises(KeyboardInterrupt):
            party.take(Wake(time_s=3.0))
    party.close()
    journal.close()
    left = tmp_path / ".journal.new"
    assert left.exists()
    journal = PartyJournal(path, WHOSE, checkpoint_entries=3)
    assert (journal.checkpoint, len(journal.happened)) == (None, 3)
    party = fresh(journal)
    party.take(Wake(time_s=4.0))
    assert not left.exists()
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()
    journal.close()
    journal = PartyJournal(path, WHOSE)
    assert journal.checkpoint is not None
    assert fresh(journal).state.machine.now_s == 4.0
    journal.close()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_where_no_file_can_be_put_in_its_place_a_journal_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal"
    journal = PartyJournal(path, WHOSE, checkpoint_entries=2)
    party = fresh(journal)

    def refused(*_: object) -> None:
        raise OSError("device or resource busy")

    monkeypatch.setattr(Path, "rename", refused)
    for second in range(9):
        party.take(Wake(time_s=float(second)))
    party.close()
    journal.close()
    assert [one.name for one in tmp_path.iterdir()] == ["journal"]
    journal = PartyJournal(path, WHOSE)
    assert (journal.checkpoint, len(journal.happened)) == (None, 9)
    journal.close()


def test_a_journal_that_begins_again_is_still_locked_and_still_its_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    path = tmp_path / "journal"
    path.symlink_to(tmp_path / "elsewhere" / "journal")
    journal = PartyJournal(path, WHOSE, checkpoint_entries=1)
    fresh(journal).take(Wake(time_s=1.0))
    with pytest.raises(InputError, match="another process is writing it"):
        PartyJournal(path, WHOSE)
    journal.close()
    assert path.is_symlink()
    journal = PartyJournal(path, WHOSE)
    assert journal.checkpoint is not None
    journal.close()


def test_a_checkpoint_of_another_program_or_of_nothing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    served(path, 1)
    head, checkpoint, *_ = path.read_bytes().splitlines()

    def with_checkpoint(old: bytes, new: bytes) -> None:
        text = checkpoint[9:].replace(old, new, 1)
        assert text != checkpoint[9:]
        path.write_bytes(head + b"\n%08x %s\n" % (zlib.crc32(text), text))

    with_checkpoint(b'"version":"', b'"version":"9')
    with pytest.raises(InputError, match=r"its checkpoint is of aucsched 9\S+, this is \d"):
        PartyJournal(path, WHOSE)
    with_checkpoint(b'"running":{', b'"walking":{')
    journal = PartyJournal(path, WHOSE)
    with pytest.raises(InputError, match=r"its checkpoint cannot be read: machine: unknown member 'walking'"):
        fresh(journal)
    journal.close()
    path.write_bytes(b"\n".join([head, checkpoint, checkpoint, b""]))
    with pytest.raises(InputError, match="a checkpoint follows entries"):
        PartyJournal(path, WHOSE)


def test_a_batch_scheduler_s_state_is_read_back_with_its_tree(tmp_path: Path) -> None:
    """Settings, switches, what is known of runs: nothing of it is lost in a checkpoint."""
    settings = BatchSettings(
        mapper="auction",
        switches=(Switch(name="s", nodes=("n0", "n1", "n2", "n3")),),
        engine=Engine(strategy="anytime", work_limit=3),
    )
    state = BatchState(settings=settings, arrivals=ARRIVALS, known={"x": {2: (3, 1.5)}})
    journal = PartyJournal(tmp_path / "journal", WHOSE, checkpoint_entries=1)
    party = Party(state, ibsched.step, journal)
    party.take(Connect())
    journal.close()
    journal = PartyJournal(tmp_path / "journal", WHOSE)
    assert journal.checkpoint is not None
    assert journal.happened == ()
    assert Party(state, ibsched.step, journal).state == party.state
    journal.close()
