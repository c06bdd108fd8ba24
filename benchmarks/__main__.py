"""Run the benchmarks: `python -m benchmarks [pool|box|quality|import|kernel ...] [--quick]`, all of them by default.

The full `quality` comparison takes hours, nearly all of them in BoTorch and GPSampler; its results are kept in
out/sample_efficiency, so that it can be stopped and continued.
"""

import argparse
from collections.abc import Callable, Sequence

from benchmarks import box_speed, import_time, kernel_overhead, pool_speed, sample_efficiency

__all__ = ["PROGRAMS", "main"]

PROGRAMS: dict[str, Callable[[bool], None]] = {
    "import": lambda quick: import_time.main(3 if quick else 11),
    "kernel": lambda quick: kernel_overhead.main(["--repeats", "50"] if quick else []),
    "pool": lambda quick: pool_speed.main(["--quick"] if quick else []),
    "box": lambda quick: box_speed.main(["--quick"] if quick else []),
    "quality": lambda quick: sample_efficiency.main(["--quick"] if quick else []),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the programs named, in the order of the registry."""
    parser = argparse.ArgumentParser(
        prog="benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("programs", nargs="*", metavar="program", help=", ".join(PROGRAMS))
    parser.add_argument("--quick", action="store_true", help="smaller sizes: a few minutes in all")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.programs) - set(PROGRAMS))
    if unknown:
        parser.error(f"expected programs among {', '.join(PROGRAMS)}, got {', '.join(unknown)}")
    for name, program in PROGRAMS.items():
        if not options.programs or name in options.programs:
            print(f"\n=== {name} ===", flush=True)
            program(options.quick)


if __name__ == "__main__":
    main()
