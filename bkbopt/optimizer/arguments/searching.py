"""The surrogate, the acquisition function and the seed of an optimizer, and whether a kernel fits its points."""

import copy
from typing import Any, cast

import torch

from bkbopt._support.checks import check_choice, check_count
from bkbopt.errors import ArgumentError, ArgumentTypeError, KernelError
from bkbopt.kernels import ARDKernel, Kernel, matern52
from bkbopt.optimizer.arguments.named_surrogates import surrogate_named
from bkbopt.search.criteria.acquisition import Acquisition
from bkbopt.search.criteria.criterion import ACQUISITIONS, AcquisitionRule, rule_of
from bkbopt.search.trials.history import History
from bkbopt.spaces.arms import Arms
from bkbopt.spaces.space import Space
from bkbopt.surrogates import BKB, Surrogate
from bkbopt.surrogates.base import MakesSurrogate

__all__ = ["as_rule", "as_surrogate", "check_columns", "check_kernel", "check_symmetry", "checked_seed"]

#: Number of objects for which a kernel's symmetry is checked; each may take long.
FEW_OBJECTS = 8
#: Largest difference of kernel values that have to be equal, relative; those computed in float32 differ by 1e-6.
ASYMMETRY = 1e-3


def as_surrogate(given: str | Surrogate | MakesSurrogate | None, fit: bool) -> Surrogate:
    """A `Surrogate` from a name, an instance without data (copied), a learner without data, or None."""
    surrogate = _surrogate(given)
    if not fit and not (surrogate.has_kernel and surrogate.fixed_noise):
        raise ArgumentError(
            "fit: expected a surrogate with kernel and noise when fit=False, since nothing is fitted; pass both to it."
        )
    return surrogate


def _surrogate(given: str | Surrogate | MakesSurrogate | None) -> Surrogate:
    if given is None:
        return BKB()
    if isinstance(given, str):
        return surrogate_named(given)
    if hasattr(type(given), "as_surrogate"):
        return cast(MakesSurrogate, given).as_surrogate()
    # isinstance with a protocol would read properties that raise errors before the first observation.
    if isinstance(given, type) or not hasattr(type(given), "fantasy"):
        raise ArgumentTypeError(f"surrogate: expected a name or an instance such as bo.BKB(), got {given!r}.")
    given = cast(Surrogate, given)
    if len(given.observations):
        raise ArgumentError("surrogate: expected one without data, got one with observations; pass a new instance.")
    return copy.deepcopy(given)


def check_kernel(surrogate: Surrogate, history: History) -> None:
    """Raise an error if the surrogate's kernel, given or default, does not fit the encoded points of this history."""
    default = matern52(history.dim, categorical=history.categorical)
    surrogate.check_kernel(surrogate.kernel if surrogate.has_kernel else default)
    if surrogate.has_kernel and isinstance(surrogate.kernel, ARDKernel) and surrogate.kernel.dim != history.dim:
        raise ArgumentError(
            f"surrogate: expected a kernel with {history.dim} columns, those of the encoded points, got one with "
            f"{surrogate.kernel.dim}."
        )


@torch.no_grad()
def check_symmetry(kernel: Kernel, n: int) -> None:
    """Refuse a kernel on `n` objects if the order of two of the first few changes its value."""
    rows = torch.arange(float(min(n, FEW_OBJECTS)), dtype=torch.float64)[:, None]
    K = kernel(rows, rows)
    gaps = (K - K.T).abs()
    if bool((gaps > ASYMMETRY * K.abs().max()).any()):
        i, j = divmod(int(gaps.argmax()), len(K))
        raise KernelError(
            f"kernel: expected k(a, b) = k(b, a), got {float(K[i, j]):.6g} for objects {i} and {j} of the pool and "
            f"{float(K[j, i]):.6g} for {j} and {i}; pass a symmetric kernel."
        )


def check_columns(surrogate: Surrogate, old: Space | Arms, new: Space | Arms) -> None:
    """Raise an error if a new space has other encoded columns than the old one, and the surrogate's kernel was given.

    The points of all trials are encoded together. A given kernel has a number of columns, and a lengthscale for each.
    """
    if not (surrogate.has_kernel and isinstance(old, Space) and isinstance(new, Space)):
        return
    if list(old.keyed) != list(new.keyed):
        names = [", ".join(repr(name) for name, _ in space.items) for space in (old, new)]
        raise ArgumentError(
            f"space: expected the parameters {names[0]}, of these kinds and in this order, for which the surrogate's "
            f"kernel was given, got {names[1]}; keep them, or make a new optimizer."
        )


def as_rule(given: str | Acquisition) -> AcquisitionRule:
    """The acquisition rule of a name or of a callable."""
    if isinstance(given, str):
        check_choice("acquisition", given, tuple(ACQUISITIONS))
    elif isinstance(given, type) or not callable(given):
        raise ArgumentTypeError(
            f"acquisition: expected one of {tuple(ACQUISITIONS)} or a callable (mean, variance) -> scores, "
            f"got {given!r}."
        )
    return rule_of(given)


def checked_seed(seed: Any) -> int | None:
    """A seed: a whole number >= 0, or None."""
    return None if seed is None else check_count("seed", seed, 0, "a whole number >= 0, or None")
