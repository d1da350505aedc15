"""A Slurm site's submissions: its configuration, sbatch's options, and the workload they make."""

from __future__ import annotations

import contextlib
import gzip
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.run import aucsched, refused

from aucsched import ArrivingJob, ClusterWorkload, InputError, Span, load_workload
from aucsched.cluster.nodes import NodeState
from aucsched.formats.notes import Notes
from aucsched.formats.reading import text_of
from aucsched.slurm.answers.answer_text import duration_s
from aucsched.slurm.site.conf import fit_gres, parse_slurm_conf
from aucsched.slurm.site.sbatch import parse_sbatch, words_of
from aucsched.slurm.site.scheduler_log import Submission, import_events

REAL = Path(__file__).parents[4] / "shared" / "data" / "ub"

CONF = """\
# a site in small
ClusterName=small
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
PriorityType=priority/multifactor
Licenses=matlab:3,ansys*2
NodeName=DEFAULT RealMemory=1000 Sockets=2 CoresPerSocket=4 Weight=10
NodeName=n[01-03] Feature=old,ib
NodeName=DEFAULT CPUs=10 Sockets=2 CoresPerSocket=5 \\
    RealMemory=2000
NodeName=g[1-2] Gres=gpu:a100:2 Feature=new  # GPUs
NodeName=d1 State=DOWN MemSpecLimit=500

PartitionName=DEFAULT State=UP DefaultTime=1:00:00 MaxTime=1-00
PartitionName=batch Nodes=n[01-03],g[1-2] Default=YES DefMemPerCPU=100 AllowQOS=normal
PartitionName=quick Nodes=ALL MaxTime=30 DefaultTime=10 MaxNodes=2
PartitionName=whole Nodes=n[01-02] OverSubscribe=EXCLUSIVE
"""
GRES = "AutoDetect=off\nNodeName=g1 Name=gpu File=/dev/nvidia[0-1]\nNodeName=g2 Name=gpu Count=1\n"
TOPOLOGY = "SwitchName=a Nodes=n[01-09]\nSwitchName=b Nodes=g[1-2],d1\nSwitchName=top Switches=a,b\n"


def site(folder: Path, events: str, **files: str) -> Path:
    """Write a site's configuration and its events; return the event file."""
    texts = {"slurm.conf": CONF, "gres.conf": GRES, "topology.conf": TOPOLOGY, **files}
    for name, text in texts.items():
        if text:
            (folder / name).write_text(text)
    (folder / "week.events").write_text(events)
    return folder / "week.events"


def made(folder: Path, *options: str, **files: str) -> tuple[ClusterWorkload, Notes]:
    """Return the workload of submissions with these options, one a second, each running 60 s."""
    lines = (
        f"-dt {at} -e submit_batch_job | -sim-walltime 60.00 {text} -J j{at} run.sh"
        for at, text in enumerate(options)
    )
    return import_events(site(folder, "\n".join(lines), **files), folder)


def one(folder: Path, options: str, **files: str) -> ArrivingJob:
    return made(folder, options, **files)[0].jobs[0]


def test_the_words_of_later_versions(tmp_path: Path) -> None:
    """``;`` between licences (25.05) and whole nodes by ``Exclusive=`` (26.05)."""
    conf = CONF.replace("matlab:3,ansys", "matlab:3;ansys").replace(
        "OverSubscribe=EXCLUSIVE", "Exclusive=NODE"
    )
    workload, _ = made(tmp_path, "-p whole -L matlab:2;ansys", "-L matlab|ansys", **{"slurm.conf": conf})
    assert sorted(workload.licenses) == ["ansys", "matlab"]
    whole, either = (one.job for one in workload.jobs)
    assert whole.request.exclusive
    assert whole.request.licenses == {"matlab": 2, "ansys": 1}
    assert either.unsupported == ("the licences matlab|ansys, which are not plain counts",)


