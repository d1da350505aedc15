"""A Slurm site's submissions as the Slurm simulator's event files have them, made into a workload.

A line is ``-dt SECONDS -e submit_batch_job | -sim-walltime SECONDS OPTIONS … SCRIPT``: when the job was
submitted, how long it ran, and what sbatch was told.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...cluster.errors import InputError
from ...cluster.jobs import Job
from ...cluster.nodes import Switch
from ...cluster.text import hidden_in, one_line
from ...cluster.workload import ArrivingJob, ClusterWorkload, basic_priority
from ...formats.hostlist import one_file
from ...formats.notes import Notes
from ...formats.reading import numbered_lines, read_document, text_of
from ..answers.topology_conf import parse_topology
from .conf import SlurmConf, fit_gres, parse_slurm_conf
from .sbatch import parse_sbatch, words_of
from .submission import SubmissionReader

_SUBMIT = "submit_batch_job"
_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,9})?", re.ASCII)
#: Slurm counts whole seconds; what ended within its first one ran that long.
_SHORTEST_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    """A submission: its place, its times in seconds, and sbatch's options."""

    path: str
    at_s: float
    run_s: float
    options: dict[str, str]


@one_file()
def import_events(events: str | Path, conf: Path) -> tuple[ClusterWorkload, Notes]:
    """Return the workload of an event file on the site that a folder's configuration describes.

    Args:
        events: the event file, plain or gzip; ``-`` is standard input.
        conf: the folder with slurm.conf, and gres.conf and topology.conf where the site has them.

    Raises:
        InputError: a file cannot be read or is malformed; names file, line and value.
    """
    notes = Notes()
    site = read_document(conf / "slurm.conf", lambda content: parse_slurm_conf(text_of(content), notes))
    if (conf / "gres.conf").exists():
        site = read_document(conf / "gres.conf", lambda content: fit_gres(site, text_of(content), notes))
    switches = _switches(conf / "topology.conf", site, notes)
    jobs = read_document(events, lambda content: _jobs(text_of(content), site, notes))
    notes.add("priorities", f"priorities go by order of submission: the first job's is {basic_priority(0)}")
    workload = ClusterWorkload(
        name=one_line(Path(events).name),
        nodes=site.nodes,
        switches=switches,
        partitions=tuple(figures.partition for figures in site.partitions),
        licenses=site.licenses,
        jobs=jobs,
        notes=notes.texts(),
    )
    return workload, notes


def _switches(path: Path, site: SlurmConf, notes: Notes) -> tuple[Switch, ...] | None:
    if not path.exists():
        notes.add("topology", "there is no topology.conf: the topology is linear")
        return None
    names = dict.fromkeys(node.name for node in site.nodes)
    return read_document(path, lambda content: parse_topology(text_of(content), names, notes))


def _jobs(text: str, site: SlurmConf, notes: Notes) -> tuple[ArrivingJob, ...]:
    """Read every submission, in order of arrival."""
    events = sorted(_events(text, notes), key=lambda event: event.at_s)
    reader = SubmissionReader(conf=site)
    ids = _ids(events, notes)
    jobs = tuple(
        ArrivingJob(
            job=reader.read(event.options, name, basic_priority(rank), event.path),
            arrival_s=event.at_s,
            run_time_s=max(event.run_s, _SHORTEST_S),
        )
        for rank, (event, name) in enumerate(zip(events, ids, strict=True))
    )
    for event, arriving in zip(events, jobs, strict=True):
        limit_s = arriving.job.time_limit_s
        if event.run_s < _SHORTEST_S:
            reader.remark(f"ran less than {_SHORTEST_S:g} s: taken as {_SHORTEST_S:g} s", arriving.job.id)
        if limit_s is not None and event.run_s > limit_s:
            reader.remark("ran longer than its limit, at which a simulation ends it", arriving.job.id)
    for remark, count in reader.remarks.items():
        notes.add("jobs", f"{count} jobs, the first {reader.first[remark]}: {remark}")
    _note_unsupported([arriving.job for arriving in jobs], notes)
    return jobs


def _ids(events: list[_Event], notes: Notes) -> list[str]:
    """Return the jobs' names where each has one of its own, else their places in order of submission."""
    names = [event.options.get("job-name", "") for event in events]
    if all(names) and len(set(names)) == len(names) and not any(map(hidden_in, names)):
        return names
    why = "are missing, repeat or hold control characters"
    notes.add("ids", f"job names {why}: ids are numbers in order of submission")
    return [str(place) for place in range(1, len(names) + 1)]


def _events(text: str, notes: Notes) -> Iterator[_Event]:
    others: Counter[str] = Counter()
    for number, line in numbered_lines(text):
        if line.startswith("#"):
            continue
        path = f"line {number}"
        head, bar, rest = line.partition("|")
        at_s, kind = _head(head.split(), path)
        if kind != _SUBMIT:
            others[kind] += 1
            continue
        if not bar:
            raise InputError(f"{line.strip()[:60]!r} has no '|' before the job's options", path=path)
        yield _event(at_s, words_of(rest, path), path)
    for kind, count in others.items():
        notes.add("events", f"{count} events {kind!r} are not read")


def _head(words: list[str], path: str) -> tuple[float, str]:
    """Return the time and the kind of an event."""
    pairs = dict(zip(words[::2], words[1::2], strict=False))
    if len(words) % 2 or pairs.keys() != {"-dt", "-e"}:
        raise InputError(f"{' '.join(words)[:60]!r} is not -dt SECONDS -e EVENT", path=path)
    return _seconds(pairs["-dt"], f"{path} -dt"), pairs["-e"]


def _event(at_s: float, words: list[str], path: str) -> _Event:
    """Take the simulator's own option out and read the rest as sbatch would."""
    if "-sim-walltime" not in words:
        raise InputError("-sim-walltime is missing", path=path)
    place = words.index("-sim-walltime")
    value = words[place + 1] if place + 1 < len(words) else ""
    options = parse_sbatch([*words[:place], *words[place + 2 :]], path)
    return _Event(path=path, at_s=at_s, run_s=_seconds(value, f"{path} -sim-walltime"), options=options)


def _seconds(text: str, path: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise InputError(f"{text[:60]!r} is no number of seconds from 0 on", path=path)
    return float(text)


def _note_unsupported(jobs: list[Job], notes: Notes) -> None:
    first: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for job in jobs:
        for part in job.unsupported:
            first.setdefault(part, job.id)
            counts[part] += 1
    for part, count in counts.items():
        notes.add("not expressible", f"{count} jobs, the first {first[part]}, never start: {part}")
