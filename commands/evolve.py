"""``aucsched evolve``, ``dynsched``: running jobs that ask for more; ``simulate``, policy evolving.

``evolve`` is one extended iteration over a snapshot; ``dynsched`` answers running applications.
"""

from __future__ import annotations

import hashlib
import os
import time
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ..cluster.errors import OptionError, errors_in
from ..cluster.option_fields import flag_of, options_in, refuse_given, taken_from
from ..cluster.promises import PLAN
from ..cluster.tabular import indented_json
from ..cluster.text import listed, plural
from ..formats.writing import write_text
from ..simulation.evolving.evolving_options import (
    EVOLVING_WORKLOADS,
    DepthOptions,
    EvolvingOptions,
    EvolvingRecord,
    FairnessOptions,
)
from ..simulation.simulate_options import EVOLVING
from .built_options import INPUT, OUTPUT, record_options
from .outputs import Output, output_options, snapshot_argument, tell, write_report
from .parties import journal_in, link_of, link_options, secret_in
from .parties import tell as remark

if TYPE_CHECKING:
    from ..negotiation.evolving.fairness import Fairness
    from ..negotiation.evolving.serving import Evolution

_TARGET = "target:"
#: How much of a name of another parameter is printed.
_LONGEST = 40


_OPTIONS = options_in(EvolvingRecord)
evolving_options = record_options(EvolvingRecord)
fairness_options = record_options(FairnessOptions)
depth_options = record_options(DepthOptions)
#: Options of other simulations that are read here too.
_SHARED = (
    "policy",
    "order",
    "seed",
    "interval_s",
    "strategy",
    "form",
    "output",
    "jobs_out",
    "plot",
    "workload",
)


def refuse_evolving(workload: str, options: dict[str, Any]) -> None:
    """Refuse what only evolving jobs have."""
    if workload in EVOLVING_WORKLOADS and not Path(workload).exists():
        raise OptionError(f"the workload {workload} needs --policy {EVOLVING}, not {options['policy']}")
    refuse_given(options, _OPTIONS, f"needs --policy {EVOLVING}, not {options['policy']}")


def read_fairness(text: str | None, decay: float | None) -> tuple[Fairness, list[str]]:
    """Return the configuration that ``--fairness`` names, and remarks to print if all is well.

    Raises:
        InputError: the file cannot be read.
        OptionError: the text is none of the forms.
    """
    from ..negotiation.evolving.fairness import Fairness, same_for_every_user
    from ..negotiation.evolving.fairness_file import load_fairness, seconds_of

    is_target = text is not None and text.startswith(_TARGET)
    if decay is not None and not is_target:
        raise OptionError("--fairness-decay needs --fairness target:SECONDS")
    if text is None or text == "none":
        return Fairness(), []
    if is_target:
        seconds = seconds_of(text.removeprefix(_TARGET), "--fairness")
        if not seconds:
            raise OptionError(f"--fairness {text}: 0 would be no limit; give none")
        return same_for_every_user(seconds, decay=decay or 0.0), []
    if text != "-" and not os.path.lexists(text):
        raise OptionError(f"--fairness {text} is neither none, target:SECONDS nor a file")
    fairness, others = load_fairness(text)
    if not others:
        return fairness, []
    named = listed([name[:_LONGEST] for name in others])
    return fairness, [f"{text}: not of dynamic fairness, not read: {named}"]


def simulate_evolving_workload(workload: str, options: dict[str, Any]) -> None:
    """Play a named workload and print what came of it."""
    from ..simulation.evolving.evolving_loop import WORKLOADS, simulate_evolving

    _check(workload, options)
    seed = options["seed"] or 0
    made = WORKLOADS[workload](seed)
    limits, remarks = read_fairness(options["fairness"], options["fairness_decay"])
    given = {name: options[name] for name in (*_OPTIONS, "strategy", "interval_s")}
    chosen = EvolvingOptions(limits=limits, **given)
    known = {job.kind for job in made.jobs}
    for name in ("preemptible", "shrinkable"):
        for one in sorted({*(getattr(chosen, name) or "").split(",")} - known - {""}):
            raise OptionError(f"{flag_of(name)}: {one!r} is not one of {', '.join(sorted(known))}")
    played = simulate_evolving(made, chosen, seed=seed)
    tell(remarks)
    if options["plot"] is not None:
        from ..reports.curves import draw_evolving

        refused = EvolvingOptions(limits=limits, **{**given, "requests": "refuse"})
        runs = {"requests refused": simulate_evolving(made, refused), "as asked for": played}
        draw_evolving(runs, options["plot"])
    write_report(played, workload, options)


def _check(workload: str, options: dict[str, Any]) -> None:
    if workload not in EVOLVING_WORKLOADS:
        raise OptionError(f"--policy {EVOLVING} plays {' or '.join(EVOLVING_WORKLOADS)}, not {workload!r}")
    if options["order"] != "fcfs":
        raise OptionError(f"--policy {EVOLVING} serves first come, first served: no --order")
    others = [name for name in options if name not in _OPTIONS and name not in _SHARED]
    refuse_given(options, others, f"is not for --policy {EVOLVING}")


