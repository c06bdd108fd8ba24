"""The contract of every surrogate that `surrogate_subjects.py` lists."""

import math

import numpy as np
import pytest
import torch

from bkbopt import FourierGP
from bkbopt.errors import ArgumentTypeError, NotReadyError
from bkbopt.kernels import CallableKernel, matern52
from bkbopt.optimizer.arguments.named_surrogates import classes_by_name
from bkbopt.posterior.model import Model
from bkbopt.posterior.observations import Observations
from bkbopt.surrogates import Surrogate
from tests.conformance.suites import check_complete, implementations
from tests.conformance.surrogate_subjects import (
    FACTORIES,
    KERNEL,
    NOISE,
    XS,
    Factory,
    data,
    healthy,
    same,
    told,
    values,
)


@pytest.fixture(params=FACTORIES)
def factory(request: pytest.FixtureRequest) -> Factory:
    return FACTORIES[request.param]


def test_every_surrogate_of_the_package_has_a_name_and_is_a_subject() -> None:
    subjects = {type(make(None, None)).__name__ for make in FACTORIES.values()}
    check_complete(implementations(Surrogate), subjects, {})
    check_complete(classes_by_name(), subjects, {})


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


def test_rebuild_without_data_forgets_all_that_was_learnt(factory: Factory) -> None:
    gp, kernel = told(factory), matern52(2, 0.3)
    gp.rebuild(Observations(2), kernel, 0.2)
    assert gp.effective_dimension() == gp.leverage_sum() == 0.0
    with pytest.raises(NotReadyError):
        _ = gp.model
    fresh = factory(kernel, 0.2)
    for one in (gp, fresh):
        one.observe([[0.5, 0.5]], [1.0])
    # One point is its own dictionary; the learners' and the dictionaries' random numbers have been used, not forgotten.
    np.testing.assert_allclose(gp.fitted(), fresh.fitted(), rtol=1e-12)


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


@pytest.mark.parametrize("exponent", [498, -498])
def test_posterior_scales_with_y_exactly(factory: Factory, exponent: int) -> None:
    # Powers of two are exact: nothing may depend on the size of y, up to 1e150 or down to 1e-150.
    X, y = data()
    plain, scaled = told(factory, X, y), told(factory, X, y * 2.0**exponent)
    assert torch.equal(plain.posterior(XS).mean * 2.0**exponent, scaled.posterior(XS).mean)
    assert torch.equal(plain.posterior(XS).variance, scaled.posterior(XS).variance)
