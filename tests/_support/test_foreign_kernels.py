"""Functions of numpy as kernels, against the package's kernel, in every search that differentiates kernels."""

from typing import Any

import numpy as np
import optuna
import pytest
import torch
from torch import Tensor

import bkbopt as bo
from bkbopt.adapters.optuna import BKBSampler
from bkbopt.kernels import CallableKernel
from bkbopt.search import certificate
from bkbopt.search.criteria.criterion import UpperBound, rule_of
from bkbopt.search.maximizers.box import BoxMaximizer

BOX = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
RBF = bo.kernels.rbf(2, 0.4)


def of_arrays(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    assert isinstance(A, np.ndarray)
    return np.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(-1) / 0.16)


def of_tensors(A: Tensor, B: Tensor) -> Tensor:
    return torch.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(-1) / 0.16)


def of_roots(A: Tensor, B: Tensor) -> Tensor:
    """The same with a root, whose slope is NaN at distance zero."""
    return torch.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(-1).sqrt() ** 2 / 0.16)


def optimizer(kernel: Any, space: Any = None, **options: Any) -> bo.Optimizer:
    surrogate = bo.BKB(kernel, noise=1e-4)
    return bo.Optimizer(space or BOX, surrogate=surrogate, seed=0, n_startup_trials=5, perturbations=False, **options)


def bowl(params: Any) -> float:
    return float((params["x"] - 0.3) ** 2 + (params["y"] - 0.6) ** 2)


def told(opt: bo.Optimizer, n: int) -> bo.Optimizer:
    for _ in range(n):
        trial = opt.ask()
        opt.tell(trial, bowl(trial.params))
    return opt


@pytest.mark.parametrize("acquisition", ["ucb", "logei"])
@pytest.mark.parametrize("kernel", [of_arrays, of_roots])
def test_without_derivatives_suggestions_are_those_of_the_differentiated_kernel(kernel: Any, acquisition: str) -> None:
    own, torch_s = (optimizer(k, acquisition=acquisition) for k in (kernel, of_tensors))
    for _ in range(8):
        trial, expected = own.ask(), torch_s.ask()
        # Two searches of one function: they end within rounding of one optimum.
        assert list(trial.params.values()) == pytest.approx(list(expected.params.values()), abs=1e-3)
        for opt in (own, torch_s):
            opt.tell(opt.trials[-1], bowl(trial.params))


def test_posteriors_by_arrays_and_by_the_package_s_kernel_are_equal() -> None:
    rng = np.random.default_rng(0)
    X, Xs = rng.random((20, 2)), rng.random((10, 2))
    for make in (bo.BKB, bo.ExactGP):
        ours, theirs = make(RBF, 0.01), make(of_arrays, 0.01)
        for gp in (ours, theirs):
            gp.observe(X, X[:, 0])
        torch.testing.assert_close(theirs.posterior(Xs).mean, ours.posterior(Xs).mean, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(theirs.posterior(Xs).variance, ours.posterior(Xs).variance, rtol=1e-8, atol=1e-10)


def test_the_search_of_a_box_finds_the_maximum_that_exact_gradients_find() -> None:
    space = bo.Space.parse({f"x{i}": (0.0, 1.0) for i in range(5)})
    rng = np.random.default_rng(0)
    X, y = rng.random((80, 5)), rng.standard_normal(80)
    tops = []
    for kernel in (of_arrays, bo.kernels.rbf(5, 0.4)):
        gp = bo.ExactGP(kernel, 0.01)
        gp.observe(X, y)
        score = UpperBound.over(gp.model, 2.0)
        ranked = BoxMaximizer(space).ranked(score, torch.as_tensor(X[:3]), np.random.default_rng(1), lambda *_: True)
        tops.append(float(score(ranked[:1])))
    assert tops[0] == pytest.approx(tops[1], abs=1e-7)


def test_a_path_of_thompson_sampling_is_climbed() -> None:
    gp = bo.ExactGP(of_arrays, 0.01)
    X = np.random.default_rng(0).random((20, 2))
    gp.observe(X, X[:, 0])
    score = rule_of("thompson").build(gp.model, 0.0, 0.0, np.random.default_rng(0))
    ranked = BoxMaximizer(bo.Space.parse(BOX)).ranked(
        score, torch.as_tensor(X[:2]), np.random.default_rng(0), lambda *_: True
    )
    candidates = bo.Space.parse(BOX).sample(10_000, np.random.default_rng(1))
    assert float(score(ranked[:1])) >= float(score(candidates).max())


def test_the_certificate_is_that_of_the_differentiated_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, few in {"N_DRAWS": 40, "N_CANDIDATES": 100}.items():
        monkeypatch.setattr(certificate, name, few)
    bounds = []
    for kernel in (of_arrays, of_tensors):
        opt = optimizer(kernel)
        for x in np.random.default_rng(0).random((14, 2)).tolist():
            params = dict(zip(BOX, x, strict=True))
            opt.tell(params, bowl(params))
        bounds.append(opt.regret_certificate().bound)
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-4)


