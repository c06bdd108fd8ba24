"""The contract of every surrogate. One that `bkbopt.surrogates` exports joins by itself, options by a line below."""

import copy
import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from bkbopt import BKB, ExactGP, FourierGP, LearnerSurrogate, surrogates
from bkbopt.errors import ArgumentError, ArgumentTypeError, KernelError, NotReadyError
from bkbopt.kernels import CallableKernel, matern52
from bkbopt.learners.recipes import RECIPES
from bkbopt.posterior.model import Model
from bkbopt.posterior.observations import Observations
from bkbopt.surrogates import Surrogate, SurrogateBase

Factory = Callable[..., Surrogate]

#: Sketches so small that these data reach the second stage of FORKS.
SMALL = {"budget": 5, "sketch": 10, "sample": 8, "rank": 5}

#: Called as factory(kernel, noise, **more); both may be None.
FACTORIES: dict[str, Factory] = {
    "ExactGP": ExactGP,
    "BKB": BKB,
    "BKB, every": lambda *a, **k: BKB(*a, resample="every", **k),
    "BKB, small budget": lambda *a, **k: BKB(*a, max_inducing=6, **k),
    "FourierGP": lambda *a, **k: FourierGP(*a, n_frequencies=25, **k),
    "pkawv": lambda *a, **k: LearnerSurrogate(*a, learner="pkawv", **k),
    "forks, second stage": lambda *a, **k: LearnerSurrogate(*a, learner="forks", settings=SMALL, **k),
}
FACTORIES |= {
    name: cls
    for name, cls in vars(surrogates).items()
    if isinstance(cls, type) and issubclass(cls, SurrogateBase) and name not in {*FACTORIES, "SurrogateBase"}
}
#: Options of these classes that the slow tests look at, too.
MORE_FACTORIES: dict[str, Factory] = {
    "BKB, no budget": lambda *a, **k: BKB(*a, max_inducing=None, **k),
    "BKB, uniform": lambda *a, **k: BKB(*a, dictionary="uniform", max_inducing=12, **k),
    "BKB, SoR": lambda *a, **k: BKB(*a, variance="sor", **k),
    **{name: lambda *a, _name=name, **k: LearnerSurrogate(*a, learner=_name, **k) for name in RECIPES},
}
KERNEL, NOISE = matern52(2, 0.4, 2.0), 0.05


@pytest.fixture(params=FACTORIES)
def factory(request: pytest.FixtureRequest) -> Factory:
    return FACTORIES[request.param]


