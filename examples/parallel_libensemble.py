"""Trials of an ensemble: libEnsemble starts them, here on worker processes, and calls the generator of gest-api.

    pip install ".[libensemble]"
    python examples/parallel_libensemble.py [--trials 60] [--workers 4] [--seconds 0.3] [--smoke]

libEnsemble runs ensembles on supercomputers: with `comms="mpi"` the workers are ranks of `mpiexec`, and its executors
start simulations that are separate programs. `BKBGenerator` needs no changes there, nor in Xopt and Optimas.
"""

import tempfile
import time
from collections.abc import Mapping
from typing import Any

from gest_api.vocs import VOCS, ContinuousVariable
from inventory import Simulator, arguments, report
from libensemble import Ensemble
from libensemble.alloc_funcs.start_only_persistent import only_persistent_gens
from libensemble.specs import AllocSpecs, ExitCriteria, GenSpecs, LibeSpecs, SimSpecs

from bkbopt.adapters.gest import BKBGenerator

WAREHOUSE = VOCS(
    variables={
        "reorder_at": ContinuousVariable(domain=[0, 120], dtype=int),
        "order": ContinuousVariable(domain=[10, 250], dtype=int),
    },
    objectives={"cost": "MINIMIZE"},
)


def simulate(point: Mapping[str, Any], seconds: float, **_: Any) -> dict[str, float]:
    """The black box in the terms of gest-api: outputs by name."""
    return {"cost": Simulator(seconds)(point)}


def main() -> None:
    given = arguments("libEnsemble")
    generator = BKBGenerator(WAREHOUSE, seed=0)
    with tempfile.TemporaryDirectory() as folder:
        ensemble = Ensemble(
            libE_specs=LibeSpecs(
                comms="local",
                nworkers=given.workers,
                gen_on_manager=True,  # else the generator that learns is a copy, in a process of its own
                final_gen_send=True,  # the last results too
                disable_log_files=True,
                ensemble_dir_path=f"{folder}/ensemble",
            ),
            gen_specs=GenSpecs(generator=generator, vocs=WAREHOUSE, initial_batch_size=given.workers),
            sim_specs=SimSpecs(simulator=simulate, vocs=WAREHOUSE, user={"seconds": given.seconds}),
            # async_return: a new point for each result, and not for each batch of them.
            alloc_specs=AllocSpecs(alloc_f=only_persistent_gens, user={"async_return": True}),
            exit_criteria=ExitCriteria(sim_max=given.trials),
        )
        start = time.perf_counter()
        ensemble.run()
        elapsed = time.perf_counter() - start
    optimizer = generator.optimizer
    choice = optimizer.recommend()
    report(choice.params, optimizer.n_complete, given.workers, given.seconds, elapsed)
    print(f"the model says {choice.mean:.2f} +- {2 * choice.std:.2f} (2 sd)")


if __name__ == "__main__":  # worker processes import this file
    main()
