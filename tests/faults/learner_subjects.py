"""Intact state files of every online learner and linear bandit, and the calls made on a loaded one."""

import functools
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from bkbopt.errors import BkbError
from bkbopt.kernels import matern52, rbf
from bkbopt.learners import BOGD, FORKS, KONS, NOGD, PKAWV, FeatureBandit, KernelAWV, LinearBandit, OnlineLearner, SkeGD
from tests.learners.bandits.test_linear import BANDITS, dim
from tests.learners.everyone import LEARNERS, NAMES, SIGNS, X, gaussian, targets
from tests.learners.streams import arms_and_values

__all__ = ["SUBJECTS", "Subject", "good_file"]

ROWS = 60


class Subject(NamedTuple):
    """Its factory, number of features, whether it is a bandit, and the user's objects for `load`."""

    make: Callable[[], OnlineLearner | LinearBandit]
    d: int = 3
    bandit: bool = False
    given: Mapping[str, Any] = {}

    def loaded(self, path: Path) -> OnlineLearner | LinearBandit:
        """The content of the file; the errors are those of `load`."""
        return LinearBandit.load(path, **self.given) if self.bandit else OnlineLearner.load(path, **self.given)

    def exercised(self, loaded: OnlineLearner | LinearBandit, path: Path) -> str:
        """Call all methods: "works", "overflows" if predictions are not finite, or "refuses" if a call is refused.

        Args:
            loaded: what was loaded.
            path: where it is saved to.

        Raises:
            Exception: whatever a use raises that is no error of the package's own.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            try:
                values = _pulled(loaded, self.d) if isinstance(loaded, LinearBandit) else _streamed(loaded, self.d)
                loaded.save(path)
                if np.isfinite(values).all():
                    self.loaded(path)
            except BkbError:
                loaded.save(path)
                return "refuses"
        return "works" if np.isfinite(values).all() else "overflows"


def _told(make: Callable[..., OnlineLearner], n: int = ROWS) -> Subject:
    return Subject(lambda: make().partial_fit(X[:n], targets(make)[:n]) if n else make())


def _named() -> OnlineLearner:
    frame = pd.DataFrame(X[:ROWS], columns=list(NAMES))
    return KONS.paper().partial_fit(frame, np.where(X[:ROWS, 0] > 0.0, "yes", "no"))


def _changed() -> OnlineLearner:
    return BOGD.paper(budget=10).partial_fit(X[:ROWS], SIGNS[:ROWS]).set_params(budget=7, step=0.5)


def squares(A: torch.Tensor) -> torch.Tensor:
    return A**2


def _mapped(arms: np.ndarray) -> LinearBandit:
    bandit = FeatureBandit(squares)
    for arm in arms:
        bandit.learn_one(arm, float(arm.sum()))
    return bandit


def _pulling(name: str, n: int, policy: str) -> Subject:
    d = dim(BANDITS[name])

    def made() -> LinearBandit:
        bandit, (arms, y, _) = BANDITS[name](policy=policy), arms_and_values(max(n, 1))
        for x, v in list(zip(arms, y, strict=True))[:n]:
            bandit.learn_one(x[:d], v)
        return bandit

    return Subject(made, d, True)


def _subjects() -> Iterator[tuple[str, Subject]]:
    for name, make in LEARNERS.items():
        yield name, _told(make)
    for name in ("KONS", "PKAWV", "FOGD", "FORKS", "BOGD"):
        yield f"{name}, nothing learnt", _told(LEARNERS[name], 0)
    yield "NOGD, first stage", _told(functools.partial(NOGD, budget=80))
    small: dict[str, Any] = {"budget": 10, "seed": 0, "refresh_every": 9}
    for decomposition in ("eigen", "exact"):
        yield f"FORKS, {decomposition}", _told(functools.partial(FORKS, **small, decomposition=decomposition, rank=2))
    yield "SkeGD, refreshed", _told(functools.partial(SkeGD, **small, loss="squared", blocks=2))
    yield "KernelAWV, Matern", _told(functools.partial(KernelAWV, kernel=matern52(3, [0.5, 1.0, 2.0], 1.7)))
    categories = rbf(3, 0.5, categorical=[1])
    yield "BOGD, categorical", _told(functools.partial(BOGD, kernel=categories, budget=10, loss="squared"))
    yield "PKAWV, points", _told(functools.partial(PKAWV, features=X[:12]))
    yield "KONS, named", Subject(_named)
    yield "BOGD, changed", Subject(_changed)
    foreign = ("KernelAWV", "BOGD", "FORKS", "ProsNKONS", "PKAWV, nystrom")
    for name in foreign:
        made = functools.partial(LEARNERS[name], kernel=gaussian)
        yield f"{name}, kernel of the user's", _told(made)._replace(given={"kernel": gaussian})
    features = Subject(lambda: _mapped(X[:9]), given={"features": squares}, bandit=True)
    yield "FeatureBandit, map of the user's", features
    for name in BANDITS:
        for n, policy in ((20, "ucb"), (7, "thompson"), (0, "ucb")):
            yield f"{name}, {n} values, {policy}", _pulling(name, n, policy)


SUBJECTS: dict[str, Subject] = dict(_subjects())


@functools.cache
def good_file(name: str) -> bytes:
    """The intact state file of a subject."""
    with tempfile.TemporaryDirectory() as folder:
        path, subject = Path(folder) / "good", SUBJECTS[name]
        subject.make().save(path)
        content = path.read_bytes()
        assert subject.exercised(subject.loaded(path), path) == "works", name
    return content


def _pulled(bandit: LinearBandit, d: int) -> np.ndarray:
    arms, y, _ = arms_and_values(9, seed=1)
    arms = np.resize(arms, (9, bandit._d or d))
    for i in range(8):
        bandit.learn_one(arms[bandit.select(arms)], y[i])
    return np.concatenate(bandit.bounds(arms))


def _streamed(learner: OnlineLearner, d: int) -> np.ndarray:
    rows = np.resize(X[-40:], (40, getattr(learner, "n_features_in_", d)))
    names = getattr(learner, "feature_names_in_", None)
    frame = rows if names is None else pd.DataFrame(rows, columns=list(names))
    one = rows[0] if names is None else dict(zip(names, rows[0].tolist(), strict=True))
    y = _values(learner)
    if hasattr(learner, "n_features_in_"):
        learner.predict(frame[:3])
        learner.predict_one(one)
    learner.learn_one(one, y[0])
    learner.partial_fit(frame[1:] if names is None else frame.iloc[1:], y[1:])
    learner.predict_one(one)
    learner.predict(frame)
    return learner._raw(rows)


def _values(learner: OnlineLearner) -> np.ndarray:
    """Targets `(40,)` that the learner can have."""
    signs = np.where(X[-40:, 0] > 0.0, 1, 0)
    if not hasattr(learner, "n_features_in_"):
        numbers = learner.loss in ("squared", "absolute")
        return X[-40:, 0] if numbers else signs
    if not learner._classifies:
        return X[-40:, 0]
    return np.resize(learner.classes_, 2)[signs]
