"""Workloads of evolving jobs: dynamic ESP (Prabhakaran, table I), a load as Quadflow's (fig. 7)."""

import random
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from ..events import HOUR_S
from .esp import FULL_MACHINE, EspType, comes_s, numbered_jobs

#: The paper's machine: 15 nodes of 8 cores.
NODES, CORES_PER_NODE = 15, 8
#: Sizes are shares of this many cores, rounded up: the table's run times on more cores follow.
_SHARES_OF = 128
#: Cores that an evolving job asks for, and when, as shares of its static run time.
_MORE_CORES, _ASKS = 4, (Fraction(16, 100), Fraction(25, 100))
_LAST_AFTER_S = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolvingJob:
    """A job that may ask for more cores while it runs.

    Attributes:
        id, kind, user: its name, its type's letter, whose it is.
        cores: at its start.
        arrival_s: when it comes.
        static_s: its run time on these cores, which is also its walltime.
        asks_s: seconds of running after which it asks; the later ones only after refusals.
        more_cores: that it asks for.
        dynamic_s: its whole run time after a grant, where a table says it.
        rest: what is left of its run time after a grant, as a share of what would be left without.
        drains: it is before all others, and nothing behind it in the queue starts before it does.
    """

    id: str
    kind: str
    user: str
    cores: int
    arrival_s: float
    static_s: float
    asks_s: tuple[float, ...] = ()
    more_cores: int = 0
    dynamic_s: float | None = None
    rest: float = 1.0
    drains: bool = False

    def run_s(self, elapsed_s: float, *, by_table: bool) -> float:
        """Return the whole run time of a job that was granted its cores after this many seconds.

        The table holds for grants by the last of its asks; later ones scale what is left.
        """
        if by_table and self.dynamic_s is not None and elapsed_s <= self.asks_s[-1] + 1e-6:
            return max(elapsed_s, self.dynamic_s)
        return elapsed_s + max(0.0, self.static_s - elapsed_s) * self.rest


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolvingWorkload:
    """A machine of equal nodes, and the jobs that come to it, by time."""

    name: str
    nodes: int
    cores_per_node: int
    jobs: tuple[EvolvingJob, ...]

    @property
    def cores(self) -> int:
        """Of the machine."""
        return self.nodes * self.cores_per_node


def dynamic_cores(entry: EspType) -> int:
    """Return a type's cores on the paper's machine: ⌈128 · size⌉, and 120 for the whole machine."""
    return min(ceil(_SHARES_OF * entry.size), NODES * CORES_PER_NODE)


def dynamic_esp(seed: int = 0) -> EvolvingWorkload:
    """Return the dynamic ESP benchmark in a random order of submission (section IV-B).

    Fifty jobs come at once and one each 30 s after them; both Z come 30 min after the last and
    drain the machine. ``seed`` draws the order.
    """
    drawn = numbered_jobs()
    random.Random(seed).shuffle(drawn)  # noqa: S311 - an order of submission, no secret
    jobs = [_esp_job(entry, number, comes_s(rank)) for rank, (entry, number) in enumerate(drawn)]
    last_s = jobs[-1].arrival_s + _LAST_AFTER_S
    jobs += [_esp_job(entry, number, last_s) for entry, number in numbered_jobs(is_full=True)]
    return EvolvingWorkload(name="dynamic-esp", nodes=NODES, cores_per_node=CORES_PER_NODE, jobs=tuple(jobs))