def test_nodes_are_what_the_lines_and_their_defaults_say(tmp_path: Path) -> None:
    workload, _ = made(tmp_path)
    nodes = {node.name: node for node in workload.nodes}
    assert list(nodes) == ["n01", "n02", "n03", "g1", "g2", "d1"]
    assert (nodes["n01"].total.cores, nodes["n01"].total.memory_mib) == (8, 1000)
    assert nodes["n01"].features == {"old", "ib"}
    assert (nodes["g1"].total.cores, nodes["g1"].total.memory_mib) == (10, 2000)
    assert nodes["g1"].total.gres == {"gpu:a100": 2}
    assert (nodes["d1"].state, nodes["d1"].total.memory_mib) == (NodeState.DOWN, 1500)
    assert [switch.name for switch in workload.switches or ()] == ["a", "b", "top"]
    assert {name: entry.total for name, entry in workload.licenses.items()} == {"matlab": 3, "ansys": 2}


def test_a_default_time_of_none_is_written_in_any_case(tmp_path: Path) -> None:
    conf = CONF.replace("DefaultTime=1:00:00", "DefaultTime=none")
    assert one(tmp_path, "-n 1", **{"slurm.conf": conf}).job.time_limit_s == 86400


def test_what_is_left_out_is_noted(tmp_path: Path) -> None:
    _, notes = made(tmp_path)
    texts = notes.texts()
    for part in (
        "weight of nodes is not looked at",
        "prioritytype=priority/multifactor is not looked at",
        "partition batch: allowqos is not looked at",
        "switch a: nodes not of the cluster are dropped: 6",
        "node g2: gres.conf has 1 gpu, 1 fewer than slurm.conf",
    ):
        assert any(part in text for text in texts), part


def test_the_lesser_count_of_gres_stands(tmp_path: Path) -> None:
    workload, _ = made(tmp_path)
    assert {node.name: node.total.gres.get("gpu:a100") for node in workload.nodes}["g2"] == 1


def test_counts_of_gres_conf_may_have_a_unit(tmp_path: Path) -> None:
    conf = CONF.replace("Gres=gpu:a100:2", "Gres=gpu:a100:2,ssd:4K,storage:2T")
    gres = GRES + "NodeName=g1 Name=ssd Count=3K\nNodeName=g[1-2] Name=storage Count=2T\n"
    files = {"slurm.conf": conf, "gres.conf": gres}
    workload, notes = made(tmp_path, "--gres=ssd:2K", "--gres=storage:1,gpu:1", **files)
    counts = {node.name: node.total.gres.get("ssd") for node in workload.nodes}
    assert (counts["g1"], counts["g2"]) == (3072, 4096)
    assert "node g1: gres.conf has 3072 ssd, 1024 fewer than slurm.conf" in notes.texts()
    first, second = (arriving.job for arriving in workload.jobs)
    assert first.request.gres_per_node == {"ssd": Span.exactly(2048)}
    assert second.unsupported == ("--gres storage=1: no node is known to have storage",)
    files["gres.conf"] = GRES.replace("Count=1", "Count=1X")
    with pytest.raises(InputError, match=r"gres\.conf: line 3 count: '1X' is not a number"):
        made(tmp_path, **files)


def test_partitions_have_their_limits(tmp_path: Path) -> None:
    workload, _ = made(tmp_path)
    batch, quick, whole = workload.partitions
    assert (batch.max_time_limit_s, batch.max_nodes) == (86400, None)
    assert (quick.max_time_limit_s, quick.max_nodes) == (1800, 2)
    assert quick.nodes == ("n01", "n02", "n03", "g1", "g2", "d1")
    assert whole.nodes == ("n01", "n02")


