"""Run programs one after the other, by name: `python -m benchmarks box pool`; without a name all of them, for hours.

`--quick` makes each of them small, ten minutes for all. A program has more options when it is run by itself, as
`python -m benchmarks.box_speed --help` says. Comparisons with other optimisers take hours, most of them spent in these;
their results are kept in folders of out/, so that they can be stopped and continued.
"""

import argparse
import ast
import importlib
from collections.abc import Sequence
from pathlib import Path

__all__ = ["LIST", "PROGRAMS", "TOOLS", "main", "run"]

#: By subject, the names of the programs and their modules.
LIST: dict[str, dict[str, str]] = {
    "time and memory": {
        "import": "import_time",
        "kernel": "kernel_overhead",
        "pool": "pool_speed",
        "product_pool": "product_pool",
        "large_pool": "large_pool",
        "cluster_pool": "cluster_pool",
        "gpu": "gpu",
        "box": "box_speed",
        "kinds": "kinds",
        "crowds": "crowds",
        "storage": "storage_speed",
        "optuna-speed": "optuna_speed",
        "botorch-speed": "botorch_speed",
    },
    "how good the points found are": {
        "argmax": "argmax_gap",
        "screening": "screening",
        "quality": "sample_efficiency",
        "optuna-quality": "optuna_quality",
        "high-dimensions": "high_dimensions",
        "pruning": "pruning",
        "batches": "batches",
        "workers": "workers",
        "pareto": "pareto",
    },
    "how true the models are": {
        "calibration": "calibration",
        "variance": "dtc_variance",
        "importances": "importances",
    },
    "online learners and bandits": {
        "learners": "learners_speed",
        "accuracy": "learner_accuracy.__main__",
        "papers": "paper_tables.__main__",
        "online": "online_surrogates",
        "bandits": "linear_bandits",
    },
}
PROGRAMS: dict[str, str] = {name: module for programs in LIST.values() for name, module in programs.items()}
#: What is run by itself only.
TOOLS = ("ablation", "fault_table", "lab_tables", "mutants.__main__", "readme_figure")


def run(name: str, quick: bool) -> None:
    """Run a program in this process."""
    importlib.import_module(f"benchmarks.{PROGRAMS[name]}").main(["--quick"] if quick else [])


def listed() -> str:
    """A line for each program, with the first one of its module's docstring."""
    lines = []
    for subject, programs in LIST.items():
        lines += [f"\n{subject}:", *(_line(name, module) for name, module in programs.items())]
    return "\n".join([*lines, "\nby themselves only:", *(_line("", module) for module in TOOLS)])


def _line(name: str, module: str) -> str:
    # Read, since to import all of them takes seconds.
    source = (Path(__file__).parent / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
    first = (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]
    return f"  {name:<16} benchmarks.{module.removesuffix('.__main__'):<18} {first}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the programs named, in the order of the list."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        epilog=listed(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("programs", nargs="*", metavar="NAME", help="a name of the list below")
    parser.add_argument("--quick", action="store_true", help="small runs, to see that the programs work")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.programs) - set(PROGRAMS))
    if unknown:
        parser.error(f"expected programs among {', '.join(PROGRAMS)}, got {', '.join(unknown)}")
    for name in PROGRAMS:
        if not options.programs or name in options.programs:
            print(f"\n=== {name} ===", flush=True)
            run(name, options.quick)


if __name__ == "__main__":
    main()
