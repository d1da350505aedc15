"""Whatever slurmrestd answers, and whenever it goes: each command takes one road, nothing is sent twice."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support.fake_slurmrestd import MEMBERS, error, openapi

from aucsched.live.actions import Words
from aucsched.live.rest.hand import RestHand
from aucsched.live.rest.server import Answer, NoAnswerError, NotSentError, Server

#: What a POST may bring, and whether the update is surely not carried out then.
ANSWERS: dict[str, tuple[Any, bool]] = {
    "done": (Answer(status=200, document={"errors": []}), False),
    "refused": (Answer(status=500, document={"errors": [error(2018, "no")]}), False),
    "unreachable": (NotSentError("gone"), True),
    "lost": (NoAnswerError("lost"), False),
    "token": (Answer(status=401, document=None), True),
    "proxy": (Answer(status=502, document=None), False),
    "denied": (Answer(status=500, document={"errors": [error(2002, "denied")]}), True),
}
COMMANDS: tuple[Words, ...] = (
    ("update", "JobId=1", "Licenses=", "ReqNodeList=n1"),
    ("update", "JobId=2", "Licenses=", "NumCPUs=4"),
    ("update", "JobId=3_1", "Licenses="),
    ("create", "reservation", "ReservationName=aucsched-4"),
    ("update", "JobId=4", "Licenses=", "ReservationName=aucsched-4"),
    ("update", "ReservationName=auction_one", "EndTime=now+60"),
)


class Scripted(Server):
    """A slurmrestd whose answers are given before; it wears out where more is asked."""

    def __init__(self, version: str, answers: Sequence[str]) -> None:
        self.shown = "unix:/scripted"
        self._version, self._answers = version, list(answers)
        self.posted: list[tuple[str, str]] = []

    @contextmanager
    def talk(self) -> Iterator[Any]:
        """Yield itself: it answers."""
        yield self

    def ask(self, method: str, path: str, body: Any = None) -> Answer:
        """Answer as the script says."""
        if method == "GET":
            return Answer(status=200, document=openapi(self._version) if "openapi" in path else {})
        what = self._answers.pop(0) if self._answers else "done"
        self.posted.append((path.rpartition("/")[2], what))
        answer = ANSWERS[what][0]
        if isinstance(answer, Exception):
            raise answer
        json.dumps(body)
        assert isinstance(answer, Answer)
        return answer


@given(
    st.sampled_from(sorted(MEMBERS)),
    st.lists(st.lists(st.sampled_from(range(len(COMMANDS))), max_size=8), max_size=4),
    st.lists(st.sampled_from(sorted(ANSWERS)), max_size=12),
    st.lists(st.sampled_from((1.0, 70.0)), min_size=4, max_size=4),
)
def test_each_command_takes_one_road(
    version: str, calls: list[list[int]], answers: list[str], pauses: list[float]
) -> None:
    now, by_scontrol = [0.0], list[Words]()

    def other(commands: Sequence[Words]) -> tuple[str, ...]:
        by_scontrol.extend(commands)
        return ()

    server = Scripted(version, answers)
    hand = RestHand(server, other, tell=lambda _: None, clock=lambda: now[0])
    for call, pause in zip(calls, pauses, strict=False):
        commands = [COMMANDS[index] for index in call]
        before = len(server.posted)
        by_scontrol.clear()
        hand(commands)
        posts = server.posted[before:]
        # After the first that shows slurmrestd gone, or who asks refused, nothing more is posted.
        assert all(what in {"done", "refused"} for _, what in posts[:-1])
        settled = [job for job, what in posts if not ANSWERS[what][1]]
        expected = list(commands)
        for job in settled:
            expected.remove(next(one for one in expected if one[1] == f"JobId={job}"))
        assert by_scontrol == expected
        now[0] += pause
