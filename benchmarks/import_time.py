"""Time to import the optimizer, relative to torch, and the command line.

Run it as `python -m benchmarks.import_time`: medians over interleaved runs in fresh processes. The goal is a ratio of
at most 1.3 for the optimizer, and 0.1 s for the command line, since commands on the log need no model.
"""

import statistics
import subprocess
import sys
from collections.abc import Sequence

from benchmarks.arguments import Arguments

AIM, SHELL_AIM = 1.3, 0.1
TORCH, OURS, SHELL = "import torch", "from bkbopt import Optimizer", "import bkbopt.adapters.shell"


def import_seconds(statement: str) -> float:
    """The time that a fresh interpreter spends in an import statement, without its own start."""
    code = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def main(arguments: Sequence[str] | None = None) -> None:
    """Time the imports in turns, so that the load of the machine affects all, and print the medians."""
    parser = Arguments(__doc__)
    parser.option("--runs", 11, quick=3, help="imports of each")
    runs = parser.parse_args(arguments).runs
    statements = (TORCH, OURS, SHELL)
    for statement in statements:
        import_seconds(statement)  # fills the caches of the disk and of compiled modules
    rounds = [[import_seconds(statement) for statement in statements] for _ in range(runs)]
    for statement, column in zip(statements, zip(*rounds, strict=True), strict=True):
        print(f"{statement}: {statistics.median(column):.3f} s (median of {runs})")
    ratio = statistics.median(ours / torch for torch, ours, _ in rounds)
    print(f"optimizer: median ratio {ratio:.3f}, aim at most {AIM}; command line: aim at most {SHELL_AIM} s")


if __name__ == "__main__":
    main()
