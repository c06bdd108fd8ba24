"""Kernels: ours against GPyTorch's, GPyTorch's through our wrapper, and refusals of invalid kernels."""

import math
from collections.abc import Callable

import gpytorch
import numpy as np
import pytest
import torch
from scipy.stats import norm
from torch import Tensor

from bkbopt import BKB, ExactGP
from bkbopt.errors import ArgumentError, ArgumentTypeError, KernelError
from bkbopt.kernels import (
    ARDKernel,
    CallableKernel,
    FittableKernel,
    GPyTorchKernel,
    Kernel,
    ScaledKernel,
    as_kernel,
    gram,
    matern,
    matern52,
    rbf,
)
from bkbopt.posterior.observations import Observations
from bkbopt.surrogates.fit import fit_hyperparameters

LENGTHSCALES = [0.3, 1.0, 4.0]
FORMS = {"rbf": None, "matern12": 0.5, "matern32": 1.5, "matern52": 2.5}


def random_points(n: int, d: int = 3, seed: int = 0) -> Tensor:
    return torch.as_tensor(np.random.default_rng(seed).random((n, d)))


def ours(form: str) -> ARDKernel:
    kernel = matern52(3, LENGTHSCALES, outputscale=2.5)
    return ARDKernel(kernel.log_lengthscale, kernel.log_outputscale, kernel.log_hamming, form=form)


def theirs(form: str) -> gpytorch.kernels.Kernel:
    nu = FORMS[form]
    base = (
        gpytorch.kernels.RBFKernel(ard_num_dims=3)
        if nu is None
        else gpytorch.kernels.MaternKernel(nu=nu, ard_num_dims=3)
    )
    kernel = gpytorch.kernels.ScaleKernel(base).double()
    kernel.base_kernel.lengthscale = torch.tensor(LENGTHSCALES, dtype=torch.float64)
    kernel.outputscale = 2.5
    return kernel


def with_priors() -> gpytorch.kernels.Kernel:
    """An ARD Matern kernel that carries priors of its own."""
    base = gpytorch.kernels.MaternKernel(
        nu=2.5, ard_num_dims=3, lengthscale_prior=gpytorch.priors.LogNormalPrior(0.2, 1.1)
    )
    return gpytorch.kernels.ScaleKernel(base, outputscale_prior=gpytorch.priors.GammaPrior(2.0, 0.5))


def parameters_of(kernel: gpytorch.kernels.Kernel) -> dict[str, Tensor]:
    return {name: p.detach().clone() for name, p in kernel.named_parameters()}


# -- ours ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_values_are_gpytorchs(form: str) -> None:
    A, B = random_points(40), random_points(30, seed=1)
    expected = theirs(form)(A, B).to_dense().detach()
    # The fast distance formula is good to 1e-15 in r^2; a Matern-1/2 kernel would feel its root, and avoids it.
    torch.testing.assert_close(ours(form)(A, B), expected, rtol=0.0, atol=1e-13)
    torch.testing.assert_close(ours(form).diag(A), torch.full((40,), 2.5, dtype=torch.float64))


@pytest.mark.parametrize("form", FORMS)
def test_values_are_the_same_with_and_without_gradients(form: str) -> None:
    A, B = random_points(20), random_points(10, seed=1)
    kernel = ours(form)
    torch.testing.assert_close(kernel(A.clone().requires_grad_(), B).detach(), kernel(A, B), rtol=0.0, atol=1e-14)


@pytest.mark.parametrize("form", FORMS)
def test_gradients_in_points_are_gpytorchs(form: str) -> None:
    A, B = random_points(8), random_points(6, seed=1)
    weights = random_points(8, 6, seed=2)
    gradients = []
    for kernel in (lambda X: ours(form)(X, B), lambda X: theirs(form)(X, B).to_dense()):
        X = A.clone().requires_grad_()
        gradients.append(torch.autograd.grad((kernel(X) * weights).sum(), X)[0])
    torch.testing.assert_close(*gradients, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_gradients_in_hyperparameters_are_those_of_finite_differences(form: str) -> None:
    A, B = random_points(5), random_points(4, seed=1)
    kernel = ours(form)
    theta = kernel.theta.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda t: kernel.with_theta(t)(A, B), (theta,))


