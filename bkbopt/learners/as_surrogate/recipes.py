"""Online learners as parts of a surrogate: their names, and the parameters that follow from kernel and noise.

A learner gets what the papers assume: targets in [-1, 1] and a kernel with k(x, x) <= 1. nu is the noise variance in
units of that kernel. By default the first row with k(x, x) = 1 moves f(x) from 0 to y / (1 + nu), as in a Gaussian
process. This gives a ridge of nu for least squares, a step of 1 / (2 (1 + nu)) for gradient descent and, except for the
first slope's own term, an initial matrix of 2 (1 + nu) I for online Newton steps.
"""

import dataclasses
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bkbopt._support.checks import check_count
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.kernels import matern52

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from bkbopt.kernels import Kernel
    from bkbopt.learners import OnlineLearner

__all__ = ["RECIPES", "Recipe", "is_learner", "recipe_of", "settings_of"]

#: Largest number of inducing points of learners without a budget.
MOST = 300
#: Number of terms of learners with a budget, and of the two whose sketches have 2 B terms.
BUDGET, SKETCHED_BUDGET = 100, 50
#: Largest value of all sizes, some of which are those of square matrices.
LARGEST = 10_000
#: Parameters that belong to the surrogate.
RESERVED = ("kernel", "lengthscale", "scale", "seed")

Settings = dict[str, Any]


@dataclass(frozen=True)
class Recipe:
    """How a learner is made.

    Args:
        learner: name of its class in `bkbopt.learners`.
        defaults: (nu, budget) -> the parameters that differ from the class's.
        budget: default budget; other sizes follow it.
        is_regression: whether its hypothesis is the regression on all rows, not the result of one pass of small steps.
    """

    learner: str
    defaults: Callable[[float, int], Settings]
    budget: int = BUDGET
    is_regression: bool = False

    @property
    def cls(self) -> Any:
        """The class, imported at its first use."""
        return getattr(importlib.import_module("bkbopt.learners"), self.learner)

    def check(self, settings: Mapping[str, Any]) -> None:
        """Refuse parameters that the learner lacks, or that do not suit a surrogate.

        Raises:
            ArgumentError: no such parameter, one that belongs to the surrogate, or a loss of labels.
        """
        from bkbopt.learners import get_loss

        known = [f.name for f in dataclasses.fields(self.cls) if f.name not in RESERVED]
        for name in settings:
            if name not in known:
                raise ArgumentError(f"settings: expected parameters among {', '.join(known)}, got {name!r}.")
        if get_loss(settings.get("loss", "squared")).task != "regression":
            raise ArgumentError(
                f"settings: expected a loss of numbers, 'squared' or 'absolute', got {settings['loss']!r}, which is of "
                "labels."
            )
        for name, value in settings.items():
            if isinstance(value, int) and value > LARGEST:
                raise ArgumentError(f"settings: expected a {name} of at most {LARGEST}, got {value}.")

    def try_out(self, settings: Mapping[str, Any], dim: int) -> None:
        """Refuse settings that the learner would refuse at its first row, of `dim` features.

        Raises:
            ArgumentError, ArgumentTypeError: the learner refuses them.
        """
        from bkbopt.learners.core.learnt import Learnt

        if "budget" in settings:
            check_count("budget", settings["budget"])
        Learnt.none(self.build(matern52(dim), 0.01, settings, 0), dim)

    def build(self, kernel: "Kernel", nu: float, settings: Mapping[str, Any], seed: int) -> "OnlineLearner":
        """A learner without data.

        Args:
            kernel: with k(x, x) <= 1.
            nu: noise variance in its units.
            settings: parameters that override the defaults.
            seed: of its random numbers.
        """
        own = {"seed": seed} if "seed" in {f.name for f in dataclasses.fields(self.cls)} else {}
        defaults = self.defaults(nu, settings.get("budget", self.budget))
        return self.cls(**{**defaults, **settings, "kernel": kernel, "scale": False, **own})


def _ridge(nu: float, _: int) -> Settings:
    return {"lam": nu}


def _newton(nu: float, _: int) -> Settings:
    return {"loss": "squared", "clip": 1.0, "alpha": 2.0 * (1.0 + nu), "curvature": None}


