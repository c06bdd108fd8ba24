"""Run the benchmarks: `python -m benchmarks [import|kernel|pool|box|quality|...] [--quick]`, all of them by default.

The full comparisons `quality`, `optuna-quality`, `high-dimensions`, `pareto` and `batches` take hours, mostly for the
other optimisers; `workers` takes an hour, `papers` and `pruning` a quarter of one. Their results are saved in folders
of out/, so that they can be stopped and continued. `optuna-speed` and `botorch-speed` take half an hour each,
`calibration` twenty minutes, `large_pool` ten.
"""

import argparse
from collections.abc import Callable, Sequence

from benchmarks import (
    argmax_gap,
    batches,
    botorch_speed,
    box_speed,
    calibration,
    cluster_pool,
    crowds,
    dtc_variance,
    gpu,
    high_dimensions,
    import_time,
    importances,
    kernel_overhead,
    kinds,
    large_pool,
    learners_speed,
    linear_bandits,
    online_surrogates,
    optuna_quality,
    optuna_speed,
    pareto,
    pool_speed,
    product_pool,
    pruning,
    sample_efficiency,
    screening,
    storage_speed,
    workers,
)
from benchmarks.learner_accuracy import program as learner_accuracy
from benchmarks.paper_tables import program as paper_tables

__all__ = ["PROGRAMS", "main"]

PROGRAMS: dict[str, Callable[[bool], None]] = {
    "import": lambda quick: import_time.main(3 if quick else 11),
    "kernel": lambda quick: kernel_overhead.main(["--repeats", "50"] if quick else []),
    "pool": lambda quick: pool_speed.main(["--quick"] if quick else []),
    "product_pool": lambda quick: product_pool.main(["--quick"] if quick else []),
    "large_pool": lambda quick: large_pool.main(["--quick"] if quick else []),
    "cluster_pool": lambda quick: cluster_pool.main(["--quick"] if quick else []),
    "gpu": lambda quick: gpu.main(["--quick"] if quick else []),
    "screening": lambda quick: screening.main(["--quick"] if quick else []),
    "box": lambda quick: box_speed.main(["--quick"] if quick else []),
    "kinds": lambda quick: kinds.main(["--quick"] if quick else []),
    "argmax": lambda quick: argmax_gap.main(["--quick"] if quick else []),
    "calibration": lambda quick: calibration.main(["--quick"] if quick else []),
    "learners": lambda quick: learners_speed.main(["--quick"] if quick else []),
    "accuracy": lambda quick: learner_accuracy.main(["--quick"] if quick else []),
    "variance": lambda quick: dtc_variance.main(["--quick"] if quick else []),
    "bandits": lambda quick: linear_bandits.main(["--quick"] if quick else []),
    "storage": lambda quick: storage_speed.main(["--quick"] if quick else []),
    "papers": lambda quick: paper_tables.main(["--quick"] if quick else []),
    "online": lambda quick: online_surrogates.main(["--quick"] if quick else []),
    "quality": lambda quick: sample_efficiency.main(["--quick"] if quick else []),
    "optuna-speed": lambda quick: optuna_speed.main(["--quick"] if quick else []),
    "botorch-speed": lambda quick: botorch_speed.main(["--quick"] if quick else []),
    "optuna-quality": lambda quick: optuna_quality.main(["--quick"] if quick else []),
    "importances": lambda quick: importances.main(["--quick"] if quick else []),
    "pruning": lambda quick: pruning.main(["--quick"] if quick else []),
    "high-dimensions": lambda quick: high_dimensions.main(["--quick"] if quick else []),
    "crowds": lambda quick: crowds.main(["--quick"] if quick else []),
    "batches": lambda quick: batches.main(["--quick"] if quick else []),
    "workers": lambda quick: workers.main(["--quick"] if quick else []),
    "pareto": lambda quick: pareto.main(["--quick"] if quick else []),
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
