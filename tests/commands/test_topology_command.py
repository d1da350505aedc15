"""``aucsched topology`` and ``--topology``, run as a user runs them."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from time import process_time

import pytest
from jsonschema import Draft202012Validator
from support.run import aucsched, refused

from aucsched.cli import run
from aucsched.formats.native.json_schema import schema_of

SMALL = ("soner", "--id", "ii", "--nodes", "64", "--hours", "0.1", "--max-cores", "96", "--seed", "1")

GRAPHML = """<?xml version="1.0"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="k" for="node" attr.name="kind" attr.type="string"/>
  <graph edgedefault="undirected">
    <node id="a"><data key="k">node</data></node>
    <node id="b"><data key="k">node</data></node>
    <node id="c"><data key="k">node</data></node>
    <node id="s"><data key="k">switch</data></node>
    <edge source="a" target="s"/><edge source="b" target="s"/><edge source="b" target="c"/>
  </graph>
</graphml>"""
NODE_LINK: dict[str, list[dict[str, object]]] = {"nodes": [{"id": 1}, {"id": 2}, {"id": "hub"}], "links": [
    {"source": 1, "target": "hub"}, {"source": "hub", "target": 2},
]}  # fmt: skip


def described(topology: str | Path, stdin: str = "") -> dict[str, object]:
    done = aucsched("topology", topology, "--format", "json", stdin=stdin)
    assert (done.returncode, done.stderr) == (0, "")
    document: dict[str, object] = json.loads(done.stdout)
    return document


def test_a_torus_is_described_drawn_and_put_into_a_snapshot(tmp_path: Path) -> None:
    picture = tmp_path / "torus.svg"
    done = aucsched("topology", "torus:16x8x8", "--plot", picture)
    assert done.returncode == 0, done.stderr
    assert "1024 nodes, 0 switches, 3072 links" in done.stdout
    assert "1.00 links apart" in done.stdout
    assert picture.read_bytes().startswith(b"<?xml")
    found = described("torus:4x2")
    assert (found["links"], found["switches"]) == (12, 0)
    snapshot = {
        "format": "aucsched-snapshot/1",
        "nodes": [{"name": "n[0-7]", "cores": 2}],
        "jobs": [{"id": "1", "priority": 1, "nodes": 2, "cores_per_node": 2, "contiguous": True}],
        "topology": found["topology"],
    }
    Draft202012Validator(schema_of("snapshot")).validate(snapshot)
    path = tmp_path / "now.json"
    path.write_text(json.dumps(snapshot))
    awarded = json.loads(aucsched("schedule", path, "--format", "json").stdout)["started"][0]["nodes"]
    order = found["order"]
    assert isinstance(order, list)
    taken = sorted(order.index(name) for name in awarded)
    assert taken[1] == taken[0] + 1
    assert described(path)["levels"] == found["levels"]


@pytest.mark.parametrize("source", ["dragonfly:9x4x2x2", "fat-tree:2x8", "torus:5"])
def test_sizes_on_the_command_line(source: str, tmp_path: Path) -> None:
    found = described(source)
    assert found["kind"] == source.partition(":")[0]
    alone = tmp_path / "topology.json"
    alone.write_text(json.dumps(found["topology"]))
    assert described(alone) == found
    assert aucsched("topology", source, "--plot", tmp_path / "it.png").returncode == 0


def test_the_picture_of_a_large_fat_tree_takes_seconds(tmp_path: Path) -> None:
    # 720 switches above 3 456 nodes took three quarters of a minute: each looked at all others.
    began = process_time()
    assert run(["topology", "fat-tree:3x24", "--plot", str(tmp_path / "it.png"), "-o", os.devnull]) == 0
    assert process_time() - began < 15


def test_graphs_of_files(tmp_path: Path) -> None:
    (tmp_path / "net.graphml").write_text(GRAPHML)
    found = described(tmp_path / "net.graphml")
    assert (found["nodes"], found["switches"], found["links"]) == (3, 1, 3)
    assert found["topology"] == {
        "kind": "graph",
        "nodes": "a,b,c",
        "links": [["a", "s"], ["b", "c,s"]],
    }
    found = described("-", stdin=json.dumps(NODE_LINK))
    assert (found["nodes"], found["switches"], found["order"]) == (2, 1, ["1", "2"])
    assert aucsched("topology", tmp_path / "net.graphml", "--plot", tmp_path / "a.pdf").returncode == 0


PAGE = (Path(__file__).parents[2] / "docs" / "topologies.md").read_text()
MEMBERS = PAGE.split("```json\n")[1].split("```")[0].split('"topology": ')[1:]


@pytest.mark.parametrize("member", MEMBERS)
def test_the_page_s_members_are_described(member: str) -> None:
    found = described("-", stdin=member)
    counts = {"tree": 4, "torus": 1024, "dragonfly": 72, "fat-tree": 1024, "blocks": 36, "ring": 8}
    assert found["nodes"] == counts.get(json.loads(member)["kind"], 32)
    # What is written stands for itself.
    assert described("-", stdin=json.dumps(found["topology"])) == found


def test_members_of_no_size_are_refused() -> None:
    for member in ({"kind": "dragonfly", "groups": 9}, {"kind": "fat-tree", "levels": 10**9, "radix": 16}):
        done = aucsched("topology", "-", stdin=json.dumps(member))
        assert (done.returncode, done.stdout) == (2, "")
        assert re.search("needs routers|a number of more than 60 digits nodes", done.stderr)


def test_links_twice_and_both_ways_make_no_switch_of_a_node() -> None:
    once = described("-", stdin=json.dumps(NODE_LINK))
    both_ways = [{"source": link["target"], "target": link["source"]} for link in NODE_LINK["links"]]
    doubled = {**NODE_LINK, "links": [*NODE_LINK["links"], *both_ways, *NODE_LINK["links"]]}
    assert described("-", stdin=json.dumps(doubled)) == once


def test_a_tree_and_a_row_are_described(tmp_path: Path) -> None:
    found = described(
        "-", stdin="SwitchName=s1 Nodes=n[1-2]\nSwitchName=s2 Nodes=n3\nSwitchName=t Switches=s[1-2]\n"
    )
    assert (found["kind"], found["switches"], found["links"]) == ("tree", 3, 5)
    assert [level["nodes"] for level in found["levels"]] == [[1, 2], [3, 3]]  # type: ignore[attr-defined]
    forest = aucsched("topology", "-", stdin="SwitchName=s1 Nodes=n[1-2]\nSwitchName=s2 Nodes=n3\n")
    assert forest.stdout.startswith("tree: 3 nodes, 2 switches, 3 links, 2 trees that no switch joins\n")
    path = tmp_path / "row.json"
    nodes = [{"name": "n[1-40]", "cores": 1}]
    path.write_text(json.dumps({"format": "aucsched-snapshot/1", "nodes": nodes, "jobs": []}))
    assert described(path)["kind"] == "linear"
    assert aucsched("topology", path, "--plot", tmp_path / "row.png").returncode == 0


@pytest.mark.parametrize(
    ("source", "text", "message"),
    [
        ("dragonfly:9x4", "", "'dragonfly:9x4' is not dragonfly: and groups x routers"),
        ("torus:999999x999", "", "nodes, not 1 to 100000"),
        ("torus:0x4", "", "has 0 nodes"),
        ("nothing-here", "", "No such file"),
        ("-", "<graphml", "no GraphML"),
        (
            "-",
            '{"nodes": [{"id": "a"}], "links": [{"source": "a", "target": "b"}]}',
            "links[0].target: 'b' is not a vertex",
        ),
        ("-", '{"kind": "fat-tree", "levels": -1, "radix": 4}', "topology.levels: -1 is below 1"),
        (
            "-",
            '{"kind": "dragonfly", "groups": 3, "routers": -2, "nodes_per_router": 1, "global_links": 1}',
            "topology.routers: -2 is below 1",
        ),
        ("-", '{"nodes": [{"id": "a"}, {"id": "a"}], "links": []}', "nodes[1].id: 'a' is listed twice"),
        ("-", '{"kind": "circle"}', "kind"),
        ("-", '{"nodes": [{"id": "a", "kind": "switch"}], "links": []}', "topology: no vertex is a node"),
        ("dragonfly:2x1x1x999999999", "", "topology.global_links: 1999999998 ports"),
        ("-", "\n", "names no nodes"),
    ],
)
def test_what_is_no_topology_is_one_line(
    source: str, text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "it").write_text(text)
    assert run(["topology", str(tmp_path / "it") if source == "-" else source]) == 2
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert message in told.err


def test_a_workload_on_another_network(tmp_path: Path) -> None:
    path, other = tmp_path / "tree.json", tmp_path / "torus.json"
    assert aucsched("workload", *SMALL, "-o", path).returncode == 0
    assert aucsched("workload", *SMALL, "--topology", "torus:4x4x4", "-o", other).returncode == 0
    assert json.loads(other.read_text())["topology"]["kind"] == "torus"
    args = ("--policy", "aucsched3", "--work-limit", "0", "--format", "json")
    given = json.loads(aucsched("simulate", path, *args, "--topology", "torus:4x4x4").stdout)
    stored = json.loads(aucsched("simulate", other, *args).stdout)
    assert given["metrics"] == stored["metrics"]
    assert 1 <= given["metrics"]["hops_mean"] <= 6
    assert given["topology"] == "torus:4x4x4"
    linear = json.loads(aucsched("simulate", other, *args, "--topology", "linear").stdout)
    assert linear["metrics"].get("level_mean") is None
    assert "4x4 has 16 places, for 64 nodes" in refused("simulate", path, *args, "--topology", "torus:4x4")
