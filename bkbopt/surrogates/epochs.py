"""Epochs: runs of models from one to the next of which the bounds of a lazy argmax carry over.

| symbol      | shape  | units | meaning                                                                          |
| ----------- | ------ | ----- | -------------------------------------------------------------------------------- |
| V           | (r, r) | y^2   | Z^T N Z + lam I of the later model, r = a + k: the a features of the earlier, k more |
| V', G', H'  | blocks | y^2   | the same without the evaluations of the k new inducing points since the earlier  |
| g, h        | (a, k), (k, k) | - | V'^(-1/2) G' / sqrt(lam), and H' / lam                                       |
| growth      | -      | -     | standard deviations of the later model <= growth * those of the earlier          |

Within an epoch data are only added, and features only appended: new ones are Gram-Schmidt directions of what the old
ones do not see. What a new feature of a point is, its residual loses, so the earlier posterior is also that of all r
features with the matrix V_old (+) lam I:

    variance_old(x) = residual(x) + lam z^T (V_old (+) lam I)^-1 z.

The data that both models have seen couple old and new features, which can raise a variance. With the matrix
[[V', G'], [G'^T, H' + lam I]] of any data between those of the two models, V_old <= V' and this matrix <= V, so

    variance_new(x) <= variance_old(x) / e,    e the least eigenvalue of [[I, g], [g^T, I + h]].

The evaluations of the new inducing points themselves are left out of it: they alone would make h large. What is left
is what the others have of the new features, little where the dictionary was drawn well.
"""

import itertools
import math
from collections import Counter
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from bkbopt.posterior.features import FeatureMap, Nystrom, WithoutResidual
from bkbopt.posterior.model import Model
from bkbopt.posterior.observations import Observations, row_keys

__all__ = ["Epochs", "new_epoch"]

#: Epochs are numbered across surrogates: a maximiser may serve one after the other.
_NUMBERS = itertools.count(1)
#: By how much roots of the same inducing points may differ, relative to their largest entry: both are rounded.
ROUNDING = 1e-10
#: Growth at one step beyond which bounds are not worth carrying over, and features appended at one step.
LARGEST_GROWTH, MOST_APPENDED = 1.6, 64


def new_epoch() -> int:
    """The number of an epoch that no other model is in."""
    return next(_NUMBERS)


@dataclass(frozen=True)
class _Shown:
    """The model handed out last.

    Attributes:
        model: with its epoch and growth.
        n: evaluations of the unique observed points then, (u,), by weight.
        counted: pending points that it counts, by their bytes.
        pending: those of them that were not observed since.
    """

    model: Model
    n: Tensor
    counted: Counter[bytes]
    pending: Counter[bytes]


class Epochs:
    """Numbers the models of one surrogate by epochs."""

    def __init__(self) -> None:
        self._last: _Shown | None = None

    def place(self, model: Model, pending: Counter[bytes], seen: Observations) -> Model:
        """The model with its epoch and growth: those of the last one's epoch, where its bounds carry over.

        Args:
            model: the posterior of `seen` and `pending`.
            pending: pending points that it counts, by their bytes.
            seen: the observations.
        """
        last = self._last
        growth = math.inf
        if last is not None and not last.pending - pending:
            growth = _growth(last, model, pending, seen)
        if last is None or growth > LARGEST_GROWTH:
            model = replace(model, epoch=new_epoch())
        else:
            model = replace(model, epoch=last.model.epoch, growth=last.model.growth * growth)
        self._last = _Shown(model, seen.n.clone(), pending, pending)
        return model

    def observed(self, X: Tensor) -> None:
        """The points `X (n, d)` were observed, with weights of at least 1: V still counts those that were pending."""
        if self._last is not None and self._last.pending:
            self._last = replace(self._last, pending=self._last.pending - Counter(row_keys(X)))


def _growth(last: _Shown, model: Model, pending: Counter[bytes], seen: Observations) -> float:
    """By how much standard deviations may have grown since the last model; infinite where its bounds do not hold."""
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
    """How often a point counts, by weight, among observations with the counts `n` and the pending points."""
    row = seen.find(s)
    return pending[key] + (float(n[row]) if row is not None and row < len(n) else 0.0)


def _growth_of(V: Tensor, a: int, lam: float) -> float:
    """1 / sqrt(e) of the module's text, where the first `a` features of `V (r, r)` are old."""
    L, info = torch.linalg.cholesky_ex(V[:a, :a])
    if int(info):
        return math.inf
    g = torch.linalg.solve_triangular(L, V[:a, a:], upper=False) / math.sqrt(lam)
    k = V.shape[0] - a
    eye = torch.eye(k, dtype=V.dtype, device=V.device)
    q, h = g.T @ g, V[a:, a:] / lam - eye
    # Rounding in V, relative to lam, is all that is certain of g and h below it.
    rounding = V.shape[0] * torch.finfo(V.dtype).eps * float(V.diagonal().max()) / lam
    if k == 1:
        h1, q1 = max(float(h), 0.0), max(float(q), 0.0) + rounding
        e = 1.0 + 0.5 * h1 - math.sqrt(0.25 * h1 * h1 + q1)
    else:
        # g enters by g^T g alone: the eigenvalues of other directions are one.
        w, Q = torch.linalg.eigh(q)
        root = (Q * (w.clamp_min(0.0) + rounding).sqrt()) @ Q.T
        M = torch.cat([torch.cat([eye, root], 1), torch.cat([root, eye + 0.5 * (h + h.T)], 1)])
        e = float(torch.linalg.eigvalsh(M)[0]) - rounding
    return math.inf if e <= 0.0 else max(1.0, e**-0.5)


def _begins_with(new: Nystrom, old: Nystrom) -> bool:
    """Whether the features of `old` are the first of `new`."""
    m, r = old.W.shape
    return (
        new.kernel is old.kernel
        and new.W.shape[0] >= m
        and new.W.shape[1] >= r
        and torch.equal(new.S[:m], old.S)
        and _equal(new.W[:m, :r], old.W)
        and not bool(new.W[m:, :r].any())
    )


def _equal(A: Tensor, B: Tensor) -> bool:
    """Whether two roots of the same points are one: pending points counted together are appended in one product."""
    return torch.equal(A, B) or bool((A - B).abs().max() <= ROUNDING * B.abs().max())


def _same(a: FeatureMap, b: FeatureMap) -> bool:
    """Whether two maps of one surrogate are the same."""
    if isinstance(a, WithoutResidual) and isinstance(b, WithoutResidual):
        return _same(a.features, b.features)
    if isinstance(a, Nystrom) and isinstance(b, Nystrom) and a is not b:
        return a.W.shape == b.W.shape and _begins_with(b, a)
    return a is b
