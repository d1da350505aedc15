"""Promised starts of jobs behind the gate: what is promised, written, and kept by a restart."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from support.gated_slurm import CORES, FakeJob, FakeSlurm, loop_on

from aucsched.auction.options import StepOptions, options_with_preset
from aucsched.cli import cli
from aucsched.cluster.errors import OptionError
from aucsched.commands.slurm.loops import promised_options
from aucsched.slurm.live.live_queue import Carrier, Mark, read_mark
from aucsched.slurm.live.loop import Loop
from aucsched.slurm.live.loop_options import Settings


def greedy(fake: FakeSlurm, promise: str = "60", carrier: Carrier = Carrier.ADMIN_COMMENT) -> Loop:
    """Return a loop that starts short jobs first and reserves nothing."""
    asked = StepOptions(work_limit=0, objective="response", reserve=0)
    settings = Settings(host="one", user="root", promise=promise, mark=carrier.value)
    clock = {"clock": lambda: fake.now, "now": lambda: fake.now}
    return Loop(settings, asked, ask=fake.ask, runner=fake.hand, journal=fake.write, **clock)


def crowded() -> tuple[FakeSlurm, FakeJob]:
    """Two nodes of which one is always in use: a wide job waits while narrow ones come."""
    fake = FakeSlurm(nodes={"n0": "idle", "n1": "idle"})
    fake.now += 5
    fake.submit(4, run_s=30.0, limit_min=1)
    wide = fake.submit(8, run_s=60.0, limit_min=10)
    for _ in range(20):
        fake.submit(4, run_s=45.0, limit_min=1)
    return fake, wide


def promised(job: FakeJob) -> int:
    mark = read_mark(job.comment)
    return 0 if mark is None else mark.promised


def go_on(fake: FakeSlurm, loop: Loop, passes: int) -> None:
    for _ in range(passes):
        loop.one_pass()
        for _ in range(10):
            fake.tick()


def test_a_promise_is_kept_against_a_greedy_objective() -> None:
    """Narrow jobs are worth more each time, and would pass the wide one for as long as they come."""
    fake, wide = crowded()
    go_on(fake, greedy(fake, "none"), 16)
    assert not wide.starts
    fake, wide = crowded()
    loop = greedy(fake)
    go_on(fake, loop, 2)
    start = promised(wide)
    assert start > fake.now
    while not wide.starts and fake.now < start + 30:
        go_on(fake, loop, 1)
    assert wide.starts
    # A pass comes each 10 s, and a pinned job starts within one more.
    assert wide.end - wide.run_s <= start + 20


def test_a_restart_keeps_promises() -> None:
    fake, wide = crowded()
    go_on(fake, greedy(fake), 2)
    start, text = promised(wide), wide.comment
    assert start
    again = greedy(fake)
    go_on(fake, again, 1)
    assert 0 < promised(wide) <= start
    while not wide.starts and fake.now < start + 30:
        # A new process each pass: nothing is known but what the marks say.
        go_on(fake, greedy(fake), 1)
    assert wide.starts
    assert text.startswith("aucsched?")


def test_a_loop_without_the_option_keeps_the_promises_that_it_finds() -> None:
    fake, wide = crowded()
    go_on(fake, greedy(fake), 2)
    start = promised(wide)
    go_on(fake, greedy(fake, "none"), 12)
    assert wide.starts
    assert wide.end - wide.run_s <= start + 20


def test_a_mark_is_written_only_where_its_start_changes() -> None:
    fake, _ = crowded()
    loop = greedy(fake)
    loop.one_pass()
    assert not any("promised" in word for words in fake.sent for word in words)
    fake.sent.clear()
    loop.one_pass()
    written = [words for words in fake.sent if any("promised" in word for word in words)]
    assert written
    fake.sent.clear()
    loop.one_pass()
    assert not any("promised" in word for words in fake.sent for word in words)


def test_a_site_s_comment_outlives_a_promise() -> None:
    fake, wide = crowded()
    wide.comment = "the site's"
    loop = greedy(fake)
    go_on(fake, loop, 2)
    mark = read_mark(wide.comment)
    assert mark is not None
    assert mark.comment == "the site's"
    assert mark.since == 0
    go_on(fake, loop, 14)
    mark = read_mark(wide.comment)
    assert mark is not None
    assert mark.comment == "the site's"
    assert mark.since > 0


@pytest.mark.parametrize(
    "text", ["aucsched?v=1&since=7&cores=4&span=1-0&min=1", "aucsched?v=1&tries=2&span=1-0"]
)
def test_marks_of_older_loops_are_read(text: str) -> None:
    mark = read_mark(text)
    assert isinstance(mark, Mark)
    assert mark.promised == 0


def idle_after_a_pass(promise: str | None, reserve: int | None = None) -> int:
    """Return the cores that one pass leaves idle: a wide short job waits for a node, long ones would fit."""
    fake = FakeSlurm(nodes={"n0": "idle", "n1": "idle"})
    fake.now += 5
    fake.submit(4, run_s=300.0, limit_min=5)
    given = dict.fromkeys(("promise", "reserve", "preset"))
    response = {"objective": "response", "work_limit": 0}
    named, asked = promised_options({**given, "promise": promise, "reserve": reserve, **response})
    settings = Settings(host="one", user="root", promise=named)
    clock = {"clock": lambda: fake.now, "now": lambda: fake.now}
    options = options_with_preset(asked)
    loop = Loop(settings, options, ask=fake.ask, runner=fake.hand, journal=fake.write, **clock)
    go_on(fake, loop, 2)
    fake.submit(8, run_s=60.0, limit_min=1)
    fake.submit(4, run_s=3000.0, limit_min=60)
    go_on(fake, loop, 2)
    return sum(fake.free().values())


def test_response_leaves_no_node_idle_for_a_job_that_is_worth_most_and_cannot_start() -> None:
    """A reservation for the job of the greatest worth keeps a node idle: beside promises there is none."""
    assert idle_after_a_pass("none", reserve=1) == CORES
    assert idle_after_a_pass("15m") == 0
    assert idle_after_a_pass(None) == 0


def test_a_promise_that_its_owner_wrote_counts_for_nothing() -> None:
    fake, wide = crowded()
    wide.comment, wide.own_comment = "", "aucsched?v=1&promised=1000001"
    loop = greedy(fake, "none", carrier=Carrier.COMMENT)
    go_on(fake, loop, 16)
    assert not wide.starts
    asked = ["slurm", "run", "--promise", "15m", "--mark", "comment"]
    refused = CliRunner().invoke(cli, asked, standalone_mode=False)
    assert isinstance(refused.exception, OptionError)
    assert "needs --mark admin-comment" in str(refused.exception)


def test_what_is_no_time_is_refused_in_one_line() -> None:
    with pytest.raises(OptionError, match="15x"):
        promised_options({"promise": "15x", "reserve": None})
    with pytest.raises(OptionError, match="needs a time"):
        promised_options({"promise": "auto", "reserve": None})


def test_loops_by_default_promise_nothing() -> None:
    fake, wide = crowded()
    go_on(fake, loop_on(fake), 3)
    assert promised(wide) == 0
