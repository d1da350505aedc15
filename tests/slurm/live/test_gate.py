"""The gate's reservation as 22.05 prints it, what doctor says of a Slurm, and who is put behind the gate."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from pwd import getpwuid

import pytest
from support.gated_slurm import FakeSlurm, loop_on
from support.run import aucsched, refused

from aucsched.cluster.errors import InputError, OptionError
from aucsched.slurm.answers.live import Command
from aucsched.slurm.live.actions import (
    Words,
    create_words,
    gate_name,
    gates,
    licence_count,
    own_user,
)
from aucsched.slurm.live.findings import Severity, examine
from aucsched.slurm.live.live_queue import Carrier
from aucsched.slurm.live.loop_options import check_licence
from aucsched.slurm.live.pass_plan import added, read_all
from aucsched.slurm.live.ticker import default_lock, only_one

#: As 22.05.8 wrote it, times in seconds of the epoch.
PRINTED = (
    b"ReservationName=auction_vm StartTime=1000 EndTime=1120 Duration=00:02:00 Nodes=(null) NodeCnt=0 "
    b"CoreCnt=0 Features=(null) PartitionName=(null) Flags=ANY_NODES TRES=(null) Users=root "
    b"Groups=(null) Accounts=(null) Licenses=auction:1000000 State=ACTIVE "
    b"BurstBuffer=(null) Watts=n/a MaxStartDelay=(null)\n"
    b"ReservationName=maint StartTime=1000 EndTime=1120 Nodes=n[0-3] Licenses=auction:3 Flags=MAINT\n"
    b"ReservationName=later StartTime=1000 EndTime=1120 Nodes=(null) Licenses=matlab:3;auction:7 "
    b"Flags=ANY_NODES\n"
    b"ReservationName=other StartTime=1000 EndTime=1120 Nodes=(null) Licenses=matlab:3 Flags=ANY_NODES\n"
)
CONFIG = b"""Configuration data as of 2026-11-20T10:05:32
JobSubmitPlugins        = lua
PriorityType            = priority/multifactor
SelectType              = select/cons_tres
SlurmUser               = slurm(64030)
SLURM_VERSION           = 22.05.8
"""


def cluster(nodes: int = 4) -> FakeSlurm:
    return FakeSlurm(nodes={f"n{number}": "idle" for number in range(nodes)})


def test_the_gate_is_found_among_reservations() -> None:
    found = gates(lambda _: PRINTED, "auction")
    assert [(gate.name, gate.start, gate.end, gate.held("auction")) for gate in found] == [
        ("auction_vm", 1000, 1120, 10**6),
        ("later", 1000, 1120, 7),
    ]
    assert gates(lambda _: b"No reservations in the system\n", "auction") == ()


def test_a_cluster_without_the_licence_is_told_what_it_needs() -> None:
    with pytest.raises(InputError, match=r"slurm\.conf needs Licenses=auction:1000000"):
        licence_count(lambda _: b"LicenseName=matlab Total=3 Used=0 Free=3 Reserved=0 Remote=no\n", "auction")


def test_names_are_words_of_scontrol() -> None:
    assert gate_name("auction", "head 1;x.site.org") == "auction_head-1-x"
    assert gate_name("auction", "head1", "ann.b") == "auction_head1_ann-b"
    for name in ("a b", "", "a,b", "-x", "a=b"):
        with pytest.raises(OptionError, match="--license"):
            check_licence(name)
    with pytest.raises(OptionError, match="user"):
        create_words("auction_h", "auction", 5, 60, "a b")


def test_the_user_is_the_process_s_own_whatever_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER"):
        monkeypatch.setenv(name, "somebody-else")
    assert own_user() == getpwuid(os.getuid()).pw_name


def answered(fake: FakeSlurm, said: dict[Command, bytes]) -> dict[str, tuple[Severity, str]]:
    def ask(command: Command) -> bytes:
        return said[command] if command in said else fake.ask(command)

    return {one.what: (one.level, one.text) for one in examine(ask, "auction", "ann", lambda: fake.now)}


def test_doctor_finds_a_cluster_well_and_says_what_is_not() -> None:
    fake = cluster()
    loop_on(fake).one_pass()
    level = ("sacctmgr", "-n", "-P", "show", "user", "ann", "format=AdminLevel")
    well: dict[Command, bytes] = {
        ("scontrol", "show", "config"): CONFIG,
        ("sdiag",): b"sdiag output at Mon Jan 12 13:46:40 1970 (1000000000)\n",
        level: b"Operator\n",
        ("scontrol", "show", "topology"): b"SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[0-3]\n",
    }
    fake.now = 1_000_000_001.0
    fake.reservations["auction_one_root"]["end"] = fake.now + 90
    found = answered(fake, well)
    assert {level for level, _ in found.values()} == {Severity.OK}
    assert found["gate"][1] == "auction_one_root is up, ends in 90 s"
    fake.reservations.clear()
    ill = well | {
        ("scontrol", "show", "config"): CONFIG.replace(b"cons_tres", b"linear").replace(b"lua", b"(null)"),
        ("sdiag",): b"sdiag output at Mon Jan 12 13:46:40 1970 (1000000900)\n",
        level: b"None\n",
    }
    found = answered(fake, ill)
    levels = {what: level for what, (level, _) in found.items()}
    assert {what for what in levels if levels[what] is Severity.FAIL} == {"clock", "rights", "placing"}
    assert {what for what in levels if levels[what] is Severity.WARN} == {"gate", "submission"}
    assert found["rights"][1] == "ann is not an operator: sacctmgr modify user ann set adminlevel=admin"
    unknown = answered(fake, ill | {level: b""})["rights"][1]
    assert unknown == "ann is not an operator: sacctmgr add user ann account=root adminlevel=admin"
    fake.is_up = False
    assert list(answered(fake, {})) == ["controller"]


def test_waiting_jobs_are_put_behind_the_gate_once() -> None:
    fake = cluster()
    fake.submit(1, licenses="")
    fake.submit(1, licenses="matlab:2", user="eve")
    fake.submit(1)
    fake.submit(1, licenses="a|b")
    fake.submit(1, licenses="bad one")
    commands, problems = added(read_all(fake.ask), "auction", (), ())
    assert commands == [
        ("update", "JobId=1", "Licenses=auction:1"),
        ("update", "JobId=2", "Licenses=matlab:2,auction:1"),
    ]
    assert [text.partition(":")[0] for text in problems] == [
        "job 4 cannot be put behind the gate",
        "job 5 cannot be put behind the gate",
    ]
    assert [words[1] for words in added(read_all(fake.ask), "auction", (), ("eve",))[0]] == ["JobId=2"]
    assert added(read_all(fake.ask), "auction", ("other",), ()) == ([], [])
    fake.hand(commands)
    assert added(read_all(fake.ask), "auction", ("p",), ("ann", "eve"))[0] == []


def test_partitions_and_users_that_are_not_there_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = cluster()
    fake.submit(1)
    sent: list[Words] = []

    def ask(command: Command) -> bytes:
        return b"p\ndebug\n" if command[0] == "sinfo" else fake.ask(command)

    def scontrol(commands: Sequence[Words]) -> tuple[str, ...]:
        sent.extend(commands)
        return ()

    monkeypatch.setattr("aucsched.slurm.answers.live.ask_slurm", ask)
    monkeypatch.setattr("aucsched.slurm.live.actions.one_scontrol", scontrol)
    words = ("slurm", "gate", "add", "--license", "gate", "--partition", "p")
    assert refused(*words, "--partition", "q") == "aucsched: --partition: 'q' is none of p, debug"
    assert not sent
    assert refused(*words, "--user", "eve").startswith("aucsched: --user: 'eve' has no job and is not a user")
    assert not sent
    done = aucsched(*words, "--user", "root", "--user", "ann")
    assert (done.returncode, done.stderr) == (0, "note: user root has no job\n")
    assert sent == [("update", "JobId=1", "Licenses=auction:1,gate:1")]


@pytest.mark.parametrize("carrier", Carrier)
def test_a_pinned_job_is_not_put_behind_the_gate_whichever_comment_has_its_mark(carrier: Carrier) -> None:
    fake = cluster()
    fake.submit(4)
    assert loop_on(fake, mark=carrier.value).one_pass().pinned == 1
    assert added(read_all(fake.ask), "auction", (), ()) == ([], [])


def test_one_loop_on_a_host(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with only_one(lock), pytest.raises(InputError, match="another slurm run"), only_one(lock):
        pass
    with only_one(lock):
        pass
    (tmp_path / "link").symlink_to(lock)
    with pytest.raises(InputError, match="cannot be locked"), only_one(tmp_path / "link"):
        pass


def test_the_lock_is_the_cluster_s_whatever_leads_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = cluster()
    fake.name = "head(10.0.0.1)"
    first = default_lock(fake.ask, "auction")
    monkeypatch.setenv("SLURM_CONF", "/srv/slurm.conf")
    monkeypatch.setenv("TMPDIR", "/somewhere")
    assert default_lock(fake.ask, "auction") == first
    others = {default_lock(fake.ask, "gate"), first}
    fake.name = "head2"
    assert len(others | {default_lock(fake.ask, "auction")}) == 3


#: What slurmctld gives the plugin, and calls of it whose answers are printed.
LUA = """
slurm = {SUCCESS = 0, ERROR = -1, log_user = function() end}
dofile(arg[1])
local function submitted(licenses, uid)
    local job = {licenses = licenses, partition = nil, default_partition = "p"}
    slurm_job_submit(job, {}, uid or 5)
    return tostring(job.licenses)