def test_a_submission_with_everything(tmp_path: Path) -> None:
    job = one(
        tmp_path,
        "--uid=ann --gid=chem -A acc -q normal -p batch -N 2-3 -n 6 -c 2 -t 1-12:30 --mem=1G --contiguous "
        "--gres=gpu:a100:1 --gres=gpu:a100:2 -C new&ib -L matlab:2 --switches=1 -w n01 -x n03,zz",
    ).job
    request = job.request
    assert (job.user, job.group, job.account, job.qos, job.partition) == (
        "ann",
        "chem",
        "acc",
        "normal",
        "batch",
    )
    assert (request.nodes, request.cores, request.cores_per_task) == (Span(minimum=2, maximum=3), 12, 2)
    assert job.time_limit_s == (36 * 60 + 30) * 60
    assert (request.memory_mib_per_node, request.contiguous, request.max_switches) == (1024, True, 1)
    assert request.gres_per_node == {"gpu:a100": Span.exactly(2)}
    assert request.features == {"new", "ib"}
    assert request.licenses == {"matlab": 2}
    assert (request.required_nodes, sorted(request.excluded_nodes)) == (("n01",), ["n03"])
    assert job.unsupported == ()


SIZES = [
    ("", (1, None, None)),
    ("-n 6", (6, None, None)),
    ("-n6 -N1", (6, 1, None)),
    ("-N 3", (3, 3, None)),
    ("-N 3 -c 4", (12, 3, None)),
    ("-N 4 -n 2", (2, 2, None)),
    ("-N 2 --ntasks-per-node=3 -c 2", (None, 2, 6)),
    ("-n 8 --ntasks-per-node 4", (None, 2, 4)),
    ("-N 2 -n 2 --mincpus=4", (None, 2, 4)),
    ("--ntasks=4 --nodes=2", (4, 2, None)),
]


@pytest.mark.parametrize(("options", "expected"), SIZES)
def test_sizes_as_sbatch_fills_them_in(
    options: str, expected: tuple[int | None, ...], tmp_path: Path
) -> None:
    request = one(tmp_path, options).job.request
    nodes = None if request.nodes is None else request.nodes.minimum
    assert (request.cores, nodes, request.cores_per_node) == expected


def test_defaults_of_partitions(tmp_path: Path) -> None:
    default, quick, whole, endless = (
        job.job
        for job in made(tmp_path, "-n 2", "-n 2 -p quick", "-n 2 -p whole --mem=5", "-t UNLIMITED")[0].jobs
    )
    assert (default.partition, default.time_limit_s, default.request.memory_mib_per_core) == (
        "batch",
        3600,
        100,
    )
    assert quick.time_limit_s == 600
    # quick has no DefMem: Slurm gives all the memory of a node.
    assert quick.request.exclusive
    assert whole.request.exclusive
    assert endless.time_limit_s == 86400


MEMORY = [("--mem=2000M", 2000), ("--mem 3", 3), ("--mem=1.5", None), ("--mem=1025K", 2), ("--mem=2GB", 2048)]


@pytest.mark.parametrize(("option", "mebibytes"), MEMORY)
def test_amounts_of_memory(option: str, mebibytes: int | None, tmp_path: Path) -> None:
    if mebibytes is None:
        with pytest.raises(InputError, match=r"line 1 --mem: '1\.5' is not an amount of memory"):
            one(tmp_path, option)
    else:
        assert one(tmp_path, option).job.request.memory_mib_per_node == mebibytes


def test_memory_that_nobody_counts_is_left_out_and_said(tmp_path: Path) -> None:
    conf = CONF.replace("CR_Core_Memory", "CR_Core")
    workload, notes = made(tmp_path, "--mem=5", "--mem=5", **{"slurm.conf": conf})
    assert workload.jobs[0].job.request.memory_mib_per_node is None
    assert any("2 jobs, the first j0: memory is not looked at" in text for text in notes.texts())


