"""The decision, by evidence, which ends of linear ranges are stretched: put on a logarithmic scale.

| symbol | shape  | units   | meaning                                                                     |
| ------ | ------ | ------- | --------------------------------------------------------------------------- |
| X      | (n, d) | encoded | points of trials, in the columns as given; U are the unique ones            |
| v      | (n,)   | -       | standardised values, larger is better                                       |
| by     | -      | -       | a stretch: an end of a column and a reach, see `bkbopt.spaces.stretched`    |

A rate on a linear range over several decades, or a probability close to one, has its effect near one end of the range.
A stationary kernel then needs a short lengthscale, with which its mean is constant elsewhere, and random points are
hardly ever near the end.

At marks of the number of values, columns in which the best points are near an end are compared with their stretched
forms. Columns are ranked by the evidence of the stationary kernel, with all hyper-parameters held but the lengthscale
of the column. The best one of the first two is stretched if the evidence of the best structure gains enough; then
further ones are compared beside it. The decision follows from the values up to the mark, not from earlier decisions.
"""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from bkbopt._support.row_keys import row_keys
from bkbopt.kernels import ARDKernel, matern52
from bkbopt.search.quantities.fitting import Fitter, ModelOptions, ScaledValues, Values
from bkbopt.search.quantities.output_warping import required_gain
from bkbopt.search.trials.evaluations import Evaluation
from bkbopt.search.trials.history import History
from bkbopt.search.trials.states import FAIL
from bkbopt.spaces.encoding import Encoding
from bkbopt.spaces.stretched import Stretch, can_be_stretched
from bkbopt.surrogates.fit import Fit, log_evidence
from bkbopt.surrogates.fit_data import FitData
from bkbopt.surrogates.structure import fit_stationary, structure_evidence

__all__ = ["InputStretching", "stretches_of"]

logger = logging.getLogger(__name__)

#: The number of values at the first decision, and the ratio of two such numbers.
FIRST, GROWTH = 16, 1.5
#: The stretches that are compared.
STRETCHES = tuple(Stretch(is_low, reach) for is_low in (True, False) for reach in (1e-2, 1e-4))
#: The best points: so many, or this share of all.
FEWEST_BEST, BEST = 3, 0.1
#: Distance from an end within which the best points are at this end, whatever its scale.
AT_END = 1e-5
#: Largest number of trials by which columns are compared.
COMPARED = 100
#: Logarithms of the lengthscales by which columns are screened.
LENGTHS = -2.5, -1.5, -0.5, 0.5
#: Gain of the evidence of the stationary kernel that is required for a comparison of structures.
PROMISING = 2.0
#: Warped values whose evidence is smaller by more than this are left out.
HOPELESS = 10.0
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
        #: Version of the history and number of trials with all values, as of the last decision.
        self._decided = -1, 0

    def update(self) -> None:
        """Decide anew, if there is a new mark, or trials have another order. An interrupted call must be repeated."""
        history, given = self._history, self._options.surrogate
        is_open = history.problem.pool is None and self._options.fit and given.takes_structure and not given.has_kernel
        mark = _last_mark(history.n_whole) if is_open else 0
        if self._decided == (history.version, mark):
            return
        valued = [e for e in history.finished if e.values and e.state != FAIL][:mark]
        encoding, signs, before = history.plain_encoding, history.problem.signs, history.stretches
        history.set_stretches(stretches_of(valued, encoding, self._options, signs) if mark else {})
        self._decided = history.version, mark
        if history.stretches.keys() - before.keys():
            ends = ", ".join(f"{key} from its {by.end} end" for key, by in history.stretches.items())
            logger.info("space: by %d values these ranges are searched on logarithmic scales: %s.", mark, ends)


def _last_mark(n: int) -> int:
    """The largest mark <= `n`; 0 if there is none."""
    mark = 0
    while (following := max(FIRST, math.ceil(GROWTH * mark))) <= n:
        mark = following
    return mark


def stretches_of(
    evaluations: Sequence[Evaluation], encoding: Encoding, options: ModelOptions, signs: Sequence[float]
) -> dict[str, Stretch]:
    """The stretches, by column key, for which there is enough evidence in the trials with values.

    Args:
        evaluations: the trials, in the order of their completion; those with infinite values do not count.
        encoding: the columns as given.
        options: options of the models of objectives.
        signs: one for each objective: +1 if larger is better, -1 if smaller is better.
    """
    used = [e for e in _some(evaluations) if all(map(math.isfinite, e.values))]
    open_to = _near_the_best(used, encoding, signs)
    if not open_to or len(used) < FIRST:
        return {}
    found, keys = dict[str, Stretch](), list(encoding.columns)
    objectives = [_Objective.of(used, k, encoding, options, signs) for k in range(len(signs))]
    margin = MARGIN + math.log(len(STRETCHES) * encoding.dim)
    while open_to:
        tried = [(j, by, [o.stretched(j, by).fitted() for o in objectives]) for j, by in _first(open_to, objectives)]
        j, by, stretched = max(tried, key=lambda one: sum(o.stationary for o in one[2]))
        if sum(o.stationary for o in stretched) < sum(o.stationary for o in objectives) + PROMISING:
            break
        gained = sum(o.structured for o in stretched) - sum(o.structured for o in objectives)
        logger.debug("column %s, %s: the evidence gains %.1f", keys[j], by, gained)
        if gained < margin:
            break
        found[keys[j]], objectives = by, stretched
        open_to = [(i, other) for i, other in open_to if i != j]
    return found


