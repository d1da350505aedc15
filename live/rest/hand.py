"""The hand that uses slurmrestd: one POST for each update that it can say, one scontrol for all others.

An update goes one road as a whole. What surely was not carried out (no connection, no right, not understood)
goes by scontrol in the same pass. What may have been carried out is not sent again: the look after the
changes says what became of it. After either, slurmrestd is left alone for a minute and scontrol does it all.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from ...cluster.errors import AucschedError, InputError
from ..actions import Words
from ..hands import Hand
from .api import Api, Post, read_api
from .judging import WELL, Outcome, judged
from .server import NoAnswerError, NotSentError, Server, Talk

_SCHEMAS = ("/openapi/v3", "/openapi.json")
#: Left alone for so long after it failed.
_REST_S = 60.0
#: A pass's posts take no longer, whatever the time of each: scontrol has the others.
_MOST_S = 30.0


def asked_api(server: Server) -> Api:
    """Return what a slurmrestd can say, which it tells itself.

    Raises:
        InputError: it does not answer, refuses who asks, or tells nothing that can be used.
    """
    try:
        with server.talk() as talk:
            api = _api(talk)
            outcome, why = judged(talk.ask("GET", f"/slurm/v{api.version}/ping"))
    except (NotSentError, NoAnswerError) as error:
        raise InputError(f"does not answer: {error}", file=server.shown) from error
    except InputError as error:
        raise error.in_file(server.shown) from error
    if outcome is not Outcome.DONE:
        raise InputError(why, file=server.shown)
    return api


def _api(talk: Talk) -> Api:
    answer = talk.ask("GET", _SCHEMAS[0])
    for path in _SCHEMAS[1:]:
        if answer.status != 404:  # noqa: PLR2004 - HTTP's "not found"
            break
        answer = talk.ask("GET", path)
    if answer.status not in WELL:
        raise InputError(judged(answer)[1])
    return read_api(answer.document)


def told(api: Api) -> str:
    """Return in words what a slurmrestd says and what stays scontrol's."""
    more = ", ".join(api.lacking)
    left = f"updates with {more}, reservations" if more else "reservations"
    return f"updates of jobs by v{api.version}; by scontrol: {left}, tasks of arrays"


class RestHand:
    """Carries out commands by slurmrestd where it can say them, by another hand where not.

    Args:
        server: the slurmrestd.
        other: the hand for all else.
        tell: takes a line where the road changes.
        show: takes each request where they are shown only.
        clock: seconds that only go on.
    """

    def __init__(
        self,
        server: Server,
        other: Hand,
        *,
        tell: Callable[[str], None],
        show: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._server = server
        self._other = other
        self._tell = tell
        self._show = show
        self._clock = clock
        self._api: Api | None = None
        self._again_at = clock()

    def meet(self) -> None:
        """Ask what it can say, where that is not known and it is not left alone; a failure is told."""
        if self._api is not None or self._clock() < self._again_at:
            return
        try:
            self._api = asked_api(self._server)
        except AucschedError as error:
            self._leave(str(error))
        else:
            self._tell(f"slurmrestd {self._server.shown}: {told(self._api)}")

    def _leave(self, why: str) -> str:
        """Leave it alone for a while."""
        self._api = None
        self._again_at = self._clock() + _REST_S
        text = f"slurmrestd: {why}: scontrol changes jobs, asked again in {_REST_S:.0f} s"
        self._tell(text)
        return text

    def __call__(self, commands: Sequence[Words]) -> tuple[str, ...]:
        """Carry out commands; return what was said of those refused and of those whose state is not known."""
        if not any(words[1:2] and words[1].startswith("JobId=") for words in commands):
            return self._other(commands)
        self.meet()
        api = self._api
        posts = {} if api is None else {index: api.post(words) for index, words in enumerate(commands)}
        settled, said = self._posted({index: post for index, post in posts.items() if post is not None})
        left = [words for index, words in enumerate(commands) if index not in settled]
        return (*said, *(self._other(left) if left else ()))

    def _posted(self, posts: Mapping[int, Post]) -> tuple[set[int], list[str]]:
        """Send posts in order; return which of them may have been carried out, and what was said."""
        settled: set[int] = set()
        said: list[str] = []
        try:
            for index, post, outcome, why in self._outcomes(posts):
                if outcome is not Outcome.NOT_DONE:
                    settled.add(index)
                if outcome in {Outcome.REFUSED, Outcome.UNKNOWN}:
                    said.append(f"job {post.job}: {outcome.value}: {why}")
                if outcome in {Outcome.NOT_DONE, Outcome.UNKNOWN}:
                    said.append(self._leave(why))
                    break
        except InputError as error:
            said.append(self._leave(str(error)))
        return settled, said

    def _outcomes(self, posts: Mapping[int, Post]) -> Iterator[tuple[int, Post, Outcome, str]]:
        """Send posts one by one, until their time is up, and yield what became of each."""
        if self._show is not None:
            for index, post in posts.items():
                self._show(f"POST {post.path} {json.dumps(post.body)}")
                yield index, post, Outcome.DONE, ""
            return
        end = self._clock() + _MOST_S
        with self._server.talk() as talk:
            for index, post in posts.items():
                if self._clock() > end:
                    yield index, post, Outcome.NOT_DONE, f"posts took {_MOST_S:.0f} s"
                    return
                yield index, post, *_sent(talk, post)


def _sent(talk: Talk, post: Post) -> tuple[Outcome, str]:
    try:
        return judged(talk.ask("POST", post.path, post.body))
    except NotSentError as error:
        return Outcome.NOT_DONE, f"does not answer: {error}"
    except NoAnswerError as error:
        return Outcome.UNKNOWN, f"no answer: {error}"