def test_what_cannot_be_expressed_is_counted_and_never_starts_on_less(tmp_path: Path) -> None:
    workload, notes = made(
        tmp_path,
        "-n 1 --dependency=afterok:5",
        "-n 1 -C old|new",
        "-n 1 -C old|new",
        "-n 1 --exclusive=user",
        "-n 1 --mem=0",
        "-n 1 -L maple",
        "-n 1 -w n77",
        "-n 1 -a 1-5",
        "-n 1 --nice=5 --mail-type=END -o out.txt --comment 'two words'",
        "-n 1 -H",
        "-N 1,2,4",
        "-N 1k-2k",
    )
    jobs = [job.job for job in workload.jobs]
    assert [bool(job.unsupported) for job in jobs] == [
        True,
        True,
        True,
        False,
        False,
        True,
        True,
        True,
        False,
        False,
        True,
        True,
    ]
    assert jobs[3].request.exclusive
    assert jobs[4].request.exclusive
    assert jobs[9].hold == "JobHeldUser"
    texts = notes.texts()
    for part in (
        "1 job never starts, first j0: --dependency=afterok:5",
        "2 jobs never start, first j1: the constraint old|new",
        "1 job, the first j3: --exclusive=user is taken as --exclusive, which is stricter",
        "1 job never starts, first j5: the licences maple, whose totals are not known",
        "the required node n77",
        "1 job never starts, first j10: --nodes=1,2,4",
        "1 job never starts, first j11: --nodes=1k-2k",
        "1 job, the first j8: --nice is not looked at",
    ):
        assert any(part in text for text in texts), part
    assert texts == workload.notes


@pytest.mark.parametrize(
    ("options", "nodes"),
    [
        ("-G 2 --gpus-per-node=1", Span.exactly(2)),
        ("-N 1-3 -G a100:4 --gpus-per-node=a100:2", Span.exactly(2)),
        ("-N 2 -G 2 --gres=gpu:1", Span.exactly(2)),
    ],
)
def test_gres_on_each_node_and_over_all_fix_the_nodes(options: str, nodes: Span, tmp_path: Path) -> None:
    job = one(tmp_path, options).job
    assert (job.request.nodes, job.unsupported) == (nodes, ())
    assert job.request.gres_per_node
    assert not job.request.gres_total


@pytest.mark.parametrize("option", ["gpus", "gpus-per-node"])
def test_an_option_without_a_count_of_gpus_is_refused(option: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"line 1 --{option}: 'gpu:' is not a gres"):
        made(tmp_path, f"--{option}=''")


def test_gpus_per_node_count_instead_of_those_in_gres(tmp_path: Path) -> None:
    assert one(tmp_path, "--gres=gpu:2 --gpus-per-node=0").job.request.gres_per_node == {}
    assert one(tmp_path, "--gres=None").job.unsupported == ()


@pytest.mark.parametrize(
    "options", ["-N 1 -G 2 --gpus-per-node=1", "-G 3 --gpus-per-node=2", "-N 4 -n 2 -c 9"]
)
def test_a_contradiction_is_the_job_s_alone(options: str, tmp_path: Path) -> None:
    jobs = [arriving.job for arriving in made(tmp_path, options, "-n 1")[0].jobs]
    assert not jobs[1].unsupported
    if "-G" in options:
        assert "over all nodes" in jobs[0].unsupported[0]


def test_times_order_and_ids(tmp_path: Path) -> None:
    events = (
        "-dt 20.5 -e submit_batch_job | -sim-walltime 0.00 -n 1 -t 2 -J b x.sh -n 9\n"
        "# a comment\n\n"
        "-e submit_batch_job -dt 3 | -n 1 -sim-walltime 700 -t 10:30 -J a x.sh\n"
        "-dt 30 -e cancel_job | b\n"
    )
    workload, notes = import_events(site(tmp_path, events), tmp_path)
    first, second = workload.jobs
    assert (first.job.id, first.arrival_s, first.run_time_s, first.job.time_limit_s) == ("a", 3, 700, 660)
    assert (second.job.id, second.arrival_s, second.run_time_s, second.job.request.cores) == ("b", 20.5, 1, 1)
    assert (first.job.priority, second.job.priority) == (4294901760, 4294901759)
    texts = " / ".join(notes.texts())
    assert "1 job, the first b: ran less than 1 s: taken as 1 s" in texts
    assert "1 job, the first a: ran longer than its limit" in texts
    assert "1 event 'cancel_job' not read" in texts


