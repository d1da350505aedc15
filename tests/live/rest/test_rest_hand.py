"""The hand that uses slurmrestd: what goes which road, and what becomes of answers that are lost or bad."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.fake_slurmrestd import FakeRest, error, listening
from support.gated_slurm import FakeJob, FakeSlurm, loop_on

from aucsched.cluster.errors import InputError, OptionError
from aucsched.live.actions import Words
from aucsched.live.hands import Hand, Shown
from aucsched.live.loop import Loop
from aucsched.live.marks import Carrier
from aucsched.live.plan import Rules
from aucsched.live.rest.hand import RestHand, asked_api, told
from aucsched.live.rest.judging import Outcome, judged
from aucsched.live.rest.server import Answer, Server, read_address, token_of

DONE, REFUSED, NOT_DONE, UNKNOWN = Outcome.DONE, Outcome.REFUSED, Outcome.NOT_DONE, Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("status", "document", "outcome"),
    [
        (200, {"errors": []}, DONE),
        # As 22.05.8 answers an update of an array that it carried out.
        (200, {"errors": [{"description": "job array update failed", "source": "_parse"}]}, DONE),
        (
            200,
            {"errors": [{"description": 'Unknown key "x"'}, error(9001, "Failure during parsing")]},
            NOT_DONE,
        ),
        (500, {"errors": [error(2017, "Invalid job id specified")]}, REFUSED),
        (200, {"errors": [error(2017, "Invalid job id specified")]}, REFUSED),
        (500, {"errors": [error(2002, "Access/permission denied")]}, NOT_DONE),
        (500, {"errors": [error(1800, "Unable to contact slurm controller")]}, UNKNOWN),
        (500, {"errors": [error(9001, "a"), error(1800, "b"), error(2017, "c")]}, UNKNOWN),
        (200, {"results": [{"job_id": 17, "error_code": 2018, "why": "nodes"}], "errors": []}, REFUSED),
        (200, {"results": [{"job_id": 17, "error_code": 0}]}, DONE),
        (401, None, NOT_DONE),
        (401, {"errors": [error(1007, "Protocol authentication error")]}, NOT_DONE),
        (404, None, NOT_DONE),
        (400, None, NOT_DONE),
        (500, None, UNKNOWN),
        (502, None, UNKNOWN),
        (302, None, UNKNOWN),
        (200, None, UNKNOWN),
        (200, [], UNKNOWN),
    ],
)
def test_what_an_answer_says(status: int, document: object, outcome: Outcome) -> None:
    assert judged(Answer(status=status, document=document, text="said"))[0] is outcome


@dataclass
class Scene:
    """A fake cluster behind a fake slurmrestd, the hand between, and a loop over them."""

    rest: FakeRest
    path: Path
    told: list[str] = field(default_factory=list)
    daemon: ExitStack = field(default_factory=ExitStack)

    @property
    def fake(self) -> FakeSlurm:
        """The cluster."""
        return self.rest.cluster

    def begin(self) -> None:
        """Let slurmrestd listen."""
        self.daemon.enter_context(listening(self.rest, self.path))

    def end(self) -> None:
        """Let slurmrestd go."""
        self.daemon.close()

    def server(self, token: Path | None = None) -> Server:
        """Return what asks it."""
        address = read_address(f"unix:{self.path}")
        return Server(address, token_of(address, token), timeout_s=0.2)

    def hand(
        self,
        token: Path | None = None,
        other: Hand | None = None,
        show: Callable[[str], None] | None = None,
    ) -> RestHand:
        """Return the hand, on the cluster's clock."""
        return RestHand(
            self.server(token),
            other or self.fake.hand,
            tell=self.told.append,
            show=show,
            clock=lambda: self.fake.now,
        )

    def loop(self, token: Path | None = None) -> Loop:
        """Return a loop that marks jobs in their comments, which 22.05's slurmrestd can write."""
        return loop_on(self.fake, hand=self.hand(token), rules=Rules(carrier=Carrier.COMMENT))

    def by_scontrol(self) -> list[str]:
        """Return the jobs whose updates scontrol was given."""
        return [words[1].partition("=")[2] for words in self.fake.sent if words[1].startswith("JobId=")]

    def submit(self, count: int = 3) -> list[FakeJob]:
        """Submit jobs of whole nodes: their pins are what 22.05 can say."""
        return [self.fake.submit(1, exclusive=True, priority=90 - number) for number in range(count)]

    def run(self, loop: Loop, passes: int = 8) -> None:
        """Run passes each 10 s."""
        for _ in range(passes):
            loop.one_pass()
            for _ in range(10):
                self.fake.tick()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(rest=FakeRest(FakeSlurm(nodes={f"n{n}": "idle" for n in range(4)})), path=tmp_path / "rest")
    made.begin()
    yield made
    made.end()


def each_ran_once_where_logged(fake: FakeSlurm) -> None:
    for job in fake.jobs.values():
        lines = [
            one for one in fake.events("intend") if one["job"] == str(job.number) and one["kind"] == "pin"
        ]
        assert job.state == "COMPLETED"
        assert len(job.starts) == 1
        assert job.starts[0] in {tuple(sorted(one["nodes"])) for one in lines}
    assert not fake.events("misplaced")


