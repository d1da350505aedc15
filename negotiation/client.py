"""For applications: ask a dynsched process for more cores while you run, and give them back.

::

    from aucsched import DynState, EvolvingClient

    client = EvolvingClient("job 17", "unix:/run/dynsched", journal="job-17.journal")
    answer = client.request(cores=4, timeout_s=60)
    if answer.state is DynState.PENDING:
        answer = client.wait()          # granted, or refused once its time is over
    ...                                 # compute on answer.held
    client.release(answer.nodes)

Every message is said once, whichever side is killed in between.
"""

from collections.abc import Mapping
from pathlib import Path
from threading import RLock
from time import monotonic, sleep
from typing import Self

import msgspec

from ..cluster.errors import InputError, NobodyError, OptionError
from ..cluster.keywords import of_type
from ..formats.checked_lines import CheckedLines
from .message_rules import check
from .messages import DynRelease, DynRequest, DynResponse, DynState, DynStatus, Message
from .transport.framing import PeerLostError
from .transport.handshake import Identity
from .transport.link import Connector, LinkLimits, address_of
from .transport.serve import TERMS

FORMAT = "aucsched-application-journal/1"
_POLL_S = 0.2


class _Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A line of the journal: whose it is, what is about to be said, or what was answered."""

    format: str = ""
    job: str = ""
    said: DynRequest | DynRelease | None = None
    answer: DynResponse | None = None


class EvolvingClient:
    """The connection by which a running job asks for more and gives back.

    Each message has a number, is kept before it is sent, and is sent again until answered: dynsched
    acts on it once. After a kill a process continues with ``recover``. Threads may share a client.

    Args:
        job: its name, as dynsched knows it.
        address: where dynsched listens: ``unix:PATH`` or ``HOST:PORT``.
        secret: shared with dynsched.
        journal: file that outlives this process; None: numbers go on from what dynsched heard last.
        wait_s: how long dynsched may stay away.

    Raises:
        InputError: the journal is another job's, damaged or in use.
        OptionError: the address cannot be used, or a value is of another type, also in the calls.
        NobodyError: dynsched does not answer for ``wait_s`` seconds.

    >>> with EvolvingClient("job 17", "unix:/run/dynsched", wait_s=0) as client:
    ...     client.request(cores=4)
    Traceback (most recent call last):
    aucsched.cluster.errors.NobodyError: unix:/run/dynsched: No such file or directory, for 0 s
    """

    def __init__(
        self,
        job: str,
        address: str,
        *,
        secret: bytes | None = None,
        journal: str | Path | None = None,
        wait_s: float = 60.0,
    ) -> None:
        if not isinstance(secret, bytes | None):
            raise OptionError("secret: it is not of bytes")
        self.job = job
        self._lock = RLock()
        identity = Identity(party="application", terms=TERMS, notes={}, secret=secret)
        self._link = Connector(address_of(address), identity, LinkLimits(timeout_s=30.0, wait_s=wait_s))
        self._wait_s = wait_s
        self._serial: int | None = None
        self._open: DynRequest | DynRelease | None = None
        self._last: DynResponse | None = None
        self._lines: CheckedLines | None = None
        if journal is not None:
            kind = "journal of an application"
            self._lines = CheckedLines(Path(journal), kind=kind, owner="application")
            try:
                self._read(self._lines)
            except BaseException:
                self._lines.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the journal go."""
        if self._lines is not None:
            self._lines.close()
            self._lines = None

    # What an application says.

    def request(
        self,
        *,
        cores: int | None = None,
        nodes: int | None = None,
        cores_per_node: int | None = None,
        timeout_s: float = 0.0,
    ) -> DynResponse:
        """Ask for more cores, or for nodes with that many cores each (tm_dynget).

        Args:
            cores: on any nodes; or
            nodes: as many that the job has not, with
            cores_per_node: on each.
            timeout_s: how long the request may wait; 0: granted or refused at once.

        Returns:
            The answer: granted, pending (see ``wait``) or refused; ``earliest_s`` says when the
            resources could be there, on the clock of ``time_s``, where that is known.

        Raises:
            InputError: it asks for nothing, or for both; or a message before it is still open.
            NobodyError: dynsched stays away.
        """
        counts = {"cores": cores, "nodes": nodes, "cores_per_node": cores_per_node}
        counts = {name: of_type(name, count, int | None) for name, count in counts.items()}
        timeout_s = of_type("timeout_s", timeout_s, float)
        with self._lock:
            return self._said(DynRequest(job=self.job, serial=self._next(), timeout_s=timeout_s, **counts))

    def release(self, nodes: Mapping[str, int]) -> DynResponse:
        """Give back cores by node, any of the job's (tm_dynfree); giving them all ends the job."""
        held = {
            name: of_type(f"nodes.{name}", cores, int)
            for name, cores in of_type("nodes", nodes, Mapping).items()
        }
        with self._lock:
            return self._said(DynRelease(job=self.job, serial=self._next(), nodes=held))

    def wait(self, *, poll_s: float = _POLL_S) -> DynResponse:
        """Wait for the request that is pending: it is granted, or its time is over."""
        while (answer := self._again()).state is DynState.PENDING:
            sleep(poll_s)
        return answer

    def status(self) -> DynResponse:
        """Return what the job holds."""
        return self._exchange(DynStatus(job=self.job))

    def recover(self) -> DynResponse | None:
        """Return the last answer, after a message that was under way when this process was killed.

        None: nothing was ever said. What is pending stays pending.
        """
        if self._open is not None and (self._last is None or self._last.serial != self._open.serial):
            return self._again()
        return self._last

    # How.

    def _next(self) -> int:
        if self._last is not None and self._last.state is DynState.PENDING:
            raise InputError("the request before is still pending", path="serial")
        if self._serial is None:
            self._serial = self.status().serial
        return self._serial + 1

    def _said(self, message: DynRequest | DynRelease) -> DynResponse:
        check(message)
        self._note(_Line(said=message))
        self._serial, self._open = message.serial, message
        return self._again()

    def _again(self) -> DynResponse:
        with self._lock:
            if self._open is None:
                raise InputError("nothing was asked for", path="serial")
            answer = self._exchange(self._open)
            if answer.state is not DynState.PENDING or self._last != answer:
                self._note(_Line(answer=answer))
            self._last = answer
            return answer

    def _exchange(self, message: Message) -> DynResponse:
        """Say something and return the answer, over as many connections as it takes."""
        until = monotonic() + self._wait_s
        while True:
            transport, _ = self._link.open(max(0.0, until - monotonic()))
            try:
                transport.send(message)
                answer = transport.receive()
            except PeerLostError as lost:
                if "refuses" in str(lost):
                    raise InputError(str(lost), path=self.job) from lost
                if monotonic() >= until:
                    raise NobodyError(str(lost)) from lost
                continue
            finally:
                transport.close()
            if not isinstance(answer, DynResponse) or answer.job != self.job:
                raise InputError(f"{type(answer).__name__} is not an answer to {self.job}", path="message")
            return answer

    def _note(self, line: _Line) -> None:
        if self._lines is not None:
            self._lines.append(msgspec.json.encode(line))

    def _read(self, lines: CheckedLines) -> None:
        if not lines.held:
            self._note(_Line(format=FORMAT, job=self.job))
        for number, line in enumerate(lines.decoded(_Line)):
            if not number and (line.format, line.job) != (FORMAT, self.job):
                raise lines.error(f"it is {line.format!r} of job {line.job!r}, not of {self.job!r}")
            if line.said is not None:
                self._open, self._serial = line.said, line.said.serial
            if line.answer is not None:
                self._last = line.answer
