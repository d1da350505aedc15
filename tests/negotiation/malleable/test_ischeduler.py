"""The decision function: figure 3's logic and its example, each harvest policy by hand, requests, control."""

from __future__ import annotations

import pytest
from adaptive.scheduler import Application, Event, decide

from aucsched.cluster.errors import InputError
from aucsched.negotiation.malleable.malleable_policies import BASELINES, IschedulerPolicy


def app(name: str, least: int, ideal: int, count: int = 0, **more: float) -> Application:
    return Application(name=name, least=least, ideal=ideal, count=count, **{"left_s": 100.0, **more})  # type: ignore[arg-type]


def policy(harvest: str = "even", distribution: str = "favor_queued", **more: object) -> IschedulerPolicy:
    return IschedulerPolicy(harvest=harvest, distribution=distribution, **more)  # type: ignore[arg-type]


def test_figure_3_example_with_eight_processors() -> None:
    """Weissman: logic and example, figure 3."""
    rules = policy()
    first, second = app("J1", 2, 4), app("J2", 2, 4)
    assert decide(Event.ARRIVAL, 0, "linear", [], [first], 8, rules).counts == {"J1": 4}
    running = [app("J1", 2, 4, 4)]
    assert decide(Event.ARRIVAL, 0, "linear", running, [second], 8, rules).counts == {"J2": 4}
    # (2) J3 needs four and gets two from each; J4 cannot be served without suspending somebody.
    running = [app("J1", 2, 4, 4), app("J2", 2, 4, 4)]
    found = decide(Event.ARRIVAL, 5, "linear", running, [app("J3", 4, 4)], 8, rules)
    assert found.counts == {"J1": 2, "J2": 2, "J3": 4}
    assert (found.harvested, found.free) == (("J1", "J2"), 0)
    running = [app("J1", 2, 4, 2), app("J2", 2, 4, 2), app("J3", 4, 4, 4)]
    assert decide(Event.ARRIVAL, 6, "linear", running, [app("J4", 4, 4)], 8, rules).counts == {}
    # (3) J3 ends: under FQ its four go to J4.
    running = [app("J1", 2, 4, 2), app("J2", 2, 4, 2)]
    found = decide(Event.END, 9, "linear", running, [app("J4", 4, 4)], 8, rules)
    assert found.counts == {"J4": 4}


def test_what_an_ended_application_leaves_goes_to_the_running_first_or_to_the_queue() -> None:
    running = [app("J1", 2, 4, 2), app("J2", 2, 4, 2)]
    queued = [app("J4", 3, 4)]
    # M is reached with two: admission asks for nothing more.
    for distribution, counts in (
        ("favor_running", {"J1": 4, "J2": 4}),
        ("favor_queued", {"J4": 4}),
        ("queued_only", {"J4": 4}),
    ):
        found = decide(Event.END, 9, "linear", running, queued, 8, policy("even", distribution, admission=2))
        assert found.counts == counts
    # Under favor_running the admission policy still comes first.
    found = decide(Event.END, 9, "linear", running, queued, 8, policy("even", "favor_running", admission=3))
    assert found.counts == {"J1": 3, "J4": 3}
    # What nobody waits for goes to the running also under favor_queued, and stays free under queued_only.
    assert decide(Event.END, 9, "linear", running, [], 8, policy()).counts == {"J1": 4, "J2": 4}
    assert decide(Event.END, 9, "linear", running, [], 8, BASELINES["moldable"]).free == 4


