"""The decision, by evidence, which ends of linear ranges are stretched: put on a logarithmic scale.

| symbol | shape  | units   | meaning                                                                     |
| ------ | ------ | ------- | --------------------------------------------------------------------------- |
| X      | (n, d) | encoded | points of trials, in the columns as given; U are the unique ones            |
| v      | (n,)   | -       | standardised values, larger is better                                       |
| stretch| -      | -       | an end of a column and a reach, see `bkbopt.spaces.stretched`               |

A rate on a linear range over several decades, or a probability close to one, has its effect near one end of the range.
A stationary kernel then needs a short lengthscale, with which it knows nothing of the rest, and random points are
hardly ever near the end.

At marks of the number of values, columns in which the best points are near an end are compared with their stretched
forms. They are screened by the evidence of the stationary kernel, with all hyper-parameters held but the lengthscale of
the column. The best one is compared by the evidence of the best structure, and once it is chosen the next one is
compared beside it. The decision follows from the values up to the mark, and not from earlier decisions.
"""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bkbopt.kernels import ARDKernel, matern52
from bkbopt.posterior.observations import row_keys
from bkbopt.search.quantities.fitting import Fitter, ModelOptions, ScaledValues
from bkbopt.search.quantities.output_warping import required_gain
from bkbopt.search.trials.evaluations import Evaluation
from bkbopt.search.trials.history import History
from bkbopt.search.trials.states import FAIL
from bkbopt.spaces.encoding import Encoding
from bkbopt.spaces.stretched import Stretch, can_be_stretched
from bkbopt.surrogates.fit import log_evidence
from bkbopt.surrogates.fit_data import FitData
from bkbopt.surrogates.structure import fit_stationary, structure_evidence

__all__ = ["InputStretching", "stretches_of"]

logger = logging.getLogger(__name__)

#: The number of values at the first decision, and the ratio of two such numbers.
FIRST, GROWTH = 16, 1.25
#: The stretches that are compared.
STRETCHES = tuple(Stretch(is_low, reach) for is_low in (True, False) for reach in (1e-2, 1e-4))
#: The best points: so many, or this share of all.
FEWEST_BEST, BEST = 3, 0.1
#: Largest number of trials by which columns are compared.
COMPARED = 100
#: Logarithms of the lengthscales by which columns are screened, and the gain of the evidence required there.
LENGTHS, PROMISING = (-2.5, -1.5, -0.5, 0.5), 2.0
#: Required gain of the evidence, in addition to the logarithm of the number of stretches of all columns.
MARGIN = 5.0


class InputStretching:
    """The decisions for a history.

    Args:
        history: the trials; it is told which ends are stretched.
        options: options of the models of objectives.
    """

    def __init__(self, history: History, options: ModelOptions) -> None:
        self._history, self._options = history, options
        #: Version of the history and number of values, as of the last decision.
        self._decided = -1, 0

    def update(self) -> None:
        """Decide anew, if there is a new mark, or trials have another order. An interrupted call must be repeated."""
        history, given = self._history, self._options.surrogate
        is_open = history.problem.pool is None and self._options.fit and given.takes_structure and not given.has_kernel
        mark = _last_mark(history.n_complete) if is_open else 0
        if self._decided == (history.version, mark):
            return
        valued = [e for e in history.finished if e.values and e.state != FAIL][:mark]
        encoding, signs = history.plain_encoding, history.problem.signs
        history.set_stretches(stretches_of(valued, encoding, self._options, signs) if mark else {})
        self._decided = history.version, mark


def _last_mark(n: int) -> int:
    """The largest mark <= `n`; 0 if there is none."""
    mark = 0
    while (following := max(FIRST, math.ceil(GROWTH * mark))) <= n:
        mark = following
    return mark


def stretches_of(
    evaluations: Sequence[Evaluation], encoding: Encoding, options: ModelOptions, signs: Sequence[float]
) -> dict[str, Stretch]:
    """The stretches, by column key, that the trials with values speak for.

    Args:
        evaluations: the trials, in the order of their completion; those with infinite values do not count.
        encoding: the columns as given.
        options: options of the models of objectives.
        signs: one for each objective: +1 if larger is better, -1 if smaller is better.
    """
    chosen = np.sort(np.random.default_rng(len(evaluations)).permutation(len(evaluations))[:COMPARED])
    used = [evaluations[i] for i in chosen if all(map(math.isfinite, evaluations[i].values))]
    open_to = _near_the_best(used, encoding, signs)
    if not open_to or len(used) < FIRST:
        return {}
    found, keys = dict[str, Stretch](), list(encoding.columns)
    objectives = [_Objective.of(used, k, encoding, options, signs) for k in range(len(signs))]
    evidence, margin = math.nan, MARGIN + math.log(len(STRETCHES) * encoding.dim)
    while open_to:
        screened = [sum(objective.screened(j, by) for objective in objectives) for j, by in open_to]
        j, by = open_to[int(np.argmax(screened))]
        if max(screened) < sum(objective.evidence() for objective in objectives) + PROMISING:
            break
        if not found:
            evidence = sum(objective.judged()[0] for objective in objectives)
        judged = [objective.stretched(j, by).judged() for objective in objectives]
        gained = sum(value for value, _ in judged) - evidence
        logger.debug("column %s, %s: the evidence gains %.1f", keys[j], by, gained)
        if gained < margin:
            break
        found[keys[j]], evidence, objectives = by, evidence + gained, [objective for _, objective in judged]
        open_to = [(i, other) for i, other in open_to if i != j]
    return found


