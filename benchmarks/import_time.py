"""How long `import bkbopt` takes beside `import torch`: the median ratio over interleaved runs in fresh processes.

Run it as `python -m benchmarks.import_time [runs]`. The aim is a ratio of at most 1.3.
"""

import statistics
import subprocess
import sys

AIM = 1.3


def import_seconds(module: str) -> float:
    """The time that a fresh interpreter spends in `import module`, without its own start."""
    code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def main(runs: int = 11) -> None:
    """Time both imports in turn, so that a slow spell of the machine hits both, and print the medians."""
    for module in ("torch", "bkbopt"):
        import_seconds(module)  # fills the caches of the disk and of compiled modules
    pairs = [(import_seconds("torch"), import_seconds("bkbopt")) for _ in range(runs)]
    torch_seconds, our_seconds = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(ours / torch for torch, ours in pairs)
    print(f"import torch {torch_seconds:.3f} s, import bkbopt {our_seconds:.3f} s (medians of {runs})")
    print(f"median ratio {ratio:.3f}, aim at most {AIM}")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
