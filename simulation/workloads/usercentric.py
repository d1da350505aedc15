"""User-centric traces: one user's stream of STEN, GE and CL jobs (Weissman 4.1, table 1)."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np

from ...cluster.errors import OptionError
from ...formats.swf import SwfLog
from .tracing import arranged, stream

#: Table 1 prints P3's run time for GE's P4; this one reproduces table 3.
GE_P4_S, GE_P4_PRINTED_S = 22_300.0, 3_857.0
#: SeqBlockSize, which the paper does not give.
BLOCK_BYTES = 1000.0
_DOUBLE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A problem instance of table 1.

    Attributes:
        application: STEN, GE or CL.
        size: N of STEN and GE, source sequences of CL.
        ideal: processors.
        run_s: on those.
    """

    application: str
    size: int
    ideal: int
    run_s: float

    def data(self, block_bytes: float = BLOCK_BYTES) -> float:
        """Return the bytes that an adaptation moves, times the processors that hold them (4.1)."""
        if self.application == "CL":
            return 2 * self.size * block_bytes
        return 2 * self.size**2 * float(_DOUBLE)


def _instances(application: str, *rows: tuple[int, int, float]) -> tuple[Instance, ...]:
    return tuple(
        Instance(application=application, size=size, ideal=ideal, run_s=run_s) for size, ideal, run_s in rows
    )


def table_1(ge_p4_s: float = GE_P4_S) -> dict[str, tuple[Instance, ...]]:
    """Return the problem instances by trace template; MIXED holds all of them."""
    sten = _instances("STEN", (128, 4, 1289), (256, 8, 6359), (512, 10, 24_758), (1024, 14, 113_824))
    ge = _instances("GE", (128, 6, 177), (256, 8, 768), (512, 12, 3857), (1024, 18, ge_p4_s))
    cl = _instances("CL", (25, 10, 4815), (50, 16, 6666), (100, 24, 23_622), (200, 32, 244_800))
    return {"STEN": sten, "GE": ge, "CL": cl, "MIXED": (*sten, *ge, *cl)}


TEMPLATES = ("STEN", "GE", "CL", "MIXED")


def interarrival_s(instances: tuple[Instance, ...], processors: int, beta: float) -> float:
    """Return the mean time between arrivals: RT_ideal / (P / P_ideal) · β, of the instances' means."""
    run_s = sum(one.run_s for one in instances) / len(instances)
    ideal = sum(one.ideal for one in instances) / len(instances)
    return run_s / (processors / ideal) * beta


def user_trace(
    template: str,
    *,
    beta: float = 0.5,
    jobs: int = 10_000,
    processors: int = 64,
    seed: int = 0,
    ge_p4_s: float = GE_P4_S,
    block_bytes: float = BLOCK_BYTES,
) -> SwfLog:
    """Return a trace of a template as a log: instances drawn with equal likelihood, Poisson arrivals.

    Args:
        template: one of TEMPLATES.
        beta: of the mean time between arrivals; at 1 applications run about without delay.
        jobs: how many.
        processors: of the cluster.
        seed: of both draws.
        ge_p4_s: run time of GE's largest instance.
        block_bytes: SeqBlockSize of CL.

    Raises:
        OptionError: no such template, a machine smaller than an instance, or a number not above 0.
    """
    instances = table_1(ge_p4_s).get(template)
    if instances is None:
        raise OptionError(f"{template!r} is not one of {', '.join(TEMPLATES)}")
    for name, value in (("beta", beta), ("block_bytes", block_bytes), ("ge_p4_s", ge_p4_s)):
        if not (isfinite(value) and value > 0):
            raise OptionError(f"{name} {value:g} is not above 0")
    if max(one.ideal for one in instances) > processors:
        raise OptionError(f"{template} has an instance above {processors} processors")
    drawn = stream(seed, "instances").integers(0, len(instances), jobs)
    gap_s = interarrival_s(instances, processors, beta)
    submit = np.cumsum(stream(seed, "arrivals").exponential(gap_s, jobs))
    columns = np.array([(one.ideal, one.run_s, one.data(block_bytes)) for one in instances])[drawn]
    names = ", ".join(f"{place + 1} {one.application} {one.size}" for place, one in enumerate(instances))
    notes = (
        f"user-centric trace {template} (Weissman 4.1, table 1), beta {beta:g}, seed {seed}",
        f"executables: {names}",
        "used memory is what an adaptation moves from each processor",
    )
    return arranged(
        submit,
        columns[:, 0].astype(np.int64),
        columns[:, 1],
        processors=processors,
        notes=notes,
        application=drawn + 1,
        data=columns[:, 2],
    )
