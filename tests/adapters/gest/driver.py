"""A program in which a framework drives a generator; prints the final data of both as JSON.

python driver.py FRAMEWORK WORKERS FOLDER
"""

import json
import math
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from gest_api.vocs import VOCS

from bkbopt.adapters.gest import BKBGenerator

N = 24
VARIABLES = {"x": [0.0, 1.0], "n": {1, 2, 3}}
CONSTRAINED = VOCS(
    variables=VARIABLES,
    objectives={"f": "MINIMIZE"},
    constraints={"c": ["GREATER_THAN", 0.5]},
    constants={"centre": 0.3},
    observables=["o"],
)
#: Optimas hands back constraints only where they are observables too, and no constants.
FOR_OPTIMAS = VOCS(
    variables=VARIABLES,
    objectives={"f": "MINIMIZE"},
    constraints={"c": ["GREATER_THAN", 0.5]},
    observables=["o", "c"],
)

Row = dict[str, Any]


def simulate(point: Row) -> Row:
    """The best feasible point is x = 0.5, n = 1, where f = 1.04; beyond x = 0.9 it fails."""
    x, centre = float(point["x"]), float(point.get("centre", 0.3))
    return {"f": (x - centre) ** 2 + float(point["n"]) if x < 0.9 else math.nan, "c": x, "o": 2.0 * x}


def into(point: Row, out: Row) -> None:
    """The same as Optimas calls it."""
    for name, value in simulate(point).items():
        out[name] = value


def by_xopt(workers: str, folder: Path) -> tuple[BKBGenerator, list[Row]]:
    from xopt import Evaluator, Xopt
    from xopt.stopping_conditions import MaxEvaluationsCondition

    evaluator = Evaluator(function=simulate, max_workers=1)
    if workers == "threads":
        evaluator = Evaluator(function=simulate, max_workers=2, executor=ThreadPoolExecutor(2))
    generator = BKBGenerator(CONSTRAINED, seed=0)
    X = Xopt(generator=generator, evaluator=evaluator, stopping_condition=MaxEvaluationsCondition(max_evaluations=N))
    X.strict = False
    X.random_evaluate(4, seed=1)
    X.run()
    X.dump(str(folder / "xopt.yml"))
    assert not generator.optimizer.trials  # X has a copy
    return X.generator, X.data.to_dict("records")


def by_libensemble(workers: str, folder: Path) -> tuple[BKBGenerator, list[Row]]:
    from libensemble import Ensemble
    from libensemble.alloc_funcs.start_only_persistent import only_persistent_gens
    from libensemble.specs import AllocSpecs, ExitCriteria, GenSpecs, LibeSpecs, SimSpecs

    on_manager = workers != "generator in a process"
    # In a process of its own the generator has a log of its own, unless this is in a file.
    generator = BKBGenerator(CONSTRAINED, seed=0, storage=None if on_manager else str(folder / "log.db"))
    ensemble = Ensemble(
        libE_specs=LibeSpecs(
            comms="threads" if workers == "threads" else "local",
            nworkers=2 if on_manager else 3,
            gen_on_manager=on_manager,
            final_gen_send=True,
            disable_log_files=True,
            ensemble_dir_path=str(folder / "ensemble"),
        ),
        gen_specs=GenSpecs(generator=generator, vocs=CONSTRAINED, initial_batch_size=4),
        sim_specs=SimSpecs(simulator=simulate, vocs=CONSTRAINED),
        alloc_specs=AllocSpecs(alloc_f=only_persistent_gens, user={"async_return": True}),
        exit_criteria=ExitCriteria(sim_max=N),
    )
    H, _, flag = ensemble.run()
    assert flag == 0
    names = ["x", "n", "centre", "f", "c", "o", "_id"]
    return generator, [{name: row[name].item() for name in names} for row in H[H["sim_ended"]]]


def by_optimas(workers: str, folder: Path) -> tuple[BKBGenerator, list[Row]]:
    from optimas.evaluators import FunctionEvaluator
    from optimas.explorations import Exploration
    from optimas.generators import ExternalGenerator

    generator = BKBGenerator(FOR_OPTIMAS, seed=0)
    exploration = Exploration(
        generator=ExternalGenerator(ext_gen=generator, vocs=FOR_OPTIMAS),
        evaluator=FunctionEvaluator(function=into),
        max_evals=N,
        sim_workers=2,
        run_async=True,
        exploration_dir_path=str(folder / "exploration"),
        libe_comms="threads" if workers == "threads" else "local",
    )
    exploration.run()
    return generator, exploration.history.to_dict("records")


if __name__ == "__main__":
    drive = {"xopt": by_xopt, "libensemble": by_libensemble, "optimas": by_optimas}[sys.argv[1]]
    driven, rows = drive(sys.argv[2], Path(sys.argv[3]))
    best, trials = driven.optimizer.best_trial, driven.optimizer.trials
    known = {
        "states": [trial.state for trial in trials],
        "values": sorted([trial.params["x"], *trial.values] for trial in trials if trial.values),
        "rows": sorted([row["x"], row["f"]] for row in rows if not math.isnan(row["f"])),
        "failed rows": sum(math.isnan(row["f"]) for row in rows),
        "best": [best.params["x"], best.params["n"], best.value],
    }
    print(json.dumps(known))
