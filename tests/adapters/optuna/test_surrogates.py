"""Other models in the sampler: the same as in an optimizer, and options of BKB beside them."""

from typing import Any

import optuna
import pytest

import bkbopt as bo
from bkbopt.adapters.optuna import BKBSampler, optimizer_of
from bkbopt.errors import ArgumentError, ArgumentTypeError
from tests.adapters.optuna.studies import bowl, new_study


@pytest.mark.parametrize("surrogate", ["exact", "fourier", bo.BKB(max_inducing=8), "pkawv"])
def test_the_model_is_that_of_an_optimizer_with_this_surrogate(surrogate: Any) -> None:
    study = new_study(surrogate=surrogate)
    study.optimize(bowl, n_trials=12)
    assert len({trial.values[0] for trial in study.trials}) == 12
    sampler = study.sampler
    assert isinstance(sampler, BKBSampler)
    opt = optimizer_of(study)
    same = bo.Optimizer({"x": (0.0, 1.0)}, surrogate=surrogate)
    same.tell({"x": 0.5}, 1.0)
    assert type(opt.surrogate) is type(same.surrogate)
    assert opt.recommend() == sampler.recommend(study)


def test_an_exact_process_has_the_posterior_of_bkb_with_all_points() -> None:
    """Up to its limit the dictionary of BKB has nearly all points of so few trials."""
    studies = [new_study(surrogate=surrogate) for surrogate in ("exact", bo.BKB(qbar=1e6))]
    for study in studies:
        study.optimize(bowl, n_trials=9)
    exact, other = ([trial.params["x"] for trial in study.trials] for study in studies)
    assert exact == pytest.approx(other, abs=1e-3)  # the ascents end at gradients of about 1e-5
    assert repr(studies[0].sampler) == "BKBSampler(seed=0, n_startup_trials=5, surrogate='exact')"


@pytest.mark.parametrize("beside", [{"qbar": 3.0}, {"max_inducing": None}, {"kernel": bo.kernels.rbf(2, 0.5)}])
def test_options_of_bkb_beside_another_surrogate_are_refused(beside: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="surrogate: expected no kernel, qbar or max_inducing beside it"):
        BKBSampler(surrogate="exact", **beside)
    with pytest.raises(ArgumentTypeError, match="surrogate: expected a name or an instance"):
        BKBSampler(surrogate=3)  # type: ignore[arg-type]


def test_a_cold_sampler_with_another_surrogate_goes_on_alike() -> None:
    study = new_study(surrogate="exact")
    study.optimize(bowl, n_trials=9)
    cold = optuna.create_study(sampler=BKBSampler(seed=0, n_startup_trials=5, surrogate="exact"))
    cold.add_trials(study.trials)
    for each in (study, cold):
        each.optimize(bowl, n_trials=1)
    assert study.trials[-1].params == cold.trials[-1].params
