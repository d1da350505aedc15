"""What both ends of a socket say before the first message, and how each proves its secret.

::

    who connects                         who listens
    HELLO   version, party, nonce   ──▶
                                    ◀──  HELLO
    PROOF   keyed digest            ──▶  (or REFUSAL, at any point, by either)
                                    ◀──  PROOF

A proof is HMAC-SHA-256 under the shared secret over the prover's party and both hellos as sent:
nonces make it good for this connection only, the party keeps others from sending a proof back.
Without a secret on either side the proofs are empty. Messages are neither encrypted nor signed.
"""

import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from ...cluster.errors import AucschedError, InputError
from ..messages import PROTOCOL_VERSION
from .framing import decoded, one_line

PartyName = Literal["ibsched", "irtsched", "dynsched", "application"]
_NONCE_BYTES = 32
_REFUSAL = b'"REFUSAL"'


class RefusedError(AucschedError):
    """This party or the other will not negotiate, and would not if asked again."""


class RefusedByOtherError(RefusedError):
    """The other end has refused: there is nothing left to tell it."""


class HandshakeBase(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="message"
):
    """A frame of a handshake; its ``message`` member names its kind."""


class Rejection(HandshakeBase, frozen=True, tag="REFUSAL"):
    """The sender closes the connection, and says why."""

    text: str


class Hello(HandshakeBase, frozen=True, tag="HELLO"):
    """The first frame of either side.

    Attributes:
        version: of the protocol.
        party: what the sender is.
        nonce: random, in hexadecimal.
        has_secret: whether it proves a secret and wants one proved.
        terms: what both must say alike, by name.
        notes: what else the other may want to know, by name.
    """

    version: int
    party: PartyName
    nonce: str
    has_secret: bool
    terms: dict[str, str] = {}
    notes: dict[str, str] = {}


class Proof(HandshakeBase, frozen=True, tag="PROOF"):
    """The keyed digest, in hexadecimal; empty without a secret."""

    digest: str


class _Versioned(msgspec.Struct, frozen=True, kw_only=True):
    """What every version's hello has."""

    message: str
    version: int


@dataclass(frozen=True, kw_only=True)
class Identity:
    """What a party says of itself. ``secret`` is in no text, message or journal.

    Attributes:
        party: what it is.
        terms, notes: see Hello.
        secret: shared with the other, None: none is asked for.
        check_notes: raises InputError or OptionError at notes of the other that cannot be.
    """

    party: PartyName
    terms: dict[str, str]
    notes: dict[str, str]
    secret: bytes | None = None
    check_notes: Callable[[Mapping[str, str]], object] | None = None

    def __repr__(self) -> str:
        return f"Identity({self.party})"

    def hello(self) -> bytes:
        """Return a hello for a new connection."""
        return msgspec.json.encode(
            Hello(
                version=PROTOCOL_VERSION,
                party=self.party,
                nonce=secrets.token_hex(_NONCE_BYTES),
                has_secret=self.secret is not None,
                terms=self.terms,
                notes=self.notes,
            )
        )

    def met(self, text: bytes) -> Hello:
        """Return the other's hello.

        Raises:
            RefusedError: it is none, of another version, of the same party, on other terms, or its
                notes cannot be.
        """
        try:
            version = decoded(text, _Versioned).version
            hello = decoded(text, Hello) if version == PROTOCOL_VERSION else None
        except InputError as error:
            raise RefusedError(f"what came is not a hello of aucsched: {error}") from error
        if hello is None:
            raise RefusedError(f"version {version} is not {PROTOCOL_VERSION}")
        self._check(hello)
        return hello

    def _check(self, hello: Hello) -> None:
        if hello.party == self.party:
            raise RefusedError(f"both parties are {self.party}")
        if len(hello.nonce) != 2 * _NONCE_BYTES:
            raise RefusedError(f"a nonce of {len(hello.nonce)} digits is not one of {2 * _NONCE_BYTES}")
        if hello.has_secret != (self.secret is not None):
            who = (hello.party, self.party) if hello.has_secret else (self.party, hello.party)
            raise RefusedError(f"{who[0]} asks for a shared secret, and {who[1]} has none")
        for name in sorted({*self.terms, *hello.terms}):
            mine, theirs = self.terms.get(name, "none"), hello.terms.get(name, "none")
            if mine != theirs:
                raise RefusedError(one_line(f"{name}: {self.party} has {mine}, {hello.party} has {theirs}"))
        try:
            if self.check_notes is not None:
                self.check_notes(hello.notes)
        except Exception as error:
            # Whatever its notes do to what reads them, they are an unauthenticated peer's.
            raise RefusedError(one_line(f"the notes of {hello.party}: {error}")) from error

    def proof(self, mine: bytes, theirs: bytes) -> bytes:
        """Return the proof that follows the two hellos."""
        return msgspec.json.encode(Proof(digest=self._digest(self.party, mine, theirs)))

    def check_proof(self, text: bytes, other: Hello, mine: bytes, theirs: bytes) -> None:
        """Refuse what does not prove the secret.

        Raises:
            RefusedError: the other does not have it.
        """
        try:
            proof = decoded(text, Proof)
        except InputError as error:
            raise RefusedError(f"what came is not a proof: {error}") from error
        if not hmac.compare_digest(proof.digest.encode(), self._digest(other.party, theirs, mine).encode()):
            raise RefusedError("the shared secrets differ")

    def _digest(self, prover: PartyName, first: bytes, second: bytes) -> str:
        if self.secret is None:
            return ""
        parts = (prover.encode(), hashlib.sha256(first).digest(), hashlib.sha256(second).digest())
        return hmac.new(self.secret, b"\0".join(parts), hashlib.sha256).hexdigest()


class Handshake:
    """One end's part, without a socket: payloads in, payloads out.

    Args:
        identity: this party's.
        first: whether this end speaks first, as who connects does.

    Attributes:
        mine: this party's hello: who speaks first sends it before anything comes.
        hello: the other's, None until it has come.
        is_done: whether the other has proved the secret.
    """

    def __init__(self, identity: Identity, *, first: bool) -> None:
        self.hello: Hello | None = None
        self.is_done = False
        self._identity, self._first = identity, first
        self.mine, self._theirs = identity.hello(), b""

    def heard(self, payload: bytes) -> bytes | None:
        """Take a payload, and return what to send.

        Raises:
            RefusedByOtherError: it is a refusal.
            RefusedError: it is not what may come.
        """
        if (refusal := refusal_in(payload)) is not None:
            raise RefusedByOtherError(refusal)
        if self.hello is None:
            self.hello, self._theirs = self._identity.met(payload), payload
            return self._identity.proof(self.mine, payload) if self._first else self.mine
        self._identity.check_proof(payload, self.hello, self.mine, self._theirs)
        self.is_done = True
        return None if self._first else self._identity.proof(self.mine, self._theirs)


def refusal_in(text: bytes) -> str | None:
    """Return that the other refuses, and why, in a line; None when a frame is no refusal."""
    if _REFUSAL not in text:
        return None
    try:
        return f"the other party refuses: {one_line(decoded(text, Rejection).text)}"
    except InputError:
        return None
