"""Every surrogate, on small data. One that `bkbopt.surrogates` exports joins by itself, options by a line below."""

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from bkbopt import BKB, ExactGP, FourierGP, LearnerSurrogate, surrogates
from bkbopt.kernels import matern52
from bkbopt.learners.as_surrogate.recipes import RECIPES
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