def test_names_that_repeat_become_numbers(tmp_path: Path) -> None:
    events = "-dt 1 -e submit_batch_job | -sim-walltime 5 -J same x.sh\n" * 2
    workload, notes = import_events(site(tmp_path, events), tmp_path)
    assert [job.job.id for job in workload.jobs] == ["1", "2"]
    assert any("ids are numbers" in text for text in notes.texts())


DURATIONS = [
    ("30", 1800),
    ("30:15", 1815),
    ("1:30:15", 5415),
    ("2-12", 216000),
    ("2-12:30", 217800),
    ("2-12:30:15", 217815),
    ("1:2:3:4", None),
    ("-5", None),
    ("", None),
    ("5m", None),
]


@pytest.mark.parametrize(("text", "seconds"), DURATIONS)
def test_time_limits_as_sbatch_reads_them(text: str, seconds: int | None) -> None:
    assert duration_s(text) == seconds


def test_sbatch_s_words() -> None:
    words = words_of(
        """--comment='a b' -n 2 --exclusive -J "x y" --share script.sh -n 4 --nonsense""", "line 1"
    )
    assert parse_sbatch(words, "line 1") == {
        "comment": "a b",
        "ntasks": "2",
        "exclusive": "",
        "job-name": "x y",
        "oversubscribe": "",
    }


def test_segments_and_whole_blocks_as_sbatch_asks_for_them(tmp_path: Path) -> None:
    """24.05 to 25.11; topology.yaml hides topology.conf."""
    topology = "- topology: t\n  block: {block_sizes: [2], blocks: [{block: b1, nodes: n01}]}\n"
    workload, notes = made(
        tmp_path,
        "-N 4 --segment=2 --spread-segments --consolidate-segments",
        "-N 4 --segment 4 --requeue=expedite --exclusive=topo --stepmgr",
        "-N 4 --segment=3",
        "-n 1 --resources=power:3 --oom-kill-step=1 --tres-per-task=gres/gpu:1",
        **{"topology.yaml": topology, "topology.conf": "nonsense"},
    )
    first, second, third, fourth = (job.job for job in workload.jobs)
    request = first.request
    assert (request.segment, request.spread_segments, request.consolidate_segments) == (2, True, True)
    assert (second.request.segment, second.request.exclusive_topo, second.request.exclusive) == (
        4,
        True,
        False,
    )
    assert not any("exclusive" in text for text in notes.texts())
    assert third.unsupported == (
        "the parts of the request contradict each other: segment: 3 does not divide the 4 nodes",
    )
    assert fourth.unsupported == ("--resources=power:3", "--tres-per-task=gres/gpu:1")
    assert workload.network is not None
    assert workload.network.units[0].nodes == ("n01",)
    twice = topology.replace("}]}", "}, {block: b1, nodes: n02}]}")
    with pytest.raises(
        InputError, match=r"topology\.yaml: \[0\]\.block\.blocks\[1\]: block 'b1' is listed at"
    ):
        made(tmp_path, "-N 1", **{"topology.yaml": twice})


