"""Kernels, parameters, copies and state files of online learners, and adversarial streams."""

import contextlib
import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from torch import Tensor

from bkbopt.errors import ArgumentError, ArgumentTypeError, KernelError, NotReadyError, StateFileError
from bkbopt.learners import (
    KONS,
    PKAWV,
    KernelAWV,
    OnlineKRR,
    OnlineLearner,
    get_loss,
)
from tests.learners.everyone import (
    LABELS,
    LEARNERS,
    NAMES,
    NUMBERS,
    OWN_KERNEL,
    Factory,
    X,
    as_dict,
    file_of,
    gaussian,
    targets,
    told,
)
from tests.learners.streams import margins
from tests.sweeps import slow_but

# -- kernels ---------------------------------------------------------------------------------------------------------


class Breaking:
    """A kernel that returns NaN from its n-th call on."""

    def __init__(self, n: int) -> None:
        self.left = [n]

    def __call__(self, A: Tensor, B: Tensor) -> Tensor:
        self.left[0] -= 1
        return gaussian(A, B) * (1.0 if self.left[0] > 0 else float("nan"))

    def __deepcopy__(self, memo: object) -> "Breaking":
        return self  # copies of the learner count on


@pytest.mark.parametrize("name", sorted(set(LEARNERS) - OWN_KERNEL))
def test_kernel_given_as_a_function_does_what_the_built_in_one_does(name: str) -> None:
    y = targets(LEARNERS[name])
    ours, theirs = margins(LEARNERS[name](), X, y), margins(LEARNERS[name](kernel=gaussian), X, y)
    # Kernel values that differ in the last bits, in recursions with memory.
    np.testing.assert_allclose(theirs, ours, atol=1e-8)


#: The base class keeps a copy: of a learner that computes for blocks, one of compiled rounds, and one of two stages.
COPIED = {"KONS", "Projectron", "FORKS"}


@pytest.mark.parametrize("name", slow_but(COPIED, sorted(set(LEARNERS) - OWN_KERNEL)))
def test_kernel_that_fails_half_way_leaves_all_as_it_was(name: str) -> None:
    y, kernel = targets(LEARNERS[name]), Breaking(10**9)
    model = LEARNERS[name](kernel=kernel).partial_fit(X[:100], y[:100])
    before = model.predict(X)
    state = copy.deepcopy(model)
    start, rows, labels = kernel.left[0], np.tile(X, (8, 1)), np.tile(y, 8)
    copy.deepcopy(model).partial_fit(rows, labels)
    kernel.left[0] = 2 * (start - kernel.left[0]) // 3
    with pytest.raises(KernelError, match="NaN or infinity"):
        model.partial_fit(rows, labels)
    kernel.left[0] = 10**9
    np.testing.assert_array_equal(model.predict(X), before)
    np.testing.assert_array_equal(margins(model, X, y), margins(state, X, y))


class Interrupted(Breaking):
    """A kernel during whose n-th call the user presses a key, and that cannot be copied, as those with locks cannot."""

    def __call__(self, A: Tensor, B: Tensor) -> Tensor:
        self.left[0] -= 1
        if self.left[0] <= 0:
            raise KeyboardInterrupt
        return gaussian(A, B)

    def __deepcopy__(self, memo: object) -> "Interrupted":
        raise TypeError("cannot be copied")


@pytest.mark.parametrize("name", slow_but(COPIED, sorted(set(LEARNERS) - OWN_KERNEL)))
def test_errors_of_the_kernels_own_leave_all_as_it_was(name: str) -> None:
    y, kernel = targets(LEARNERS[name]), Interrupted(10**9)
    model = LEARNERS[name](kernel=kernel).partial_fit(X[:100], y[:100])
    before, fresh = model.predict(X), LEARNERS[name](kernel=kernel)
    rows, labels = np.tile(X, (8, 1)), np.tile(y, 8)
    for learner in (model, fresh):
        kernel.left[0] = 4
        with pytest.raises(KeyboardInterrupt):
            learner.partial_fit(rows, labels)
    kernel.left[0] = 10**9
    np.testing.assert_array_equal(model.predict(X), before)
    assert model.kernel is kernel
    assert set(vars(fresh)) == set(fresh.get_params())


def interrupted(monkeypatch: pytest.MonkeyPatch, model: OnlineLearner, learn: Callable[[], object]) -> None:
    """Call `learn`, which ends by Ctrl-C when its last rows are in the learner's own state, and no more is done."""
    stream = type(model)._stream

    def stopped(self: OnlineLearner, A: np.ndarray, b: np.ndarray) -> np.ndarray:
        stream(self, A, b)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(model), "_stream", stopped)
        with pytest.raises(KeyboardInterrupt):
            learn()


def test_interrupt_of_many_rows_is_undone(base: Factory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    y = targets(base)
    model = told(base, 150)
    before, whole = file_of(model, tmp_path), told(base, 150).partial_fit(np.tile(X, (2, 1)), np.tile(y, 2))
    interrupted(monkeypatch, model, lambda: model.partial_fit(np.tile(X, (2, 1)), np.tile(y, 2)))
    assert file_of(model, tmp_path) == before
    model.partial_fit(np.tile(X, (2, 1)), np.tile(y, 2))
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))