def _esp_job(entry: EspType, number: int, arrival_s: float) -> EvolvingJob:
    evolves, cores = entry.dynamic_s is not None, dynamic_cores(entry)
    return EvolvingJob(
        id=f"{entry.name}{number + 1}",
        kind=entry.name,
        user=entry.user,
        cores=cores,
        arrival_s=arrival_s,
        static_s=float(entry.static_s),
        asks_s=tuple(float(share * entry.static_s) for share in _ASKS) if evolves else (),
        more_cores=_MORE_CORES if evolves else 0,
        dynamic_s=None if entry.dynamic_s is None else float(entry.dynamic_s),
        rest=cores / (cores + _MORE_CORES) if evolves else 1.0,
        drains=entry.name == FULL_MACHINE,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class QuadflowCase:
    """A test case of figure 7.

    Attributes:
        name: of it.
        adaptations: of the grid; a computation stands before the first and after each.
        threshold: cells a process up to which more processes bring nothing.
        hours: of the static run on 16 processes.
        last: the share of these after the last adaptation.
    """

    name: str
    adaptations: int
    threshold: int
    hours: float
    last: float


#: Section IV-A. The text gives adaptations, thresholds, 33 % (10 h) and 17 % (3 h) saved, and 16 %
#: of the Cylinder's time before the request; the rest of the figure is not in it.
QUADFLOW = (
    QuadflowCase(name="FlatPlate", adaptations=2, threshold=3000, hours=17.6, last=0.34),
    QuadflowCase(name="Cylinder", adaptations=5, threshold=15_000, hours=30.0, last=0.84),
)
_PROCESSES = 16
#: Jobs of a load, and the share of them that are Quadflow runs.
_JOBS, _RUNS = 60, 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class QuadflowPhase:
    """A computation between two adaptations: its grid's cells, its seconds on 16 processes."""

    cells: int
    seconds: float

    def on(self, processes: int, threshold: int) -> float:
        """Return its seconds on other processes: below the threshold a process gains nothing."""
        before = max(self.cells / _PROCESSES, threshold)
        return self.seconds * max(self.cells / processes, threshold) / before


def quadflow_phases(case: QuadflowCase, growth: float) -> tuple[QuadflowPhase, ...]:
    """Return a case's phases; ``growth`` is its last grid's cells a process over the threshold."""
    early = case.hours * HOUR_S * (1 - case.last) / case.adaptations
    last = QuadflowPhase(
        cells=round(growth * case.threshold * _PROCESSES), seconds=case.hours * HOUR_S * case.last
    )
    steps = [
        QuadflowPhase(
            cells=round(case.threshold * _PROCESSES * (place + 1) / case.adaptations), seconds=early
        )
        for place in range(case.adaptations)
    ]
    return (*steps, last)


def quadflow(seed: int = 0) -> EvolvingWorkload:
    """Return Quadflow runs among rigid jobs, one about every two hours, on 15 nodes of 8 cores.

    A run takes 16 cores. How far its grid grows nobody knows beforehand: its last grid has 0.5 to 2
    times the threshold's cells a process, and above the threshold it asks for 16 cores more.
    """
    generator = random.Random(seed)  # noqa: S311 - a load, no secret
    made, time = [], 0.0
    for number in range(_JOBS):
        if generator.random() < _RUNS:
            case = generator.choice(QUADFLOW)
            made.append(_quadflow_job(case, number, time, 0.5 * 4 ** generator.random()))
        else:
            cores = CORES_PER_NODE * generator.randint(1, 6)
            hours = generator.uniform(0.5, 8)
            user = f"rigid{generator.randint(1, 6)}"
            made.append(
                EvolvingJob(
                    id=f"R{number}",
                    kind="rigid",
                    user=user,
                    cores=cores,
                    arrival_s=time,
                    static_s=round(hours * HOUR_S),
                )
            )
        time += round(generator.expovariate(1 / (2 * HOUR_S)))
    return EvolvingWorkload(name="quadflow", nodes=NODES, cores_per_node=CORES_PER_NODE, jobs=tuple(made))


def _quadflow_job(case: QuadflowCase, number: int, arrival_s: float, growth: float) -> EvolvingJob:
    phases = quadflow_phases(case, growth)
    static = sum(phase.seconds for phase in phases)
    last = phases[-1]
    asks = static - last.seconds
    return EvolvingJob(
        id=f"{case.name}{number}",
        kind=case.name,
        user="quadflow",
        cores=_PROCESSES,
        arrival_s=arrival_s,
        static_s=static,
        # Once more after a tenth of the last phase, as dynamic ESP has a second chance.
        asks_s=(asks, asks + last.seconds / 10) if growth > 1 else (),
        more_cores=_PROCESSES if growth > 1 else 0,
        rest=last.on(2 * _PROCESSES, case.threshold) / last.seconds,
    )