def _near_the_best(used: Sequence[Evaluation], encoding: Encoding, signs: Sequence[float]) -> list[tuple[int, Stretch]]:
    """The stretches of columns in which they magnify the middle of the best points of an objective."""
    varying = enumerate(encoding.varying)
    columns = [(j, key) for j, (key, parameter) in varying if can_be_stretched(parameter)]
    if not columns:
        return []
    X, found = encoding.encode([e.point for e in used]), dict[tuple[int, Stretch], None]()
    for k, sign in enumerate(signs):
        order = np.argsort([-sign * e.values[k] for e in used], kind="stable")
        best = order[: max(FEWEST_BEST, math.ceil(BEST * len(used)))]
        for j, key in columns:
            codes = [float(X[i, j]) for i in best if key in used[i].point]
            middle = float(np.median(codes)) if codes else 0.5
            found.update({(j, by): None for by in STRETCHES if by.slope(middle) > 1.0})
    return list(found)


@dataclass(frozen=True)
class _Model:
    """A stationary kernel fitted to the values of one objective.

    Attributes:
        data: standardised values at unique points, warped ones or not.
        offset: added to the evidence, so that it is that of the values that are not warped, less the margin of warping.
        kernel: the kernel.
        noise: noise variance.
        fit_noise: whether the noise is fitted.
    """

    data: FitData
    offset: float
    kernel: ARDKernel
    noise: float
    fit_noise: bool

    @classmethod
    def of(cls, scaled: ScaledValues, start: ARDKernel, offset: float = 0.0) -> "_Model":
        """A fit that starts from a kernel."""
        fit = fit_stationary(scaled.data, start, scaled.noise, fit_noise=scaled.fit_noise)
        assert isinstance(fit.kernel, ARDKernel)
        return cls(scaled.data, offset, fit.kernel, fit.noise, scaled.fit_noise)

    def evidence(self, log_lengthscale: Tensor | None = None) -> float:
        """The evidence of the kernel, maybe with other lengthscales."""
        kernel = self.kernel if log_lengthscale is None else replace(self.kernel, log_lengthscale=log_lengthscale)
        return log_evidence(self.data, kernel, self.noise) + self.offset

    def screened(self, j: int) -> float:
        """The evidence of the kernel with the lengthscale of column j as fitted, or the best one of a few others."""
        column, lengths = torch.tensor([self.kernel.numeric.index(j)]), self.kernel.log_lengthscale
        return max(self.evidence(), *(self.evidence(lengths.index_fill(0, column, length)) for length in LENGTHS))

    def judged(self) -> tuple[float, "_Model"]:
        """The evidence of the best structure, less its margin, and the fit of the stationary kernel."""
        start = matern52(self.kernel.dim, categorical=self.kernel.categorical)
        evidence, fit = structure_evidence(self.data, start, self.noise, fit_noise=self.fit_noise)
        assert isinstance(fit.kernel, ARDKernel)
        return evidence + self.offset, replace(self, kernel=fit.kernel, noise=fit.noise)


@dataclass(frozen=True)
class _Objective:
    """The models of one objective.

    Attributes:
        models: of values that are not warped, and of warped ones.
        present: whether a point has the parameter of a column, (u, d).
    """

    models: tuple[_Model, ...]
    present: NDArray[np.bool_]

    @classmethod
    def of(
        cls, used: Sequence[Evaluation], k: int, encoding: Encoding, options: ModelOptions, signs: Sequence[float]
    ) -> "_Objective":
        """The models of objective k, in the columns as given."""
        X = encoding.encode([e.point for e in used])
        y = torch.tensor([e.values[k] for e in used], dtype=torch.float64)
        std = torch.tensor([math.nan if e.stds is None else e.stds[k] for e in used], dtype=torch.float64)
        fitter = Fitter(options, signs[k], winsorised=len(signs) == 1, extended=False)
        scaled, start = fitter.scaled(X, y, std), matern52(X.shape[1], categorical=encoding.categorical)
        models = [_Model.of(scaled, start)]
        if scaled.may_be_warped:
            warped, change = fitter.warped(scaled, X, y, std)
            models.append(_Model.of(warped, start, change - required_gain(len(y), models[0].noise)))
        has = dict(zip(row_keys(X), ([key in e.point for key in encoding.columns] for e in used), strict=True))
        present = np.array([has[key] for key in row_keys(models[0].data.U)])
        return cls(tuple(models), present)

    def stretched(self, j: int, by: Stretch) -> "_Objective":
        """The same with column j stretched."""
        models, there = list[_Model](), self.present[:, j]
        for model in self.models:
            U = model.data.U.clone()
            U[there, j] = torch.from_numpy(by.of_codes(U[there, j].numpy()))
            models.append(replace(model, data=replace(model.data, U=U)))
        return replace(self, models=tuple(models))

    def evidence(self) -> float:
        """The evidence of the better model, as fitted."""
        return max(model.evidence() for model in self.models)

    def screened(self, j: int, by: Stretch) -> float:
        """A lower bound of the evidence of the better model with column j stretched."""
        return max(model.screened(j) for model in self.stretched(j, by).models)

    def judged(self) -> tuple[float, "_Objective"]:
        """The evidence of the better model with the best structure, and the models fitted again."""
        values, models = zip(*(model.judged() for model in self.models), strict=True)
        return max(values), replace(self, models=models)