def test_gradient_in_a_point_is_finite_and_zero_at_a_point_itself() -> None:
    for form in ("rbf", "matern32", "matern52"):
        X = random_points(3).requires_grad_()
        (g,) = torch.autograd.grad(ours(form)(X, X.detach()).diagonal().sum(), X)
        # k(x, x') is flat at x = x'; what is left is rounding of r^2, whose root is up to 1e-8.
        assert float(g.abs().max()) < 1e-6


def test_a_category_costs_a_factor_and_codes_have_no_order() -> None:
    kernel = matern52(3, 0.7, categorical=[1])
    kernel = kernel.with_theta(torch.log(torch.tensor([0.7, 0.7, 0.5, 1.0], dtype=torch.float64)))
    numeric = matern52(2, 0.7)
    A, B = random_points(6), random_points(5, seed=1)
    codes_a, codes_b = torch.arange(6) % 3, torch.arange(5) % 3
    A[:, 1], B[:, 1] = codes_a.double(), codes_b.double()
    same = codes_a[:, None] == codes_b[None, :]
    factor = torch.tensor(math.exp(-1.0 / 0.5), dtype=torch.float64)
    expected = numeric(A[:, [0, 2]], B[:, [0, 2]]) * torch.where(same, 1.0, factor)
    torch.testing.assert_close(kernel(A, B), expected, rtol=1e-14, atol=0.0)
    # Other names for the same categories change nothing.
    names = torch.tensor([5.0, -1.0, 40.0], dtype=torch.float64)
    A[:, 1], B[:, 1] = names[codes_a], names[codes_b]
    torch.testing.assert_close(kernel(A, B), expected, rtol=1e-14, atol=0.0)


def test_inactive_columns_have_no_effect() -> None:
    A, B = random_points(6), random_points(5, seed=1)
    kernel = matern52(3, 0.7, 2.0, inactive=[1])
    assert (kernel.dim, kernel.numeric, len(kernel.theta)) == (3, (0, 2), 3)
    assert torch.equal(kernel(A, B), matern52(2, 0.7, 2.0)(A[:, [0, 2]], B[:, [0, 2]]))
    # Start and prior are those of a kernel of the active columns.
    few = matern52(2)
    assert torch.equal(matern52(3, inactive=[1]).theta, few.theta)
    assert float(matern52(3, inactive=[1]).log_prior()) == float(few.log_prior())


def test_categories_alone_make_a_positive_definite_kernel() -> None:
    kernel = matern52(2, categorical=[0, 1])
    grid = torch.cartesian_prod(torch.arange(4.0), torch.arange(3.0)).double()
    K = gram(kernel, grid)
    assert float(torch.linalg.eigvalsh(K)[0]) > 1e-3
    assert torch.equal(kernel.diag(grid), torch.ones(12, dtype=torch.float64))


def test_theta_round_trip_keeps_the_kernel() -> None:
    kernel = rbf(4, [0.1, 0.2, 0.3], 7.0, categorical=[2])
    again = kernel.with_theta(kernel.theta)
    X = random_points(6, 4)
    assert torch.equal(again(X, X), kernel(X, X))
    assert (again.form, again.categorical, again.prior_loc) == (kernel.form, kernel.categorical, kernel.prior_loc)


def test_log_prior_is_normal_on_the_logarithms() -> None:
    kernel = matern52(4, [0.5, 1.0, 2.0], 3.0, categorical=[3])
    loc = math.sqrt(2.0) + 0.5 * math.log(3) - 3.0  # the mode of the log-normal density with scale sqrt(3)

    def normal(x: object, mean: float, sd: float) -> float:
        return float((norm.logpdf(x, mean, sd) - norm.logpdf(mean, mean, sd)).sum())

    kernel = kernel.with_theta(torch.log(torch.tensor([0.5, 1.0, 2.0, 4.0, 3.0], dtype=torch.float64)))
    expected = normal(np.log([0.5, 1.0, 2.0]), loc, math.sqrt(3.0)) + normal(np.log([4.0]), 0.0, 1.0)
    expected += normal(np.log([3.0]), 0.0, 0.5)
    assert float(kernel.log_prior()) == pytest.approx(expected, rel=1e-12)