def test_learner_that_an_interrupt_left_half_way_is_not_used_any_more(
    base: Factory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    y = targets(base)
    model = told(base, 150)
    interrupted(monkeypatch, model, lambda: model.learn_one(X[150], y[150]))
    model = pickle.loads(pickle.dumps(model))
    uses: list[Callable[[], object]] = [
        lambda: model.predict(X),
        lambda: model.predict_one(X[0]),
        lambda: model.learn_one(X[151], y[151]),
        lambda: model.progressive(X, y),
        lambda: model.save(tmp_path / "half"),
    ]
    for use in uses:
        with pytest.raises(NotReadyError, match=r"stopped in the middle of learning.*begin anew with fit"):
            use()
    np.testing.assert_array_equal(model.fit(X, y).predict(X), told(base).predict(X))


# -- parameters, copies and files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), "one"])
def test_lengthscale_out_of_range_is_refused_when_learning_begins(base: Factory, bad: object) -> None:
    model = base(lengthscale=bad)
    with pytest.raises((ArgumentError, ArgumentTypeError), match=r"^lengthscale: expected a positive finite length"):
        model.fit(X, targets(base))
    assert set(vars(model)) == set(model.get_params())


@pytest.mark.parametrize("name", [name for name, factory in LEARNERS.items() if hasattr(factory(), "seed")])
def test_seed_decides_everything(name: str) -> None:
    y = targets(LEARNERS[name])
    a, b, c = (margins(LEARNERS[name](seed=s), X, y) for s in (3, 3, 4))
    np.testing.assert_array_equal(a, b)
    if name not in {"PKAWV", "PKAWV, ridge"}:  # those draw nothing
        assert (a != c).any()
    with pytest.raises(ArgumentError, match=r"^seed: expected a whole number >= 0, got -1"):
        LEARNERS[name](seed=-1).fit(X, y)


def test_what_users_read_sets_nothing_on_the_learner_itself(make: Factory, tmp_path: Path) -> None:
    # Attributes of its own would hide those of the algorithm, which learns.
    model = told(make)
    model.predict(X)
    model.predict_one(X[0])
    for name in sorted(set(dir(model)) - set(dir(OnlineLearner))):
        if not name.startswith("_"):
            with contextlib.suppress(AttributeError, NotReadyError):  # of the second stage, in the first
                getattr(model, name)
    with contextlib.suppress(ArgumentError):  # features that only resemble the kernel
        model.hypothesis()
    if hasattr(model, "regret_bound"):
        model.regret_bound(1.0)
    model.save(tmp_path / "learner")
    assert set(vars(model)) == {*model.get_params(), "_learnt"}


# The tests of learners with a budget or two stages save in each of them.
@pytest.mark.parametrize("n", slow_but({150}, [1, 25, 150]))
def test_saved_learner_goes_on_as_if_nothing_had_happened(make: Factory, n: int, tmp_path: Path) -> None:
    y = targets(make)
    model = make().partial_fit(X[:n], y[:n])
    model.save(tmp_path / "learner")
    loaded = OnlineLearner.load(tmp_path / "learner")
    assert type(loaded) is type(model)
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(margins(loaded, X[n:], y[n:]), margins(model, X[n:], y[n:]))
    assert file_of(loaded, tmp_path) == file_of(model, tmp_path)


def test_fresh_learner_can_be_saved(base: Factory, tmp_path: Path) -> None:
    base().save(tmp_path / "learner")
    loaded = OnlineLearner.load(tmp_path / "learner")
    assert loaded.get_params() == base().get_params()
    np.testing.assert_array_equal(margins(loaded, X, targets(base)), margins(base(), X, targets(base)))


def test_copies_and_pickles_go_their_own_way(make: Factory, tmp_path: Path) -> None:
    model, y = told(make, 100), targets(make)
    before = file_of(model, tmp_path)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
        other.partial_fit(X, y)
        assert file_of(model, tmp_path) == before


def test_states_in_memory_are_copies(make: Factory) -> None:
    model, y = told(make, 100), targets(make)
    before = model.predict(X)
    OnlineLearner.from_state(model.state_dict()).partial_fit(X, y)
    np.testing.assert_array_equal(model.predict(X), before)


def test_decision_function_is_that_of_the_loss_that_was_learnt() -> None:
    model = KONS.paper().fit(X, LABELS)
    before = model.decision_function(X)
    model.set_params(loss="squared")
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert not hasattr(model.fit(X, NUMBERS), "decision_function")


def test_names_and_labels_are_saved(tmp_path: Path) -> None:
    model = KONS.paper().fit(pd.DataFrame(X, columns=list(NAMES)), LABELS)
    model.save(tmp_path / "learner")
    loaded = KONS.load(tmp_path / "learner")
    assert tuple(loaded.feature_names_in_) == NAMES
    assert loaded.predict_one(as_dict(X[0])) == model.predict_one(X[0])


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "bool", "object", "U10"])
def test_labels_have_the_dtype_that_they_were_saved_with(dtype: str, tmp_path: Path) -> None:
    labels = np.where(LABELS == "yes", "yes", "no") if dtype in ("object", "U10") else LABELS == "yes"
    model = KONS.paper().fit(X, labels.astype(dtype))
    model.save(tmp_path / "learner")
    loaded = KONS.load(tmp_path / "learner")
    assert loaded.classes_.dtype == loaded.predict(X).dtype == dtype
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_whole_numbers_of_any_size_are_saved_as_labels(tmp_path: Path) -> None:
    labels = np.where(LABELS == "yes", np.uint64(2**63 + 1), np.uint64(3))
    model = KONS.paper().fit(X, labels)
    model.save(tmp_path / "learner")
    loaded = KONS.load(tmp_path / "learner")
    assert loaded.classes_.tolist() == [3, 2**63 + 1]
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_kernel_of_the_package_is_saved(tmp_path: Path) -> None:
    from bkbopt.kernels import matern52

    model = KernelAWV.paper(kernel=matern52(3, [0.5, 1.0, 2.0], 1.7)).fit(X, NUMBERS)
    model.save(tmp_path / "learner")
    np.testing.assert_array_equal(KernelAWV.load(tmp_path / "learner").predict(X), model.predict(X))


