"""What every run of evolving jobs keeps."""

from __future__ import annotations

from aucsched.simulation.evolving.evolving_report import EvolvingRun


def check_cores(run: EvolvingRun) -> None:
    """Count cores at every moment, from the records of jobs that neither stopped nor shrank."""
    changes: list[tuple[float, int]] = []
    for played in run.played.values():
        assert played.start_s >= played.job.arrival_s
        changes += [(played.start_s, played.static_cores), (played.end_s, -played.cores)]
        if played.grown_s is not None:
            changes.append((played.grown_s, played.cores - played.static_cores))
    held = 0
    for _, change in sorted(changes):
        held += change
        assert 0 <= held <= run.workload.cores