BAD_EVENTS = [
    (
        "-dt 1 -e submit_batch_job -n 1",
        "line 1: '-dt 1 -e submit_batch_job -n 1' is not -dt SECONDS -e EVENT",
    ),
    ("-dt 1 -e submit_batch_job", "has no '|'"),
    ("-dt soon -e submit_batch_job | -sim-walltime 1", "line 1 -dt: 'soon' is not a number of seconds"),
    ("-dt 1 -e submit_batch_job | -n 1 x.sh", "line 1: -sim-walltime is missing"),
    (
        "-dt 1 -e submit_batch_job | -sim-walltime -1 x.sh",
        "line 1 -sim-walltime: '-1' is not a number of seconds",
    ),
    ("-dt 1 -e submit_batch_job | -sim-walltime 1 --frob=2 x.sh", "'--frob=2' is not an option of sbatch"),
    ("-dt 1 -e submit_batch_job | -sim-walltime 1 -n", "the value of --ntasks is missing"),
    (
        "-dt 1 -e submit_batch_job | -sim-walltime 1 -n two x.sh",
        "line 1 --ntasks: 'two' is not a number above 0",
    ),
    ("-dt 1 -e submit_batch_job | -sim-walltime 1 -N 0 x.sh", "line 1 --nodes: '0' is not a number of nodes"),
    ("-dt 1 -e submit_batch_job | -sim-walltime 1 -N 4-2 x.sh", "'4-2' counts backwards"),
    (
        "-dt 1 -e submit_batch_job | -sim-walltime 1 -t never x.sh",
        "line 1 --time: 'never' is not a time limit",
    ),
    ("-dt 1 -e submit_batch_job | -sim-walltime 1 --gres=:2 x.sh", "line 1 --gres: ':2' is not a gres"),
    ("-dt 1 -e submit_batch_job | -sim-walltime 1 'x.sh", "No closing quotation"),
]


@pytest.mark.parametrize(("line", "message"), BAD_EVENTS)
def test_malformed_events_name_the_line_and_the_value(line: str, message: str, tmp_path: Path) -> None:
    events = site(tmp_path, line)
    with pytest.raises(InputError) as caught:
        import_events(events, tmp_path)
    assert str(caught.value).startswith(str(events))
    assert message in str(caught.value)


def test_the_case_of_words_in_slurm_conf_is_not_looked_at() -> None:
    lines = (
        "NodeName=n[1-2] CPUs=4\n"
        "PartitionName=Ab Nodes=n1 Default=true MaxTime=unlimited OverSubscribe=Exclusive LLN=yes\n"
        "PartitionName=b Nodes=all ExclusiveTopo=1 ReqResv=no MaxTime=1-0 State=up Exclusive=Node\n"
    )
    for text in (lines, f"\ufeff{lines}"):
        notes = Notes()
        conf = parse_slurm_conf(text_of(text.encode()), notes)
        first, second = conf.partitions
        assert (conf.default_partition, first.partition.max_time_limit_s) == ("Ab", None)
        assert (first.exclusive, second.exclusive, second.exclusive_topo) == (True, True, True)
        assert (first.ignored, second.ignored) == (("LLN=YES",), ())
        assert conf.times_s == {"Ab": None, "b": 86_400}


BAD_CONF = [
    ("NodeName=n1 CPUs=4 CoreSpecCount=8", "line 1: CoreSpecCount keeps 8 CPUs of 4"),
    ("NodeName=n1 CPUs=four", "line 1 cpus: 'four' is not a number"),
    ("NodeName=n1 CPUs=0", "cores: 0 is below 1"),
    ("NodeName=n[1-2] CPUs=4\nNodeName=n2 CPUs=4", "line 2: node 'n2' is listed twice"),
    ("ClusterName=x", "there are no NodeName lines"),
    ("NodeName=n1 CPUs=4 frob", "line 1: 'NodeName=n1 CPUs=4 frob' is not Key=Value"),
    ("NodeName=n1 CPUs=4 State=ODD", "line 1 state: 'odd' is not one of"),
    ("NodeName=n1 CPUs=4\nPartitionName=p Nodes=n1 MaxTime=x", "MaxTime: 'x' is not a duration"),
    (
        "NodeName=n1 CPUs=4\nPartitionName=p Nodes=n1\nPartitionName=p Nodes=n1",
        "partition 'p' is listed twice",
    ),
    ("NodeName=n1 CPUs=4 Gres=gpu:x:y:z", "line 1 gres: 'gpu:x:y:z' is not a gres"),
]


@pytest.mark.parametrize(("conf", "message"), BAD_CONF)
def test_malformed_configurations_name_the_line_and_the_value(
    conf: str, message: str, tmp_path: Path
) -> None:
    events = site(tmp_path, "", **{"slurm.conf": conf, "gres.conf": "", "topology.conf": ""})
    with pytest.raises(InputError) as caught:
        import_events(events, tmp_path)
    assert str(caught.value).startswith(str(tmp_path / "slurm.conf"))
    assert message in str(caught.value)


