"""FORKS, SkeGD and PROS-N-KONS as the program of the FORKS authors has them, where it differs from the papers.

The rounds between refreshes are counted where there is a loss only, so that a learner that errs rarely is rarely reset.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks.paper_tables.sets import Array
from bkbopt.learners import FORKS, ProsNKONS, SkeGD
from bkbopt.learners.numerics.kors import KORS

if TYPE_CHECKING:
    from bkbopt.learners.numerics._loops_kernel import Block

__all__ = ["ProgramFORKS", "ProgramProsNKONS", "ProgramSkeGD", "SquaredKORS"]


class _LossesCounted:
    """The second stage with refreshes after so many rounds with a loss."""

    def _second_stage(self: "ProgramFORKS | ProgramSkeGD", block: "Block", start: int, p: Array) -> None:
        every, t = self._every, start
        assert every is not None
        while t < len(p):
            # As many rounds cannot hold more losses than are left, and only if each has one is the last the last.
            stop = min(len(p), t + every - self._since)
            self._run(block, t, stop, p)
            self._since += int((self._loss.value(block.y[t:stop], p[t:stop]) > 0.0).sum())
            t = stop
            if self._since == every:
                self._refresh_and_refit(block.X[t - 1])


@dataclass(kw_only=True, eq=False)
class ProgramFORKS(_LossesCounted, FORKS):
    """With the program's weights as well: steps and slopes of 0.2 are the same as this ridge and this curvature."""

    _PAPER: ClassVar[dict[str, Any]] = {**FORKS._PAPER, "alpha": 0.05, "curvature": 0.2}


@dataclass(kw_only=True, eq=False)
class ProgramSkeGD(_LossesCounted, SkeGD):
    """See the module."""


class SquaredKORS(KORS):
    """KORS that weighs accepted rows by 1/p^2 instead of 1/p, so that later rows look better covered than they are."""

    power: ClassVar[float] = 2.0


@dataclass(kw_only=True, eq=False)
class ProgramProsNKONS(ProsNKONS):
    """PROS-N-KONS with the sampler of published programs."""

    _SAMPLER: ClassVar[type[KORS]] = SquaredKORS
