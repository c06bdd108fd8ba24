"""Gradient descent on explicit features: random Fourier features, and Nystrom features of the first B terms."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bkbopt._support.checks import check_size
from bkbopt._support.state_forms import Floats, Form
from bkbopt.errors import ArgumentError
from bkbopt.kernels import ARDKernel
from bkbopt.learners.base import OnlineLearner
from bkbopt.learners.expansions.expansion import check_step
from bkbopt.learners.numerics._loops_kernel import Block
from bkbopt.learners.numerics.growing import finite
from bkbopt.learners.numerics.losses import Array, Indices
from bkbopt.learners.on_features._loops_features import fourier_descent, fourier_predictions, landmark_descent
from bkbopt.learners.on_features.stages import TwoStageLearner
from bkbopt.posterior.features.fourier import RandomFourier

__all__ = ["FOGD", "NOGD"]

#: Largest number of frequencies times features: 0.8 GB.
MOST_NUMBERS = 100_000_000


@dataclass(kw_only=True, eq=False)
class FOGD(OnlineLearner):
    """Online gradient descent on random Fourier features (Lu, Hoi, Wang, Zhao and Liu 2016).

    After the prediction w.z, w moves by -step l' z. The features are normalised, z.z = k(x, x); implementations without
    the factor 1/sqrt(D) have D times this step.

    Args:
        loss: "hinge", "squared_hinge", "logistic", "squared" or "absolute".
        frequencies: D; there are 2 D features.
        step: the learning rate, positive; for the squared loss below 1 / k(x, x), above which w diverges.
        kernel, lengthscale, scale: see `OnlineLearner`; the kernel is None or an `ARDKernel` on numbers.
        seed: of the frequencies.

    Example:
        >>> from bkbopt.learners import FOGD
        >>> learner = FOGD(frequencies=20, lengthscale=0.2).partial_fit([[0.1], [0.9], [0.2], [0.8]], [-1, 1, -1, 1])
        >>> learner.predict([[0.0], [1.0]]), learner.n_rounds_
        (array([-1,  1]), 4)
    """

    loss: str = "hinge"
    frequencies: int = 200
    step: float = 0.2
    seed: int | None = 0

    def _check(self, d: int) -> None:
        self._D = check_size("frequencies", self.frequencies)
        if d * self._D > MOST_NUMBERS:
            raise ArgumentError(
                f"frequencies: expected at most {MOST_NUMBERS // d} for {d} features, got {self._D}; a matrix of "
                f"{8e-9 * d * self._D:.3g} GB would be drawn."
            )
        self._step = check_step(self.step)
        if not isinstance(self._gram.kernel, ARDKernel):
            raise ArgumentError("kernel: expected an ARDKernel, whose spectral density is known, got another kernel.")

    def _start(self, d: int) -> None:
        kernel, D = self._gram.kernel, self._D
        assert isinstance(kernel, ARDKernel)
        features = RandomFourier.from_kernel(kernel, D, self._rng)
        # The loops measure angles in whole turns and run along the frequencies.
        self._omega = np.ascontiguousarray(features.omega.numpy().T / (2.0 * math.pi))
        self._height, self._w = features.outputscale, np.zeros(2 * D)

    def _stream(self, X: Array, y: Array) -> Array:
        p = np.empty(len(X))
        fourier_descent(X, y, self._omega, self._height, self._w, self._loss.code, self._step, p)
        return p

    def _raw(self, X: Array) -> Array:
        p = np.empty(len(X))
        fourier_predictions(X, self._omega, self._height, self._w, p)
        return p

    def _state(self) -> dict[str, object]:
        return {"omega": self._omega.copy(), "w": self._w.copy()}

    def _form(self) -> Form:
        return Form({"omega": Floats(("d", self._D)), "w": Floats((2 * self._D,))})

    def _restore(self, state: dict[str, Any]) -> None:
        self._omega, self._w = state["omega"], state["w"]


@dataclass(kw_only=True, eq=False)
class NOGD(TwoStageLearner):
    """Online gradient descent on Nystrom features (Lu, Hoi, Wang, Zhao and Liu 2016).

    Kernel gradient descent until there are B terms, K their kernel matrix with leading eigenpairs V, Lam; then gradient
    descent on z(x) = Lam^-1/2 V^T k(terms, x). It starts from w = Lam^1/2 V^T a, the best approximation of rank k of
    the first stage's hypothesis on the terms. Steps are limited to 1 / |z(x)|^2.

    Args and attributes: see `TwoStageLearner`.

    Example:
        >>> from bkbopt.learners import NOGD
        >>> learner = NOGD(lengthscale=0.2).partial_fit([[0.1], [0.9], [0.2], [0.8]], [-1, 1, -1, 1])
        >>> learner.predict([[0.0], [1.0]]), learner.dictionary_size_
        (array([-1,  1]), 4)
    """

    def _switch(self, points: Array, a: Array) -> Indices:
        lam, V = np.linalg.eigh(finite(self._gram(points, points)))
        lam, V = lam[::-1][: self._k], V[:, ::-1][:, : self._k]
        # Smaller eigenvalues are rounding, which their inverse roots would amplify.
        large = lam > len(V) * np.finfo(float).eps * lam[0]
        root, V = np.sqrt(lam[large]), V[:, large]
        self._M = np.ascontiguousarray(V.T / root[:, None])
        self._w = root * (V.T @ a)
        return np.arange(len(a))

    def _second_stage(self, block: Block, start: int, p: Array) -> None:
        landmark_descent(block, self._support, self._M, self._w, self._loss.code, self._step, start, len(p), p)
