"""Print an instance of the set, as ``aucsched examples --instance`` does from wherever it is installed.

python benchmarks/instances/generate.py tsubame --seed 0 > tsubame-0.json
"""

from __future__ import annotations

import sys

from aucsched.cli import main
from aucsched.commands.examples import KINDS, snapshot_bytes

__all__ = ["KINDS", "snapshot_bytes"]

if __name__ == "__main__":
    main(["examples", "--instance", *sys.argv[1:]])
