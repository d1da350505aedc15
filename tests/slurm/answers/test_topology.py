"""topology.conf and ``scontrol show topology``, fitted to the nodes that the cluster has."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucsched import InputError, Node, Resources, Snapshot, Switch
from aucsched.cluster.network import Network, NetworkKind, PlacementSize
from aucsched.formats.notes import Notes
from aucsched.slurm.answers.topology_conf import parse_topology

FOLDER = Path(__file__).parents[2] / "fixtures" / "slurm"
NODES = tuple(f"n{number}" for number in range(1, 7))


def parse(text: str, nodes: tuple[str, ...] = NODES) -> tuple[tuple[Switch, ...] | None, tuple[str, ...]]:
    notes = Notes()
    return parse_topology(text, notes).fitted(nodes, notes).switches, notes.texts()


def network(text: str, nodes: tuple[str, ...] = NODES, wanted: str = "") -> tuple[Network, tuple[str, ...]]:
    notes = Notes()
    made = parse_topology(text, notes, wanted).fitted(nodes, notes).network
    assert made is not None
    return made, notes.texts()


def units(made: Network) -> dict[str, tuple[str, ...]]:
    return {unit.name: unit.nodes for unit in made.units}


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
            "BlockName=b1 Nodes=x[1-3]",
            "no block of the topology holds a node of the cluster: taken as linear",
        ),
        ("BlockSizes=4", "the topology names no blocks: taken as linear"),
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


@pytest.mark.parametrize("default", ["flat: {alpha_step_rank: true}", "flat: true"])
def test_a_flat_topology_is_linear(default: str) -> None:
    switches, notes = parse(f"- {{topology: t, cluster_default: true, {default}}}\n")
    assert (switches, notes) == (None, ())


def test_one_topology_of_several_is_asked_for() -> None:
    made, notes = network(YAML, TWELVE, "racks")
    assert made.kind is NetworkKind.BLOCKS
    assert notes == (
        "topology 'fabric' is not read: 'racks' is that of the partitions",
        "topology 'plain' is not read: 'racks' is that of the partitions",
    )
    read = parse_topology(YAML, Notes())
    assert read.name == "fabric"
    assert read.strange == {"racks"}


B8 = tuple(f"n{number}" for number in range(1, 9))
SHOWN = (
    "BlockName=b1 BlockIndex=0 Nodes=n[1-4] BlockSize=4\n"
    "BlockName=b2 BlockIndex=1 Nodes=n[5-8] BlockSize=4\n"
    "AggregatedBlock=b[1-2] BlockIndex=2 Nodes=n[1-8] BlockSize=8\n"
)
BLOCKS_YAML = """\
- topology: t
  block:
    block_sizes: [4, 8]
    blocks:
    - {block: b1, nodes: 'n[1-4]'}
    - {block: b2, nodes: 'n[5-8]'}
"""
TORUS_YAML = """\
- topology: t
  torus3d:
    toruses:
    - name: t0
      dims: {x: 2, y: 2, z: 2}
      nodes: n[1-8]
      placements:
      - {dims: {x: 2, y: 1, z: 1}}
      - dims: {x: 2, y: 2, z: 1}
        anchor_seed: {x: 0, y: 0, z: 1}
        anchor_spacing: {x: 1, y: 1, z: 2}