def test_the_command(tmp_path: Path) -> None:
    events = site(tmp_path, "-dt 1 -e submit_batch_job | -sim-walltime 5 -n 1 --exclusive=user -J a x.sh\n")
    packed = tmp_path / "week.events.gz"
    packed.write_bytes(gzip.compress(events.read_bytes()))
    for name in (events, packed):
        done = aucsched(
            "workload", "slurm-events", name, "--conf", tmp_path, "-o", tmp_path / f"{name.name}.json"
        )
        assert (done.returncode, done.stdout) == (0, "")
        assert "note: 1 job, the first a: --exclusive=user is taken as --exclusive" in done.stderr
    plain, unpacked = (load_workload(tmp_path / f"{name.name}.json") for name in (events, packed))
    assert plain.jobs == unpacked.jobs
    assert len(plain.jobs) == 1


def test_the_command_refuses_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"-dt 1")[:-4])
    site(tmp_path, "")
    target = tmp_path / "out.json"
    said = refused("workload", "slurm-events", tmp_path / "cut.gz", "--conf", tmp_path, "-o", target)
    assert "cut.gz: the gzip file is cut short" in said
    assert "none" in refused(
        "workload", "slurm-events", tmp_path / "cut.gz", "--conf", tmp_path / "none", "-o", target
    )
    assert not target.exists()


def test_numbers_too_far_apart_in_a_hostlist_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 1 --nodelist: 'n\[0-1\]0{12}' is not a hostlist"):
        one(tmp_path, "-w n[0-1]" + "0" * 12)


LINE = (
    "-dt 10.5 -e submit_batch_job | -sim-walltime 84.5 --uid=ann -J a -N 1-3 -n 8 -t 3-00:00:00 -p batch "
    "--mem=5G --gres=gpu:a100:2 -C old&ib --exclusive=user -L matlab:2 "
    "--switches=2@1 -w n01 -c 2 --gpus=3 run.sh\n"
)


@given(st.sampled_from([LINE, CONF, GRES]), st.data())
@settings(max_examples=300, deadline=None)
def test_spoilt_files_are_read_or_refused_and_nothing_else(text: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 12))
    spoilt = text[:place] + data.draw(st.text(" -=:,|&*@[]'\"\\0159aGné", max_size=8)) + text[place + cut :]
    notes = Notes()
    site_text = spoilt if text == CONF else CONF
    with contextlib.suppress(InputError):
        conf = fit_gres(parse_slurm_conf(site_text, notes), spoilt if text == GRES else GRES, notes)
        for line in (spoilt if text == LINE else LINE).splitlines():
            words = words_of(line.partition("-sim-walltime 84.5")[2], "line 1")
            options = parse_sbatch(words, "line 1")
            Submission(conf=conf, options=options, job_id="a", path="line 1", remarks=defaultdict(list)).job(
                1
            )


@pytest.mark.skipif(not REAL.exists(), reason="the real week is not part of the project")
def test_the_real_week_loses_no_job() -> None:
    workload, _ = import_events(REAL / "workload_week.events.gz", REAL)
    assert (len(workload.jobs), len(workload.nodes)) == (19_579, 217)
    assert not [job for job in workload.jobs if job.job.unsupported]
    assert len({job.job.user for job in workload.jobs}) == 64
    assert sum(node.total.gres != {} for node in workload.nodes) == 10
    assert sum(job.job.request.exclusive for job in workload.jobs) == 179
    assert sum(bool(job.job.request.gres_per_node) for job in workload.jobs) == 73
    assert sum(bool(job.job.request.features) for job in workload.jobs) == 1457
    assert sum(job.job.request.memory_mib_per_core == 2800 for job in workload.jobs) == 19_579 - 19_154
