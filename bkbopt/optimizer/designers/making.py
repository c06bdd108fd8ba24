"""Making the designer and the log of an optimizer from its arguments."""

from dataclasses import replace
from typing import Any

import numpy as np

from bkbopt._support.checks import check_choice, check_count, check_flag
from bkbopt.confidence import as_confidence
from bkbopt.optimizer.arguments.known_constraint import Feasible, as_feasible
from bkbopt.optimizer.arguments.problems import as_problem
from bkbopt.optimizer.arguments.searching import as_rule, as_surrogate, check_kernel, check_symmetry, checked_seed
from bkbopt.optimizer.designers.logged_designer import LoggedDesigner
from bkbopt.optimizer.log.aims import Aims
from bkbopt.search.criteria.acquisition import Acquisition
from bkbopt.search.options import Options
from bkbopt.search.quantities.fitting import ModelOptions
from bkbopt.search.trials.directions import sign_of
from bkbopt.surrogates import Surrogate
from bkbopt.surrogates.base import MakesSurrogate

__all__ = ["as_designer"]


def as_designer(
    space_or_pool: Any,
    *,
    aims: Aims,
    seed: Any,
    n_startup_trials: Any,
    surrogate: str | Surrogate | MakesSurrogate | None,
    acquisition: str | Acquisition,
    beta: Any,
    fit: bool,
    duplicates: str,
    deterministic: bool,
    feasible: Feasible | None,
    perturbations: bool,
) -> LoggedDesigner:
    """The designer of an optimizer with these arguments, and its log without trials; see `Optimizer`."""
    check_choice("duplicates", duplicates, ("allow", "avoid"))
    entropy = int(np.random.SeedSequence(checked_seed(seed)).generate_state(1)[0])
    fit = check_flag("fit", fit)
    prototype = as_surrogate(surrogate, fit)
    options = Options(
        ModelOptions(prototype, fit, check_flag("deterministic", deterministic)),
        check_count("n_startup_trials", n_startup_trials, 0),
        as_rule(acquisition),
        as_confidence(beta),
        avoid_duplicates=duplicates == "avoid",
        perturbations=check_flag("perturbations", perturbations),
    )
    problem = as_problem(space_or_pool, fit, prototype.has_kernel)
    if problem.pool is not None and problem.pool.objects is not None:
        prototype.bind_objects(problem.pool.objects)
        check_symmetry(prototype.kernel, len(problem.pool.objects))
    own = None if problem.pool is None else problem.pool.feasible
    constraint = as_feasible(feasible, problem.candidates, own)
    signs = tuple(map(sign_of, aims.directions))
    core = LoggedDesigner(replace(problem, signs=signs), options, entropy, constraint, aims)
    check_kernel(prototype, core.designer.history)
    return core
