"""Make examples/days.swf: 600 jobs of four days on 128 processors, in the Standard Workload Format.

    python examples/make_trace.py

Sizes are powers of two more often than not, run times log-normal, users ask for round times: enough like a
real log for a first look at ``aucsched simulate``; for real ones see the Parallel Workloads Archive.
"""

from __future__ import annotations

import random
from pathlib import Path

SEED = 20261120
JOBS, PROCESSORS = 600, 128
ROUND_S = (300, 900, 1800, 3600, 7200, 14400, 28800, 57600)


def rows(rng: random.Random) -> list[str]:
    """Return the log's rows, fields as SWF has them, -1 where there is no value."""
    submitted = 0.0
    lines: list[str] = []
    for number in range(1, JOBS + 1):
        submitted += rng.expovariate(1 / 620)
        size = 2 ** rng.randint(0, 6) if rng.random() < 0.7 else rng.randint(1, 96)  # noqa: PLR2004 - a share
        run = max(10, round(rng.lognormvariate(6.9, 1.4)))
        asked = next((limit for limit in ROUND_S if limit >= run), 115_200)
        user = rng.randint(1, 12)
        fields = [
            number,
            round(submitted),
            -1,
            run,
            size,
            -1,
            -1,
            size,
            asked,
            -1,
            1,
            user,
            1,
            -1,
            1,
            -1,
            -1,
            -1,
        ]
        lines.append(" ".join(map(str, fields)))
    return lines


def main() -> None:
    """Write the log beside this script."""
    header = ["; Computer: made up, see make_trace.py", f"; MaxProcs: {PROCESSORS}", f"; MaxJobs: {JOBS}"]
    text = "\n".join([*header, *rows(random.Random(SEED))]) + "\n"  # noqa: S311 - not a secret
    Path(__file__).with_name("days.swf").write_text(text)


if __name__ == "__main__":
    main()
