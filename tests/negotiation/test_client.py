"""Applications and dynsched over a unix socket: ask, wait, give back, and come back after a loss."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier, Thread

import pytest

from aucsched import DynState, EvolvingClient
from aucsched.cluster.errors import InputError, NobodyError, OptionError
from aucsched.cluster.jobs import RunningJob
from aucsched.cluster.nodes import Node, Resources
from aucsched.cluster.snapshot import Snapshot
from aucsched.negotiation.evolving import dynamic_scheduler
from aucsched.negotiation.evolving.dynamic_scheduler import DynamicState
from aucsched.negotiation.evolving.fairness import Fairness, at_start
from aucsched.negotiation.evolving.iteration import Depths
from aucsched.negotiation.messages import DynStatus, NegotiationEnd
from aucsched.negotiation.transport.framing import PeerLostError
from aucsched.negotiation.transport.handshake import Identity, RefusedError
from aucsched.negotiation.transport.link import Connector, LinkLimits, address_of
from aucsched.negotiation.transport.listener import Listener
from aucsched.negotiation.transport.party import Party, PartyJournal
from aucsched.negotiation.transport.serve import TERMS, DynamicCodec, serve_applications


class Server:
    """dynsched in a thread: A and B hold one of three nodes each; time goes on as it is told."""

    def __init__(self, folder: Path, *, secret: bytes | None = None) -> None:
        self.address = f"unix:{folder}/socket"
        self.now = 0.0
        self._folder, self._secret = folder, secret

    @contextmanager
    def up(self) -> Iterator[Party[DynamicState]]:
        """Let it run."""
        full, none = Resources(cores=4), Resources(cores=0)
        snapshot = Snapshot(
            nodes=tuple(Node(name=f"n{n}", total=full, free=none if n < 2 else full) for n in range(3)),
            running=(
                RunningJob(id="A", nodes={"n0": full}, end_time=1000.0),
                RunningJob(id="B", nodes={"n1": full}, end_time=50.0),
            ),
            time=0.0,
        )
        state = DynamicState(
            snapshot=snapshot, fairness=Fairness(), depths=Depths(), accounts=at_start(Fairness(), 0.0)
        )
        identity = Identity(party="dynsched", terms=TERMS, notes={}, secret=self._secret)
        path = self._folder / "server.journal"
        journal = PartyJournal(path, {"party": "dynsched"}, checkpoint_entries=3)
        party = Party(state, dynamic_scheduler.step, journal, codec=DynamicCodec(state))
        link = Listener(address_of(self.address), identity, LinkLimits(), lambda _: None)
        is_over = [False]
        thread = Thread(
            target=serve_applications,
            args=(party, link, lambda: self.now, lambda _: None, lambda: is_over[0]),
        )
        thread.start()
        try:
            yield party
        finally:
            is_over[0] = True
            thread.join()
            link.close()
            journal.close()


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path)


def test_ask_wait_and_give_back(server: Server) -> None:
    with server.up() as party, EvolvingClient("A", server.address) as client:
        assert client.recover() is None
        first = client.request(cores=2)
        assert (first.state, first.nodes) == (DynState.GRANTED, {"n2": 2})
        waits = client.request(nodes=1, cores_per_node=4, timeout_s=60.0)
        assert (waits.state, waits.earliest_s) == (DynState.PENDING, 50.0)
        with pytest.raises(InputError, match="pending"):
            client.request(cores=1)
        server.now = 50.0
        answer = client.wait(poll_s=0.01)
        assert (answer.state, answer.nodes) == (DynState.GRANTED, {"n1": 4})
        left = client.release({"n1": 1, "n0": 4})
        assert left.held == {"n1": 3, "n2": 2}
        assert client.status().held == party.state.held("A") == left.held
        with pytest.raises(InputError):
            client.request(cores=1, nodes=1)


def test_threads_that_share_a_client_get_cores_of_their_own(server: Server) -> None:
    """Two messages of one number would be one to dynsched: both would hear of the same core."""
    together, granted = Barrier(4), Counter[str]()
    with server.up() as party, EvolvingClient("A", server.address) as client:
        client.request(cores=1)

        def ask() -> None:
            together.wait()
            granted.update(client.request(cores=1).nodes)

        threads = [Thread(target=ask) for _ in range(together.parties)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert granted == {"n2": 3}
        assert party.state.held("A") == {"n0": 4, "n2": 4}


def test_values_of_another_type_are_refused_before_anything_is_said(server: Server) -> None:
    with EvolvingClient("A", server.address, wait_s=0) as client:
        with pytest.raises(OptionError, match=r"^cores: '4' is not an integer$"):
            client.request(cores="4")  # type: ignore[arg-type]
        with pytest.raises(OptionError, match=r"^nodes: 'n0' is not a mapping$"):
            client.release("n0")  # type: ignore[arg-type]
        with pytest.raises(OptionError, match=r"^nodes\.n0: 1\.5 is not an integer$"):
            client.release({"n0": 1.5})  # type: ignore[dict-item]
    with pytest.raises(OptionError, match=r"^secret: it is not of bytes$"):
        EvolvingClient("A", server.address, secret="")  # type: ignore[arg-type]


def test_a_request_that_runs_out_of_time(server: Server) -> None:
    with server.up(), EvolvingClient("A", server.address) as client:
        assert client.request(cores=8, timeout_s=20.0).state is DynState.PENDING
        server.now = 20.0
        assert client.wait(poll_s=0.01).state is DynState.REFUSED
        assert client.request(cores=4).state is DynState.GRANTED


def test_both_processes_come_back(server: Server, tmp_path: Path) -> None:
    journal = tmp_path / "a.journal"
    with server.up(), EvolvingClient("A", server.address, journal=journal) as client:
        granted = client.request(cores=3)
        waits = client.request(cores=4, timeout_s=500.0)
        assert waits.state is DynState.PENDING
    server.now = 60.0
    with server.up() as party:
        with EvolvingClient("A", server.address, journal=journal) as client:
            assert client.recover() == waits
            answer = client.wait()
            assert answer.state is DynState.GRANTED
            assert sum(answer.held.values()) == 4 + 3 + 4
        with EvolvingClient("A", server.address) as client:
            # Without a journal the numbers go on from what dynsched heard.
            assert client.request(cores=1).serial == answer.serial + 1
        assert sum(party.state.held("A").values()) == 12
        assert granted.nodes


def test_a_message_without_its_answer_is_said_again(server: Server, tmp_path: Path) -> None:
    journal = tmp_path / "a.journal"
    with pytest.raises(NobodyError), EvolvingClient("A", server.address, journal=journal, wait_s=0.1) as gone:
        gone.request(cores=3)
    with server.up() as party:
        with EvolvingClient("A", server.address, journal=journal) as client:
            client.request(cores=3)
        text = journal.read_bytes().splitlines(keepends=True)
        # Killed before the answer was noted.
        journal.write_bytes(b"".join(text[:-1]))
        for _ in range(2):
            with EvolvingClient("A", server.address, journal=journal) as client:
                answer = client.recover()
                assert answer is not None
                assert answer.state is DynState.GRANTED
        assert sum(party.state.held("A").values()) == 7


def test_a_journal_is_one_jobs(server: Server, tmp_path: Path) -> None:
    journal = tmp_path / "a.journal"
    EvolvingClient("A", server.address, journal=journal).close()
    with pytest.raises(InputError, match="job 'A'"):
        EvolvingClient("B", server.address, journal=journal)
    held = EvolvingClient("A", server.address, journal=journal)
    with pytest.raises(InputError, match="another application"):
        EvolvingClient("A", server.address, journal=journal)
    held.close()


def test_the_secret(tmp_path: Path) -> None:
    server = Server(tmp_path, secret=b"right")
    with server.up():
        with EvolvingClient("A", server.address, secret=b"right") as client:
            assert client.request(cores=1).state is DynState.GRANTED
        for wrong in (b"wrong", None):
            client = EvolvingClient("A", server.address, secret=wrong, wait_s=1.0)
            with client, pytest.raises(RefusedError):
                client.status()


def test_no_party_of_a_negotiation_is_taken_for_an_application(server: Server) -> None:
    identity = Identity(party="ibsched", terms={"workload": "esp"}, notes={})
    with server.up():
        with pytest.raises(RefusedError, match="protocol"):
            Connector(address_of(server.address), identity, LinkLimits(wait_s=1.0)).open()
        with EvolvingClient("A", server.address) as client:
            assert client.request(cores=1).state is DynState.GRANTED


def test_what_may_not_come_is_refused_and_others_are_served(server: Server) -> None:
    identity = Identity(party="application", terms=TERMS, notes={})
    with server.up():
        for message in (NegotiationEnd(), DynStatus(job="")):
            transport, _ = Connector(address_of(server.address), identity, LinkLimits(wait_s=1.0)).open()
            transport.send(message)
            with pytest.raises(PeerLostError, match="refuses"):
                transport.receive(5.0)
            transport.close()
        with EvolvingClient("A", server.address) as client:
            assert client.request(cores=1).state is DynState.GRANTED


def test_many_applications_at_once(server: Server) -> None:
    with server.up() as party:
        clients = [EvolvingClient("A", server.address), EvolvingClient("B", server.address)]

        def grow(client: EvolvingClient) -> None:
            for _ in range(10):
                answer = client.request(cores=2)
                if answer.state is DynState.GRANTED:
                    time.sleep(0.002)
                    client.release(answer.nodes)

        threads = [Thread(target=grow, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert party.state.held("A") == {"n0": 4}
        assert party.state.held("B") == {"n1": 4}
        for client in clients:
            client.close()
