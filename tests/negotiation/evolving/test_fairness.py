"""Dynamic fairness against the paper's own figures (Prabhakaran, section III-D)."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucsched.cluster.errors import InputError
from aucsched.cluster.limits import Owned
from aucsched.negotiation.evolving.fairness import (
    Accounts,
    Delay,
    DelayLimits,
    DelayPolicy,
    Fairness,
    at_start,
    charged,
    same_for_every_user,
)
from aucsched.negotiation.evolving.fairness_file import (
    fairness_of_maui,
    fairness_of_toml,
    load_accounts,
    load_fairness,
    save_accounts,
    seconds_of,
)

FIGURE_6 = r"""
DFSPOLICY          DFSSINGLEANDTARGETDELAY
DFSINTERVAL        06:00:00
DFSDECAY           0.4

USERCFG[user01]    DFSDYNDELAYPERM=1 DFSTARGETDELAYTIME=3600 \
                   DFSSINGLEDELAYTIME=0
USERCFG[user02]    DFSDYNDELAYPERM=0
USERCFG[user03]    DFSDYNDELAYPERM=1 DFSTARGETDELAYTIME=0 \
                   DFSSINGLEDELAYTIME=00:30:00
USERCFG[user04]    DFSDYNDELAYPERM=1 DFSTARGETDELAYTIME=02:00:00 \
                   DFSSINGLEDELAYTIME=00:15:00