def test_gram_is_symmetric_with_exact_diagonal() -> None:
    X = random_points(50) * 1e3
    K = gram(matern52(3, 0.5, 2.0), X)
    assert torch.equal(K, K.T)
    assert torch.equal(K.diagonal(), torch.full((50,), 2.0, dtype=torch.float64).log().exp())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lengthscale": [1.0, 2.0]}, "lengthscale: expected one value or 3"),
        ({"lengthscale": 0.0}, "lengthscale: expected positive"),
        ({"lengthscale": [1.0, float("nan"), 1.0]}, "lengthscale: expected positive"),
        ({"outputscale": -1.0}, "outputscale: expected a positive"),
        ({"outputscale": float("inf")}, "outputscale: expected a positive"),
        ({"categorical": [3]}, r"categorical: expected different columns from 0 to 2, got \[3\]"),
        ({"categorical": [-1]}, "categorical: expected different columns"),
        ({"categorical": [1, 1]}, "categorical: expected different columns"),
        ({"inactive": [3]}, r"inactive: expected different numeric columns from 0 to 2, got \[3\]"),
        ({"inactive": [1, 1]}, "inactive: expected different numeric columns"),
        ({"categorical": [1], "inactive": [1]}, "inactive: expected .* cannot be among `categorical`, too"),
        ({"inactive": [1], "lengthscale": [1.0] * 3}, r"expected one value or 2 \(one for each active numeric column"),
    ],
)
def test_default_kernels_refuse_bad_arguments(arguments: dict[str, object], message: str) -> None:
    for make in (matern52, rbf):
        with pytest.raises(ArgumentError, match=message):
            make(3, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(("nu", "form"), [(0.5, "matern12"), (1.5, "matern32"), (2.5, "matern52")])
def test_the_smoothness_decides_the_form(nu: float, form: str) -> None:
    kernel, default = matern(3, nu, [0.4, 0.7], 2.0, [1]), matern52(3, [0.4, 0.7], 2.0, [1])
    assert kernel.form == form
    assert torch.equal(kernel.theta, default.theta)
    assert kernel.categorical == (1,)


def test_unknown_smoothness_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"^nu: expected one of 0.5, 1.5, 2.5, got 3.0"):
        matern(2, nu=3.0)


def test_unknown_form_is_refused() -> None:
    zero = torch.zeros(1, dtype=torch.float64)
    with pytest.raises(ArgumentError, match=r"form: expected one of matern12, .*, got 'cubic'"):
        ARDKernel(zero, zero[0], zero[:0], form="cubic")


# -- GPyTorch's ------------------------------------------------------------------------------------------------------


def test_wrapped_gpytorch_kernel_has_its_values_and_gradients() -> None:
    for form in FORMS:
        wrapped = GPyTorchKernel.wrap(theirs(form))
        A, B = random_points(7), random_points(5, seed=1)
        torch.testing.assert_close(wrapped(A, B), theirs(form)(A, B).to_dense().detach(), rtol=1e-15, atol=1e-15)
        torch.testing.assert_close(wrapped.diag(A), torch.full((7,), 2.5, dtype=torch.float64))
    theta = wrapped.theta.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda t: wrapped.with_theta(t)(A, B), (theta,))


def test_wrapped_gpytorch_kernel_respects_its_priors() -> None:
    kernel = with_priors()
    kernel.base_kernel.lengthscale = torch.tensor([0.2, 0.5, 3.0])
    expected = torch.distributions.LogNormal(0.2, 1.1).log_prob(torch.tensor([0.2, 0.5, 3.0]).double()).sum()
    expected = expected + torch.distributions.Gamma(2.0, 0.5).log_prob(kernel.outputscale.detach().double())
    # The user's kernel is in float32, and its raw values go through a softplus there.
    torch.testing.assert_close(GPyTorchKernel.wrap(kernel).log_prior(), expected, rtol=1e-6, atol=0.0)


