"""Make examples/shadow.jsonl.gz: a day of a shadow on an invented cluster of eight nodes.

    PYTHONPATH=tests python tests/support/make_shadow.py examples/shadow.jsonl.gz

The cluster starts jobs strictly in the order of their submission. Slurm's answers are those of ``FakeSlurm``.
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

from aucsched.auction.options import StepOptions
from aucsched.slurm.live.loop_metrics import Metrics
from aucsched.slurm.live.passes import take_look, take_pass, watch
from aucsched.slurm.live.shadow_log import ShadowPass, encode
from aucsched.slurm.live.ticker import Ticker
from support.fake_slurm import FakeSlurm, FakeWait, day_of_jobs

BEGIN, INTERVAL_S, DAY_S, NODES = 1_795_000_000, 240, 86_400, 8
#: What a look and a decision are written to have taken: measured seconds would be other bytes each time.
_SECONDS = 0.001


def main(path: Path) -> None:
    """Write the log of one day."""
    cluster = FakeSlurm(NODES, day_of_jobs(1, nodes=NODES, begin=BEGIN), now=BEGIN)
    entries: list[ShadowPass] = []

    def clock() -> float:
        return float(cluster.now)

    def take() -> object:
        return take_pass(take_look(ask=cluster.ask, now=clock), StepOptions(work_limit=20))

    ticker = Ticker(
        interval_s=INTERVAL_S, passes=DAY_S // INTERVAL_S, clock=clock, stopping=FakeWait(cluster)
    )
    watch(take, entries.append, ticker, Metrics(loop="shadow"), options={"work_limit": "20"}, failed=print)  # type: ignore[arg-type]
    for entry in entries:
        entry.unread = []
        entry.read_s = entry.decide_s = _SECONDS
    path.write_bytes(gzip.compress(b"".join(encode(entry) for entry in entries), mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
