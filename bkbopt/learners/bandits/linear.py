"""The base of the linear bandits, with which BKB's paper compares: arms checked, the choice, state files.

| symbol | shape  | units     | meaning                                                                |
| ------ | ------ | --------- | ---------------------------------------------------------------------- |
| X      | (n, d) | as given  | arms                                                                   |
| y      | -      | y         | value of an arm                                                        |
| theta  | (d,)   | y / X     | weights of the arms' features                                          |

Bandits choose an arm by `select`, and learn its value by `learn_one`. "ucb" chooses the arm with the largest upper
bound, "thompson" the one with the largest value under one sample of theta.
"""

import contextlib
import copy
import dataclasses
import math
import os
from abc import ABC, abstractmethod
from typing import Any, Literal, Self

import numpy as np

from bkbopt._support import files as storage
from bkbopt._support.checks import check_count, check_number
from bkbopt._support.state_forms import Count, Form, Kept, Maybe, checked, generator_state
from bkbopt.errors import ArgumentError, reading_state
from bkbopt.learners.core.rows import as_row, as_rows, within_floats
from bkbopt.learners.core.state_parts import check_dimension, class_of, params_from_state, params_to_state
from bkbopt.learners.numerics.losses import Array

__all__ = ["LinearBandit", "check_sums"]

KIND = "bandit"
LEARNT = Form({"d": Count(1), "rounds": Count(), "state": Kept()})
SAVED = Form({"class": Kept(), "params": Kept(), "rng": Kept(), "learnt": Maybe(LEARNT)})


