"""Cost of starting: ``python benchmarks/startup.py`` prints seconds of imports and of ``--help``.

Each is run in a process of its own, ``--repeat`` times; the least is what the machine needs when nobody else
uses it. The gates of the project: ``import aucsched`` below 0.15 s, ``aucsched --help`` below 0.1 s.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

CALLS = {
    "python -c pass": ["-c", "pass"],
    "import aucsched": ["-c", "import aucsched"],
    "aucsched --help": ["-m", "aucsched", "--help"],
    "aucsched schedule --help": ["-m", "aucsched", "schedule", "--help"],
    "aucsched simulate --help": ["-m", "aucsched", "simulate", "--help"],
    "aucsched.Snapshot": ["-c", "import aucsched; aucsched.Snapshot"],
    "aucsched.load_snapshot": ["-c", "import aucsched; aucsched.load_snapshot"],
    "aucsched.schedule": ["-c", "import aucsched; aucsched.schedule"],
    "aucsched.simulate": ["-c", "import aucsched; aucsched.simulate"],
}
#: Seconds that these may take at most.
GATES = {"import aucsched": 0.15, "aucsched --help": 0.1}


def seconds(arguments: list[str], repeat: int) -> float:
    """Return the least wall time of some runs."""
    best = float("inf")
    for _ in range(repeat):
        began = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)  # noqa: S603
        best = min(best, time.perf_counter() - began)
    return best


def main() -> int:
    """Print the table; exit 1 where a gate does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    repeat = parser.parse_args().repeat
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, least of {repeat}")
    found = {name: seconds(arguments, repeat) for name, arguments in CALLS.items()}
    for name, value in found.items():
        gate = f"  (at most {GATES[name]:g})" if name in GATES else ""
        print(f"{name:<28}{value:>8.3f} s{gate}")
    return int(any(found[name] > most for name, most in GATES.items()))


if __name__ == "__main__":
    sys.exit(main())
