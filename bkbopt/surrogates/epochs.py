"""Epochs: sequences of models within which the upper bounds of the lazy argmax stay valid.

| symbol      | shape  | units | meaning                                                                          |
| ----------- | ------ | ----- | -------------------------------------------------------------------------------- |
| V           | (r, r) | y^2   | Z^T N Z + lam I of the later model; r = a + k: a old features, k appended ones   |
| V', G', H'  | blocks | y^2   | V without the evaluations of the k new inducing points since the earlier model   |
| g, h        | (a, k), (k, k) | - | V'^(-1/2) G' / sqrt(lam), and H' / lam                                       |
| growth      | -      | -     | standard deviations of the later model <= growth * those of the earlier          |

Within an epoch data are only added and features only appended. The *growth* between two of its models is the largest
factor by which a standard deviation may have increased.

New features are Gram-Schmidt directions of the residual, and the square of a new feature is subtracted from the
residual. The earlier posterior is therefore also that of all r features with the block-diagonal matrix V_old (+) lam I:

    variance_old(x) = residual(x) + lam z^T (V_old (+) lam I)^-1 z.

The data of the earlier model couple old and new features, which can raise a variance. Let
[[V', G'], [G'^T, H' + lam I]] be this matrix for any data set between those of the two models. Then V_old <= V', the
matrix is <= V, and

    variance_new(x) <= variance_old(x) / e,    e the smallest eigenvalue of [[I, g], [g^T, I + h]].

We choose the data set without the evaluations of the new inducing points, since these make h large. The remaining
points have small new features where the dictionary was drawn well, so that e is close to 1.
"""

import itertools
import math
from collections import Counter
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from bkbopt._support.row_keys import row_keys
from bkbopt.posterior.features import FeatureMap, Nystrom, WithoutResidual
from bkbopt.posterior.model import Model
from bkbopt.posterior.observations import Observations

__all__ = ["Epochs", "new_epoch"]

#: Epoch numbers are unique across surrogates, since a maximiser may be used with several.
_NUMBERS = itertools.count(1)
#: By how much features of the same inducing points may differ by rounding, as a part of the prior standard deviation: a
#: hundredth of the slack of the lazy argmax.
ROUNDING = 1e-9
#: Growth at one step beyond which bounds are not worth carrying over, and features appended at one step.
LARGEST_GROWTH, MOST_APPENDED = 1.6, 64


def new_epoch() -> int:
    """An unused epoch number."""
    return next(_NUMBERS)


@dataclass(frozen=True)
class _Shown:
    """The last model that was returned.

    Attributes:
        model: the model, with its epoch and growth.
        n: summed weights of the unique observed points at that time, (u,).
        counted: pending points that the model counts, as `row_keys`.
        pending: those of them that were not observed since.
    """

    model: Model
    n: Tensor
    counted: Counter[bytes]
    pending: Counter[bytes]


class Epochs:
    """Assigns epochs to the models of one surrogate."""

    def __init__(self) -> None:
        self._last: _Shown | None = None

    def place(self, model: Model, pending: Counter[bytes], seen: Observations) -> Model:
        """The model with its epoch and growth; the epoch is that of the last model if its bounds stay valid.

        Args:
            model: the posterior of `seen` and `pending`.
            pending: pending points that the model counts, as `row_keys`.
            seen: the observations.
        """
        last = self._last
        growth = math.inf
        if last is not None and _includes(pending, last.pending):
            growth = _growth(last, model, pending, seen)
        if last is None or growth > LARGEST_GROWTH:
            model = model.placed(new_epoch())
        else:
            model = model.placed(last.model.epoch, last.model.growth * growth)
        self._last = _Shown(model, seen.n.clone(), pending, pending)
        return model

    def observed(self, X: Tensor, weight: Tensor) -> None:
        """Remove observed points `X (n, d)` with weights (n,) of at least one from the pending ones: V counts them."""
        if self._last is not None and self._last.pending:
            whole = Counter(row_keys(X[weight >= 1.0]))
            self._last = replace(self._last, pending=self._last.pending - whole)