def test_figure_3_steps_of_an_arrival() -> None:
    """Weissman: architecture, figures 1 and 2."""
    running = [app("a", 1, 6, 6)]
    # 2a: what is free, up to the ideal. 2b: M is reached. 2c: harvest min − avail. 2d: queue.
    for rules, ideal, counts in (
        (policy(), 4, {"b": 2}),
        (policy(admission=1), 4, {"b": 2}),
    ):
        assert decide(Event.ARRIVAL, 1, "linear", running, [app("b", 2, ideal)], 8, rules).counts == counts
    found = decide(Event.ARRIVAL, 1, "linear", running, [app("b", 4, 6)], 8, policy(admission=1))
    assert found.counts == {}
    found = decide(Event.ARRIVAL, 1, "linear", running, [app("b", 4, 6)], 8, policy(admission=2))
    assert found.counts == {"a": 4, "b": 4}
    assert decide(Event.ARRIVAL, 1, "linear", running, [app("b", 8, 8)], 8, policy()).counts == {}
    # Nobody passes a queue.
    queue = [app("c", 8, 8), app("d", 1, 1)]
    assert decide(Event.ARRIVAL, 1, "linear", running, queue, 8, policy()).counts == {}


def test_baselines() -> None:
    """Weissman: baselines IDEAL-ONLY, MOLDABLE, IDEAL-BACKFILL."""
    running = [app("a", 1, 6, 6)]
    new = [app("b", 1, 4)]
    assert decide(Event.ARRIVAL, 1, "linear", running, new, 8, BASELINES["moldable"]).counts == {"b": 2}
    assert decide(Event.ARRIVAL, 1, "linear", running, new, 8, BASELINES["ideal-only"]).counts == {}
    found = decide(Event.END, 1, "linear", [], [app("b", 1, 4), app("c", 1, 6)], 8, BASELINES["ideal-only"])
    assert found.counts == {"b": 4}


#: Four run on 20 processors: with ages 40, 30, 20, 10 and work left 100, 50, 200, 10 on the ideal ones.
def four(harvests: tuple[int, ...] = (0, 0, 0, 0)) -> list[Application]:
    return [
        app("a", 1, 5, 5, start_s=0, left_s=100, harvests=harvests[0]),
        app("b", 1, 10, 5, start_s=10, left_s=50, harvests=harvests[1]),
        app("c", 2, 5, 5, start_s=20, left_s=200, harvests=harvests[2]),
        app("d", 4, 5, 5, start_s=30, left_s=10, harvests=harvests[3]),
    ]


@pytest.mark.parametrize(
    ("harvest", "harvests", "counts"),
    [
        ("even", (0, 0, 0, 0), {"a": 3, "b": 3, "c": 4, "d": 4}),
        # The average is 1: a, b and d stand at or below it and give in turn, d one.
        ("fair", (0, 1, 2, 1), {"a": 2, "b": 3, "d": 4}),
        # The average age is 25: a, then b.
        ("long", (0, 0, 0, 0), {"a": 2, "b": 2}),
        # Times left are 100, 100, 200, 10, on average 102.5: c alone cannot give six, so all do, c first.
        ("short", (0, 0, 0, 0), {"c": 3, "a": 3, "b": 4, "d": 4}),
        # (count − 1) / ideal: .8 of a, c, d (to its least), then .6 of a and c, then .4 of a before b.
        ("low_impact", (0, 0, 0, 0), {"a": 2, "c": 3, "d": 4}),
        ("never", (0, 0, 0, 0), None),
    ],
)
def test_who_gives(harvest: str, harvests: tuple[int, ...], counts: dict[str, int] | None) -> None:
    need = 6
    found = decide(Event.ARRIVAL, 40, "linear", four(harvests), [app("n", need, 9)], 20, policy(harvest))
    if counts is None:
        assert found.counts == {}
        return
    after = {one.name: found.counts.get(one.name, one.count) for one in four()}
    assert sum(after.values()) == 20 - need
    expected = {one.name: counts.get(one.name, 5) for one in four()}
    assert after == expected
    assert found.counts["n"] == need


def test_a_price_is_the_share_of_the_work_left_that_a_processor_does_in_a_second() -> None:
    # Linear, for one less: a .2 / 100, b .1 / 50, c .2 / 200, d .2 / 10. For one more b is the only one.
    found = decide(Event.ARRIVAL, 40, "linear", four(), [app("n", 1, 9)], 20, policy("priced"))
    assert found.counts == {"c": 4, "n": 1}
    found = decide(Event.END, 40, "linear", four()[:2], [], 11, policy("priced"))
    assert found.counts == {"b": 6}


