"""Traces of applications: a user's stream of jobs, and logs as of supercomputers (Weissman 4).

User-centric traces (4.1, table 1) hold STEN, GE and CL jobs. Of system-centric ones (4.2, figures 5
to 8) arrivals are a non-stationary Poisson process by time of day, sizes are powers of two in
discrete shares, run times follow one Weibull distribution. The parameters come from a log
(``fit``); sizes, times and arrivals are independent of each other.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from importlib.resources import files
from math import gamma, isfinite
from typing import Any
from zlib import crc32
from zoneinfo import ZoneInfo

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...cluster.errors import InputError, OptionError
from ...formats.jsontext import decode
from ...formats.swf import WIDTH, SwfField, SwfLog
from ..events import DAY_S, HOUR_S
from ..log_columns import kept_rows, processors_of

#: Times are written to the millisecond, and no run is shorter.
_DIGITS = 3
_SHORTEST_S = 10.0**-_DIGITS
_KIB = 1024


def stream(seed: int, name: str) -> np.random.Generator:
    """Return a stream of random numbers of its own for each name."""
    return np.random.default_rng([seed, crc32(name.encode())])


def arranged(
    submit: NDArray[np.float64],
    ideal: NDArray[np.int64],
    run: NDArray[np.float64],
    *,
    processors: int,
    notes: tuple[str, ...],
    application: NDArray[np.int64] | None = None,
    data: NDArray[np.float64] | None = None,
) -> SwfLog:
    """Return a trace as a log: ideal processors, run times on them; time 0 is its first midnight.

    Args:
        submit: rising, in seconds.
        ideal: processors requested and allocated.
        run: seconds, also the estimate.
        processors: MaxProcs.
        notes: of the header, a line each.
        application: executable numbers.
        data: bytes that an adaptation moves times the processors that hold them: the used memory is
            their share of one of the ideal processors, in KiB.
    """
    table = np.full((len(submit), WIDTH), -1.0)
    seconds = np.maximum(np.round(run, _DIGITS), _SHORTEST_S)
    table[:, SwfField.JOB] = np.arange(1, len(submit) + 1)
    table[:, SwfField.SUBMIT] = np.round(submit, _DIGITS)
    table[:, SwfField.RUN] = table[:, SwfField.REQUESTED_TIME] = seconds
    table[:, SwfField.ALLOCATED_PROCESSORS] = table[:, SwfField.REQUESTED_PROCESSORS] = ideal
    table[:, SwfField.STATUS] = 1
    if application is not None:
        table[:, SwfField.EXECUTABLE] = application
    if data is not None:
        table[:, SwfField.MEMORY] = data / ideal / _KIB
    header = (
        " Version: 2.2",
        " UnixStartTime: 0",
        f" MaxProcs: {processors}",
        *(f" Note: {note}" for note in notes),
    )
    return SwfLog(comments=header, table=table)


FORMAT = "aucsched-trace-model/1"
HOURS = 24
#: Newton's method on the shape has converged.
_CLOSE = 1e-12
_STEPS = 200
#: A tail this heavy has a mean that no trace shows.
_LEAST_SHAPE = 0.02


class TraceModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of system-centric traces, as their file holds them.

    Attributes:
        format: FORMAT.
        source: the log they were fitted to.
        hours: relative arrival rates of the day's 24 hours; their mean is 1 (figure 5).
        sizes: processors -> share of the jobs (figure 7).
        shape, scale_s: of the run times' Weibull distribution (figure 8).
    """

    format: str
    source: str
    hours: tuple[float, ...]
    sizes: dict[int, float]
    shape: float
    scale_s: float

    def __post_init__(self) -> None:
        if len(self.hours) != HOURS or min(self.hours) < 0 or not 0 < sum(self.hours) < float("inf"):
            raise InputError("not 24 rates of at least 0, one of them above 0", path="hours")
        if not self.sizes or min(self.sizes) < 1 or min(self.sizes.values()) < 0:
            raise InputError("not shares of at least 0 for sizes of at least 1", path="sizes")
        if not 0 < sum(self.sizes.values()) < float("inf"):
            raise InputError("the shares are not numbers above 0", path="sizes")
        for name in ("shape", "scale_s"):
            if not (isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise InputError(f"{getattr(self, name)} is not above 0", path=name)
        if self.shape < _LEAST_SHAPE or not isfinite(self.mean_run_s):
            raise InputError(f"{self.shape:g} is below {_LEAST_SHAPE}: no mean", path="shape")

    @property
    def mean_run_s(self) -> float:
        """The mean of the run times."""
        return self.scale_s * gamma(1 + 1 / self.shape)

    def to_document(self) -> dict[str, Any]:
        """Return the model as plain values."""
        document: dict[str, Any] = msgspec.to_builtins(self, str_keys=True)
        return document


def model_of(content: bytes) -> TraceModel:
    """Return the model in a JSON text.

    Raises:
        InputError: it is none.
    """
    return decode(content, TraceModel, FORMAT)


#: What `aucsched workload fit` makes of the first 4 961 rows of the SDSC SP2's log (Parallel
#: Workloads Archive, SDSC-SP2-1998-4; 128 nodes, from 24 April 1998 on).
SDSC_SP2 = model_of(files(__package__).joinpath("sdsc-sp2.json").read_bytes())


def fit(log: SwfLog, source: str) -> TraceModel:
    """Return the model that fits a log: hours and sizes counted, run times by maximum likelihood.

    Sizes that are no power of two count as the nearest (by ratio). Rows that ``simulate`` always
    drops are left out. Hours are local to the log's machine where its header names the time zone.

    Raises:
        InputError: fewer than two different run times.
    """
    size, run = processors_of(log), log.column(SwfField.RUN)
    kept, _ = kept_rows(log)
    if len(np.unique(run[kept])) <= 1:
        raise InputError("the log holds fewer than two different run times")
    powers, counts = np.unique(np.rint(np.log2(size[kept])).astype(int), return_counts=True)
    shape, scale = weibull_of(run[kept])
    hour = hours_of_day(log)[kept]
    rates = np.bincount(hour, minlength=HOURS) * HOURS / len(hour)
    return TraceModel(
        format=FORMAT,
        source=source,
        hours=tuple(np.round(rates, 4).tolist()),
        sizes={
            2**power: round(count / len(hour), 4)
            for power, count in zip(powers.tolist(), counts.tolist(), strict=True)
        },
        shape=round(shape, 4),
        scale_s=round(scale, 1),
    )


def weibull_of(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the shape and scale of largest likelihood: Newton's method on the shape's equation."""
    logs = np.log(values / values.max())
    shape = 1.2 / max(float(logs.std()), _CLOSE)
    for _ in range(_STEPS):
        powers = np.exp(shape * logs)
        whole, first, second = powers.sum(), (powers * logs).sum(), (powers * logs**2).sum()
        value = first / whole - 1 / shape - logs.mean()
        slope = (second * whole - first**2) / whole**2 + 1 / shape**2
        step = value / slope
        shape = max(shape - step, shape / 2)
        if abs(step) < _CLOSE * shape:
            break
    scale = float(values.max() * np.mean(np.exp(shape * logs)) ** (1 / shape))
    return float(shape), scale


def hours_of_day(log: SwfLog) -> NDArray[np.int64]:
    """Return the hour of the day of each submission, local where the header says the time zone."""
    start = log.header_count("UnixStartTime") or 0
    try:
        offset = datetime.fromtimestamp(start, _zone(log)).utcoffset()
    except (OverflowError, ValueError, OSError) as error:
        raise InputError(f"{start} is not a time", path="UnixStartTime") from error
    seconds = log.column(SwfField.SUBMIT) + start + (offset.total_seconds() if offset else 0)
    hours: NDArray[np.int64] = (np.floor(seconds / HOUR_S) % HOURS).astype(np.int64)
    return hours


def _zone(log: SwfLog) -> tzinfo:
    """Return the zone that the header names, else the seconds east of Greenwich that it has."""
    with suppress(KeyError, ValueError, OSError):
        return ZoneInfo(log.header("TimeZoneString") or "")
    with suppress(ValueError, OverflowError):
        return timezone(timedelta(seconds=int(log.header("TimeZone") or 0)))
    return UTC


def system_trace(
    model: TraceModel,
    *,
    jobs: int = 10_000,
    processors: int = 128,
    load: float = 0.7,
    seed: int = 0,
    max_size: int | None = None,
) -> SwfLog:
    """Return a trace of a model as a log.

    Args:
        model: the parameters.
        jobs: how many.
        processors: of the machine.
        load: expected work over what the machine could do: rate · mean size · mean run time /
            processors.
        seed: of all draws; arrivals, sizes and run times have a stream each.
        max_size: larger sizes are left out; None: half the machine (figure 7 goes to 64 of 128).

    Raises:
        OptionError: the model has no size that fits.
    """
    largest = max(1, processors // 2) if max_size is None else min(max_size, processors)
    fitting = {size: share for size, share in model.sizes.items() if size <= largest and share > 0}
    if not fitting:
        raise OptionError(f"the model has no size up to {largest} processors")
    sizes, weights = np.array(list(fitting)), np.array(list(fitting.values()))
    shares = weights / weights.sum()
    rate = load * processors / (float(sizes @ shares) * model.mean_run_s)
    ideal = stream(seed, "sizes").choice(sizes, jobs, p=shares)
    run = model.scale_s * stream(seed, "runs").weibull(model.shape, jobs)
    submit = _by_hours(np.cumsum(stream(seed, "arrivals").exponential(1 / rate, jobs)), model.hours)
    notes = (
        f"system-centric trace (Weissman 4.2) of a model of {model.source}",
        f"load {load:g}, seed {seed}, Weibull {model.shape:g}, {model.scale_s:g} s",
    )
    return arranged(submit, ideal, run, processors=processors, notes=notes)


def _by_hours(times: NDArray[np.float64], hours: tuple[float, ...]) -> NDArray[np.float64]:
    """Return times of a stationary process at each hour's pace: the rate's integral, inverted."""
    rates = np.array(hours) / np.mean(hours)
    passed = np.concatenate([[0.0], np.cumsum(rates) * HOUR_S])
    days, within = np.divmod(times, DAY_S)
    # Where an hour has no arrivals the integral stands still: its end is taken.
    edges = np.arange(HOURS + 1) * HOUR_S
    found: NDArray[np.float64] = days * DAY_S + np.interp(within, passed, edges)
    return found


#: Table 1 prints P3's run time for GE's P4, 3 857 s; this one reproduces table 3.
GE_P4_S = 22_300.0
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


def interarrival_s(instances: tuple[Instance, ...], processors: int, beta: float) -> float:
    """Return the mean time between arrivals: RT_ideal / (P / P_ideal) · β, of instances' means."""
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
    """Return a trace of a template as a log: equally likely instances, Poisson arrivals.

    Args:
        template: STEN, GE, CL or MIXED.
        beta: of the mean time between arrivals; at 1 applications run about without delay.
        jobs: how many.
        processors: of the cluster.
        seed: of both draws.
        ge_p4_s: run time of GE's largest instance.
        block_bytes: SeqBlockSize of CL.

    Raises:
        OptionError: the machine is smaller than an instance.
    """
    instances = table_1(ge_p4_s)[template]
    if max(one.ideal for one in instances) > processors:
        raise OptionError(f"{template} has an instance above {processors} processors")
    drawn = stream(seed, "instances").integers(0, len(instances), jobs)
    gap_s = interarrival_s(instances, processors, beta)
    submit = np.cumsum(stream(seed, "arrivals").exponential(gap_s, jobs))
    rows = np.array([(one.ideal, one.run_s, one.data(block_bytes)) for one in instances])
    ideal, run, data = rows[drawn].T
    names = ", ".join(f"{place + 1} {one.application} {one.size}" for place, one in enumerate(instances))
    notes = (
        f"user-centric trace {template} (Weissman 4.1, table 1), beta {beta:g}, seed {seed}",
        f"executables: {names}",
        "used memory is what an adaptation moves from each processor",
    )
    sizes = ideal.astype(np.int64)
    return arranged(submit, sizes, run, processors=processors, notes=notes, application=drawn + 1, data=data)