def _includes(more: Counter[bytes], fewer: Counter[bytes]) -> bool:
    """Whether all points that are counted in `fewer` are counted in `more` as often, or more often."""
    # The first comparison is mostly all that is needed, and is made without Python's interpreter.
    return fewer.items() <= more.items() or all(more[key] >= n for key, n in fewer.items())


def _growth(last: _Shown, model: Model, pending: Counter[bytes], seen: Observations) -> float:
    """The growth since the last model; infinite if the models cannot be in one epoch."""
    old, new = last.model.features, model.features
    if _same(old, new):
        return 1.0
    if model.V is None or not (isinstance(old, Nystrom) and isinstance(new, Nystrom) and _begins_with(new, old)):
        return math.inf
    S = new.S[len(old.S) :]
    if len(S) > MOST_APPENDED:
        return math.inf
    weight = [
        _evaluations(seen, seen.n, pending, s, key) - _evaluations(seen, last.n, last.counted, s, key)
        for s, key in zip(S, row_keys(S), strict=True)
    ]
    Z = new(S)
    V = model.V - Z.T @ (Z * Z.new_tensor(weight)[:, None])
    return _growth_of(V, old.size, model.lam)


def _evaluations(seen: Observations, n: Tensor, pending: Counter[bytes], s: Tensor, key: bytes) -> float:
    """Summed weight of the point `s (d,)` in observations with the counts `n (u,)` and in the pending points."""
    row = seen.find(s)
    return pending[key] + (float(n[row]) if row is not None and row < len(n) else 0.0)


def _growth_of(V: Tensor, a: int, lam: float) -> float:
    """1 / sqrt(e) of the module's text; the first `a` features of `V (r, r)` are old."""
    L, info = torch.linalg.cholesky_ex(V[:a, :a])
    if int(info):
        return math.inf
    g = torch.linalg.solve_triangular(L, V[:a, a:], upper=False) / math.sqrt(lam)
    k = V.shape[0] - a
    eye = torch.eye(k, dtype=V.dtype, device=V.device)
    q, h = g.T @ g, V[a:, a:] / lam - eye
    # g and h are only known up to the rounding error of V, relative to lam.
    rounding = V.shape[0] * torch.finfo(V.dtype).eps * float(V.diagonal().max()) / lam
    if k == 1:
        h1, q1 = max(float(h), 0.0), max(float(q), 0.0) + rounding
        e = 1.0 + 0.5 * h1 - math.sqrt(0.25 * h1 * h1 + q1)
    else:
        # Only g^T g matters: in all other directions the eigenvalues are one.
        w, Q = torch.linalg.eigh(q)
        root = (Q * (w.clamp_min(0.0) + rounding).sqrt()) @ Q.T
        M = torch.cat([torch.cat([eye, root], 1), torch.cat([root, eye + 0.5 * (h + h.T)], 1)])
        e = float(torch.linalg.eigvalsh(M)[0]) - rounding
    return math.inf if e <= 0.0 else max(1.0, e**-0.5)


def _begins_with(new: Nystrom, old: Nystrom) -> bool:
    """Whether the first features of `new` are those of `old`."""
    m, r = old.W.shape
    return (
        new.kernel is old.kernel
        and new.W.shape[0] >= m
        and new.W.shape[1] >= r
        and torch.equal(new.S[:m], old.S)
        and _features_agree(new.W[:m, :r], old)
        and not bool(new.W[m:, :r].any())
    )


def _features_agree(W: Tensor, old: Nystrom) -> bool:
    """Whether a root `W (m, r)` gives the features of `old`, but for rounding.

    A feature differs by |k_S(x) (W - W_old)| <= k_max sum |W - W_old|.
    Pending points that are counted together are appended in one product, whose rounding differs from that of several.
    """
    if torch.equal(W, old.W):
        return True
    largest = float(old.kernel.diag(old.S).max())
    return float((W - old.W).abs().sum(0).max()) * largest <= ROUNDING * math.sqrt(largest)


def _same(a: FeatureMap, b: FeatureMap) -> bool:
    """Whether two feature maps of one surrogate are equal."""
    if isinstance(a, WithoutResidual) and isinstance(b, WithoutResidual):
        return _same(a.features, b.features)
    if isinstance(a, Nystrom) and isinstance(b, Nystrom) and a is not b:
        return a.W.shape == b.W.shape and _begins_with(b, a)
    return a is b