def test_processors_are_traded_until_no_price_is_clearly_above_another() -> None:
    running = [app("long", 2, 8, 6, left_s=900), app("short", 1, 8, 2, left_s=9), app("even", 2, 8, 2)]
    trading = policy("priced", "trade")
    found = decide(Event.END, 9, "linear", running, [], 10, trading)
    # Linear prices do not fall: the shortest takes all that the others may give.
    assert found.counts == {"long": 2, "short": 6}
    found = decide(Event.END, 9, "parabolic", running[:2], [], 8, trading)
    assert found.counts == {"long": 2, "short": 6}
    alike = [app("a", 1, 8, 4, left_s=100), app("b", 1, 8, 4, left_s=99)]
    assert decide(Event.END, 9, "linear", alike, [], 8, trading).counts == {}
    kept = policy("priced", "trade", max_harvests=0)
    assert decide(Event.END, 9, "linear", running, [], 10, kept).counts == {}


@pytest.mark.parametrize(
    ("harvest", "first"), [("even", "a"), ("long", "c"), ("short", "c"), ("low_impact", "b"), ("priced", "c")]
)
def test_who_gets_is_the_inverse(harvest: str, first: str) -> None:
    running = [
        app("a", 1, 6, 3, start_s=0, left_s=100),
        app("b", 1, 8, 3, start_s=10, left_s=100),
        app("c", 1, 6, 3, start_s=20, left_s=20),
    ]
    assert decide(Event.END, 40, "linear", running, [], 10, policy(harvest)).counts == {first: 4}


def test_fair_gives_first_to_those_harvested_most() -> None:
    running = [app("a", 1, 6, 3), app("b", 1, 8, 3, harvests=2), app("c", 1, 6, 3)]
    assert decide(Event.END, 40, "linear", running, [], 12, policy("fair")).counts == {"b": 6}


def test_control_limits_harvests_protects_the_young_and_weighs() -> None:
    """Weissman: admission, harvesting, distribution (2.2)."""
    new = [app("n", 3, 9)]
    limited = policy("even", max_harvests=1)
    found = decide(Event.ARRIVAL, 40, "linear", four((1, 0, 1, 0)), new, 20, limited)
    assert found.harvested == ("b", "d")
    young = policy("even", protected_s=25)
    assert decide(Event.ARRIVAL, 40, "linear", four(), new, 20, young).harvested == ("a", "b")
    assert decide(Event.ARRIVAL, 20, "linear", four(), new, 20, young).counts == {}
    weighed = policy("low_impact", weighs=True)
    # d ends in 10 s and frees five: the wait saved is 10 s, the harvest would put a, c and d off by 77.5 s.
    assert decide(Event.ARRIVAL, 40, "linear", four(), new, 20, weighed).counts == {}
    lasting = [app("a", 1, 5, 5, left_s=9.0), app("b", 5, 5, 5, left_s=90.0)]
    assert decide(Event.ARRIVAL, 0, "linear", lasting, [app("n", 1, 9)], 10, weighed).counts == {
        "a": 4,
        "n": 1,
    }


def test_an_application_that_asks_for_more_is_served_whole_or_not() -> None:
    running = [app("a", 1, 6, 3, request=2), app("b", 2, 5, 5)]
    found = decide(Event.REQUEST, 40, "linear", running, [], 9, policy())
    assert (found.counts, found.harvested) == ({"a": 5, "b": 4}, ("b",))
    greedy = [app("a", 1, 9, 3, request=6), app("b", 2, 5, 5)]
    assert decide(Event.REQUEST, 40, "linear", greedy, [], 9, policy()).counts == {}
    assert decide(Event.REQUEST, 40, "linear", running, [], 9, policy("never")).counts == {}


def test_refusals() -> None:
    with pytest.raises(InputError, match="least"):
        app("a", 3, 2)
    with pytest.raises(InputError, match="within its range"):
        app("a", 2, 4, 1)
    with pytest.raises(InputError, match="more processors than there are"):
        decide(Event.END, 0, "linear", [app("a", 1, 4, 4)], [], 3, policy())