end
print(submitted(nil)); print(submitted("")); print(submitted("matlab:2")); print(submitted("auction"))
print(submitted("auction:1,x")); print(submitted("a|b")); print(submitted("auctioneer:1"))
print(submitted("x:2;auction:1"))
local behind = {licenses = "auction:1", user_id = 5}
print(slurm_job_modify({licenses = ""}, behind, {}, 5), slurm_job_modify({licenses = ""}, behind, {}, 0))
print(slurm_job_modify({}, behind, {}, 5), slurm_job_modify({licenses = "auction:1,x"}, behind, {}, 5))
local rewritten = {licenses = "x:2;auction:1", user_id = 5}
print(slurm_job_modify({licenses = "x:2"}, rewritten, {}, 5))
"""


@pytest.mark.skipif(shutil.which("lua") is None, reason="there is no lua here")
def test_the_submit_plugin_puts_the_licence_on(tmp_path: Path) -> None:
    (tmp_path / "plugin.lua").write_text(files("aucsched.slurm.live").joinpath("job_submit.lua").read_text())
    (tmp_path / "call.lua").write_text(LUA)
    command = ["lua", str(tmp_path / "call.lua"), str(tmp_path / "plugin.lua")]
    lines = subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()
    assert lines[:8] == [
        *(
            "auction:1",
            "auction:1",
            "matlab:2,auction:1",
            "auction",
            "auction:1,x",
            "a|b",
            "auctioneer:1,auction:1",
            "x:2;auction:1",
        ),
    ]
    assert lines[8:] == ["-1\t0", "0\t0", "-1"]


@pytest.mark.parametrize(
    ("version", "level", "words"),
    [
        ("24.11.5", Severity.OK, "keep their licences"),
        ("25.05.0", Severity.WARN, "without their licences"),
        ("25.05.9", Severity.WARN, "without their licences"),
        ("25.11.6", Severity.WARN, "without their licences"),
        ("25.11.7", Severity.OK, "keep their licences"),
        ("26.05.0", Severity.WARN, "empty the gate before you take auction out"),
    ],
)
def test_doctor_names_releases_that_forget_licences(version: str, level: Severity, words: str) -> None:
    config = CONFIG.replace(b"22.05.8", version.encode())
    found = answered(cluster(), {("scontrol", "show", "config"): config})
    assert found["requeues"][0] is level
    assert words in found["requeues"][1]
    assert found["version"][0] is Severity.OK


def test_doctor_says_what_it_does_not_know_of_versions_and_topologies() -> None:
    said: dict[Command, bytes] = {
        ("scontrol", "show", "config"): CONFIG.replace(b"22.05.8", b"27.05.1"),
    }
    found = answered(cluster(), said)
    unknown = "Slurm 27.05.1: its answers are not known, those of 21.08 to 26.05 are"
    assert found["version"] == (Severity.WARN, unknown)


BLOCKS = (
    b"BlockName=b1 BlockIndex=0 Nodes=n[0-1] BlockSize=2\n"
    b"BlockName=b2 BlockIndex=1 Nodes=n[2-3] BlockSize=2\n"
    b"AggregatedBlock=b[1-2] BlockIndex=2 Nodes=n[0-3] BlockSize=4\n"
)
OFF = (
    "; never update a node's Topology= to the block that it is in: the rules may be off then (Slurm's pull "
    "request 225)"
)
HANDED = "; jobs with --segment are handed over: they may name no nodes"


@pytest.mark.parametrize(
    ("version", "level", "more"),
    [
        ("24.11.5", Severity.WARN, "; --segment is not told: jobs that Slurm holds for it are handed over"),
        ("25.05.3", Severity.OK, HANDED + OFF),
        (
            "25.11.0",
            Severity.WARN,
            (
                "; --consolidate-segments may end slurmctld; "
                f"cloud nodes leave blocks for good when powered down{OFF}"
            ),
        ),
        ("25.11.3", Severity.OK, OFF),
        ("26.05.1", Severity.OK, OFF),
    ],
)
def test_doctor_says_what_a_release_does_with_blocks(version: str, level: Severity, more: str) -> None:
    said: dict[Command, bytes] = {
        ("scontrol", "show", "config"): CONFIG.replace(b"22.05.8", version.encode()),
        ("scontrol", "show", "topology"): BLOCKS,
    }
    text = f"2 blocks of 2, 4 nodes: the rules are honoured{more}"
    assert answered(cluster(), said)["topology"] == (level, text)
    several = b"".join(
        f"PartitionName={name} Nodes=n[0-3] State=UP Topology={topology}\n".encode()
        for name, topology in (("p", "default"), ("q", "t2"))
    )
    found = answered(cluster(), said | {("scontrol", "-o", "show", "partitions"): several})
    handed = "; jobs of partitions with Topology=t2 are handed over: it may be another"
    assert found["topology"] == (Severity.WARN, text + handed)


def test_doctor_names_other_topologies_and_lines_that_are_cut() -> None:
    def topology(text: bytes) -> tuple[Severity, str]:
        said: dict[Command, bytes] = {
            ("scontrol", "show", "config"): CONFIG,
            ("scontrol", "show", "topology"): text,
        }
        return answered(cluster(), said)["topology"]

    assert topology(b"RingName=r0 Nodes=n[0-3] RingSize=4\n") == (
        Severity.OK,
        "1 ring: the rules are honoured",
    )
    assert topology(b"BlockName=b1 BlockIndex=0 Nodes=n[0-") == (
        Severity.FAIL,
        (
            "line 1: 'BlockName=b1 BlockIndex=0 Nodes=n[0-' has an open bracket; if Slurm cut it off, unset"
            " SLURM_TOPO_LEN"
        ),
    )


def test_doctor_says_what_becomes_of_newer_settings_licences_and_nodes() -> None:
    """Each fact of a Slurm of 24.11 and later: honoured, noted, or handed over."""
    fake = cluster()
    quiet = answered(fake, {("scontrol", "show", "config"): CONFIG})
    for what in ("settings", "licences", "nodes"):
        assert quiet[what][0] is Severity.OK
        assert quiet[what][1].startswith("none")
    nodes = json.loads(fake.ask(("sinfo", "--json")))
    nodes["nodes"][0]["state_flags"] = ["CLOUD", "POWERED_DOWN"]
    nodes["nodes"][1] |= {"features": "snc4,flat", "active_features": "flat"}
    lines = (
        b"SchedulerParameters     = bf_continue,bf_topopt_enable,enable_expedited_requeue\n"
        b"LicenseParameters       = RemoteFuzzyMatch\nDataParserParameters    = +complex\n"
    )
    licences = (
        b"LicenseName=lm@flex Total=9 Used=0 Free=9 Reserved=0 Remote=yes\n"
        b"LicenseName=power Total=9 Used=0 Free=9 Reserved=0 Remote=no Nodes=n[0-1] Mode=3\n"
    )
    said: dict[Command, bytes] = {
        ("scontrol", "show", "config"): CONFIG + lines,
        ("scontrol", "-o", "show", "licenses"): licences,
        ("sinfo", "--json"): json.dumps(nodes).encode(),
    }
    found = answered(fake, said)
    assert found["nodes"] == (
        Severity.OK,
        "1 node asleep: the loop wakes none, jobs that fit no others are handed over",
    )
    assert found["settings"] == (
        Severity.WARN,
        (
            "bf_topopt_enable: noted: Slurm may start pinned jobs later; "
            "enable_expedited_requeue: jobs of --requeue=expedite are handed over; "
            "RemoteFuzzyMatch: jobs that ask for name, not name@server, are handed over; "
            "DataParserParameters: honoured: a fixed version of JSON is asked for, each form is read"
        ),
    )
    assert found["licences"] == (
        Severity.OK,
        (
            "licence power: it counts by node: jobs that ask for it are not expressible; "
            "remote, honoured as counted now: lm@flex"
        ),
    )
    later = answered(fake, said | {("scontrol", "show", "config"): CONFIG.replace(b"22.05.8", b"25.05.3")})
    assert later["licences"][1].endswith("; jobs that ask for one or another (-L a|b) are Slurm's")
    nodes["nodes"][0]["state_flags"] = []
    awake = answered(fake, said | {("sinfo", "--json"): json.dumps(nodes).encode()})
    text = "features that take a reboot: snc4; a job for which no node has them is handed over"
    assert awake["nodes"] == (Severity.OK, text)
