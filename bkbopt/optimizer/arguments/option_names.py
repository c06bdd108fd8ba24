"""The arguments of `minimize` and `Optimizer` by name, and what they are called in other packages."""

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

from bkbopt.errors import ArgumentTypeError

__all__ = ["check_known", "check_names"]

#: What to pass, by the names that it has in other packages; similar names are found by themselves.
ELSEWHERE = {
    "n_trials": ("budget", "evals", "max_evals", "max_iter", "max_trials", "n_iter", "num_trials", "total_trials"),
    "seed": ("random_seed", "random_state", "rng", "rstate"),
    "n_startup_trials": ("init_points", "n_init", "n_initial_points", "n_random_starts", "rand_sample"),
    "timeout": ("max_time", "time_budget", "time_limit", "walltime_limit"),
    "acquisition": ("acq_func", "acquisition_function", "acquisition_type"),
    "beta": ("kappa", "sqrt_beta"),
    "surrogate=bo.BKB(noise=variance)": ("noise", "noise_std"),
    "executor=ThreadPoolExecutor(4)": ("batch_mode", "n_jobs", "num_workers"),
    "show_progress_bar": ("disp", "progress", "progress_bar", "verbose", "verbosity"),
    "feasible": ("forbidden", "parameter_constraints"),
    "constraints": ("constraints_func", "outcome_constraints"),
    "opt.tell(points, values), and then opt in place of the space": ("warm_start", "x0", "y0"),
    "opt.enqueue(params), and then opt in place of the space": ("points_to_evaluate",),
}


def check_known(call: str, given: Iterable[str], form: Any) -> None:
    """Refuse the first name that is none of a `TypedDict`, with the name that may be meant."""
    names = list(form.__annotations__)
    unknown = next((name for name in given if name not in names), None)
    if unknown is not None:
        near = difflib.get_close_matches(unknown, names, 1)
        advice = f"; do you mean {near[0]}?" if near else f"; they are {', '.join(names)}."
        raise ArgumentTypeError(f"{unknown}: expected an argument of {call}, got an unknown one{advice}")


def check_names(given: Iterable[str], options: Sequence[str], own: Sequence[str]) -> None:
    """Refuse the first name that is not among the `options`; the message has the name to use, if one is known.

    Args:
        given: the names.
        options: the names of the arguments of `Optimizer`.
        own: those of `minimize`.

    Raises:
        ArgumentTypeError: a name that is none of them.
    """
    unknown = next((name for name in given if name not in options), None)
    if unknown is None:
        return
    here = [name for name, names in ELSEWHERE.items() if unknown in names]
    meant = here or difflib.get_close_matches(unknown, [*options, *own], 1)
    advice = f"; do you mean {meant[0]}?" if meant else "."
    raise ArgumentTypeError(f"{unknown}: expected an argument of minimize or Optimizer, got an unknown one{advice}")
