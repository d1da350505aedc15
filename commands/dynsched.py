"""``aucsched dynsched``: answer running applications that ask for more cores."""

import hashlib
import time
from typing import Any

import click

from ..cluster.option_fields import taken_from
from ..simulation.evolving.evolving_options import DepthOptions
from .evolve import depth_options, fairness_options, read_fairness
from .outputs import snapshot_argument
from .outputs import tell as tell_notes
from .parties import journal_in, link_of, link_options, secret_in, tell


@click.command(short_help="Answer running applications that ask for more cores.")
@snapshot_argument
@fairness_options
@depth_options
@link_options
def dynsched(snapshot: str, **options: Any) -> None:
    """Hold SNAPSHOT's nodes, running jobs and queue, and answer its jobs' DYN_REQUEST and DYN_RELEASE.

    The clock begins at the snapshot's time and counts real seconds. A killed process that is started again
    with its journal resumes where it ended. The command ends when no job runs and none waits.
    """
    from ..cluster.errors import OptionError
    from ..formats.native.cluster_file import load_snapshot, snapshot_to_json
    from ..negotiation.evolving import dynamic_scheduler as machine
    from ..negotiation.evolving.dynamic_scheduler import DynamicState
    from ..negotiation.evolving.fairness import at_start
    from ..negotiation.transport.handshake import Identity
    from ..negotiation.transport.party import Party
    from ..negotiation.transport.serve import TERMS, DynamicCodec, serve_applications

    if options["listen"] is None or options["connect"] is not None:
        raise OptionError("dynsched listens: --listen is needed, and no --connect")
    fairness, remarks = read_fairness(options["fairness"], options["fairness_decay"])
    loaded = load_snapshot(snapshot)
    began = loaded.time or 0.0
    tell_notes(remarks)
    depths = taken_from(DepthOptions, options).depths("iteration")
    identity = Identity(party="dynsched", terms=TERMS, notes={}, secret=secret_in(options["secret_file"]))
    accounts = at_start(fairness, began)
    state = DynamicState(snapshot=loaded, fairness=fairness, depths=depths, accounts=accounts)
    texts = (snapshot_to_json(loaded), repr((fairness, depths)))
    settings = " ".join(hashlib.sha256(text.encode()).hexdigest()[:16] for text in texts)
    with journal_in(identity, settings, options) as journal:
        party = Party(state, machine.step, journal, codec=DynamicCodec(state), tell=tell)
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
            serve_applications(party, link, clock, tell, is_over)
