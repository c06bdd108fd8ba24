"""The preset for which the theorems of the paper hold."""

from typing import Any

import numpy as np
import pytest
import torch

import bkbopt as bo
from bkbopt.confidence import Theorem2, theorem1_qbar
from bkbopt.errors import ArgumentError, ArgumentTypeError

X = np.random.default_rng(0).random((40, 2))
KERNEL = bo.kernels.rbf(2, 0.3)


def preset(**options: Any) -> bo.Optimizer:
    settings: dict[str, Any] = {"kernel": KERNEL, "noise": 0.01, "norm_bound": 1.0, "horizon": 60, "seed": 0}
    return bo.theory(X, **settings | options)


def smooth(seed: int, kernel: bo.kernels.ARDKernel = KERNEL) -> np.ndarray:
    """A function of norm 1 in the kernel's space, on the pool."""
    T = torch.as_tensor(X)
    K = kernel(T, T).numpy()
    a = np.random.default_rng(seed).standard_normal(len(X))
    return K @ a / np.sqrt(a @ K @ a)


def play(opt: bo.Optimizer, f: np.ndarray, n: int, seed: int = 0) -> np.ndarray:
    """Regret of each step, maximising, with noise of variance 0.01."""
    rng = np.random.default_rng(seed)
    regret = []
    for _ in range(n):
        trial = opt.ask()
        opt.tell(trial, f[trial.index] + 0.1 * rng.standard_normal())
        regret.append(f.max() - f[trial.index])
    return np.array(regret)


def test_nothing_is_fitted_or_scaled() -> None:
    opt = preset(direction="maximize")
    play(opt, smooth(0), 15)
    assert opt.surrogate.kernel is not None
    T = torch.as_tensor(X)
    assert torch.equal(opt.surrogate.kernel(T, T), KERNEL(T, T))
    assert opt.surrogate.noise == 0.01
    assert torch.equal(opt.pool.X, T)  # columns as they are
    assert float(opt.surrogate.observations.s.sum()) == pytest.approx(sum(t.value for t in opt.trials))


def test_dictionary_is_drawn_at_every_step_with_the_theorems_oversampling() -> None:
    opt = preset()
    play(opt, smooth(0), 12)
    bkb = opt.surrogate
    assert isinstance(bkb, bo.BKB)
    assert bkb.resample == "every"
    assert bkb.n_draws >= 11  # the first point is its own dictionary
    assert bkb.qbar == theorem1_qbar(60, 0.05, 0.5)
    assert bkb.max_inducing is None
    assert opt.confidence == Theorem2(norm_bound=1.0, noise_std=0.1, delta=0.05, epsilon=0.5, form="safe")


def test_first_arm_is_random_and_the_second_the_models() -> None:
    first = {preset(seed=s).ask().index for s in range(30)}
    assert len(first) > 10
    opt = preset()
    play(opt, smooth(0), 2)
    assert [d.n_inducing is None for d in opt.diagnostics] == [True, False]


def test_beta_is_the_theorems_and_printed_for_every_step() -> None:
    opt = preset(form="printed")
    play(opt, smooth(0), 10)
    assert isinstance(opt.confidence, Theorem2)
    for d in opt.diagnostics[1:]:
        # The printed radius over sqrt(lam), with kappa = 1, xi^2 = lam = 0.01, alpha = 3, delta / 2 = 0.05.
        gain = 3.0 * max(np.log(d.n_values), 0.0) * d.effective_dimension + np.log(20.0)
        assert d.beta == pytest.approx(2.0 * np.sqrt(gain) + 1.0 + np.sqrt(2.0), rel=1e-9)


@pytest.mark.slow
def test_average_regret_falls() -> None:
    # A smooth kernel: the theorem's radius is several times what is needed, and the pool has to be learnt all over.
    kernel = bo.kernels.rbf(2, 1.2)
    early, late = [], []
    for seed in range(3):
        opt = preset(kernel=kernel, direction="maximize", seed=seed, horizon=120)
        regret = play(opt, smooth(seed, kernel), 120, seed)
        early.append(regret[:40].mean())
        late.append(regret[-40:].mean())
    assert np.mean(late) < 0.6 * np.mean(early)


def test_choice_is_the_argmax_over_all_arms() -> None:
    opt = preset(direction="maximize")
    play(opt, smooth(1), 20)
    model = opt.surrogate.model
    trial = opt.ask()
    mean, variance = model(torch.as_tensor(X))
    assert trial.index == int((mean + opt.diagnostics[-1].beta * variance.sqrt()).argmax())


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("kernel", None, ArgumentTypeError),
        ("kernel", 3, ArgumentTypeError),
        ("noise", None, ArgumentTypeError),
        ("noise", 0.0, ArgumentError),
        ("noise", -1.0, ArgumentError),
        ("noise", float("nan"), ArgumentError),
        ("norm_bound", -1.0, ArgumentError),
        ("norm_bound", "1", ArgumentTypeError),
        ("horizon", 0, ArgumentError),
        ("horizon", 1.5, ArgumentError),
        ("horizon", float("inf"), ArgumentError),
        ("delta", 0.0, ArgumentError),
        ("delta", 1.0, ArgumentError),
        ("delta", 1.5, ArgumentError),
        ("epsilon", 0.0, ArgumentError),
        ("epsilon", 1.0, ArgumentError),
        ("form", "other", ArgumentError),
        ("direction", "up", ArgumentError),
    ],
)
def test_bad_argument_is_named(name: str, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=name):
        preset(**{name: value})