GROUPCFG[group05]  DFSSINGLEDELAYTIME=04:00:00
GROUPCFG[group06]  DFSDYNDELAYPERM=0
"""
IN_TOML = """
policy = "single_target_delay"
interval = "06:00:00"
decay = 0.4
[user.user01]
permission = true
target_delay = 3600
single_delay = 0
[user.user02]
permission = false
[user.user03]
permission = true
target_delay = 0
single_delay = "00:30:00"
[user.user04]
permission = true
target_delay = "02:00:00"
single_delay = "00:15:00"
[group.group05]
single_delay = "04:00:00"
[group.group06]
permission = false
"""
EVOLVING = Owned(user="user06")


def _figure_6() -> Fairness:
    found, others = fairness_of_maui(FIGURE_6)
    assert not others
    return found


def _charge(
    fairness: Fairness, accounts: Accounts, user: str, seconds: float, job: str = "J"
) -> Accounts | str:
    group = {"user05": "group05", "user06b": "group06"}.get(user, "")
    owner = Owned(user=user, group=group)
    return charged(accounts, fairness, EVOLVING, [Delay(job=job, owner=owner, seconds=seconds)])


def test_figure_6_is_read_as_it_stands() -> None:
    """Prabhakaran: figure 6 configuration."""
    found = _figure_6()
    assert found.policy is DelayPolicy.BOTH
    assert (found.interval_s, found.decay) == (21600.0, 0.4)
    assert found.limits == {
        ("user", "user01"): DelayLimits(permitted=True, target_s=3600.0, single_s=0.0),
        ("user", "user02"): DelayLimits(permitted=False),
        ("user", "user03"): DelayLimits(permitted=True, target_s=0.0, single_s=1800.0),
        ("user", "user04"): DelayLimits(permitted=True, target_s=7200.0, single_s=900.0),
        ("group", "group05"): DelayLimits(single_s=14400.0),
        ("group", "group06"): DelayLimits(permitted=False),
    }
    assert fairness_of_toml(IN_TOML.encode()) == found


@pytest.mark.parametrize(
    ("user", "within", "beyond"),
    [
        ("user01", 3600, 3601),  # any job for any time, together an hour
        ("user03", 1800, 1801),  # each job half an hour
        ("user04", 900, 901),  # each job a quarter of an hour
        ("user05", 14400, 14401),
        ("user07", 10**6, None),  # nothing is said of it
        ("user02", 0, 1),
        ("user06b", 0, 1),
    ],
)
def test_figure_6_limits(user: str, within: float, beyond: float | None) -> None:
    fairness = _figure_6()
    start = at_start(fairness, 0.0)
    assert isinstance(_charge(fairness, start, user, within), Accounts)
    if beyond is not None:
        assert isinstance(_charge(fairness, start, user, beyond), str)


def test_user04_has_both_limits() -> None:
    fairness = _figure_6()
    accounts: Accounts | str = at_start(fairness, 0.0)
    for number in range(8):  # 8 jobs of 15 min: 2 h
        assert isinstance(accounts, Accounts)
        accounts = _charge(fairness, accounts, "user04", 900, f"J{number}")
    assert isinstance(accounts, Accounts)
    assert isinstance(_charge(fairness, accounts, "user04", 1, "J9"), str)
    later = accounts.rolled(fairness, 6 * 3600.0)
    assert later.targets["user"]["user04"] == pytest.approx(0.4 * 7200)
    # What a job has borne is never forgotten.
    assert isinstance(_charge(fairness, later, "user04", 1, "J0"), str)
    assert isinstance(_charge(fairness, later, "user04", 900, "J9"), Accounts)


def test_decay_leaves_4080_of_4800() -> None:
    fairness = same_for_every_user(4800, interval_s=3600, decay=0.2)
    used = _charge(fairness, at_start(fairness, 0.0), "user01", 3600)
    assert isinstance(used, Accounts)
    rolled = used.rolled(fairness, 3600.0)
    assert rolled.targets["user"]["user01"] == pytest.approx(720)
    assert isinstance(_charge(fairness, rolled, "user01", 4080), Accounts)
    assert isinstance(_charge(fairness, rolled, "user01", 4080.001), str)
    assert used.rolled(fairness, 2 * 3600.0).targets["user"]["user01"] == pytest.approx(144)


def test_ones_own_jobs_do_not_count() -> None:
    fairness = same_for_every_user(10)
    start = at_start(fairness, 0.0)
    assert _charge(fairness, start, "user06", 10**6) == start
    nobody = [Delay(job="J", owner=Owned(), seconds=11.0)]
    assert isinstance(charged(start, fairness, Owned(), nobody), str)


def test_the_most_restrictive_limit_wins() -> None:
    limits = {("user", "u"): DelayLimits(target_s=100.0), ("account", "a"): DelayLimits(target_s=50.0)}
    fairness = Fairness(policy=DelayPolicy.TARGET, limits=limits)
    start = at_start(fairness, 0.0)
    one = [Delay(job="J", owner=Owned(user="u", account="a"), seconds=60.0)]
    assert "account a" in str(charged(start, fairness, EVOLVING, one))
    # Members of an account share its limit.
    both = [Delay(job=user, owner=Owned(user=user, account="a"), seconds=30.0) for user in "uv"]
    assert isinstance(charged(start, fairness, EVOLVING, both), str)


def test_default_holds_where_nothing_is_said() -> None:
    text = (
        "DFSPOLICY DFSTARGETDELAY\nUSERCFG[DEFAULT] DFSTARGETDELAYTIME=500\nUSERCFG[u] DFSTARGETDELAYTIME=0"
    )
    fairness, _ = fairness_of_maui(text)
    assert fairness.of("user", "x").target_s == 500
    assert fairness.of("user", "u").target_s == 0
    assert isinstance(_charge(fairness, at_start(fairness, 0.0), "u", 10**6), Accounts)
    assert isinstance(_charge(fairness, at_start(fairness, 0.0), "x", 501), str)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("DFSPOLICY SOMETHING", "line 1.DFSPOLICY"),
        ("# a comment\nDFSDECAY 1.5", "line 2.DFSDECAY"),
        ("DFSINTERVAL six", "line 1.DFSINTERVAL"),
        ("DFSINTERVAL 0", "line 1.DFSINTERVAL"),
        ("DFSDEPTH 5", "line 1"),
        ("USERCFG[u] DFSDYNDELAYPERM=2", "line 1.DFSDYNDELAYPERM"),
        ("USERCFG[u] \\\n DFSTARGETDELAYTIME=-1", "line 1.DFSTARGETDELAYTIME"),
        ("USERCFG[u] DFSTARGETDELAY=1", "line 1"),
        ("USERCFG[] DFSDYNDELAYPERM=1", "line 1"),
    ],
)
def test_bad_maui_lines_are_named(text: str, path: str) -> None:
    with pytest.raises(InputError) as caught:
        fairness_of_maui(text)
    assert caught.value.path == path


def test_other_parameters_of_maui_are_told() -> None:
    found, others = fairness_of_maui("RMCFG[base] TYPE=PBS\nDFSPOLICY NONE\nUSERCFG[u] PRIORITY=100\n")
    assert found.policy is DelayPolicy.NONE
    assert others == ("RMCFG[base]", "PRIORITY")


@pytest.mark.parametrize(
    "text",
    [
        "policy = 1",
        "interval = 0",
        "decay = 2",
        "[user.u]\npermission = 1",
        "[user.u]\nx = 1",
        "user = 1",
        f"decay = 1{'0' * 400}",
        f"decay = 1{'0' * 5000}",
        "x",
    ],
)
def test_bad_toml_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "fairness.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=r"fairness\.toml"):
        load_fairness(path)


def test_times() -> None:
    assert [seconds_of(value, "") for value in ("06:00:00", "1:30", "2:00:00:01", 5, "7.5")] == [
        21600.0,
        90.0,
        172801.0,
        5.0,
        7.5,
    ]


def test_accounts_survive_a_restart_and_torn_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "delays.json"
    assert load_accounts(path) is None
    accounts = Accounts(since_s=3600.0, targets={"user": {"u": 12.5}, "qos": {"": 1.0}}, singles={"J1": 12.5})
    save_accounts(accounts, path)
    assert load_accounts(path) == accounts
    whole = path.read_bytes()
    for cut in range(len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(InputError):
            load_accounts(path)
    path.write_bytes(whole.replace(b"12.5", b"11.5"))
    with pytest.raises(InputError, match="checksum"):
        load_accounts(path)


def test_a_delay_without_end_is_charged_so_that_the_file_is_read_again(tmp_path: Path) -> None:
    fairness = Fairness(policy=DelayPolicy.TARGET, limits={("user", "x"): DelayLimits(target_s=5.0)})
    accounts: Accounts | str = at_start(fairness, 0.0)
    for _ in range(2):
        assert isinstance(accounts, Accounts)
        accounts = _charge(fairness, accounts, "user01", inf)
    assert isinstance(accounts, Accounts)
    save_accounts(accounts, tmp_path / "delays.json")
    assert load_accounts(tmp_path / "delays.json") == accounts
    assert isinstance(_charge(fairness, accounts, "x", inf), str)


@given(
    decay=st.floats(0, 1),
    limit=st.floats(1, 1000),
    steps=st.lists(st.tuples(st.floats(0, 5000), st.sampled_from("uvw"), st.floats(0, 800)), max_size=40),
)
def test_no_user_ever_exceeds_a_limit(
    decay: float, limit: float, steps: list[tuple[float, str, float]]
) -> None:
    """Prabhakaran: dynamic fairness (III-D)."""
    fairness = same_for_every_user(limit, interval_s=1000, decay=decay)
    accounts, now = at_start(fairness, 0.0), 0.0
    intervals: dict[int, dict[str, float]] = {}
    for passed, user, seconds in steps:
        now += passed
        accounts = accounts.rolled(fairness, now)
        found = charged(
            accounts, fairness, EVOLVING, [Delay(job="J", owner=Owned(user=user), seconds=seconds)]
        )
        if isinstance(found, Accounts):
            accounts = found
            spent = intervals.setdefault(int(now // 1000), {})
            spent[user] = spent.get(user, 0.0) + seconds
    # Counted again, from the grants alone.
    left: dict[str, float] = {}
    last = 0
    for number in sorted(intervals):
        left = {user: seconds * decay ** (number - last) for user, seconds in left.items()}
        for user, seconds in intervals[number].items():
            left[user] = left.get(user, 0.0) + seconds
            assert left[user] <= limit * (1 + 1e-9)
        last = number


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("DFSDECAY 0.4\nDFSDecay 0.5", "line 2: DFSDECAY is given twice"),
        ("DFSPOLICY NONE\n\nDFSPOLICY NONE", "line 3: DFSPOLICY is given twice"),
        ("DFSINTERVAL 60\nDFSINTERVAL 60", "line 2: DFSINTERVAL is given twice"),
        (
            "USERCFG[u] DFSTARGETDELAYTIME=1 DFStargetDelayTime=2",
            "line 1: DFSTARGETDELAYTIME is given twice",
        ),
        (
            "USERCFG[u] DFSDYNDELAYPERM=1\nUSERCFG[v] DFSDYNDELAYPERM=1\nusercfg[u] DFSDYNDELAYPERM=0",
            "line 3: DFSDYNDELAYPERM is given twice",
        ),
    ],
)
def test_a_parameter_of_maui_given_twice_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        fairness_of_maui(text)
    assert str(error.value) == said


def test_lines_of_maui_of_one_owner_add_up_and_others_repeat() -> None:
    text = "USERCFG[u] DFSDYNDELAYPERM=1 QDEF=a\nUSERCFG[u] DFSTARGETDELAYTIME=5 QDEF=a\nRMPOLL 3\nRMPOLL 4"
    fairness, others = fairness_of_maui(text)
    assert fairness.of("user", "u") == DelayLimits(permitted=True, target_s=5.0)
    assert others == ("QDEF", "RMPOLL")
