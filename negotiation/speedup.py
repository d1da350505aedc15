"""How much faster a job runs on more nodes: linear, Amdahl, Downey, or a table.

A model travels as a short text (``amdahl:0.05``), in a message, a workload file and an option.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import pairwise
from math import isfinite

from ..cluster.errors import InputError

#: Node count -> speedup over one node.
Curve = Callable[[int], float]

LINEAR = "linear"


def _amdahl(parameters: list[float]) -> Curve:
    """1 / (f + (1 − f)/n) with the serial part f (Amdahl 1967)."""
    (serial,) = parameters
    if not 0 <= serial <= 1:
        raise InputError(f"{serial:g} is not a serial part from 0 to 1", path="speedup")
    return lambda nodes: 1 / (serial + (1 - serial) / nodes)


def _downey(parameters: list[float]) -> Curve:
    """Downey's model (1997) of average parallelism A and its variance's coefficient σ."""
    average, sigma = parameters
    if average < 1 or sigma < 0:
        raise InputError(f"A = {average:g} and sigma = {sigma:g}: A is at least 1, sigma 0", path="speedup")

    def low_variance(nodes: int) -> float:
        if nodes <= average:
            return average * nodes / (average + sigma / 2 * (nodes - 1))
        if nodes <= 2 * average - 1:
            return average * nodes / (sigma * (average - 0.5) + nodes * (1 - sigma / 2))
        return average

    def high_variance(nodes: int) -> float:
        if nodes <= average + average * sigma - sigma:
            return nodes * average * (sigma + 1) / (sigma * (nodes + average - 1) + average)
        return average

    return low_variance if sigma <= 1 else high_variance


#: Name -> what makes a curve of the model's parameters, and their names in a workload file.
MODELS: dict[str, tuple[Callable[[list[float]], Curve], tuple[str, ...]]] = {
    LINEAR: (lambda _: float, ()),
    "amdahl": (_amdahl, ("serial",)),
    "downey": (_downey, ("average", "sigma")),
}


@lru_cache(maxsize=1024)
def curve(model: str) -> Curve:
    """Return the curve that a model's text names; it never falls with more nodes.

    ``linear``, ``amdahl:F``, ``downey:A:SIGMA``, or ``table:N=S,N=S,…`` (node counts with their
    speedups: straight lines between them and from (0, 0), constant after the last).

    Raises:
        InputError: no such model, or parameters that it does not have.
    """
    name, _, rest = model.partition(":")
    if name == "table":
        return _table(rest)
    if name not in MODELS:
        raise InputError(f"{model!r} is none of {', '.join(MODELS)}, table", path="speedup")
    make, parameters = MODELS[name]
    words = rest.split(":") if rest else []
    if len(words) != len(parameters):
        raise InputError(f"{model!r}: {name} has {len(parameters)} parameters", path="speedup")
    return make([_number(word, model) for word in words])


def _number(text: str, model: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value) or "_" in text:
        raise InputError(f"{model!r}: {text!r} is not a finite number", path="speedup")
    return value


def _table(text: str) -> Curve:
    """Return the curve through the points of a table."""
    points = [(0.0, 0.0)]
    for pair in text.split(","):
        count, _, value = pair.partition("=")
        points.append((_number(count, f"table:{text}"), _number(value, f"table:{text}")))
    for (nodes, speedup), (next_nodes, next_speed) in pairwise(points):
        if next_nodes <= nodes or next_speed < speedup or next_speed <= 0:
            raise InputError(f"'table:{text}': counts must rise, speedups not fall", path="speedup")
    counts = [nodes for nodes, _ in points]

    def at(nodes: int) -> float:
        place = bisect_right(counts, nodes)
        if place == len(points):
            return points[-1][1]
        (left, low), (right, high) = points[place - 1], points[place]
        return low + (high - low) * (nodes - left) / (right - left)

    return at


@lru_cache(maxsize=2**16)
def speed(model: str, nodes: int) -> float:
    """Return the speedup of a model on that many nodes over one node."""
    return curve(model)(nodes)


def relative_speed(model: str, nodes: int, reference: int) -> float:
    """Return how much faster a job runs on ``nodes`` than on ``reference`` nodes."""
    if nodes == reference:
        return 1.0
    return speed(model, nodes) / speed(model, reference)


def model_text(given: object) -> str:
    """Return the text of a model as a workload file may give it: absent, a text, or an object.

    ``{"model": "amdahl", "serial": 0.05}``, ``{"model": "downey", "average": 12, "sigma": 0.5}``,
    ``{"model": "table", "points": {"1": 1, "4": 3.1}}``.

    Raises:
        InputError: it is none of these.
    """
    if given is None:
        return LINEAR
    text = given if isinstance(given, str) else _object_text(given)
    curve(text)
    return text


def _object_text(given: object) -> str:
    def number(value: object) -> float:
        return _number(str(value), str(given))

    if not isinstance(given, Mapping):
        raise InputError(f"{given!r} is not a speedup model", path="speedup")
    members = dict(given)
    name = members.pop("model", None)
    wanted = {"table": ("points",), **{model: names for model, (_, names) in MODELS.items()}}
    if not isinstance(name, str) or name not in wanted or set(members) != set(wanted[name]):
        raise InputError(f"{given!r} is not a speedup model", path="speedup")
    if name == "table":
        points = members["points"]
        if not isinstance(points, Mapping) or not points:
            raise InputError(f"{points!r} holds no points", path="speedup.points")
        rising = sorted(points.items(), key=lambda point: number(point[0]))
        return "table:" + ",".join(f"{nodes}={number(value)!r}" for nodes, value in rising)
    return ":".join([name, *(repr(number(members[key])) for key in wanted[name])])