def test_gpytorch_kernel_gives_the_posterior_of_our_own() -> None:
    X, Xs = random_points(30), random_points(10, seed=1)
    y = torch.sin(5.0 * X[:, 0])
    for make in (ExactGP, BKB):
        a, b = make(theirs("matern52"), 1e-2), make(ours("matern52"), 1e-2)
        for gp in (a, b):
            gp.observe(X, y)
        # Dictionaries are drawn from equal scores with the same seed, so the two are the same to rounding.
        torch.testing.assert_close(a.posterior(Xs).mean, b.posterior(Xs).mean, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(a.posterior(Xs).variance, b.posterior(Xs).variance, rtol=1e-9, atol=1e-10)


def test_fit_moves_a_gpytorch_kernel_and_leaves_the_users_object_alone() -> None:
    user = with_priors()
    before = parameters_of(user)
    obs = Observations(3)
    X = random_points(60)
    obs.add(X, torch.sin(6.0 * X[:, 0]))
    start = as_kernel(user)
    assert isinstance(start, GPyTorchKernel)
    fitted, noise = fit_hyperparameters(obs, start, 1e-2)
    assert isinstance(fitted, GPyTorchKernel)
    assert not torch.allclose(fitted.theta, start.theta, atol=1e-2)
    assert 0.0 < noise < 1e-2
    # Column 0 alone matters: its lengthscale must come out shortest.
    at = dict(zip((n for n, _ in user.named_parameters()), fitted._parameters().values(), strict=True))
    assert int(at["base_kernel.raw_lengthscale"].argmin()) == 0
    after = parameters_of(user)
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert all(p.dtype == torch.float32 and p.requires_grad and p.grad is None for p in user.parameters())


def test_a_users_later_change_of_a_gpytorch_kernel_does_not_reach_the_surrogate() -> None:
    user = theirs("rbf")
    gp = ExactGP(user, 0.1)
    gp.observe(random_points(5), np.arange(5.0))
    before = gp.posterior(random_points(3, seed=1)).mean
    user.outputscale = 100.0
    assert torch.equal(gp.posterior(random_points(3, seed=1)).mean, before)


def test_kernel_without_hyperparameters_has_an_empty_theta() -> None:
    class Cosine(gpytorch.kernels.Kernel):
        def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **_: object) -> Tensor:
            K = torch.cos(x1[:, :1] - x2[:, :1].T)
            return K.diagonal() if diag else K

    kernel = as_kernel(Cosine())
    assert isinstance(kernel, GPyTorchKernel)
    assert len(kernel.theta) == 0
    X = random_points(4)
    torch.testing.assert_close(kernel(X, X), torch.cos(X[:, :1] - X[:, :1].T))


# -- callables -------------------------------------------------------------------------------------------------------


def numpy_rbf(A: Tensor, B: Tensor) -> np.ndarray:
    r2 = ((A.numpy()[:, None] - B.numpy()[None]) ** 2).sum(-1)
    return np.exp(-0.5 * r2 / 0.49)


