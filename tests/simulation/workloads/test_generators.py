"""The papers' workloads against their tables: counts, sums, kinds, what is drawn, and the command."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import pairwise
from math import ceil
from pathlib import Path
from statistics import mean

import pytest
from support.run import aucsched, in_a_process, refused

from aucsched import ArrivingJob, ClusterWorkload, Span, load_workload
from aucsched.formats.native.cluster_file import workload_to_json
from aucsched.simulation.workloads.esp import ESP_TYPES, esp_workload, machine_seconds
from aucsched.simulation.workloads.named_clusters import EvenCluster
from aucsched.simulation.workloads.soner import TABLES, soner_workload, table_workload
from aucsched.simulation.workloads.workload_options import SonerOptions, TableOptions

#: Theoretical run times as tables 8.4 and 8.6 print them, hours.
HOURS = {
    "8.4": [6.28, 6.27, 6.26, 12.53, 12.54, 12.48, 5.43, 5.42, 5.50, 10.90, 10.63, 10.89],
    "8.6": [5.02, 2.98, 4.94, 5.02, 3.02, 4.95, 4.98, 2.96, 5.00],
}


def cores_of(job: ArrivingJob) -> int:
    request = job.job.request
    if request.cores is not None:
        return request.cores
    assert request.nodes is not None
    assert request.cores_per_node is not None
    return request.nodes.minimum * request.cores_per_node


def hours(workload: ClusterWorkload) -> float:
    """Return the theoretical run time (7.2), counted anew."""
    machine = sum(node.total.cores for node in workload.nodes)
    return sum(job.run_time_s * cores_of(job) for job in workload.jobs) / machine / 3600


@cache
def table(name: str, row: str, *, seed: int = 1, ranges: bool = False, drop: bool = False) -> ClusterWorkload:
    options = TableOptions(gpu_ranges=ranges, contiguity="drop" if drop else "honour")
    return table_workload(name, row, seed=seed, options=options)


def kind_of(job: ArrivingJob) -> str:
    """Return the kind as table 7.3 defines it, from the request alone."""
    request = job.job.request
    assert request.cores is not None
    if request.nodes is None:
        assert not request.gres_per_node
        return "A"
    gpus = request.gres_per_node.get("gpu", Span.exactly(99))
    kinds = {(99, 99): "B", (1, 1): "C", (2, 2): "D", (3, 3): "E", (1, 3): "C'", (2, 3): "D'"}
    return kinds[gpus.minimum, gpus.maximum]


def test_esp_has_the_table_s_jobs_in_random_order() -> None:
    workload = esp_workload(EvenCluster(), seed=4)
    counted = Counter(int(job.run_time_s) for job in workload.jobs)
    assert counted == {entry.run_time_s: entry.count for entry in ESP_TYPES}
    assert hours(workload) * 3600 == pytest.approx(11_011, rel=0.0005)
    sizes = {int(job.run_time_s): cores_of(job) for job in workload.jobs}
    for entry in ESP_TYPES:
        assert sizes[entry.run_time_s] % 12 == 0
        assert sizes[entry.run_time_s] == pytest.approx(float(entry.size) * 1408 * 12, abs=6)
    order = [job.run_time_s for job in workload.jobs]
    assert order != [job.run_time_s for job in esp_workload(EvenCluster(), seed=5).jobs]
    assert [job.arrival_s for job in workload.jobs if job.run_time_s == 100] == [2400, 7200]


def test_esp_sums_to_the_second_where_every_size_is_whole_nodes() -> None:
    """Soner: table 7.1 ESP."""
    # 80 000 is the first number of nodes of which every share of table 7.1 is whole.
    cluster = EvenCluster(nodes=80_000, cores=1, gpus=2, tree=False)
    assert hours(esp_workload(cluster, seed=1)) * 3600 == pytest.approx(float(machine_seconds()))
    assert round(hours(esp_workload(cluster, seed=1, gpus=True)) * 3600) == 21_823


def test_esp_with_gpus_doubles_each_job_but_z() -> None:
    """Soner: ESP, ESP with GPUs (7.3.1)."""
    workload = esp_workload(EvenCluster(), seed=4, gpus=True)
    assert len(workload.jobs) == 458
    asking = [job for job in workload.jobs if job.job.request.gres_per_node]
    plain = [job for job in workload.jobs if not job.job.request.gres_per_node]
    assert {(job.job.request.gres_per_node["gpu"].minimum) for job in asking} == {2}
    without_z = Counter((job.run_time_s, cores_of(job)) for job in plain if job.run_time_s != 100)
    assert Counter((job.run_time_s, cores_of(job)) for job in asking) == without_z
    assert [job.arrival_s for job in plain if job.run_time_s == 100] == [4800, 14400]


def test_esp_arrivals_spread_over_a_quarter_and_follow_the_parameters() -> None:
    others = [job.arrival_s for job in esp_workload(EvenCluster(), seed=2).jobs if job.run_time_s != 100]
    assert max(others) == pytest.approx(11_011 / 4, rel=0.1)
    assert others[0] == 0
    steady = esp_workload(EvenCluster(), seed=2, arrival_mean_s=30, arrival_sd_s=0)
    times = [job.arrival_s for job in steady.jobs if job.run_time_s != 100]
    assert times == [30.0 * place for place in range(228)]
    wild = esp_workload(EvenCluster(), seed=2, arrival_mean_s=0, arrival_sd_s=10)
    gaps = [job.arrival_s for job in wild.jobs if job.run_time_s != 100]
    # Half of the times between arrivals would be negative: they are 0.
    assert sum(second == first for first, second in pairwise(gaps)) == pytest.approx(114, abs=30)


@pytest.mark.parametrize("name", ["8.4", "8.6"])
def test_theoretical_run_times_are_near_the_table_s(name: str) -> None:
    for row, printed in enumerate(HOURS[name], 1):
        assert hours(table(name, str(row))) == pytest.approx(printed, rel=0.04), row


def test_numbers_of_jobs() -> None:
    """Soner: tables 8.4, 8.5, 8.6 workloads."""
    counts = [len(table("8.4", str(row)).jobs) for row in (1, 4, 7, 10)]
    assert counts == [4385, 8748, 3791, 7610]
    assert [len(table("8.6", str(row)).jobs) for row in range(1, 10)] == [3491, 2095, 3491] * 3
    assert [len(table("8.5", row).jobs) for row in ("1", "2", "3", "4", "5", "6", "5'", "6'")] == [
        350,
        2095,
    ] * 4


MIXES = [
    *[("8.4", str(row), "A" if row <= 6 else "ABCDE") for row in range(1, 13)],
    *[("8.5", str(row), kinds) for row, kinds in enumerate(("A", "A", "B", "B", "ABCDE", "ABCDE"), 1)],
    *[("8.6", str(row), kinds) for row, kinds in enumerate(("A", "B", "ABCDE") * 3, 1)],
]


@pytest.mark.parametrize(("name", "row", "kinds"), MIXES)
def test_kinds_sizes_and_times_of_every_row(name: str, row: str, kinds: str) -> None:
    """Soner: table 7.3 kinds A to E, C', D'."""
    workload = table(name, row)
    counted = Counter(kind_of(job) for job in workload.jobs)
    assert set(counted) == set(kinds)
    assert max(counted.values()) - min(counted.values()) <= 1
    whole = 16 if name == "8.5" else 12
    over = {8, 16} if name == "8.5" else {4, 8}
    assert {cores_of(job) for job in workload.jobs} <= {whole * nodes for nodes in range(1, 44)}
    assert all(60 <= job.run_time_s <= 600 for job in workload.jobs)
    assert all(job.job.time_limit_s == job.run_time_s for job in workload.jobs)
    for job in workload.jobs:
        nodes = job.job.request.nodes
        if nodes is not None:
            assert nodes.is_exact
            assert nodes.minimum in {-(-cores_of(job) // divisor) for divisor in over}
    ranks = [4_294_901_760 - job.job.priority for job in workload.jobs]
    assert ranks == list(range(len(ranks)))
    assert max(job.arrival_s for job in workload.jobs) <= hours(workload) * 3600 / 4


def test_what_is_drawn_is_spread_over_its_whole_range() -> None:
    jobs = table("8.6", "3").jobs
    assert mean(job.run_time_s for job in jobs) == pytest.approx(330, rel=0.03)
    assert mean(cores_of(job) for job in jobs) == pytest.approx(264, rel=0.03)
    assert {cores_of(job) // 12 for job in jobs} == set(range(1, 44))
    asking = [job for job in jobs if job.job.request.nodes is not None]
    quarters = sum(
        nodes.minimum == -(-cores_of(job) // 4)
        for job in asking
        if (nodes := job.job.request.nodes) is not None
    )
    assert quarters / len(asking) == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(("row", "share"), [("3", 0), ("6", 0.5), ("9", 1)])
def test_contiguity_is_the_row_s_and_dropping_it_changes_nothing_else(row: str, share: float) -> None:
    honoured, dropped = table("8.6", row), table("8.6", row, drop=True)
    together = sum(job.job.request.contiguous for job in honoured.jobs)
    assert together == pytest.approx(share * 3491, abs=0.5)
    loosened = tuple(
        replace(job, job=replace(job.job, request=replace(job.job.request, contiguous=False)))
        for job in honoured.jobs
    )
    assert dropped.jobs == loosened
    kinds = Counter(kind_of(job) for job in honoured.jobs if job.job.request.contiguous)
    if share == 0.5:
        assert set(kinds) == set("ABCDE")


def test_ranges_change_kinds_c_and_d_only_and_carry_the_factor() -> None:
    """Soner: GPU ranges, --gres=gpu:X-Y (5.2)."""
    fixed, ranged = table("8.4", "10"), table("8.4", "10", ranges=True)
    counted = Counter(kind_of(job) for job in ranged.jobs)
    assert set(counted) == {"A", "B", "C'", "D'", "E"}
    assert counted["C'"] == Counter(kind_of(job) for job in fixed.jobs)["C"]
    factors = []
    for before, after in zip(fixed.jobs, ranged.jobs, strict=True):
        assert kind_of(after).rstrip("'") == kind_of(before)
        assert (before.arrival_s, before.run_time_s) == (after.arrival_s, after.run_time_s)
        assert before.gres_run_time_factor is None
        assert (after.gres_run_time_factor is None) is (kind_of(after) in "ABE")
        factors += [after.gres_run_time_factor] if after.gres_run_time_factor else []
    # N(1, 0.5) truncated below at 0.1: its mean is 1 + 0.5·φ(-1.8)/Φ(1.8) = 1.0410, its sd 0.4617.
    assert len(factors) > 3000
    assert min(factors) >= 0.1
    assert mean(factors) == pytest.approx(1.041, abs=0.03)
    assert sum(factor < 0.2 for factor in factors) > 20


def test_run_time_follows_7_1_and_never_exceeds_the_limit() -> None:
    """Soner: equation (7.1)."""
    for job in table("8.5", "5'").jobs:
        gpus = job.job.request.gres_per_node.get("gpu")
        if gpus is None or gpus.is_exact:
            assert job.run_time_with(1, 3) == job.run_time_s
            continue
        assert job.gres_run_time_factor is not None
        assert job.run_time_with(gpus.minimum, gpus.minimum) == job.run_time_s
        expected = job.run_time_s * job.gres_run_time_factor * gpus.minimum / 3
        assert job.run_time_with(gpus.minimum, 3) == pytest.approx(min(job.run_time_s, expected))


def test_rows_with_a_prime_are_the_same_jobs_with_ranges() -> None:
    assert table("8.5", "5'").jobs == table("8.5", "5", ranges=True).jobs
    assert [job.arrival_s for job in table("8.5", "5'").jobs] == [
        job.arrival_s for job in table("8.5", "5").jobs
    ]


def test_rows_and_seeds_differ() -> None:
    texts = {workload_to_json(replace(table("8.6", row), name="", notes=())) for row in ("1", "4", "7")}
    assert len(texts) == 3
    assert table("8.6", "1", seed=2).jobs != table("8.6", "1").jobs


def test_machines() -> None:
    tsubame, hypothetical = table("8.6", "1"), table("8.5", "1")
    assert {node.total.cores for node in tsubame.nodes} == {12}
    assert {node.total.gres["gpu"] for node in (*tsubame.nodes, *hypothetical.nodes)} == {3}
    assert {node.total.cores for node in hypothetical.nodes} == {16}
    for workload, leaves, middle in ((tsubame, 88, 11), (hypothetical, 64, 8)):
        switches = workload.switches or ()
        assert [len(switch.nodes) for switch in switches].count(16) == leaves
        assert [len(switch.switches) for switch in switches[leaves:-1]] == [8] * middle
        assert len(switches[-1].switches) == middle
        assert switches[0].nodes == tuple(node.name for node in workload.nodes[:16])


@pytest.mark.parametrize(
    ("nodes", "expected"), [(1, 1), (16, 1), (17, 3), (128, 9), (129, 9 + 3), (300, 19 + 3 + 1)]
)
def test_switches_of_any_number_of_nodes(nodes: int, expected: int) -> None:
    switches = EvenCluster(nodes=nodes).build_switches()
    assert switches is not None
    assert len(switches) == expected
    assert EvenCluster(nodes=nodes, tree=False).build_switches() is None


SHARES: dict[str, dict[str | int, float]] = {
    "I": {"cores": 1.0},
    "II": {"nodes": 1.0},
    "III": {"cores": 0.5, "nodes": 0.5},
    "IV": {"cores": 0.4, "nodes": 0.4, 1: 0.2},
    "V": {"cores": 1 / 3, "nodes": 1 / 3, 1: 1 / 6, 2: 1 / 6},
}


@pytest.mark.parametrize("mix", SHARES)
@pytest.mark.parametrize("for_ipsched", [False, True])
def test_mixes_of_the_first_generator(mix: str, for_ipsched: bool) -> None:
    """Soner: the generator (7.3.2, 7.3.3).

    Soner: table 7.2 mixes I to V.
    """
    workload = soner_workload(mix, EvenCluster(), seed=3, options=SonerOptions(for_ipsched=for_ipsched))
    assert 4.0 <= hours(workload) < 4.05
    counted: Counter[str | int] = Counter()
    for job in workload.jobs:
        request = job.job.request
        gpus = request.gres_per_node.get("gpu")
        assert 60 <= job.run_time_s <= 600
        if gpus is not None:
            assert request.nodes is not None
            per_node = cores_of(job) / request.nodes.minimum
            assert per_node in (gpus.minimum, 2 * gpus.minimum)
        elif request.nodes is not None:
            assert (request.cores_per_node is None) is for_ipsched
            assert cores_of(job) / request.nodes.minimum in (4, 8)
        else:
            assert cores_of(job) % 12 == 0
        counted[gpus.minimum if gpus else "cores" if request.nodes is None else "nodes"] += 1
    assert counted.keys() == SHARES[mix].keys()
    for size, share in SHARES[mix].items():
        assert counted[size] == pytest.approx(share * len(workload.jobs), abs=1)


def test_both_forms_of_node_jobs_are_the_same_work() -> None:
    plain, other = (
        soner_workload("V", EvenCluster(), seed=3, options=SonerOptions(for_ipsched=form))
        for form in (False, True)
    )
    for first, second in zip(plain.jobs, other.jobs, strict=True):
        assert (cores_of(first), first.run_time_s, first.arrival_s) == (
            cores_of(second),
            second.run_time_s,
            second.arrival_s,
        )
        assert first.job.request.node_counts == second.job.request.node_counts


def test_nodes_of_gpu_jobs_by_section_7_3_2() -> None:
    """Page 69: "the number of nodes is given by R_cpu/(x · R_gpu)", x being the cores for a GPU."""
    plain, printed = (
        table_workload("8.6", "3", seed=1, options=TableOptions(cores_per_gpu=per_gpu))
        for per_gpu in ((), (4,))
    )
    seen = set()
    for first, second in zip(plain.jobs, printed.jobs, strict=True):
        request, gpus = second.job.request, second.job.request.gres_per_node.get("gpu")
        assert (cores_of(first), first.run_time_s) == (cores_of(second), second.run_time_s)
        if gpus is None:
            assert request == first.job.request
        else:
            assert request.cores is not None
            nodes = ceil(request.cores / (4 * gpus.minimum))
            assert request.nodes == Span.exactly(nodes)
            seen.add(gpus.minimum)
    assert seen == {1, 2, 3}
    assert "kind B on x/4 or x/8, kinds C to E on x/(4·GPUs) nodes, rounded up" in printed.notes[0]


COMMANDS = [
    ["esp"],
    ["esp-gpu", "--nodes", "64", "--cores", "8", "--gpus", "2"],
    ["soner", "--id", "iv", "--hours", "0.25"],
    ["table-8.4", "--id", "9", "--gpu-ranges", "--contiguity", "drop"],
    ["table-8.5", "--id", "5'"],
    ["table-8.6", "--id", "2", "--divisors", "6,12", "--arrival-spread", "0"],
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: arguments[0])
def test_the_command_writes_the_same_bytes_for_the_same_seed(arguments: list[str], tmp_path: Path) -> None:
    for name, seed, run in (("a", "7", aucsched), ("b", "7", in_a_process), ("c", "8", aucsched)):
        done = run("workload", *arguments, "--seed", seed, "-o", tmp_path / name)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    first, again, other = ((tmp_path / name).read_bytes() for name in "abc")
    assert first == again
    assert first != other
    assert load_workload(tmp_path / "a").jobs


def test_the_command_s_options_arrive() -> None:
    done = aucsched("workload", "table-8.6", "--id", "2", "--divisors", "6", "--arrival-spread", "0")
    document = json.loads(done.stdout)
    assert document["name"] == "table-8.6/2"
    assert all(job["nodes"] == job["cores"] // 6 and job["arrival_s"] == 0 for job in document["jobs"])
    assert "seed 0; arrivals uniform over 0 s" in document["notes"]
    small = json.loads(
        aucsched(
            "workload", "esp", "--nodes", "16", "--cores", "4", "--gpus", "0", "--topology", "linear"
        ).stdout
    )
    assert small["nodes"] == [{"name": "n[01-16]", "cores": 4}]
    assert "topology" not in small
    assert len(small["jobs"]) == 230


REFUSED = [
    (["table-8.6", "--id", "10"], "'10' is not one of 1, 2, 3"),
    (["table-8.6", "--id", "1", "--gpu-ranges"], "--gpu-ranges would change nothing"),
    (["table-8.5", "--id", "6'", "--gpu-ranges"], "--gpu-ranges would change nothing"),
    (["table-8.4", "--id", "1", "--divisors", "4"], "--divisors would change nothing"),
    (["table-8.4", "--id", "7", "--divisors", "4,0"], "'4,0' is not a list of numbers"),
    (["table-8.4", "--id", "7", "--divisors", "four"], "'four' is not a list of numbers"),
    (["table-8.6", "--id", "2", "--cores-per-gpu", "4"], "--cores-per-gpu would change nothing"),
    (["table-8.6", "--id", "3", "--cores-per-gpu", "5"], "a node has 4 cores for each GPU"),
    (["table-8.6", "--id", "3", "--cores-per-gpu", "0"], "--cores-per-gpu: '0' is not a list of numbers"),
    (["table-8.5", "--id", "1", "--contiguity", "drop"], "No such option"),
    (["esp-gpu", "--gpus", "1"], "esp-gpu needs 2 GPUs a node, the cluster has 1"),
    (["soner", "--id", "VI"], "'VI' is not one of"),
    (["soner", "--id", "IV", "--gpus", "0"], "mix IV asks for 1 GPUs a node, the cluster has 0"),
    (["soner", "--id", "II", "--cores", "6"], "mix II takes 8 cores a node, a node has 6"),
    (["soner", "--id", "I", "--max-cores", "5"], "--max-cores: 5 is below one node's 12"),
    (["soner", "--id", "IV", "--nodes", "256"], "a job of 516 cores by 1 GPU a node takes 516 nodes"),
    (["esp", "--seed", "-1"], "-1 is not in the range"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_what_cannot_be_made_is_refused(arguments: list[str], message: str, tmp_path: Path) -> None:
    assert message in refused("workload", *arguments, "-o", tmp_path / "w.json")
    assert not list(tmp_path.iterdir())


def test_every_table_s_rows_are_tested() -> None:
    assert {(name, row) for name, row, _ in MIXES} == {
        (name, row) for name, rows in TABLES.items() for row in rows.rows if not row.endswith("'")
    }