@dataclasses.dataclass(kw_only=True, eq=False)
class LinearBandit(ABC):
    """Base class; a subclass is a dataclass whose fields are its parameters, checked when it is made.

    The number of features is that of the first arms passed to any method.

    Args:
        policy: "ucb" or "thompson".
        seed: of the samples of "thompson".

    Attributes:
        n_rounds_: number of values learnt.
    """

    policy: Literal["ucb", "thompson"] = "ucb"
    seed: int | None = 0

    def __post_init__(self) -> None:
        """Check the parameters."""
        if self.policy not in ("ucb", "thompson"):
            raise ArgumentError(f'policy: expected "ucb" or "thompson", got {self.policy!r}.')
        self._rng = np.random.default_rng(None if self.seed is None else check_count("seed", self.seed, 0))
        self._d: int | None = None
        self.n_rounds_ = 0

    def select(self, X: object) -> int:
        """Which of the arms `X (n, d)` to pull.

        Raises:
            ArgumentError: no arms, another number of features, or not finite.
            ArgumentTypeError: not numbers.
        """
        arms = self._arms(X)
        if self.policy == "thompson":
            with within_floats(self._runs_user_code):
                return int(np.argmax(self._draw(arms)))
        mean, width = self.bounds(arms)
        return int(np.argmax(mean + width))

    def bounds(self, X: object) -> tuple[Array, Array]:
        """Estimates and half-widths of their confidence intervals, each `(n,)`, of the arms `X (n, d)`, units of y.

        The errors are those of `select`.
        """
        arms = self._arms(X)
        with within_floats(self._runs_user_code):
            return self._bounds(arms)

    def learn_one(self, x: object, y: object) -> None:
        """Learn the value `y` of the arm `x (d,)`.

        Raises:
            ArgumentError: another number of features, or not finite; nothing is learnt then.
            ArgumentTypeError: not numbers.
        """
        row = as_row(x, None, self._d, type(self).__name__)[0]
        value = check_number("y", y, -math.inf, "a finite number")
        with contextlib.ExitStack() as undo:
            if self._d is None:  # a refused arm must not set the number of features
                undo.callback(self._set_attributes, {**vars(self), "_rng": copy.deepcopy(self._rng)})
            self._start_once(len(row))
            with within_floats(self._runs_user_code):
                self._learn(row, value)
            undo.pop_all()
        self.n_rounds_ += 1

    # -- state files --------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write parameters and all that was learnt to the file `path`; see `bkbopt._support.files.save`."""
        storage.save(path, self.state_dict(), kind=KIND)

    def state_dict(self) -> dict[str, object]:
        """Parameters and all that was learnt, as `bkbopt._support.files` can write it."""
        params = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {
            "class": type(self).__name__,
            "params": params_to_state(params),
            "rng": self._rng.bit_generator.state,
            "learnt": None if self._d is None else {"d": self._d, "rounds": self.n_rounds_, "state": self._state()},
        }

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, features: object = None) -> Self:
        """The bandit that `save` wrote, which continues bit for bit; `LinearBandit.load` reads any of them.

        Args:
            path: the file.
            features: the feature map, if the bandit had one that `bkbopt.learners.features.map_states` does not know.

        Raises:
            StateFileError: the file is damaged, or holds something else.
            ArgumentError: a feature map is needed and was not given.
        """
        saved = storage.load(path, kind=KIND)
        with reading_state("a bandit", path), within_floats(lambda: features is not None):
            return cls.from_state(saved, features)

    @classmethod
    def from_state(cls, state: object, features: object = None) -> Self:
        """The inverse of `state_dict`; the errors are those of `load`."""
        saved = checked(state, SAVED, where="the state of a bandit")
        kind = class_of(saved["class"], cls)
        bandit: Self = kind(**params_from_state(kind, saved["params"], None, features))
        if saved["learnt"] is not None:
            bandit._resume(saved["learnt"])
        bandit._rng.bit_generator.state = generator_state(saved["rng"])
        return bandit

    def _resume(self, learnt: dict[str, Any]) -> None:
        """Restore the `learnt` part of a state."""
        d = learnt["d"]
        check_dimension(d, learnt["state"])
        state = checked(learnt["state"], self._form(d), {"d": d}, "what was learnt")
        self._start_once(d)
        self._restore(state)
        self.n_rounds_ = learnt["rounds"]

    # -- inside -------------------------------------------------------------------------------------------------------

    def _arms(self, X: object) -> Array:
        arms = as_rows(X, None, self._d, type(self).__name__)
        self._start_once(arms.shape[1])
        return arms

    def _start_once(self, d: int) -> None:
        if self._d is None:
            self._start(d)
            self._d = d

    def _set_attributes(self, attributes: dict[str, Any]) -> None:
        vars(self).clear()
        vars(self).update(attributes)

    def _runs_user_code(self) -> bool:
        """Whether user code is run."""
        return False

    @abstractmethod
    def _start(self, d: int) -> None:
        """Allocate for arms of `d` features."""

    @abstractmethod
    def _learn(self, x: Array, y: float) -> None:
        """Learn a checked row."""

    @abstractmethod
    def _bounds(self, X: Array) -> tuple[Array, Array]:
        """See `bounds`."""

    @abstractmethod
    def _draw(self, X: Array) -> Array:
        """Values `(n,)` of the arms under one sample of theta."""

    @abstractmethod
    def _state(self) -> dict[str, object]:
        """All that `_start` does not compute, except the generator, in copies."""

    @abstractmethod
    def _form(self, d: int) -> Form:
        """The form of `_state` for arms of `d` features, before `_start`."""

    @abstractmethod
    def _restore(self, state: dict[str, Any]) -> None:
        """The inverse of `_state`, after `_start`, for a state of `_form`."""


def check_sums(sums: Array, x: Array, y: float) -> None:
    """Refuse the arm `x (d,)` with the value `y` whose `sums`, of squares and of products, are not finite.

    Raises:
        ArgumentError: they are not; nothing was learnt.
    """
    if not np.isfinite(sums).all():
        raise ArgumentError(
            f"x, y: expected an arm and a value whose product floating point can hold, got {x.tolist()} and "
            f"{y!r}; scale them."
        )