def _first(open_to: Sequence[tuple[int, Stretch]], objectives: Sequence["_Objective"]) -> list[tuple[int, Stretch]]:
    """The stretches of the best column by screening, and the best one of the second column."""
    screened = {pair: sum(objective.screened(*pair) for objective in objectives) for pair in open_to}
    ranked = sorted(open_to, key=screened.__getitem__, reverse=True)
    best = [pair for pair in ranked if pair[0] == ranked[0][0]]
    return best + [pair for pair in ranked if pair not in best][:1]


def _some(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """At most `COMPARED` trials: the first ones, which come from the whole space, and as many random ones."""
    n, half = len(evaluations), COMPARED // 2
    if n <= COMPARED:
        return list(evaluations)
    later = half + np.sort(np.random.default_rng(n).permutation(n - half)[:half])
    return [*evaluations[:half], *(evaluations[i] for i in later)]


def _near_the_best(used: Sequence[Evaluation], encoding: Encoding, signs: Sequence[float]) -> list[tuple[int, Stretch]]:
    """The stretches of columns that magnify the middle of the best points of an objective, if it is not at an end."""
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
            if AT_END < middle < 1.0 - AT_END:
                found.update({(j, by): None for by in STRETCHES if by.slope(middle) > 1.0})
    return list(found)


@dataclass(frozen=True)
class _Model:
    """A stationary kernel fitted to the values of one objective.

    Attributes:
        data: standardised values at unique points, warped ones or not.
        offset: added to the evidence, so that it is that of the values that are not warped, less the margin of warping.
        kernel: the kernel at the start of a fit.
        noise: noise variance at the start of a fit.
        fit_noise: whether the noise is fitted.
        fit: the result.
    """

    data: FitData
    offset: float
    kernel: ARDKernel
    noise: float
    fit_noise: bool
    fit: Fit

    @classmethod
    def of(cls, scaled: ScaledValues, categorical: tuple[int, ...], offset: float = 0.0) -> "_Model":
        """A fit to scaled values."""
        data, noise, kernel = scaled.data, scaled.noise, matern52(scaled.data.U.shape[1], categorical=categorical)
        fit = fit_stationary(data, kernel, noise, fit_noise=scaled.fit_noise)
        return cls(data, offset, kernel, noise, scaled.fit_noise, fit)

    def fitted(self) -> "_Model":
        """The model with another fit."""
        return replace(self, fit=fit_stationary(self.data, self.kernel, self.noise, fit_noise=self.fit_noise))

    def screened(self, j: int) -> float:
        """The evidence of the kernel with the lengthscale of column j as fitted, or the best one of a few others."""
        kernel = self.fit.kernel
        assert isinstance(kernel, ARDKernel)
        column, lengths = torch.tensor([kernel.numeric.index(j)]), kernel.log_lengthscale
        tried = [lengths, *(lengths.index_fill(0, column, length) for length in LENGTHS)]
        kernels = (replace(kernel, log_lengthscale=log_lengthscale) for log_lengthscale in tried)
        return max(log_evidence(self.data, kernel, self.fit.noise) for kernel in kernels) + self.offset

    @property
    def stationary(self) -> float:
        """The evidence of the stationary kernel."""
        return self.fit.value + self.offset

    @property
    def structured(self) -> float:
        """The evidence of the best structure, less its margin."""
        found = structure_evidence(self.data, self.kernel, self.noise, self.fit, fit_noise=self.fit_noise)
        return found + self.offset


@dataclass(frozen=True)
class _Objective:
    """The models of one objective, the better one of which counts.

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
        fitter, values = Fitter(options, signs[k], winsorised=len(signs) == 1), Values(X, y, std)
        if fitter.contradiction(values) is not None:
            fitter = fitter.with_noise()
        scaled = fitter.scaled(values)
        models = [_Model.of(scaled, encoding.categorical)]
        if scaled.may_be_warped:
            warped, change = fitter.warped(scaled, values)
            offset = change - required_gain(len(y), models[0].fit.noise)
            models.append(_Model.of(warped, encoding.categorical, offset))
            if models[1].stationary < models[0].stationary - HOPELESS:
                del models[1]
        has = dict(zip(row_keys(X), ([key in e.point for key in encoding.columns] for e in used), strict=True))
        present = np.array([has[key] for key in row_keys(models[0].data.U)])
        return cls(tuple(models), present)

    def stretched(self, j: int, by: Stretch) -> "_Objective":
        """The same fits with column j stretched."""
        models, there = list[_Model](), self.present[:, j]
        for model in self.models:
            U = model.data.U.clone()
            U[there, j] = torch.from_numpy(by.of_codes(U[there, j].numpy()))
            models.append(replace(model, data=replace(model.data, U=U)))
        return replace(self, models=tuple(models))

    def fitted(self) -> "_Objective":
        """The models with other fits."""
        return replace(self, models=tuple(model.fitted() for model in self.models))

    def screened(self, j: int, by: Stretch) -> float:
        """A lower bound of the evidence of the stationary kernel with column j stretched."""
        return max(model.screened(j) for model in self.stretched(j, by).models)

    @property
    def stationary(self) -> float:
        """The evidence of the stationary kernel."""
        return max(model.stationary for model in self.models)

    @cached_property
    def structured(self) -> float:
        """The evidence of the best structure, less its margin."""
        return max(model.structured for model in self.models)
