"""What the loop's figures tell Prometheus of its passes and of the gate, also when passes fail."""

from __future__ import annotations

from support.gated_slurm import FakeSlurm, loop_on

from aucsched.slurm.live.loop import Loop, tell
from aucsched.slurm.live.loop_metrics import Metrics, figures_of


def figures(metrics: Metrics, loop: Loop | None = None) -> dict[str, float]:
    """Make a pass where a loop is given; return the figures as they are told now."""
    if loop is not None:
        tell(metrics, loop.one_pass())
    found = figures_of(metrics.text())["run"]
    return {" ".join((name, *key)): value for name, values in found.items() for key, value in values.items()}


def scene() -> tuple[FakeSlurm, Metrics, Loop]:
    fake = FakeSlurm(nodes={f"n{number}": "idle" for number in range(2)})
    return fake, Metrics(loop="run", now=lambda: fake.now), loop_on(fake)


def test_passes_jobs_cores_and_starts_are_told() -> None:
    fake, metrics, loop = scene()
    for _ in range(3):
        fake.submit(4)
    first = figures(metrics, loop)
    assert (first["aucsched_jobs gated"], first["aucsched_jobs pinned"], first["aucsched_awards"]) == (
        3,
        0,
        2,
    )
    assert (first["aucsched_cores all"], first["aucsched_cores used"]) == (8, 0)
    assert first["aucsched_gap_ratio"] >= 0
    assert first["aucsched_changes"] == 2
    second = figures(metrics, loop)
    assert (second["aucsched_jobs gated"], second["aucsched_jobs pinned"]) == (1, 2)
    fake.tick()
    third = figures(metrics, loop)
    assert (third["aucsched_jobs running"], third["aucsched_jobs pinned"]) == (2, 0)
    assert third["aucsched_cores used"] == 8
    assert (third["aucsched_starts auction"], third["aucsched_passes"]) == (2, 3)
    # It answers neither for its configuration nor for limits of QOS and associations.
    assert third["aucsched_unread_rules"] == 2


def test_the_gates_age_and_end_go_on_between_passes_and_when_they_fail() -> None:
    fake, metrics, loop = scene()
    figures(metrics, loop)
    fake.now += 50
    told = figures(metrics)
    assert (told["aucsched_gate_age_seconds"], told["aucsched_gate_left_seconds"]) == (50, 70)
    fake.is_up = False
    told = figures(metrics, loop)
    assert (told["aucsched_gate_age_seconds"], told["aucsched_gate_left_seconds"]) == (50, 70)
    assert (told["aucsched_failures"], told["aucsched_passes"]) == (1, 1)
    fake.now += 100
    told = figures(metrics)
    assert (told["aucsched_gate_age_seconds"], told["aucsched_gate_left_seconds"]) == (150, 0)
    fake.is_up = True
    told = figures(metrics, loop)
    assert (told["aucsched_gate_age_seconds"], told["aucsched_gate_left_seconds"]) == (0, 120)


def test_a_loop_that_stands_by_tells_when_the_leaders_gate_ends() -> None:
    fake, metrics, _ = scene()
    loop_on(fake, host="other").one_pass()
    fake.now += 20
    told = figures(metrics, loop_on(fake))
    assert told["aucsched_gate_left_seconds"] == 100
    assert "aucsched_gate_age_seconds" not in told
    assert "aucsched_awards" not in told
