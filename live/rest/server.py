"""A slurmrestd, by a unix socket or a URL, asked over one connection a pass."""

from __future__ import annotations

import base64
import json
import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ...cluster.errors import AucschedError, InputError, OptionError
from ..metrics import is_loopback

#: slurmrestd itself gives slurmctld up after MessageTimeout, 10 s by default.
_TIMEOUT_S = 15.0
_MOST_BYTES = 2**25
_TOKEN = re.compile(r"[\w.~+/=-]{1,16384}", re.ASCII)
_PLAIN = re.compile(r"[!-~]+")
_USER = re.compile(r"[\w.@+-]{1,64}", re.ASCII)
_ENVIRONMENT = "SLURM_JWT"


class NotSentError(AucschedError):
    """Nobody was asked anything: nothing was changed."""


class NoAnswerError(AucschedError):
    """An answer was lost: whether anything was changed is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a slurmrestd listens.

    Attributes:
        shown: as the user gave it.
        socket: a unix socket's path, empty for none.
        prefix: what stands before each path, where a proxy has it.
    """

    shown: str
    socket: str = ""
    host: str = ""
    port: int = 0
    is_tls: bool = False
    prefix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What was answered.

    Attributes:
        status: HTTP's.
        document: the decoded JSON, None where it is none.
        text: the beginning of what is no JSON.
    """

    status: int
    document: Any
    text: str = ""


def read_address(text: str) -> Address:
    """Return an address: ``unix:/run/slurmrestd.sock``, ``http://127.0.0.1:6820``, ``https://host/prefix``.

    Raises:
        OptionError: it is none, or a token would go over the network as it stands.
    """
    if text.startswith("unix:"):
        path = text.removeprefix("unix:").removeprefix("//")
        if not path.startswith("/") or "\0" in path:
            raise OptionError(f"--rest: {text!r} names no absolute path of a socket")
        return Address(shown=text, socket=path)
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise OptionError(f"--rest: {text!r}: {error}") from error
    more = parts.query or parts.fragment or parts.username or parts.password
    if parts.scheme not in {"http", "https"} or not host or more or not _PLAIN.fullmatch(text):
        raise OptionError(f"--rest: {text!r} is neither unix:/PATH nor http(s)://HOST:PORT")
    if parts.scheme == "http" and not is_loopback(host):
        raise OptionError(f"--rest: {text!r}: a token would go over the network as it stands: use https")
    is_tls = parts.scheme == "https"
    default = 443 if is_tls else 80
    return Address(shown=text, host=host, port=port or default, is_tls=is_tls, prefix=parts.path.rstrip("/"))


def token_of(address: Address, file: Path | None) -> Callable[[], str]:
    """Return what gives the token of the moment: a file's, read anew each time, or SLURM_JWT's.

    A unix socket knows who asks; it gets a token only from a file.

    Raises:
        OptionError: a URL is asked without a token.
        InputError: the file cannot be read, or holds none.
    """
    if file is not None:

        def read() -> str:
            try:
                return _checked(file.read_text(encoding="utf-8").strip(), str(file))
            except (OSError, UnicodeDecodeError) as error:
                raise InputError(f"cannot be read: {error}", file=str(file)) from error

        read()
        return read
    if address.socket:
        return lambda: ""
    if not os.environ.get(_ENVIRONMENT):
        raise OptionError(f"--rest {address.shown}: needs --rest-token, or {_ENVIRONMENT} in the environment")
    token = _checked(os.environ[_ENVIRONMENT].strip(), _ENVIRONMENT)
    return lambda: token


def _checked(token: str, place: str) -> str:
    """Return a token; what is none is not shown."""
    if not _TOKEN.fullmatch(token):
        raise InputError("holds no token", file=place)
    return token


def _user_of(token: str) -> str:
    """Return whom a token of scontrol's names, empty where that cannot be read."""
    payload = token.split(".")[1] if token.count(".") == 2 else ""  # noqa: PLR2004 - head, claims, signature
    try:
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except ValueError:
        return ""
    user = claims.get("sun") if isinstance(claims, dict) else None
    return user if isinstance(user, str) and _USER.fullmatch(user) else ""


class _UnixConnection(HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Talk:
    """Requests over one connection, which is made anew where the server ends it after an answer."""

    def __init__(self, connection: HTTPConnection, headers: Mapping[str, str], prefix: str) -> None:
        self._connection = connection
        self._headers = headers
        self._prefix = prefix

    def ask(self, method: str, path: str, body: Any = None) -> Answer:
        """Return the answer to one request, which is sent once.

        Raises:
            NotSentError: there is no connection.
            NoAnswerError: the connection ended, or time was up, before the answer was there.
        """
        headers = dict(self._headers)
        content = None
        if body is not None:
            content = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        self._connect()
        try:
            self._connection.request(method, self._prefix + path, body=content, headers=headers)
            return _answer(self._connection.getresponse())
        except (OSError, HTTPException) as error:
            self._connection.close()
            raise NoAnswerError(f"{type(error).__name__}: {error}") from error

    def _connect(self) -> None:
        if self._connection.sock is not None:
            return
        try:
            self._connection.connect()
        except OSError as error:
            self._connection.close()
            raise NotSentError(str(error) or type(error).__name__) from error


def _answer(response: HTTPResponse) -> Answer:
    content = response.read(_MOST_BYTES)
    try:
        return Answer(status=response.status, document=json.loads(content))
    except ValueError:
        text = content[:200].decode(errors="replace").strip()
        return Answer(status=response.status, document=None, text=text or response.reason)


class Server:
    """A slurmrestd.

    Args:
        address: where it listens.
        token: gives the token of the moment, empty for none.
        timeout_s: an answer that is not there by then is lost.
    """

    def __init__(self, address: Address, token: Callable[[], str], timeout_s: float = _TIMEOUT_S) -> None:
        self.shown = address.shown
        self._address = address
        self._token = token
        self._timeout_s = timeout_s

    @contextmanager
    def talk(self) -> Iterator[Talk]:
        """Yield what asks over one connection, made when the first request is.

        Raises:
            InputError: the token cannot be read.
        """
        token = self._token()
        named = {"X-SLURM-USER-NAME": user} if (user := _user_of(token)) else {}
        headers = {"X-SLURM-USER-TOKEN": token, **named} if token else {}
        connection = self._connection()
        try:
            yield Talk(connection, headers, self._address.prefix)
        finally:
            connection.close()

    def _connection(self) -> HTTPConnection:
        at = self._address
        if at.socket:
            return _UnixConnection(at.socket, self._timeout_s)
        kind = HTTPSConnection if at.is_tls else HTTPConnection
        return kind(at.host, at.port, timeout=self._timeout_s)