def _descent(nu: float, _: int) -> Settings:
    return {"loss": "squared", "step": 0.5 / (1.0 + nu)}


def _pkawv(nu: float, _: int) -> Settings:
    # The ridge form: forward predictions shrink with the leverage of the point, which would hide high values.
    return {"features": "nystrom", "lam": nu, "kors_ridge": nu, "forward": False, "max_features": MOST}


def _prosnkons(nu: float, budget: int) -> Settings:
    # Without restarts: the prediction after a restart is zero, which would mislead a search.
    return {**_newton(nu, budget), "kors_ridge": nu, "restart": False, "max_dictionary": MOST}


def _budgeted(nu: float, budget: int) -> Settings:
    return {**_descent(nu, budget), "budget": budget}


def _nogd(nu: float, budget: int) -> Settings:
    # The papers' B / 10 features are for streams of many thousand rows.
    return {**_budgeted(nu, budget), "rank": max(1, budget // 2)}


def _skegd(nu: float, budget: int) -> Settings:
    # No refreshes: a rebuild after a refit of the kernel adds the same points to the sketch.
    sizes = {"sketch": 2 * budget, "sample": 2 * budget, "rank": budget, "refresh_every": None}
    return {**_budgeted(nu, budget), **sizes}


def _forks(nu: float, budget: int) -> Settings:
    return {**_skegd(nu, budget), "alpha": 2.0 * (1.0 + nu), "curvature": 0.5, "clip": 1.0}


#: The regression learners whose hypothesis is an expansion in the kernel, by the names that users write.
RECIPES: dict[str, Recipe] = {
    "pkawv": Recipe("PKAWV", _pkawv, is_regression=True),
    "kernel-awv": Recipe("KernelAWV", _ridge, is_regression=True),
    "krr": Recipe("OnlineKRR", _ridge, is_regression=True),
    "kons": Recipe("KONS", _newton),
    "sketched-kons": Recipe("SketchedKONS", _newton),
    "prosnkons": Recipe("ProsNKONS", _prosnkons),
    "forks": Recipe("FORKS", _forks, SKETCHED_BUDGET),
    "skegd": Recipe("SkeGD", _skegd, SKETCHED_BUDGET),
    "nogd": Recipe("NOGD", _nogd),
    "kogd": Recipe("KOGD", _descent),
    "bogd": Recipe("BOGD", _budgeted),
}


def recipe_of(name: object) -> Recipe:
    """The recipe of that name.

    Raises:
        ArgumentError: there is none.
        ArgumentTypeError: not a string.
    """
    if not isinstance(name, str):
        raise ArgumentTypeError(f"learner: expected a name or a learner of bkbopt.learners, got {type(name).__name__}.")
    if name not in RECIPES:
        raise ArgumentError(f"learner: expected one of {', '.join(RECIPES)}, got {name!r}.")
    return RECIPES[name]


def is_learner(given: object) -> "TypeIs[OnlineLearner]":
    """Whether it is an online learner; learners are not imported for this."""
    return hasattr(type(given), "hypothesis") and hasattr(type(given), "progressive")


def settings_of(learner: "OnlineLearner") -> tuple[str, Settings]:
    """The name of a learner's recipe and the parameters in which it differs from its class.

    Raises:
        ArgumentError: a class without a recipe, or a learner with data.
    """
    name = next((n for n, recipe in RECIPES.items() if recipe.learner == type(learner).__name__), None)
    if name is None:
        raise ArgumentError(
            f"learner: expected one that learns numbers by an expansion in a kernel ({', '.join(RECIPES)}), got "
            f"{type(learner).__name__}; others learn labels, or have features that the kernel only resembles."
        )
    if hasattr(learner, "n_rounds_"):
        raise ArgumentError("learner: expected one that has learnt nothing yet, got one with data; pass a new one.")
    blank, settings = type(learner)(), {}
    for key, value in learner.get_params().items():
        default = getattr(blank, key)
        given = value is not default and (np.ndim(value) > 0 or value != default)
        if key == "lengthscale" and given:
            raise ArgumentError("lengthscale: give the surrogate's kernel instead, kernel=bkbopt.kernels.rbf(d, l).")
        if key not in RESERVED and given:
            settings[key] = value
    return name, settings
