"""topology.conf and ``scontrol show topology``, fitted to the nodes that the cluster has."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucsched import InputError, Node, Resources, Snapshot, Switch
from aucsched.formats.notes import Notes
from aucsched.slurm.answers.topology_conf import parse_topology

FOLDER = Path(__file__).parents[2] / "fixtures" / "slurm"
NODES = tuple(f"n{number}" for number in range(1, 7))


def parse(text: str, nodes: tuple[str, ...] = NODES) -> tuple[tuple[Switch, ...] | None, tuple[str, ...]]:
    notes = Notes()
    return parse_topology(text, nodes, notes), notes.texts()


def leaf(name: str, *nodes: str) -> Switch:
    return Switch(name=name, nodes=nodes)


def test_both_forms_say_the_same() -> None:
    nodes = tuple(f"n{number:02}" for number in range(1, 13))
    conf, notes = parse((FOLDER / "use" / "topology.conf").read_text(), nodes)
    shown, more = parse((FOLDER / "requests" / "topology.txt").read_text(), nodes)
    assert conf == shown
    assert notes == more == ()


def test_spelling_comments_and_joined_lines() -> None:
    text = """
    # a comment
    switchname=A NODES=n[1-3] LinkSpeed=100   # another
    SWITCHNAME=B \\
       nodes=n[4-5],n6
    SwitchName=top Switches=[A-B]
    """.replace("[A-B]", "A,B")
    switches, notes = parse(text)
    assert switches == (
        leaf("A", "n1", "n2", "n3"),
        leaf("B", "n4", "n5", "n6"),
        Switch(name="top", switches=("A", "B")),
    )
    assert notes == ()


def test_unknown_nodes_and_switches_left_empty_are_dropped() -> None:
    text = """
    SwitchName=a Nodes=n[1-6],x[1-3]
    SwitchName=b Nodes=y1
    SwitchName=c Switches=b
    SwitchName=d Switches=a,c,e
    """
    switches, notes = parse(text)
    assert switches == (leaf("a", *NODES), Switch(name="d", switches=("a",)))
    assert notes == (
        "switch a: nodes not of the cluster are dropped: 3, the first x1",
        "switch b: nodes not of the cluster are dropped: 1, the first y1",
        "switch b has no node of the cluster below it and is dropped",
        "switch c has no node of the cluster below it and is dropped",
        "switch d: e below it is not described and is dropped",
    )


def test_nodes_on_no_leaf_get_one_of_their_own() -> None:
    switches, notes = parse("SwitchName=a Nodes=n[1-2]\nSwitchName=unconnected Nodes=n3")
    assert switches == (
        leaf("a", "n1", "n2"),
        leaf("unconnected", "n3"),
        leaf("unconnected-nodes", "n4", "n5", "n6"),
    )
    assert notes == ("nodes on no leaf switch, put on 'unconnected-nodes': 3 (n4,n5,n6)",)


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("", "the topology names no switches: taken as linear"),
        ("No topology information available\n", "the topology names no switches: taken as linear"),
        ("SwitchName=a Nodes=x1", "no switch of the topology holds a node of the cluster: taken as linear"),
        (
            "BlockName=b1 Nodes=n[1-3]\nBlockSizes=3",
            "blocks are no switches: 2 lines are not read, from line 1: BlockName=b1 Nodes=n[1-3]",
        ),
        (
            "AggregatedBlock=b[1-2] BlockIndex=2 Nodes=n[1-6]\nBlockName=b1 BlockIndex=0 BlockSize=3",
            (
                "blocks are no switches: 2 lines are not read, from line 1: AggregatedBlock=b[1-2] "
                "BlockIndex=2 Nodes=n[1-6]"
            ),
        ),
        (
            "RingName=r0 Nodes=n[1-6] RingSize=6",
            ("rings are no switches: 1 lines are not read, from line 1: RingName=r0 Nodes=n[1-6] RingSize=6"),
        ),
        (
            "TorusName=t0 Dims=3x2x1 Nodes=n[1-6]\n  TorusName=t0 PlacementDims=1x1x1(6) Anchors=6",
            ("tori are no switches: 2 lines are not read, from line 1: TorusName=t0 Dims=3x2x1 Nodes=n[1-6]"),
        ),
    ],
)
def test_linear_where_there_is_no_tree(text: str, note: str) -> None:
    switches, notes = parse(text)
    assert switches is None
    assert note in notes


@pytest.mark.parametrize(
    "text", ["SwitchName=a Nodes=n1 stray", "SwitchName= Nodes=n1", "Nodes", "SwitchName=a Nodes=@x"]
)
def test_other_lines_are_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text)
    assert caught.value.path == "line 1"


@st.composite
def topologies(draw: st.DrawFn) -> str:
    """Lines that may name unknown nodes, leave nodes out and leave switches empty, but never twice."""
    nodes = draw(st.permutations([*NODES, "x1", "x2", "x3"]))
    lines: list[str] = []
    below: list[str] = []
    while nodes:
        size = draw(st.integers(1, len(nodes)))
        name = f"s{len(lines)}"
        lines.append(f"SwitchName={name} Nodes={','.join(nodes[:size])}")
        nodes = nodes[size:][: draw(st.integers(0, 9))]
        below.append(name)
    while len(below) > 1:
        size = draw(st.integers(1, len(below)))
        name = f"s{len(lines)}"
        lines.append(f"SwitchName={name} Switches={','.join(below[:size])}")
        below = [*below[size:], name]
        if size == 1 and draw(st.booleans()):
            break
    return "\n".join(draw(st.permutations(lines)))


@given(topologies())
def test_what_comes_out_is_a_tree_over_all_nodes(text: str) -> None:
    switches, _ = parse(text)
    # A snapshot checks for trees with every node on exactly one leaf.
    free = Resources(cores=1)
    snapshot = Snapshot(
        nodes=tuple(Node(name=name, total=free, free=free) for name in NODES), switches=switches
    )
    if snapshot.switches is not None:
        held = [name for switch in snapshot.switches for name in switch.nodes]
        assert sorted(held) == sorted(NODES)


SHARED = Path(__file__).parents[4] / "shared" / "data" / "ub" / "topology.conf"


@pytest.mark.skipif(not SHARED.is_file(), reason="the site's file is not here")
def test_a_real_sites_file() -> None:
    switches, notes = parse(SHARED.read_text(), ("n001", "gn001", "m100", "g008", "b024", "other"))
    assert switches == (
        leaf("IBN", "n001", "gn001"),
        leaf("IBM", "m100"),
        leaf("IBG", "g008", "b024"),
        Switch(name="TOP", switches=("IBN", "IBM", "IBG")),
        leaf("unconnected", "other"),
    )
    assert len(notes) == 4


YAML = (FOLDER / "newer" / "topology.yaml").read_text()
TWELVE = tuple(f"n{number:02}" for number in range(1, 13))


def test_the_default_topology_of_a_yaml_file() -> None:
    switches, notes = parse(YAML, TWELVE)
    conf = "".join(
        f"SwitchName={name}\n"
        for name in (
            "top Switches=mid[1-2]",
            "mid1 Switches=leaf1,leaf2",
            "mid2 Switches=leaf3",
            "leaf1 Nodes=n[01-04]",
            "leaf2 Nodes=n[05-08]",
            "leaf3 Nodes=n[09-12]",
        )
    )
    assert switches == parse(conf, TWELVE)[0]
    assert notes == (
        "topology 'racks' is not read: 'fabric' is the default",
        "topology 'plain' is not read: 'fabric' is the default",
    )


def test_without_a_default_the_first_is_read() -> None:
    switches, notes = parse(YAML.replace("cluster_default: true", ""), TWELVE)
    assert switches is None
    assert notes[0] == "no topology is the cluster's default: 'racks' is read"
    assert "topology 'racks' is block, not a tree: its nodes are taken as linear" in notes


@pytest.mark.parametrize(
    ("default", "is_unread"),
    [
        ("block: {block_sizes: [3], blocks: [{block: b1, nodes: 'n[1-3]'}]}", True),
        ("ring: {rings: [{ring: r0, nodes: 'n[1-6]'}]}", True),
        ("torus3d: {toruses: [{name: t0, dims: {x: 3, y: 2, z: 1}, nodes: 'n[1-6]'}]}", True),
        ("flat: {alpha_step_rank: true}", False),
        ("flat: true", False),
    ],
)
def test_a_default_that_is_no_tree_is_linear(default: str, *, is_unread: bool) -> None:
    """A check that is strict refuses a cluster whose rules for blocks are not looked at."""
    notes = Notes()
    text = f"- {{topology: t, cluster_default: true, {default}}}\n"
    assert parse_topology(text, NODES, notes) is None
    kind = default.partition(":")[0]
    said = f"topology 't' is {kind}, not a tree: its nodes are taken as linear"
    assert said in notes.texts()
    assert (said in notes.policies) == is_unread


def test_names_of_digits_and_unknown_members() -> None:
    text = "- topology: t\n  tree:\n    switches:\n    - {switch: 7, nodes: 'n[1-6]', speed: 3}\n"
    switches, notes = parse(text)
    assert switches == (leaf("7", *NODES),)
    assert notes == ("[0].tree.switches[0]: 'speed' is not read",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- topology: [", "not YAML: "),
        ("- 7\n", "[0]: '7' is not a topology"),
        ("- tree: {}\n", "[0]: the member 'topology' is missing or no name"),
        ("- topology: t\n", "[0]: topology 't' is not exactly one of tree, block, flat, ring, torus3d"),
        ("- topology: t\n  tree: {}\n", "[0].tree: the member 'switches' is missing or no list"),
        (
            "- topology: t\n  tree: {switches: [{switch: a}]}\n",
            "[0].tree.switches[0]: it is not switch with children or nodes",
        ),
        (
            "- topology: t\n  tree: {switches: [{switch: a, nodes: [n1]}]}\n",
            "[0].tree.switches[0].nodes: \"['n1']\" is not a hostlist",
        ),
        (
            "- topology: t\n  tree: {switches: [{switch: a, nodes: 'n[1-'}]}\n",
            "[0].tree.switches[0].nodes: 'n[1-' is not a hostlist",
        ),
        ("- !!python/object/apply:os.getcwd []\n", "not YAML: "),
    ],
)
def test_bad_yaml_is_named(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text)
    assert str(caught.value).startswith(message)