def test_with_constraints_and_failed_trials_a_kernel_of_arrays_is_searched_too() -> None:
    opt = optimizer(of_arrays, constraints=["c"])
    for i in range(11):
        trial = opt.ask()
        if i == 3:
            opt.fail(trial)
        else:
            opt.tell(trial, bowl(trial.params), constraints={"c": trial.params["x"] - 0.5})
    best = opt.best_trial
    assert best is not None
    assert bowl(best.params) < 0.02


def test_optuna_s_sampler_takes_a_kernel_of_arrays() -> None:
    study = optuna.create_study(sampler=BKBSampler(seed=0, kernel=of_arrays, n_startup_trials=5))
    study.optimize(lambda t: bowl({name: t.suggest_float(name, 0.0, 1.0) for name in BOX}), 15)
    assert study.best_value < 0.01


def test_a_kernel_sees_points_of_the_space_only_and_codes_as_they_are() -> None:
    correlation = {(0.0, 0.0): 1.0, (1.0, 1.0): 1.0, (0.0, 1.0): 0.5, (1.0, 0.0): 0.5}

    def mixed(A: Any, B: Any) -> Any:
        assert ((A >= 0.0) & (A <= 1.0)).all()
        codes = np.array([[correlation[a, b] for b in B[:, 1].tolist()] for a in A[:, 1].tolist()])
        return codes * np.exp(-0.5 * (A[:, None, 0] - B[None, :, 0]) ** 2 / 0.16)

    opt = optimizer(mixed, {"x": (0.0, 1.0), "kind": ["a", "b"]}, direction="maximize")
    for _ in range(12):
        trial = opt.ask()
        opt.tell(trial, trial.params["x"] + (trial.params["kind"] == "b"))
    best = opt.recommend().params
    assert best["kind"] == "b"
    assert best["x"] > 0.99


def test_a_kernel_and_its_diag_get_their_points_in_one_way() -> None:
    class Mixed:
        """A matrix of torch, and a diagonal that needs numpy."""

        def __call__(self, A: Tensor, B: Tensor) -> Tensor:
            assert isinstance(A, Tensor)
            return of_tensors(A, B)

        def diag(self, A: Tensor) -> Any:
            return 1.0 + 0.0 * np.asarray(A)[:, 0]

    kernel = CallableKernel(Mixed())
    X = torch.rand(3, 2, dtype=torch.float64, requires_grad=True)
    # Otherwise slopes would be those of the matrix alone.
    assert not kernel(X, X).requires_grad
    assert not kernel.diag(X).requires_grad


def test_a_function_is_tried_at_its_first_call_only() -> None:
    sizes = []

    def counted(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        sizes.append(len(A))
        return of_arrays(np.asarray(A), B)

    kernel, X = CallableKernel(counted), torch.rand(3, 2, dtype=torch.float64)
    kernel(X, X)
    n_tries = len(sizes) - 1
    assert n_tries <= 3
    assert set(sizes[:-1]) == {1}
    kernel(X, X)
    assert len(sizes) == n_tries + 2
