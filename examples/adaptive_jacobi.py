"""Three Jacobi solvers under a live iScheduler on this machine: they grow and shrink while they run.

    python examples/adaptive_jacobi.py [--processors 2] [--distribute favor_running] [--harvest low_impact]

Prints every change, what each solver's cost model was fitted to by the end, and whether its result is the one
that a serial run gives, bit for bit.
"""

from __future__ import annotations

import argparse

import numpy as np
from adaptive.jacobi import JacobiApplication, serial_jacobi
from adaptive.live import LiveScheduler

from aucsched.negotiation.malleable.harvesting import DISTRIBUTIONS, HARVESTS
from aucsched.negotiation.malleable.malleable_policies import IschedulerPolicy

#: Rows and iterations of each solver, and when it comes.
SOLVERS = {"a": (1200, 600, 0.0), "b": (800, 400, 1.0), "c": (1000, 300, 2.0)}


def main() -> None:
    """Run them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processors", type=int, default=2)
    parser.add_argument("--harvest", choices=sorted(HARVESTS), default="low_impact")
    parser.add_argument("--distribute", choices=sorted(DISTRIBUTIONS), default="favor_running")
    options = parser.parse_args()
    most = options.processors
    solvers = {
        name: JacobiApplication(name, size=size, iterations=iterations, most=most, ideal=most)
        for name, (size, iterations, _) in SOLVERS.items()
    }
    policy = IschedulerPolicy(harvest=options.harvest, distribution=options.distribute)
    scheduler = LiveScheduler(options.processors, policy)
    scheduler.run([(come, solvers[name]) for name, (_, _, come) in SOLVERS.items()])
    for change in scheduler.history:
        print(f"{change.time_s:8.2f} s  {change.name} has {change.processors}")
    for name, solver in solvers.items():
        size, iterations, _ = SOLVERS[name]
        whole, comp, comm = solver.exec_time(1, 100), solver.exec_time_comp(1, 0), solver.exec_time_comm(1, 0)
        is_right = np.array_equal(solver.result(), serial_jacobi(size, iterations))
        print(
            f"{name}: an iteration on {most} is predicted to take {_ms(whole.predicted_s)} ms "
            f"({_ms(comp.predicted_s)} computing, {_ms(comm.predicted_s)} else), "
            f"the last ones took {_ms(whole.measured_s)}; {'right' if is_right else 'WRONG'}"
        )


def _ms(seconds: float | None) -> str:
    return f"{1000 * (seconds or 0):.2f}"


if __name__ == "__main__":
    main()
