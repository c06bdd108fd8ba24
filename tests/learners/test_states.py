"""State files of learners: their options allocate no memory by themselves, and their contents are checked."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bkbopt._support import files as storage
from bkbopt.errors import ArgumentError, StateFileError
from bkbopt.learners import BOGD, FOGD, FORKS, NOGD, RBP, SOFUL, FeatureBandit, Forgetron, KernelAWV, OnlineLearner
from tests.learners.everyone import LEARNERS, NUMBERS, SIGNS, Factory, X, targets, told
from tests.learners.streams import margins


def edited(learner: OnlineLearner, path: Path, **params: object) -> Path:
    """A file of the learner with other parameters, as if somebody had edited it."""
    saved = learner.state_dict()
    saved["learnt"]["params"].update(params)  # type: ignore[index]
    storage.save(path / "state", saved, kind="learner")
    return path / "state"


@pytest.mark.parametrize("cls", [BOGD, RBP, Forgetron, NOGD, FORKS])
def test_budget_allocates_nothing_by_itself(cls: type[Any], tmp_path: Path) -> None:
    learner = cls.paper(budget=20).partial_fit(X[:15], SIGNS[:15])
    path = edited(learner, tmp_path, budget=10**9)
    tracemalloc.start()
    loaded = OnlineLearner.load(path).partial_fit(X, SIGNS)
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()
    assert np.isfinite(loaded._raw(X)).all()


@pytest.mark.parametrize("name", ["RBP", "Forgetron", "BPAS", "Projectron", "BOGD", "NOGD", "SkeGD", "FORKS"])
def test_room_that_grows_changes_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # A high noise makes mistakes, which fill the budget of more terms than there is room for at first.
    rows, y = np.tile(X, (3, 1)), np.random.default_rng(0).permutation(np.tile(SIGNS, 3))
    budget = 45 if name in {"SkeGD", "FORKS"} else 90
    small = LEARNERS[name](budget=budget, lengthscale=0.3)
    grown = margins(small, rows, y)
    assert small.dictionary_size_ >= budget or name in {"SkeGD", "FORKS"}  # type: ignore[attr-defined]
    monkeypatch.setattr("bkbopt.learners.expansions.expansion.FIRST_ROOM", 1000)
    at_once = LEARNERS[name](budget=budget, lengthscale=0.3)
    np.testing.assert_array_equal(margins(at_once, rows, y), grown)


def test_counts_that_no_file_can_hold_are_refused(tmp_path: Path) -> None:
    learner = told(LEARNERS["FOGD"], 30)
    for frequencies in (10**9, 31):
        with pytest.raises((ArgumentError, StateFileError), match=r"frequencies: expected at most|omega"):
            OnlineLearner.load(edited(learner, tmp_path, frequencies=frequencies))
    saved = learner.state_dict()
    saved["learnt"]["d"] = 10**12  # type: ignore[index]
    with pytest.raises(StateFileError, match="the number of features to be as many as the state has numbers for"):
        OnlineLearner.from_state(saved)


def test_parameters_of_a_file_are_checked_as_those_of_a_caller(make: Factory, tmp_path: Path) -> None:
    learner = told(make, 30)
    for name, value in {"lengthscale": -1.0, "loss": "none", "seed": -1, "budget": 0, "curvature": -1.0}.items():
        if name in learner.get_params():
            with pytest.raises(ArgumentError, match=f"^{name}: expected"):
                OnlineLearner.load(edited(learner, tmp_path, **{name: value}))
    with pytest.raises(StateFileError, match="the parameter 'lengthscale' to be a number, a name or None, got list"):
        OnlineLearner.load(edited(learner, tmp_path, lengthscale=[1.0]))
    with pytest.raises(StateFileError, match="the parameters to be a dict of"):
        OnlineLearner.load(edited(learner, tmp_path, another=1))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("classes", ["b", "a"], "the classes to be different labels in order"),
        ("classes", None, "the classes to be labels"),
        ("order", [0, 2], "the order of the classes to be positions among them"),
        ("order", [0, 0], "the order of the classes to be different positions"),
        ("heads", [{}], "the learners of further classes to be a list of as many as 2 classes need"),
        ("units", {}, "the units to be None for a learner without"),
        ("recent", None, "the last margins to be a dict of F, k"),
        ("names", ("a", "b"), "the names of the features to be 3 different names"),
        ("names", ["a", "b", "c"], "the names of the features to be 3 different names"),
        ("rounds", 0, "'rounds' to be a whole number from 1"),
        ("rounds", 31, "t = 31"),
    ],
)
def test_saved_attributes_of_all_learners_are_checked(name: str, value: object, message: str) -> None:
    saved = told(LEARNERS["KONS"], 30).state_dict()
    saved["learnt"][name] = value  # type: ignore[index]
    with pytest.raises(StateFileError, match=message):
        OnlineLearner.from_state(saved)


def test_numbers_that_outgrow_floating_point_are_refused_by_name() -> None:
    learner = FORKS.paper(budget=10, refresh_every=5, seed=0).partial_fit(X[:60], SIGNS[:60])
    learner._sketches.Phi_pm[:] = np.inf
    before = json.dumps(learner.state_dict()["learnt"]["own"]["rng"])  # type: ignore[index]
    with pytest.raises(ArgumentError, match=r"^X, y: expected rows, targets and parameters of sizes that floating"):
        learner.partial_fit(X, SIGNS)
    assert learner.n_rounds_ == 60
    assert json.dumps(learner.state_dict()["learnt"]["own"]["rng"]) == before  # type: ignore[index]


def test_limits_of_what_is_drawn_or_squared_are_named() -> None:
    with pytest.raises(ArgumentError, match=r"^frequencies: expected at most 33333333 for 3 features"):
        FOGD.paper(frequencies=10**9).fit(X, SIGNS)
    with pytest.raises(ArgumentError, match=r"^sketch, blocks: expected a sketch of at most 4 times"):
        FORKS.paper(budget=10, sketch=1000).fit(X, SIGNS)
    with pytest.raises(ArgumentError, match=r"^budget: expected a whole number from 1 to 2\^53"):
        BOGD.paper(budget=2**70).fit(X, SIGNS)
    with pytest.raises(ArgumentError, match=r"^clip: expected a bound from 1e-100 to 1e100"):
        LEARNERS["KONS"](clip=1e-200).fit(X, targets(LEARNERS["KONS"]))
    with pytest.raises(ArgumentError, match=r"^x: expected an arm of numbers up to 1e"):
        SOFUL(2).learn_one([1e200, 0.0], 1.0)
    with pytest.raises(ArgumentError, match=r"^features: expected a map of arms with 3 features, got one that fails"):
        FeatureBandit(lambda A: A @ torch.ones(2, 2, dtype=torch.float64)).learn_one([1.0, 2.0, 3.0], 1.0)


def test_errors_of_the_kernels_own_stay_theirs() -> None:
    def dividing(*_: object) -> object:
        raise ZeroDivisionError("theirs")

    with pytest.raises(ZeroDivisionError, match="theirs"):
        KernelAWV.paper(kernel=dividing).fit(X, NUMBERS)