@click.command()
@snapshot_argument
@click.option(
    "--requests",
    type=INPUT,
    help="File of the running jobs' requests and releases (aucsched-requests/1); default: none.",
)
@fairness_options
@click.option(
    "--accounts",
    type=OUTPUT,
    help="File of the delays so far: read and updated, or created.",
)
@click.option(
    "--serve-by",
    type=click.Choice(["iteration", "auction"]),
    default="iteration",
    show_default=True,
    help="The extended Maui iteration, or one auction of requests and queue, from idle nodes.",
)
@depth_options
@click.option("--snapshot-out", type=OUTPUT, help="The snapshot as it is afterwards.")
@output_options
def evolve(snapshot: str, requests: str | None, out: Output, **options: Any) -> None:
    """Serve running jobs' requests for more resources, then start the queue.

    SNAPSHOT is a file, or - for standard input. Requests are served first come, first served: from
    what is idle, else by stopping preemptible jobs, else by shrinking malleable ones, as far as the
    limits on the delay of queued jobs allow.
    """
    from ..auction.options import StepOptions
    from ..formats.native.cluster_file import load_snapshot, save_snapshot
    from ..negotiation.evolving.fairness import at_start
    from ..negotiation.evolving.fairness_file import load_accounts, save_accounts
    from ..negotiation.evolving.requests import RequestBatch, load_requests
    from ..negotiation.evolving.serving import evolve as evolved

    if options["accounts"] is not None and str(options["accounts"]) == "-":
        raise OptionError("--accounts: the delays are read and written again, which - cannot be")
    serve_by = options["serve_by"]
    depths = taken_from(DepthOptions, options).depths(serve_by)
    limits, remarks = read_fairness(options["fairness"], options["fairness_decay"])
    loaded = load_snapshot(snapshot)
    asked = RequestBatch() if requests is None else load_requests(requests, loaded)
    if serve_by == "auction" and (asked.preemptible or asked.malleable):
        raise OptionError("--serve-by auction takes from idle nodes only: no preemptible or malleable jobs")
    accounts, snapshot_out = options["accounts"], options["snapshot_out"]
    kept = None if accounts is None else load_accounts(accounts)
    with errors_in(snapshot):
        found = evolved(
            loaded,
            asked,
            fairness=limits,
            accounts=kept or at_start(limits, loaded.time or 0.0),
            depths=depths,
            auction=StepOptions(promise=PLAN, reserve=depths.reservation) if serve_by == "auction" else None,
        )
    tell(remarks)
    if accounts is not None:
        # Before anybody hears of a grant: what it costs others must not be forgotten.
        save_accounts(found.accounts, accounts)
    if snapshot_out is not None:
        save_snapshot(found.snapshot, snapshot_out)
    if out.form == "json":
        write_text(out.output, indented_json(found.to_document()))
    else:
        write_text(out.output, _text(found))


def _text(found: Evolution) -> str:
    from ..formats.hostlist import join

    lines = []
    for answer in found.answers:
        name, grant = answer.request.job.id, answer.grant
        if grant is None:
            when = "" if answer.earliest_s == inf else f"; could be there at {answer.earliest_s:g}"
            lines.append(f"refused  {name}: {answer.why}{when}")
            continue
        by = [f"{join([node])}:{use.cores}" for node, use in grant.nodes.items()]
        lines.append(f"granted  {name}: {' '.join(by)}")
        lines += [f"         stops {stopped}" for stopped in grant.preempted]
        lines += [f"         {other} gives {join(nodes)}" for other, nodes in grant.shrunk.items()]
        lines += [
            f"         delays {delay.job} by " + ("ever" if delay.seconds == inf else f"{delay.seconds:g} s")
            for delay in answer.delays
        ]
    lines += [f"starts   {job.id}: {join(job.nodes)}" for job in found.started]
    lines.append(plural(len(found.snapshot.jobs), "job", "waits"))
    return "\n".join(lines) + "\n"


@click.command()
@snapshot_argument
@fairness_options
@depth_options
@link_options
def dynsched(snapshot: str, **options: Any) -> None:
    """Answer running applications that ask for more cores.

    The process holds SNAPSHOT's nodes, running jobs and queue, and answers DYN_REQUEST and
    DYN_RELEASE. The clock begins at the snapshot's time and counts real seconds. A killed process
    started again with its journal resumes where it ended. The command ends when no job runs and
    none waits.
    """
    from ..formats.native.cluster_file import load_snapshot, snapshot_to_json
    from ..negotiation.evolving import dynamic_scheduler as machine
    from ..negotiation.evolving.dynamic_scheduler import DynamicState
    from ..negotiation.evolving.fairness import at_start
    from ..negotiation.transport.handshake import Identity
    from ..negotiation.transport.party import Party
    from ..negotiation.transport.serve import TERMS, DynamicCodec, serve_applications

    if options["listen"] is None or options["connect"] is not None:
        raise OptionError("dynsched listens: --listen is needed, and no --connect")
    if click.get_current_context().get_parameter_source("wait") is not ParameterSource.DEFAULT:
        raise OptionError("wait: dynsched waits for applications until all its jobs have ended")
    fairness, remarks = read_fairness(options["fairness"], options["fairness_decay"])
    loaded = load_snapshot(snapshot)
    began = loaded.time or 0.0
    tell(remarks)
    depths = taken_from(DepthOptions, options).depths("iteration")
    identity = Identity(party="dynsched", terms=TERMS, notes={}, secret=secret_in(options["secret_file"]))
    accounts = at_start(fairness, began)
    state = DynamicState(snapshot=loaded, fairness=fairness, depths=depths, accounts=accounts)
    texts = (snapshot_to_json(loaded), repr((fairness, depths)))
    settings = " ".join(hashlib.sha256(text.encode()).hexdigest()[:16] for text in texts)
    with journal_in(identity, settings, options) as journal:
        party = Party(state, machine.step, journal, codec=DynamicCodec(state), tell=remark)
        first = str(time.time())
        if journal is not None:
            first = journal.notes.get("began", first)
            journal.note({"began": first})

        def clock() -> float:
            return began + time.time() - float(first)

        def is_over() -> bool:
            now = party.state
            return party.has_history and not (now.snapshot.running or now.snapshot.jobs)

        with link_of(identity, options) as link:
            serve_applications(party, link, clock, remark, is_over)