def test_pins_that_the_schema_can_say_go_by_slurmrestd_and_all_else_by_scontrol(scene: Scene) -> None:
    whole, even, uneven = (
        scene.fake.submit(1, exclusive=True),
        scene.fake.submit(4),
        scene.fake.submit(3, least=2),
    )
    loop = scene.loop()
    assert loop.one_pass().pinned == 3
    assert (scene.rest.posts, sorted(set(scene.by_scontrol()))) == (["1"], ["2", "3"])
    assert all(job.own_comment.startswith("aucsched?") for job in (whole, even, uneven))
    scene.fake.nodes[whole.required[0]] = "drain"
    assert loop.one_pass().put_back >= 1
    assert (scene.rest.posts[:2], whole.licenses, whole.required) == (["1", "1"], "auction:1", ())
    assert len(scene.told) == 1


def test_a_later_version_says_pins_of_cores_too(scene: Scene) -> None:
    scene.rest.version = "0.0.40"
    jobs = [scene.fake.submit(8), scene.fake.submit(6, least=2, most=3), scene.fake.submit(1)]
    loop = loop_on(scene.fake, hand=scene.hand())
    assert loop.one_pass().pinned == 3
    assert scene.rest.posts == ["1", "2", "3"]
    assert not scene.by_scontrol()
    scene.run(loop)
    each_ran_once_where_logged(scene.fake)
    assert [job.cpus for job in jobs] == [8, 6, 1]


def test_a_slurmrestd_that_was_never_there(scene: Scene) -> None:
    scene.end()
    scene.submit()
    loop = scene.loop()
    assert loop.one_pass().pinned == 3
    assert "No such file" in scene.told[0]
    assert len(scene.told) == 1
    scene.run(loop)
    each_ran_once_where_logged(scene.fake)
    assert not scene.rest.posts


def test_a_slurmrestd_that_goes_between_passes_and_comes_back(scene: Scene) -> None:
    """In the pass that finds it gone scontrol takes over; a minute later it is asked again."""
    loop = scene.loop()
    first = scene.submit(1)
    loop.one_pass()
    scene.end()
    scene.submit(1)
    assert loop.one_pass().pinned == 1
    assert (scene.rest.posts, scene.by_scontrol()) == (["1"], ["2"])
    assert "does not answer" in scene.told[1]
    scene.begin()
    scene.submit(1)
    loop.one_pass()
    assert scene.by_scontrol() == ["2", "3"]
    scene.run(loop, 7)
    scene.submit(1)
    loop.one_pass()
    assert scene.rest.posts == ["1", "4"]
    assert len(scene.rest.asked) == 4
    scene.run(loop)
    assert first[0].state == "COMPLETED"
    each_ran_once_where_logged(scene.fake)


@pytest.mark.parametrize(
    ("trouble", "is_pinned"), [("lost before", False), ("lost after", True), ("late", True), ("502", False)]
)
def test_an_answer_that_is_lost_is_not_sent_again_and_looked_at(
    scene: Scene, trouble: str, is_pinned: bool
) -> None:
    jobs = scene.submit()
    loop = scene.loop()
    scene.rest.trouble = ["", trouble]
    report = loop.one_pass()
    assert scene.rest.posts == ["1", "2"]
    assert scene.by_scontrol() == ["3"]
    assert (report.pinned, report.refused) == (3 if is_pinned else 2, 0 if is_pinned else 1)
    assert [bool(job.required) for job in jobs] == [True, is_pinned, True]
    said = [line["text"] for line in scene.fake.events("said")]
    assert said[0].startswith("job 2: unknown: ")
    assert "scontrol changes jobs" in said[1]
    scene.run(loop)
    each_ran_once_where_logged(scene.fake)


def test_an_error_in_the_body_under_status_200_is_a_refusal_of_that_job(scene: Scene) -> None:
    jobs = scene.submit()
    loop = scene.loop()
    scene.rest.trouble = ["", "Requested node configuration is not available"]
    report = loop.one_pass()
    assert (report.pinned, report.refused, scene.by_scontrol()) == (2, 1, [])
    assert scene.rest.posts == ["1", "2", "3"]
    assert jobs[1].required == ()
    said = [line["text"] for line in scene.fake.events("said")]
    assert said == ["job 2: refused: Requested node configuration is not available"]
    scene.run(loop)
    each_ran_once_where_logged(scene.fake)


def test_a_controller_that_slurmrestd_cannot_reach_is_asked_about_by_scontrol(scene: Scene) -> None:
    scene.submit()
    loop = scene.loop()
    scene.fake.between = lambda: setattr(scene.fake, "is_up", False)
    assert "Unable to contact" in loop.one_pass().outcome
    scene.fake.between = lambda: None
    scene.fake.is_up = True
    scene.run(loop)
    each_ran_once_where_logged(scene.fake)


