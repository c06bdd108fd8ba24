"""Training data that are shared by all fantasy models, and joined with the fantasies' data only on request."""

import copy
from collections.abc import Callable, Iterable
from typing import Any, Self, cast

from botorch.models import SingleTaskGP
from gpytorch.models import ExactGP
from torch import Tensor

from bkbopt.adapters.botorch.checks import check_finite
from bkbopt.adapters.botorch.prediction import Prediction, joined

__all__ = ["SharedDataGP"]


class SharedDataGP(SingleTaskGP):
    """A `SingleTaskGP` that stores its training data and the data on which it was conditioned separately.

    The cached prediction is deleted when the data change.
    """

    prediction_strategy: Prediction | None
    _inputs: tuple[Tensor]
    _targets: Tensor
    _original: Tensor | None
    #: Inputs, original inputs and targets on which the model was conditioned; None if there are none.
    _given: tuple[Tensor, Tensor, Tensor] | None

    def __init__(self, train_X: Tensor, train_Y: Tensor, *args: Any, **kwargs: Any) -> None:
        self._given = None
        self._inputs, self._targets, self._original = (train_X,), train_Y, None
        super().__init__(train_X, train_Y, *args, **kwargs)

    def set_train_data(
        self, inputs: Tensor | Iterable[Tensor] | None = None, targets: Tensor | None = None, strict: bool = True
    ) -> None:
        """Replace the training data, as in GPyTorch, including the data on which the model was conditioned.

        Args:
            inputs: as `train_inputs`: in evaluation mode after the input transform.
            targets: as `train_targets`: after the outcome transform.
            strict: whether to refuse a change of shape or dtype.

        Raises:
            InputDataError: NaN or infinity.
            RuntimeError: another shape or dtype, with `strict`.
        """
        if inputs is not None:
            (X,) = inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
            check_finite("inputs", X, "points")
        if targets is not None:
            check_finite("targets", targets[..., None], "values")
        before = self._given, self._inputs, self._targets, self._original, self.prediction_strategy
        try:
            super().set_train_data(inputs, targets, strict)
        except RuntimeError:
            self._given, self._inputs, self._targets, self._original, self.prediction_strategy = before
            raise

    @property
    def train_inputs(self) -> tuple[Tensor]:
        """Training inputs `(batch_shape) x (m) x n x d`, including those of conditioning."""
        if self._given is None:
            return self._inputs
        X = joined(self._inputs[0], self._given[0], -2)
        return (X.expand(*self._aug_batch_shape, *X.shape[-2:]),)

    @train_inputs.setter
    def train_inputs(self, value: tuple[Tensor]) -> None:
        self._join()
        self._inputs, self.prediction_strategy = value, None

    @property
    def train_targets(self) -> Tensor:
        """Training targets `(batch_shape) x (m) x n`, including those of conditioning."""
        if self._given is None:
            return self._targets
        targets = joined(self._targets, self._given[2], -1)
        return targets.expand(*self._aug_batch_shape, targets.shape[-1])

    @train_targets.setter
    def train_targets(self, value: Tensor) -> None:
        self._join()
        self._targets, self.prediction_strategy = value, None

    @property
    def _original_train_inputs(self) -> Tensor | None:
        if self._given is None or self._original is None:
            return self._original
        return joined(self._original, self._given[1], -2).detach()

    @_original_train_inputs.setter
    def _original_train_inputs(self, value: Tensor | None) -> None:
        self._join()
        self._original = value

    def _join(self) -> None:
        inputs, targets, original = self.train_inputs, self.train_targets, self._original_train_inputs
        self._given = None
        self._inputs, self._targets, self._original = inputs, targets, original

    def _give(self, X: Tensor, original: Tensor, targets: Tensor) -> None:
        """Add data on which the model is conditioned."""
        if self._given is not None:
            old = self._given
            X, original = joined(old[0], X, -2), joined(old[1], original, -2)
            targets = joined(old[2], targets, -1)
        self._given = (X, original, targets)

    def _twin(self) -> Self:
        """A copy with its own parameters that shares the data, which may be large."""
        return copy.deepcopy(self, {id(tensor): tensor for tensor in self._data()})

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A copy; data with an autograd graph (those of fantasies) cannot be copied and are shared."""
        memo.update({id(tensor): tensor for tensor in self._data() if not tensor.is_leaf})
        new = memo[id(self)] = type(self).__new__(type(self))
        new.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return new

    def _data(self) -> list[Tensor]:
        tensors = (*self._inputs, self._targets, self._original, *(self._given or ()))
        return [tensor for tensor in tensors if tensor is not None]

    def load_state_dict(self, *args: Any, **kwargs: Any) -> None:
        """`SingleTaskGP.load_state_dict`; in evaluation mode the training inputs are transformed again."""
        training = self.training
        self.train()
        try:
            super().load_state_dict(*args, **kwargs)
        finally:
            if not training:
                self.eval()

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        # BoTorch calls `to` on fantasy models that need no move. These must keep their prediction, and must not join
        # their data, as GPyTorch's implementation would.
        before = self._data()
        self._inputs = (fn(self._inputs[0]),)
        self._targets = fn(self._targets)
        self._original = None if self._original is None else fn(self._original)
        if self._given is not None:
            self._given = (fn(self._given[0]), fn(self._given[1]), fn(self._given[2]))
        if any(old is not new for old, new in zip(before, self._data(), strict=True)):
            self.prediction_strategy = None
        return cast(Self, super(ExactGP, self)._apply(fn))  # type: ignore[no-untyped-call]
