"""What the state of a learner in a file has to be, and that options of a file allocate nothing by themselves."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bkbopt._support import files as storage
from bkbopt._support.states import Count, Floats, Form, Ints, Maybe, Number, Size, checked, generator_state
from bkbopt.errors import ArgumentError, StateFileError
from bkbopt.learners import BOGD, FOGD, FORKS, NOGD, RBP, SOFUL, FeatureBandit, Forgetron, KernelAWV, OnlineLearner
from tests.learners.everyone import LEARNERS, NUMBERS, SIGNS, Factory, X, targets, told
from tests.learners.streams import margins

FORM = Form(
    {
        "n": Count(0, 5),
        "W": Floats(("m", "r"), -9.0, 9.0),
        "root": Floats(("r", "r"), diagonal=0.0),
        "rows": Ints(("m",), "t"),
        "sum": Number(0.0),
        "size": Size("m"),
        "second": Maybe(Form({"w": Floats(("r",), tensor=True)})),
    },
    most={"m": 3},
    least={"m": 2},
)


def state(**changed: object) -> dict[str, object]:
    good = {
        "n": 1,
        "W": np.ones((3, 2)),
        "root": np.eye(2),
        "rows": np.array([0, 4, 4]),
        "sum": 0.5,
        "size": 3,
        "second": {"w": torch.ones(2, dtype=torch.float64)},
    }
    return {**good, **changed}


def test_state_of_its_form_is_copied() -> None:
    given = state()
    out = checked(given, FORM, {"t": 5})
    assert out["n"] == 1
    assert out["W"].tolist() == np.ones((3, 2)).tolist()
    given["W"][:] = 0.0  # type: ignore[index]
    assert out["W"].all()
    assert checked(state(second=None), FORM, {"t": 5})["second"] is None


BAD: dict[str, tuple[dict[str, object], str]] = {
    "type": ({"n": True}, r"'n' to be a whole number from 0 to 5, got bool"),
    "range": ({"n": 6}, r"'n' to be a whole number from 0 to 5, got a number out of range"),
    "float for a count": ({"n": 1.0}, r"'n' to be a whole number .* got float"),
    "NaN": ({"sum": float("nan")}, r"'sum' to be a finite number from 0 to inf, got nan"),
    "negative": ({"sum": -1.0}, r"'sum' to be a finite number from 0 to inf, got -1.0"),
    "single precision": ({"W": np.ones((3, 2), np.float32)}, r"'W' to be a float64 array .* got float32 of shape"),
    "other bytes": ({"W": np.ones((3, 2), ">f8")}, r"'W' to be a float64 array"),
    "list": ({"W": [[1.0]]}, r"'W' to be a float64 array of shape \(m, r\), got list"),
    "axes": ({"W": np.ones(3)}, r"'W' to be a float64 array"),
    "NaN in an array": ({"W": np.full((3, 2), np.nan)}, r"'W' to be finite numbers from -9 to 9, got nan"),
    "entry": ({"W": np.full((3, 2), 10.0)}, r"'W' to be finite numbers from -9 to 9, got 10"),
    "shape": ({"root": np.eye(3)}, r"'root' to be an array of shape \(r = 2, r = 2\), got \(3, 3\)"),
    "diagonal": ({"root": np.zeros((2, 2))}, r"'root' to be a matrix with a diagonal above 0, got 0.0"),
    "index": ({"rows": np.array([0, 1, 5])}, r"'rows' to be whole numbers from 0 to below 5, got 0 to 5"),
    "negative index": ({"rows": np.array([0, -1, 1])}, r"'rows' to be whole numbers from 0 to below 5, got -1 to 1"),
    "size": ({"size": 2}, r"'size' to be a whole number from 3 to 3"),
    "array for a tensor": ({"second": {"w": np.ones(2)}}, r"'second''s 'w' to be a tensor, got ndarray"),
    "new name": ({"more": 1}, r"the state to be a dict of n, W, root"),
    "few": (
        {"W": np.ones((1, 2)), "rows": np.array([0]), "size": 1},
        "the state to be one with m from 2, got m = 1",
    ),
    "many": (
        {"W": np.ones((4, 2)), "rows": np.array([0] * 4), "size": 4},
        "the state to be one with m up to 3, got m = 4",
    ),
}


@pytest.mark.parametrize("bad", BAD)
def test_state_of_another_form_is_refused(bad: str) -> None:
    changed, message = BAD[bad]
    with pytest.raises(StateFileError, match=f"^path: expected .*{message}.*restore it from a copy"):
        checked(state(**changed), FORM, {"t": 5})


def test_states_that_are_no_dict_or_lack_a_name_are_refused() -> None:
    for wrong in (None, [], {**state(), "n": 1} | {"W": None}, {k: v for k, v in state().items() if k != "n"}):
        with pytest.raises(StateFileError):
            checked(wrong, FORM, {"t": 5})


def test_generators_that_numpy_would_take_are_refused() -> None:
    good: dict[str, Any] = dict(np.random.default_rng(0).bit_generator.state)
    assert generator_state(good) == good
    words = good["state"]
    for change in (
        {"uinteger": 2**32},
        {"has_uint32": 2},
        {"bit_generator": "MT19937"},
        {"state": {**words, "inc": words["inc"] + 1}},
        {"state": {**words, "state": 2**128}},
    ):
        with pytest.raises(StateFileError, match="generator"):
            generator_state({**good, **change})


# -- files ------------------------------------------------------------------------------------------------------------


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
    monkeypatch.setattr("bkbopt.learners.expansion.FIRST_ROOM", 1000)
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
    for name, value in {"lengthscale": -1.0, "loss": "none", "seed": -1, "budget": 0, "eta": -1.0}.items():
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
def test_what_is_kept_of_all_learners_is_checked(name: str, value: object, message: str) -> None:
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
    with pytest.raises(ArgumentError, match=r"^C: expected a bound from 1e-100 to 1e100"):
        LEARNERS["KONS"](C=1e-200).fit(X, targets(LEARNERS["KONS"]))
    with pytest.raises(ArgumentError, match=r"^x: expected an arm of numbers up to 1e"):
        SOFUL(2).learn_one([1e200, 0.0], 1.0)
    with pytest.raises(ArgumentError, match=r"^features: expected a map of arms with 3 features, got one that fails"):
        FeatureBandit(lambda A: A @ torch.ones(2, 2, dtype=torch.float64)).learn_one([1.0, 2.0, 3.0], 1.0)


def test_errors_of_the_kernels_own_stay_theirs() -> None:
    def dividing(*_: object) -> object:
        raise ZeroDivisionError("theirs")

    with pytest.raises(ZeroDivisionError, match="theirs"):
        KernelAWV.paper(kernel=dividing).fit(X, NUMBERS)