def data(n: int = 40, unique: int = 25, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """`n` noisy values of `unique` points, the repeats last."""
    rng = np.random.default_rng(seed)
    X = rng.random((unique, 2))[np.append(np.arange(unique), rng.integers(0, unique, n - unique))]
    return X, np.sin(5.0 * X[:, 0]) + NOISE**0.5 * rng.standard_normal(n)


XS = np.vstack([np.random.default_rng(9).random((20, 2)), [[30.0, -4.0]]])


def told(factory: Factory, X: object = None, y: object = None, **more: object) -> Surrogate:
    """A surrogate that knows `data()`, or the data given."""
    gp = factory(KERNEL, NOISE, **more)
    gp.observe(*(data() if X is None else (X, y)))
    return gp


def values(gp: Surrogate) -> tuple[Tensor, Tensor]:
    return gp.posterior(XS).mean.clone(), gp.posterior(XS).variance.clone()


def same(a: Surrogate, b: Surrogate) -> bool:
    """Whether two surrogates predict the same, bit for bit."""
    return all(torch.equal(u, v) for u, v in zip(values(a), values(b), strict=True))


def healthy(gp: Surrogate) -> None:
    """Finite means and finite variances that are not negative, at the data and elsewhere."""
    for X in (XS, gp.observations.X):
        posterior = gp.posterior(X)
        assert bool(torch.isfinite(posterior.mean).all())
        assert bool(torch.isfinite(posterior.variance).all())
        assert float(posterior.variance.min()) >= 0.0
    assert math.isfinite(gp.effective_dimension())
    assert bool(torch.isfinite(gp.fitted()).all())


# -- the protocol ----------------------------------------------------------------------------------------------------


def test_nothing_is_known_before_the_first_observation(factory: Factory) -> None:
    gp = factory(KERNEL, NOISE)
    assert gp.has_kernel
    assert not factory(None, None).has_kernel
    with pytest.raises(NotReadyError, match="posterior: expected at least one observation, got none; call observe"):
        gp.posterior(XS)
    with pytest.raises(NotReadyError):
        _ = gp.model
    with pytest.raises(NotReadyError):
        gp.fantasy(torch.zeros(0, 2).double())
    with pytest.raises(NotReadyError, match="kernel: none was given"):
        _ = factory(None, None).kernel
    assert len(gp.observations) == 0


def test_default_kernel_takes_its_dimension_from_the_data(factory: Factory) -> None:
    gp = factory(None, None)
    assert not gp.fixed_noise
    gp.observe(np.zeros((1, 5)), [1.0])
    assert gp.posterior(np.zeros((3, 5))).mean.shape == (3,)
    assert factory(None, 0.1).fixed_noise


def test_shapes(factory: Factory) -> None:
    gp = told(factory)
    posterior = gp.posterior(XS)
    assert posterior.mean.shape == posterior.variance.shape == posterior.leverage.shape == (21,)
    assert posterior.covariance.shape == (21, 21)
    assert posterior.sample(4, seed=0).shape == (4, 21)
    assert posterior.mean.dtype == posterior.variance.dtype == torch.float64
    assert gp.fitted().shape == (25,)
    assert gp.inducing.shape[1] == 2
    assert gp.posterior(np.zeros((0, 2))).mean.shape == (0,)
    assert 0.0 < gp.effective_dimension() < math.inf
    assert isinstance(gp.model, Model)


def test_reading_changes_nothing(factory: Factory) -> None:
    gp, twin = told(factory), told(factory)
    before = values(gp)
    gp.posterior(XS).sample(2)
    gp.fitted()
    gp.effective_dimension()
    gp.fantasy(torch.as_tensor(XS[:3]))
    assert all(torch.equal(a, b) for a, b in zip(before, values(gp), strict=True))
    for one in (gp, twin):  # nor what is learnt from here on
        one.observe(*data(10, 10, seed=7))
    assert same(gp, twin)


def test_observing_nothing_changes_nothing(factory: Factory) -> None:
    gp, twin = told(factory), told(factory)
    gp.observe(np.zeros((0, 2)), [])
    assert same(gp, twin)


def test_frozen_model_stays_while_the_surrogate_learns(factory: Factory) -> None:
    gp = told(factory)
    model = gp.model
    before = [v.clone() for v in model(torch.as_tensor(XS))]
    for _ in range(30):
        gp.observe(XS, np.ones(21))
    assert all(torch.equal(a, b) for a, b in zip(before, model(torch.as_tensor(XS)), strict=True))


def test_same_seed_same_posterior(factory: Factory) -> None:
    assert same(told(factory), told(factory))


def test_rebuild_takes_other_data_and_hyperparameters(factory: Factory) -> None:
    gp = told(factory)
    obs = Observations(2)
    X, y = data(12, 12, seed=5)
    obs.add(torch.as_tensor(X), torch.as_tensor(y))
    kernel = matern52(2, 0.3)
    gp.rebuild(obs, kernel, 0.2)
    assert (gp.noise, gp.kernel, gp.observations.total) == (0.2, kernel, 12)
    healthy(gp)
    fresh = factory(kernel, 0.2)
    fresh.observe(X, y)
    # Dictionaries are drawn with other coins; the noise bounds how far apart two of them can be here.
    np.testing.assert_allclose(gp.fitted(), fresh.fitted(), atol=1.0)
    gp.observe(X[:3], y[:3])
    healthy(gp)


def test_options_make_the_same_surrogate_again(factory: Factory) -> None:
    gp = factory(KERNEL, NOISE)
    options = gp.options()
    assert options.pop("needs_kernel") is False
    twin = type(gp)(KERNEL, **options)  # type: ignore[call-arg]
    assert twin.options() == gp.options()
    twin.observe(*data())
    assert same(twin, told(factory))
    if not isinstance(gp, FourierGP):
        assert factory(CallableKernel(KERNEL), NOISE).options()["needs_kernel"] is True


def test_objects_need_a_callable_kernel(factory: Factory) -> None:
    with pytest.raises(ArgumentTypeError, match="kernel: expected a callable"):
        factory(KERNEL, NOISE).bind_objects(["a", "b"])


def test_device_passes_through(factory: Factory) -> None:
    gp, twin = told(factory, device="cpu"), told(factory, device=torch.device("cpu"))
    assert gp.posterior(XS).mean.device.type == "cpu"
    assert gp.inducing.device.type == "cpu"
    assert same(gp, twin)
    assert same(gp, told(factory))


# -- what SurrogateBase does for all of them -------------------------------------------------------------------------

FORMS: dict[str, Callable[[np.ndarray], object]] = {
    "list": lambda A: A.tolist(),
    "Fortran-ordered": np.asfortranarray,
    "strided": lambda A: np.repeat(A, 2, axis=0)[::2],
    "float32": lambda A: A.astype(np.float32),
    "frame": lambda A: pd.DataFrame(A) if A.ndim == 2 else pd.Series(A, index=range(7, 7 + len(A))),
    "tensor": torch.as_tensor,
    "float32 tensor": lambda A: torch.as_tensor(A, dtype=torch.float32),
}


@pytest.mark.parametrize("form", FORMS)
def test_input_of_any_form_gives_the_same_result_and_is_not_changed(form: str) -> None:
    X, y = (v.astype(np.float32).astype(np.float64) for v in data())  # exact in float32, too
    Xs = XS.astype(np.float32).astype(np.float64)
    plain, other = told(BKB, X, y), FORMS[form]
    given = other(X), other(y), other(Xs)
    kept = copy.deepcopy(given)
    gp = told(BKB, *given[:2])
    posterior = gp.posterior(given[2])
    assert torch.equal(posterior.mean, plain.posterior(Xs).mean)
    assert torch.equal(posterior.variance, plain.posterior(Xs).variance)
    for a, b in zip(given, kept, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("name", ["BKB", "ExactGP", "FourierGP", "pkawv"])
def test_read_only_input_is_taken_and_later_changes_do_not_reach_the_surrogate(name: str) -> None:
    X, y = data()
    X.setflags(write=False)
    y.setflags(write=False)
    gp = told(FACTORIES[name], X, y)
    mine = torch.as_tensor(data()[0]).clone()
    twin = told(FACTORIES[name], mine, data()[1])
    mine.zero_()
    assert same(gp, twin)


REFUSED: list[tuple[object, object, type[Exception], str]] = [
    (np.zeros((2, 3)), [1.0, 2.0], ArgumentError, r"^X: expected shape \(n, 2\), got \(2, 3\)"),
    (np.zeros((2, 2)), [1.0], ArgumentError, r"^y: expected shape \(2,\).*got \(1,\)"),
    (np.zeros((2, 2)), [1.0, math.nan], ArgumentError, r"^y: expected finite values, got nan at position 1"),
    (np.zeros((2, 2)), [-math.inf, 1.0], ArgumentError, r"^y: expected finite values, got -inf at position 0"),
    (
        [[0.0, 1.0], [math.nan, 0.0]],
        [1.0, 1.0],
        ArgumentError,
        r"^X: expected finite values, got \[nan, 0.0\] in row 1",
    ),
    (np.zeros((1, 2)), None, ArgumentTypeError, r"^y: expected real numbers, got NoneType"),
    (np.zeros((1, 2)), [None], ArgumentTypeError, r"^y: expected real numbers, got None"),
    (np.zeros((1, 2)), [1j], ArgumentTypeError, r"^y: expected real numbers, got list of dtype complex128"),
    (np.zeros((1, 2)), [True], ArgumentTypeError, r"^y: expected real numbers, got list of dtype bool"),
    (np.zeros((1, 2)), ["1.0"], ArgumentTypeError, r"^y: expected real numbers, got list of dtype <U3"),
    ([["a", "b"]], [1.0], ArgumentTypeError, r"^X: expected real numbers, got list of dtype <U1"),
    (torch.zeros(1, 2, dtype=torch.complex64), [1.0], ArgumentTypeError, r"^X: expected real numbers, got a tensor"),
]


@pytest.mark.parametrize(("X", "y", "error", "message"), REFUSED, ids=[m for *_, m in REFUSED])
def test_refused_observations_leave_the_surrogate_as_it_was(
    X: object, y: object, error: type[Exception], message: str
) -> None:
    gp, twin = told(BKB), told(BKB)
    with pytest.raises(error, match=message):
        gp.observe(X, y)
    for one in (gp, twin):  # equal now, and after more of the same
        one.observe(XS, np.arange(21.0))
    assert same(gp, twin)
    assert gp.observations.total == 61


@pytest.mark.parametrize("noise", [0.0, -1.0, math.nan, math.inf])
def test_noise_that_is_no_variance_is_refused(noise: float) -> None:
    with pytest.raises(ArgumentError, match=r"^noise: expected a positive finite variance \(y squared\), got"):
        BKB(KERNEL, noise)


@pytest.mark.parametrize("noise", ["0.1", True, 1j, [0.1]])
def test_noise_of_another_type_is_refused(noise: object) -> None:
    with pytest.raises(ArgumentTypeError, match=r"^noise: expected a positive finite variance"):
        BKB(KERNEL, noise)  # type: ignore[arg-type]


def test_kernel_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(ArgumentTypeError, match=r"^kernel: expected"):
        BKB("rbf", NOISE)


# -- undoing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "rows"), [("ExactGP", 5), ("ExactGP", 70), ("BKB", 1), ("BKB", 5), ("BKB", 70), ("pkawv", 5)]
)
def test_kernel_that_fails_half_way_leaves_the_surrogate_as_it_was(name: str, rows: int) -> None:
    def with_a_hole(A: Tensor, B: Tensor) -> Tensor:
        K = KERNEL(A, B)
        return torch.where((A[:, :1] > 5.0) | (B[:, :1] > 5.0).T, math.nan, K)

    gp, twin, fresh = (FACTORIES[name](with_a_hole, NOISE) for _ in range(3))
    X, y = data()
    for one in (gp, twin):
        one.observe(X, y)
    # The last of the new rows is the bad one; those before it must not stay either.
    bad = np.vstack([np.random.default_rng(1).random((rows - 1, 2)), [[6.0, 0.0]]])
    for one in (gp, fresh):
        with pytest.raises(KernelError, match="finite"):
            one.observe(bad, np.ones(rows))
    inside = XS[:20]
    fresh.observe(X, y)
    assert torch.equal(gp.fantasy(torch.as_tensor(inside)).root, twin.fantasy(torch.as_tensor(inside)).root)
    for one in (gp, twin, fresh):
        for x in inside:
            one.observe(x[None], [1.0])
    a, b, c = (one.posterior(inside) for one in (gp, twin, fresh))
    for other in (b, c):
        assert torch.equal(a.mean, other.mean)
        assert torch.equal(a.variance, other.variance)
    assert gp.observations.total == twin.observations.total == fresh.observations.total == 60


# -- survival --------------------------------------------------------------------------------------------------------

rng = np.random.default_rng(3)
HARD: dict[str, tuple[np.ndarray, np.ndarray]] = {
    "one point": (np.full((1, 2), 0.5), np.ones(1)),
    "equal points": (np.full((80, 2), 0.5), rng.standard_normal(80)),
    "duplicates": (np.repeat(rng.random((10, 2)), 8, axis=0), rng.standard_normal(80)),
    "near duplicates": (rng.random((10, 2)).repeat(8, axis=0) + 1e-9 * rng.random((80, 2)), rng.standard_normal(80)),
    "constant y": (rng.random((80, 2)), np.full(80, 7.0)),
    "zero y": (rng.random((80, 2)), np.zeros(80)),
    "on a line": (np.linspace(0.0, 1.0, 80)[:, None] * [[1.0, 1.0]], rng.standard_normal(80)),
    "far apart": (np.arange(160.0).reshape(80, 2) * 100.0, rng.standard_normal(80)),
    "huge y": (rng.random((80, 2)), 1e150 * rng.standard_normal(80)),
    "tiny y": (rng.random((80, 2)), 1e-150 * rng.standard_normal(80)),
}


#: What is hardest at a tiny noise, in bulk and one by one, and nothing to learn at a large one.
CASES = [*((name, 1e-12, True) for name in HARD), ("near duplicates", 1e-12, False), ("duplicates", 1e6, False)]
SWEEP = [(name, noise, bulk) for name in HARD for noise in (1e-12, 1e-6, 1.0, 1e6) for bulk in (True, False)]


def survives(factory: Factory, name: str, noise: float, bulk: bool) -> None:
    X, y = HARD[name]
    gp = factory(KERNEL, noise)
    for part in np.array_split(np.arange(len(y)), 1 if bulk else len(y)):
        gp.observe(X[part], y[part])
    healthy(gp)
    model = gp.fantasy(torch.as_tensor(X[:12]))
    for v in model(torch.as_tensor(XS)):
        assert bool(torch.isfinite(v).all())
    # The mean of many repeats is theirs where the noise permits. A learner that goes once through its stream does not
    # average; the exact ones keep a row for every repeat, and a matrix of equal rows is singular at such a noise.
    if name in ("equal points", "one point") and noise <= 1e-6 and getattr(gp, "learner", "pkawv") == "pkawv":
        assert float(gp.fitted()[0]) == pytest.approx(y.mean(), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("name", ["ExactGP", "BKB", "BKB, small budget", "FourierGP", "forks, second stage"])
def test_hard_data_leave_finite_means_and_variances_that_are_not_negative(
    name: str, case: tuple[str, float, bool]
) -> None:
    survives(FACTORIES[name], *case)


@pytest.mark.slow
@pytest.mark.parametrize("case", SWEEP, ids=str)
@pytest.mark.parametrize("name", [*FACTORIES, *MORE_FACTORIES])
def test_hard_data_are_survived_by_all_options(name: str, case: tuple[str, float, bool]) -> None:
    survives((FACTORIES | MORE_FACTORIES)[name], *case)


@pytest.mark.parametrize("exponent", [498, -498])
def test_posterior_scales_with_y_exactly(factory: Factory, exponent: int) -> None:
    # Powers of two are exact: nothing may depend on the size of y, up to 1e150 or down to 1e-150.
    X, y = data()
    plain, scaled = told(factory, X, y), told(factory, X, y * 2.0**exponent)
    assert torch.equal(plain.posterior(XS).mean * 2.0**exponent, scaled.posterior(XS).mean)
    assert torch.equal(plain.posterior(XS).variance, scaled.posterior(XS).variance)


def test_a_kernel_that_vanishes_at_the_first_point_is_survived() -> None:
    def linear(A: Tensor, B: Tensor) -> Tensor:
        return A @ B.T

    X = np.vstack([np.zeros((1, 2)), np.eye(2), np.ones((1, 2))])
    y = X @ [2.0, -1.0]
    for name in ("ExactGP", "BKB", "BKB, every"):
        gp = FACTORIES[name](linear, 1e-6)
        for x, v in zip(X, y, strict=True):
            gp.observe(x[None], v)
            healthy(gp)
        np.testing.assert_allclose(gp.posterior(XS).mean, XS @ [2.0, -1.0], rtol=1e-4, atol=1e-4)