def test_callable_on_numpy_arrays_gives_the_posterior_of_our_own() -> None:
    X, Xs = random_points(25), random_points(10, seed=1)
    a, b = ExactGP(numpy_rbf, 0.1), ExactGP(rbf(3, 0.7), 0.1)
    for gp in (a, b):
        gp.observe(X, X[:, 0])
    torch.testing.assert_close(a.posterior(Xs).mean, b.posterior(Xs).mean, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(a.posterior(Xs).variance, b.posterior(Xs).variance, rtol=1e-12, atol=1e-12)


def test_callable_may_return_float32_or_nested_lists() -> None:
    X = random_points(70)
    expected = torch.as_tensor(numpy_rbf(X, X))
    for change in (lambda K: K.astype(np.float32), lambda K: K.tolist(), torch.as_tensor):
        kernel = CallableKernel(lambda A, B, f=change: f(numpy_rbf(A, B)))
        torch.testing.assert_close(kernel(X, X), expected, rtol=0.0, atol=1e-7)
        assert kernel(X, X).dtype == torch.float64
        torch.testing.assert_close(kernel.diag(X), torch.ones(70, dtype=torch.float64), rtol=0.0, atol=1e-7)


def test_callables_own_diag_is_used() -> None:
    class WithDiag:
        def __call__(self, A: Tensor, B: Tensor) -> np.ndarray:
            return numpy_rbf(A, B)

        def diag(self, A: Tensor) -> np.ndarray:
            return np.full(len(A), 1.5)

    assert CallableKernel(WithDiag()).diag(random_points(3)).tolist() == [1.5, 1.5, 1.5]


def test_callable_sees_objects_where_points_are_row_numbers() -> None:
    words = ["abc", "abd", "xyz", "abc"]

    def common(A: list[str], B: list[str]) -> list[list[float]]:
        return [[float(sum(p == q for p, q in zip(a, b, strict=True))) for b in B] for a in A]

    kernel = as_kernel(common, words)
    rows = torch.arange(4.0, dtype=torch.float64)[:, None]
    assert kernel(rows[:2], rows).tolist() == [[3.0, 2.0, 0.0, 3.0], [2.0, 3.0, 0.0, 2.0]]
    gp = ExactGP(common, 0.1)
    gp.bind_objects(words)
    gp.observe(rows[:3], [1.0, 0.0, -1.0])
    mean = gp.posterior(rows).mean
    assert float(mean[3]) == pytest.approx(float(mean[0]), rel=1e-12)  # equal words, equal beliefs


def test_as_kernel_refuses_what_cannot_be_called() -> None:
    with pytest.raises(
        ArgumentTypeError, match=r"kernel: expected a kernel of bkbopt or GPyTorch, or a callable .* int"
    ):
        as_kernel(3)


def test_as_kernel_returns_our_kernels_as_they_are() -> None:
    for kernel in (matern52(2), CallableKernel(numpy_rbf), ScaledKernel(matern52(2), torch.zeros(()).double())):
        assert as_kernel(kernel) is kernel


def test_scaled_kernel_multiplies_and_is_fittable() -> None:
    kernel = ScaledKernel(CallableKernel(numpy_rbf), torch.tensor(math.log(3.0), dtype=torch.float64))
    assert isinstance(kernel, FittableKernel)
    assert not isinstance(kernel.base, FittableKernel)
    X = random_points(5)
    torch.testing.assert_close(kernel(X, X), 3.0 * torch.as_tensor(numpy_rbf(X, X)), rtol=1e-14, atol=0.0)
    torch.testing.assert_close(kernel.diag(X), torch.full((5,), 3.0).double(), rtol=1e-14, atol=0.0)
    obs = Observations(3)
    big = torch.sin(3.0 * random_points(40)[:, 0])
    obs.add(random_points(40), 4.0 * big)
    fitted, _ = fit_hyperparameters(obs, kernel.with_theta(torch.zeros(1).double()), 1e-2)
    assert isinstance(fitted, ScaledKernel)
    assert float(fitted.theta) > 0.5  # the data's variance is far above 1


# -- what is no kernel -----------------------------------------------------------------------------------------------


def indefinite(A: Tensor, B: Tensor) -> Tensor:
    """Symmetric with a unit diagonal, and far from positive definite."""
    d = torch.cdist(A, B)
    return torch.where(d == 0.0, 1.0, torch.sin(1e4 * d))


BAD_KERNELS: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], str]] = {
    "transposed": (lambda A, B: matern52(3)(B, A)[:, :1].expand(len(B), len(A) + 1), r"expected values of shape"),
    "a vector": (lambda A, B: torch.ones(len(A)), r"expected values of shape \(\d+, \d+\) .* got shape"),
    "NaN": (lambda A, B: matern52(3)(A, B) * float("nan"), "finite"),
    "infinite": (lambda A, B: matern52(3)(A, B) * float("inf"), "finite"),
    "minus a kernel": (lambda A, B: -rbf(3)(A, B), "got a negative"),
    "indefinite": (indefinite, "expected a positive semi-definite matrix"),
    "complex": (lambda A, B: matern52(3)(A, B) * 1j, "expected real numbers"),
    "text": (lambda A, B: [["a"] * len(B)] * len(A), "expected real numbers"),
}


@pytest.mark.parametrize("make", [ExactGP, BKB])
@pytest.mark.parametrize("one_by_one", [True, False])
@pytest.mark.parametrize("name", BAD_KERNELS)
def test_surrogates_refuse_what_is_no_kernel(make: Callable[..., BKB], name: str, one_by_one: bool) -> None:
    function, message = BAD_KERNELS[name]
    gp = make(function, 1e-2)
    X = random_points(70)

    def observe_all() -> None:
        for x in X.split(1 if one_by_one else 70):
            gp.observe(x, torch.ones(len(x)))

    with pytest.raises(KernelError, match=message):
        observe_all()


@pytest.mark.parametrize("kernel", [lambda A, B: -rbf(3)(A, B), as_kernel(lambda A, B: rbf(3)(A, B) * float("nan"))])
def test_gram_refuses_a_prior_variance_that_is_none(kernel: object) -> None:
    wrapped: Kernel = as_kernel(kernel)
    with pytest.raises(KernelError, match=r"^kernel: expected .*finite"):
        gram(wrapped, random_points(3))


def test_gpytorch_kernel_with_a_batch_is_refused() -> None:
    kernel = gpytorch.kernels.RBFKernel(batch_shape=torch.Size([2]))
    with pytest.raises(KernelError, match=r"expected values of shape \(3, 3\) .* got shape \(2, 3, 3\)"):
        as_kernel(kernel)(random_points(3), random_points(3))