def test_a_token_is_read_anew_and_a_wrong_one_leaves_the_work_to_scontrol(
    scene: Scene, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")
    scene.rest.admit("old")
    loop = scene.loop(token)
    scene.submit(1)
    loop.one_pass()
    scene.rest.admit("new")
    scene.submit(1)
    assert loop.one_pass().pinned == 1
    assert (scene.rest.posts, scene.by_scontrol()) == (["1"], ["2"])
    assert scene.told[-1].startswith("slurmrestd: status 401: Authentication failure: scontrol changes jobs")
    token.write_text("new")
    scene.run(loop, 7)
    scene.submit(1)
    loop.one_pass()
    assert scene.rest.posts == ["1", "3"]
    token.unlink()
    scene.submit(1)
    assert loop.one_pass().pinned == 1
    assert "cannot be read" in scene.told[-1]
    scene.run(loop)
    each_ran_once_where_logged(scene.fake)


def test_whom_slurmrestd_speaks_for_without_rights_leaves_the_work_to_scontrol(scene: Scene) -> None:
    scene.rest.version = "0.0.40"
    scene.submit(2)

    def with_rights(commands: Sequence[Words]) -> tuple[str, ...]:
        scene.fake.is_operators = False
        return scene.fake.hand(commands)

    scene.fake.between = lambda: setattr(scene.fake, "is_operators", True)
    assert loop_on(scene.fake, hand=scene.hand(other=with_rights)).one_pass().pinned == 2
    assert scene.rest.posts == ["1"]
    assert scene.by_scontrol() == ["1", "2"]
    assert "permission denied" in scene.told[-1]


def test_a_dry_run_shows_requests_and_sends_none(scene: Scene) -> None:
    whole, even = scene.fake.submit(1, exclusive=True), scene.fake.submit(4)
    shown: list[str] = []
    hand = scene.hand(other=Shown(shown.append), show=shown.append)
    loop_on(scene.fake, is_dry=True, hand=hand, rules=Rules(carrier=Carrier.COMMENT)).one_pass()
    assert shown[0].startswith("scontrol create reservation")
    assert shown[1].startswith('POST /slurm/v0.0.38/job/1 {"licenses": "", "nodelist": "n0", "comment": ')
    assert shown[2].startswith("scontrol update JobId=2 Licenses= ReqNodeList=n1 MinCPUsNode=4")
    assert not scene.rest.posts
    assert (whole.required, even.required) == ((), ())


def test_what_can_be_said_is_told(scene: Scene) -> None:
    left = "updates with NumNodes, NumCPUs, AdminComment, reservations, tasks of arrays"
    assert told(asked_api(scene.server())) == f"updates of jobs by v0.0.38; by scontrol: {left}"
    scene.rest.admit("another")
    with pytest.raises(InputError, match="status 401: Authentication failure"):
        asked_api(scene.server())


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("unix:/run/slurmrestd.sock", ("/run/slurmrestd.sock", "", 0, "")),
        ("unix:///run/slurmrestd.sock", ("/run/slurmrestd.sock", "", 0, "")),
        ("http://127.0.0.1:6820", ("", "127.0.0.1", 6820, "")),
        ("http://[::1]:6820/", ("", "::1", 6820, "")),
        ("https://head.site.org/slurmrestd/", ("", "head.site.org", 443, "/slurmrestd")),
    ],
)
def test_addresses(text: str, shape: tuple[str, str, int, str]) -> None:
    address = read_address(text)
    assert (address.socket, address.host, address.port, address.prefix) == shape


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("unix:relative", "no absolute path"),
        ("127.0.0.1:6820", "neither"),
        ("http://", "neither"),
        ("http://127.0.0.1:99999", "ange"),
        ("https://user:word@host", "neither"),
        ("https://host/a b", "neither"),
        ("http://head.site.org:6820", "use https"),
    ],
)
def test_addresses_that_are_none(text: str, why: str) -> None:
    with pytest.raises(OptionError, match=why):
        read_address(text)


def test_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url, socket = read_address("http://127.0.0.1:6820"), read_address("unix:/x")
    monkeypatch.delenv("SLURM_JWT", raising=False)
    with pytest.raises(OptionError, match="needs --rest-token, or SLURM_JWT"):
        token_of(url, None)
    monkeypatch.setenv("SLURM_JWT", "a.b.c")
    assert (token_of(url, None)(), token_of(socket, None)()) == ("a.b.c", "")
    file = tmp_path / "token"
    with pytest.raises(InputError, match="cannot be read"):
        token_of(socket, file)
    file.write_text("two words")
    with pytest.raises(InputError, match="holds no token") as caught:
        token_of(socket, file)
    assert "two words" not in str(caught.value)


def test_whom_a_token_names_is_said_beside_it(scene: Scene, tmp_path: Path) -> None:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": 1, "sun": "ann"}).encode()).decode().rstrip("=")
    token = tmp_path / "token"
    token.write_text(f"head.{claims}.signature")
    asked_api(scene.server(token))
    assert scene.rest.users == {(f"head.{claims}.signature", "ann")}
