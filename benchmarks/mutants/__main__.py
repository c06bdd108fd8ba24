"""Whether the fast tests notice faults: of mutants, copies of the package with one fault each, which were missed.

Run it as `python -m benchmarks.mutants`, or `make mutants`. Ends with 1 if no test noticed one of them.
"""

import sys
import time
from collections.abc import Sequence

from benchmarks.arguments import Arguments
from benchmarks.mutants.catalogue import FAULTS
from benchmarks.mutants.runner import Found, look_for, pass_without


def main(arguments: Sequence[str] | None = None) -> int:
    parser = Arguments(__doc__, quick=False)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="faults whose name, or file, contains one of these")
    parser.add_argument("--list", action="store_true", help="print their names and do nothing")
    parser.add_argument("--trust", action="store_true", help="do not look first whether the tests pass without a fault")
    options = parser.parse_args(arguments)
    wanted = [f for f in FAULTS if options.only is None or any(part in f.name + f.file for part in options.only)]
    if not wanted:
        parser.error(f"expected a part of the name of a fault, got {options.only}")
    if options.list:
        for fault in wanted:
            print(f"{fault.file}: {fault.name}")
        return 0
    if not options.trust:
        tests = sorted({test for fault in wanted for test in fault.tests})
        print(f"without a fault: {len(tests)} files or tests", flush=True)
        if (words := pass_without(tests)) is not None:
            print(f"they do not pass, so that failures say nothing:\n{words}")
            return 1
    results = [report(i, len(wanted), look_for(fault)) for i, fault in enumerate(wanted, start=1)]
    missed = [found for found in results if found.by is None]
    print(f"\n{len(results) - len(missed)} of {len(results)} mutants were noticed.")
    for found in missed:
        print(f"NOT NOTICED: {found.fault.name} (bkbopt/{found.fault.file})")
    return int(bool(missed))


def report(i: int, n: int, found: Found) -> Found:
    what = found.by or (f"pytest could not run:\n{found.error}" if found.error else "NOT NOTICED")
    print(f"{time.strftime('%H:%M:%S')} {i}/{n} {found.fault.file}: {found.fault.name}: {what}", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