def test_kernel_of_the_user_is_asked_for(tmp_path: Path) -> None:
    model = KernelAWV.paper(kernel=gaussian).fit(X, NUMBERS)
    model.save(tmp_path / "learner")
    with pytest.raises(ArgumentError, match="pass kernel= with the same kernel to load"):
        KernelAWV.load(tmp_path / "learner")
    loaded = KernelAWV.load(tmp_path / "learner", kernel=gaussian)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_file_of_another_learner_is_refused(tmp_path: Path) -> None:
    KONS.paper().fit(X, LABELS).save(tmp_path / "learner")
    with pytest.raises(StateFileError, match="state of a KernelAWV, got that of a KONS"):
        KernelAWV.load(tmp_path / "learner")


# -- streams that mean harm ------------------------------------------------------------------------------------------


def adversarial(kind: str, n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Rows and targets in {-1, 1}."""
    rng = np.random.default_rng(0)
    rows, y = rng.uniform(-1.0, 1.0, (n, 3)), rng.choice([-1.0, 1.0], n)
    if kind == "all of them":
        parts = [adversarial(one, 60) for one in KINDS[1:]]
        rows, y = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    elif kind == "one point, flipping labels":
        rows, y = np.zeros((n, 3)), np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    elif kind == "repeats in runs":
        rows, y = np.repeat(rows[: n // 10], 10, axis=0), np.repeat(np.resize([1.0, -1.0], n // 10), 10)
    elif kind == "drift":
        rows = rows + 0.05 * np.arange(n)[:, None]
    elif kind == "far away":
        rows = 1e6 * rows
    elif kind == "nearly equal":
        rows = 0.3 + 1e-9 * rows
    elif kind == "squares overflow":
        rows[::3] *= 1e200
    return rows, y


KINDS = (
    "all of them",
    "noise",
    "one point, flipping labels",
    "repeats in runs",
    "drift",
    "far away",
    "nearly equal",
    "squares overflow",
)


# What a learner has met before makes the next kind no easier.
@pytest.mark.parametrize("kind", slow_but({"all of them"}, KINDS))
def test_adversarial_streams_stay_finite(make: Factory, kind: str) -> None:
    rows, y = adversarial(kind)
    model = make()
    predictions = margins(model, rows, y)
    assert np.isfinite(predictions).all()
    assert np.isfinite(model._raw(rows)).all()
    assert np.abs(predictions).max() < 1e3
    # Bounds hold on any stream. That of KONS is for all f, and f = 0 is the easiest to state.
    if isinstance(model, OnlineKRR | PKAWV):
        assert model.regret_ <= model.regret_bound_ + 1e-9 * len(y)
    if isinstance(model, KONS):
        loss = get_loss(model.loss)
        regret = np.sum(loss.value(y, predictions) - loss.value(y, np.zeros(len(y))))
        assert regret <= model.regret_bound(0.0) + 1e-9 * len(y)


@pytest.mark.parametrize("name", sorted(set(LEARNERS) - OWN_KERNEL))
def test_where_zero_lies_makes_no_difference(name: str) -> None:
    # Multiples of 2^-10 keep all their digits when they are moved by 2^30, as time stamps may be; nor does dividing by
    # sqrt(2) lengthscales round, since that is one.
    rows, y, length = np.round(1024.0 * X) / 1024.0, targets(LEARNERS[name]), 0.7071067811865475
    near, far = (margins(LEARNERS[name](lengthscale=length), rows + shift, y) for shift in (0.0, 2.0**30))
    np.testing.assert_array_equal(far, near)
