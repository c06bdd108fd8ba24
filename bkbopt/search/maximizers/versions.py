"""Versions: the models of an epoch that bounds of scores were computed with, and the widths of these bounds.

| symbol | shape      | units | meaning                                                                             |
| ------ | ---------- | ----- | ----------------------------------------------------------------------------------- |
| w_v    | (r_v,)     | -     | weights of version v, followed by zeros for features that were appended since        |
| g_v    | -          | -     | growth: sd_c <= g_v sd_v for the current model c                                     |
| width  | (versions,) | -    | ucb_c <= mu_v + width_v sd_v, width_v = g_v (beta_c + ||w_c - w_v||_{V_c} / sqrt(lam)) |

`pool.py` derives the bounds.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from bkbopt.posterior.linalg import compiles, in_memory
from bkbopt.posterior.model import Model

if TYPE_CHECKING:
    from bkbopt.search.maximizers._loops_pool import PlainVersions

__all__ = ["MAX_VERSIONS", "Versions"]

#: Versions kept before all bounds are written in terms of the last one: each costs O(r^2) a step.
MAX_VERSIONS = 64
#: Room for appended features; the weights of all versions are copied when it is used up.
SPARE = 16


class Versions:
    """The versions of an epoch, the current one last; see the module's table.

    Args:
        model: of version 0.

    Attributes:
        last: the model of the current version.
    """

    def __init__(self, model: Model) -> None:
        self._n = 0
        self._w = model.w.new_zeros(MAX_VERSIONS, len(model.w) + SPARE)
        self._growth = model.w.new_ones(MAX_VERSIONS)
        self.begin(model)

    def __len__(self) -> int:
        return self._n

    def holds(self, model: Model) -> bool:
        """Whether a model is one of the same epoch, so that the bounds hold for it."""
        return model.V is not None and self.last.epoch == model.epoch

    def ends_with(self, model: Model) -> bool:
        """Whether a model is that of the current version."""
        return self.last.w is model.w and self.last.root is model.root

    def begin(self, model: Model) -> None:
        """A version for a later model of the same epoch."""
        r = len(model.w)
        if r > self._w.shape[1]:
            self._w = torch.nn.functional.pad(self._w, (0, r + SPARE - self._w.shape[1]))
        if in_memory(model.w):  # a call of torch for a few numbers is mostly overhead
            self._w.numpy()[self._n, :r] = model.w.numpy()
            self._growth.numpy()[self._n] = model.growth
        else:
            self._w[self._n, :r] = model.w
            self._growth[self._n] = model.growth
        self._n += 1
        self.last = model

    def growths(self) -> Tensor:
        """g_v of every version v, (versions,)."""
        return self.last.growth / self._growth[: self._n]

    def drifts(self) -> Tensor:
        """||w_c - w_v|| in the metric of V_c / lam for every version v, (versions,)."""
        V, w = self.last.V, self.last.w
        if V is None:  # no later model belongs to this epoch
            return self._growth.new_zeros(self._n)
        D = w - self._w[: self._n, : len(w)]
        return ((D @ V) * D).sum(1).clamp_min_(0.0).div_(self.last.lam).sqrt_()

    def widths(self, beta: float) -> Tensor:
        """How many standard deviations of each version its bounds of mean + beta sd are wide, (versions,)."""
        V, w = self.last.V, self.last.w
        if V is not None and compiles(len(w), V):
            from bkbopt.search.maximizers._loops_pool import widths

            return torch.from_numpy(widths(w.numpy(), self.plain(), self.last.lam, beta))
        return self.growths() * (beta + self.drifts())

    def plain(self) -> "PlainVersions":
        """The versions as arrays for compiled loops, which read the memory of this object."""
        from bkbopt.search.maximizers._loops_pool import PlainVersions

        V = self._growth.new_empty(0, 0) if self.last.V is None else self.last.V
        return PlainVersions(self._w.numpy(), self._growth.numpy(), self._n, V.contiguous().numpy())

    def fold(self) -> None:
        """Forget all versions but the current one, in terms of which all bounds have been written."""
        self._n = 0
        self.begin(self.last)