"""
HIDDEN = (
    "scontrol tells no block sizes before 24.11: Slurm's default is taken, groups of 1 to 16 blocks "
    "(give topology.conf)"
)


@pytest.mark.parametrize(
    ("text", "sizes", "said"),
    [
        (SHOWN, (4, 8), ()),
        ("blockname=b1 NODES=n[1-4]\nBlockName=b2 Nodes=n[5-8]\nBlockSizes=4,8", (4, 8), ()),
        ("BlockName=b1 Nodes=n[1-4] # c\nBlockName=b2 \\\n Nodes=n[5-8]\nBlockLevels=0-1", (4, 8), ()),
        ("BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]", (4, 8, 16, 32, 64), ()),
        (
            "BlockName=b1 BlockIndex=0 Nodes=n[1-4]\nBlockName=b2 BlockIndex=1 Nodes=n[5-8]",
            (4, 8, 16, 32, 64),
            (HIDDEN,),
        ),
        (BLOCKS_YAML, (4, 8), ()),
    ],
)
def test_blocks_in_every_form(text: str, sizes: tuple[int, ...], said: tuple[str, ...]) -> None:
    made, notes = network(text, B8)
    assert made.kind is NetworkKind.BLOCKS
    assert units(made) == {"b1": B8[:4], "b2": B8[4:]}
    assert (made.sizes, notes) == (sizes, said)
    assert made.nodes == B8


@st.composite
def machines(draw: st.DrawFn) -> tuple[list[list[str]], list[int]]:
    """Blocks of a machine, some with fewer nodes or more than their size, or with none; and block sizes."""
    base = draw(st.integers(1, 4))
    counts = draw(st.lists(st.integers(0, base + 1), min_size=1, max_size=9).filter(any))
    names = iter(draw(st.permutations([f"n{number}" for number in range(sum(counts))])))
    doublings = draw(st.sets(st.integers(1, 5), max_size=3))
    return [[next(names) for _ in range(count)] for count in counts], [
        base << one for one in sorted({0, *doublings})
    ]


@given(machines(), st.randoms(use_true_random=False))
def test_blocks_say_the_same_in_all_three_forms(
    machine: tuple[list[list[str]], list[int]], random: Random
) -> None:
    parts, sizes = machine
    conf = [f"BlockName=b{at}" + f" Nodes={','.join(nodes)}" * bool(nodes) for at, nodes in enumerate(parts)]
    shown = [f"{line} BlockIndex={at} BlockSize={sizes[0]}" for at, line in enumerate(conf)]
    shown += [f"AggregatedBlock=b[0-9] BlockIndex=99 BlockSize={size}" for size in sizes[1:]]
    random.shuffle(shown)
    listed = ", ".join(f"{{block: b{at}, nodes: '{','.join(nodes)}'}}" for at, nodes in enumerate(parts))
    yaml = f"- topology: t\n  block: {{block_sizes: {sizes}, blocks: [{listed}]}}\n"
    names = tuple(sorted(name for nodes in parts for name in nodes))
    made, notes = network("\n".join([*conf, f"BlockSizes={','.join(map(str, sizes))}"]), names)
    assert (made, notes) == network("\n".join(shown), names) == network(yaml, names)
    assert units(made) == {f"b{at}": tuple(nodes) for at, nodes in enumerate(parts)}
    assert list(made.sizes) == sizes


def test_blocks_of_missing_unknown_and_no_nodes() -> None:
    """24.11 and later: a block may be empty; nodes of no block stand outside, in their order."""
    text = (
        "BlockName=b2 BlockIndex=1 BlockSize=4\nBlockName=b1 BlockIndex=0 Nodes=n[1-2],x1 BlockSize=4\n"
        "BlockName=b3 BlockIndex=2 Nodes=n4 BlockSize=4\n"
    )
    made, notes = network(text)
    assert units(made) == {"b1": ("n1", "n2"), "b2": (), "b3": ("n4",)}
    assert [unit.name for unit in made.units] == ["b1", "b2", "b3"]
    assert made.sizes == (4,)
    assert made.nodes == ("n1", "n2", "n4", "n3", "n5", "n6")
    assert notes == (
        "block b1: nodes not of the cluster are dropped: 1, the first x1",
        "nodes in no block: 3 (n3,n5,n6)",
    )
    base, _ = network("BlockName=b1 Nodes=n[1-2],x[1-2]\nBlockName=b2 Nodes=n[3-6]")
    assert base.sizes[0] == 4, "the first block as written"


def test_rings() -> None:
    made, notes = network("RingName=r0 Nodes=n[1-4] RingSize=4\nRingName=r1 Nodes=n6,n5 RingSize=2\n")
    assert made.kind is NetworkKind.RING
    assert units(made) == {"r0": NODES[:4], "r1": ("n6", "n5")}
    text = "- topology: t\n  ring: {rings: [{ring: r0, nodes: 'n[1-4]'}, {ring: r1, nodes: 'n6,n5'}]}\n"
    assert network(text) == (made, notes)


def test_a_three_dimensional_torus() -> None:
    made, notes = network(TORUS_YAML, B8)
    (unit,) = made.units
    assert (made.kind, unit.dims, unit.nodes, notes) == (NetworkKind.TORUS3D, (2, 2, 2), B8, ())
    assert unit.placements == (
        PlacementSize(dims=(2, 1, 1)),
        PlacementSize(dims=(2, 2, 1), anchor_seed=(0, 0, 1), anchor_spacing=(1, 1, 2)),
    )
    regions = (
        "regions: [{anchor: {x: 0, y: 0, z: 0}, dims: {x: 2, y: 2, z: 1}, nodes: 'n[1-4]'}, "
        "{anchor: {x: 0, y: 0, z: 1}, dims: {x: 2, y: 2, z: 1}, nodes: 'n[5-8]'}]"
    )
    assert network(TORUS_YAML.replace("nodes: n[1-8]", regions), B8)[0] == made
    shown = "TorusName=t0 Dims=2x2x2 Nodes=n[1-8]\n  TorusName=t0 PlacementDims=2x1x1(2) Anchors=4\n"
    told, said = network(shown, B8)
    assert told.units[0].placements == (PlacementSize(dims=(2, 1, 1)),)
    assert said == (
        (
            "torus t0: anchors of 2x1x1(2) are taken as Slurm's default: scontrol does not tell them "
            "(give topology.yaml)"
        ),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "BlockName=b1 Nodes=n[1-4",
            (
                "line 1: 'BlockName=b1 Nodes=n[1-4' has an open bracket; if Slurm cut it off, unset"
                " SLURM_TOPO_LEN"
            ),
        ),
        (
            "BlockName=b1 Nodes=n[1-4] BlockSize=4\nBlockName=b2 Nodes=n5",
            "line 2: BlockSize= is missing, so the line is cut off: unset SLURM_TOPO_LEN",
        ),
        ("BlockName=b1 Nodes=n1\nBlockName=b1 Nodes=n2", "line 2: block 'b1' is listed at line 1 already"),
        ("BlockName=b1 Nodes=n1\nBlockName=b2 Nodes=n1", "line 2: node 'n1' is listed at line 1 already"),
        ("BlockName=b1 Nodes=n1\nBlockSizes=4,x", "line 2 blocksizes: 'x' is not a number of at least 1"),
        ("BlockName=b1 Nodes=n1\nBlockSizes=8,4", "line 2: 4 is not 8 times a power of two up to 2^15"),
        ("BlockName=b1 Nodes=n1\nBlockSizes=4,6", "line 2: 6 is not 4 times a power of two up to 2^15"),
        ("BlockName=b1 Nodes=n1\nBlockLevels=0-x", "line 2 blocklevels: 'x' is not a number of at least 0"),
        (
            "SwitchName=s Nodes=n1\nBlockName=b1 Nodes=n1",
            "switches at line 1 and blocks at line 2 are two topologies",
        ),
        ("RingName=r0 Nodes=n[1-3] RingSize=4", "line 1 ringsize: 4 is not the 3 nodes of the ring"),
        (
            "RingName=r0 Nodes=n[1-3],x1",
            "line 1: ring r0: node 'x1' is not of the cluster, so places are not known",
        ),
        ("TorusName=t0 Dims=2x2 Nodes=n[1-4]", "line 1 dims: '2x2' is not 4x4x2"),
        ("TorusName=t0 Dims=2x2x2 Nodes=n[1-4]", "line 1: 2x2x2 has 8 places, for 4 nodes"),
        (
            "TorusName=t Dims=2x2x1 Nodes=n[1-4]\nTorusName=t PlacementDims=2x1x1(2) Anchors=3",
            "line 2 anchors: scontrol does not tell which anchors these are: give topology.yaml",
        ),
        ("TorusName=t PlacementDims=2x1x1(2) Anchors=3", "line 1: the torus has no Dims= before"),
        (
            "- topology: t\n  block: {block_sizes: [4, 6], blocks: [{block: b, nodes: n1}]}\n",
            "[0].block.block_sizes: 6 is not 4 times a power of two up to 2^15",
        ),
        (
            "- topology: t\n  block: {block_sizes: [a], blocks: []}\n",
            "[0].block.block_sizes[0]: 'a' is not a number of at least 1",
        ),
        (
            "- topology: t\n  block: {blocks: [{nodes: n1}]}\n",
            "[0].block.blocks[0]: the member 'block' is missing or not a name",
        ),
        (
            "- topology: t\n  torus3d: {toruses: [{name: t0, dims: {x: 2, y: 1}, nodes: 'n[1-2]'}]}\n",
            "[0].torus3d.toruses[0].dims.z: 'None' is not a number of at least 1",
        ),
        ("- topology: t\n  flat: true\n- topology: t\n  flat: true\n", "[1]: topology 't' is listed twice"),
    ],
)
def test_bad_units_are_named(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        network(text)
    assert str(caught.value) == message


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
        ("- tree: {}\n", "[0]: the member 'topology' is missing or not a name"),
        ("- topology: t\n", "[0]: topology 't' is not exactly one of tree, block, flat, ring, torus3d"),
        ("- topology: t\n  tree: {}\n", "[0].tree: the member 'switches' is missing or not a list"),
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
