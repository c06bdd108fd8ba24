"""Pools: valid inputs, encoding, added and removed arms."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import bkbopt as bo
from bkbopt.errors import ArgumentError, ArgumentTypeError, BkbError, SpaceExhaustedError
from bkbopt.search.candidates.listed import PoolCandidates
from bkbopt.spaces.pool import EncodedPool
from tests.spaces import sample_pools
from tests.spaces.sample_pools import ARMS, BAD_POOLS, BAD_REPLACEMENTS, WORDS, read_only

TABLE = sample_pools.TABLE[["dose", "steps", "solvent"]]


def overlap(A: list[str], B: list[str]) -> list[list[float]]:
    """A kernel of words: shared letters, normalised; positive semi-definite as a product of indicator vectors."""
    return [[len(set(a) & set(b)) / (len(set(a)) * len(set(b))) ** 0.5 for b in B] for a in A]


def value(index: int) -> float:
    return float(np.sin(3.0 * ARMS[index, 0]) + ARMS[index, 1] / 100.0)


def run(opt: bo.Optimizer, n: int, f: Any = value) -> list[int | None]:
    asked = []
    for _ in range(n):
        trial = opt.ask()
        asked.append(trial.index)
        opt.tell(trial, f(trial.index))
    return asked


def optimizer(pool: Any, **options: Any) -> bo.Optimizer:
    return bo.Optimizer(pool, **{"seed": 0, "n_startup_trials": 4, **options})


@cache
def asked_of_arms() -> tuple[int | None, ...]:
    """What is asked for first over `ARMS`: four start-up trials, and those of the model."""
    return tuple(run(optimizer(ARMS), 15))


def words(**options: Any) -> bo.Optimizer:
    return optimizer(WORDS, surrogate=bo.BKB(kernel=overlap, noise=0.01), **options)


def fortran(A: np.ndarray) -> np.ndarray:
    return np.asfortranarray(A)


@pytest.mark.parametrize(
    "form",
    [
        fortran,
        read_only,
        pd.DataFrame,
        torch.as_tensor,
        np.ndarray.tolist,
        lambda A: np.repeat(A, 2, axis=0)[::2],
        lambda A: torch.as_tensor(A).requires_grad_(),
        bo.Pool,
    ],
)
def test_every_form_of_an_array_gives_the_same_asks_and_stays_as_it_was(form: Any) -> None:
    pool = form(ARMS)
    before = np.array(ARMS)
    assert run(optimizer(pool), 8) == [*asked_of_arms()[:8]]
    assert np.array_equal(ARMS, before)
    if isinstance(pool, pd.DataFrame):
        pd.testing.assert_frame_equal(pool, pd.DataFrame(before))


def test_float32_gives_the_asks_of_the_same_numbers_in_float64() -> None:
    single = ARMS.astype(np.float32)
    assert run(optimizer(single), 8) == run(optimizer(single.astype(np.float64)), 8)


def test_changing_the_callers_array_changes_nothing() -> None:
    mine = ARMS.copy()
    opt = optimizer(mine)
    a = run(opt, 6)
    mine[:] = 0.0
    assert a + run(opt, 6) == [*asked_of_arms()[:12]]


def test_params_are_the_raw_row() -> None:
    for trial in optimizer(ARMS).ask(5):
        assert list(trial.params.values()) == ARMS[trial.index].tolist()
        assert list(trial.params) == ["x0", "x1", "x2"]


def test_data_frame_rows_come_back_with_their_own_types() -> None:
    opt = optimizer(TABLE)
    assert opt.pool.categorical == (2,)
    for trial in opt.ask(10):
        row = TABLE.iloc[trial.index]
        assert trial.params == row.to_dict()
        assert [type(v) for v in trial.params.values()] == [float, int, str]


def test_scaling_makes_units_irrelevant() -> None:
    shifted = ARMS * [1e6, 1e-6, 1.0] + [0.0, 5.0, -3.0]
    assert [*asked_of_arms()] == run(optimizer(shifted), 15)


def test_constant_column_is_harmless() -> None:
    wide = np.column_stack([ARMS, np.full(60, 7.0)])
    trial_rows = run(optimizer(wide), 10)
    assert len(trial_rows) == 10
    assert bool(torch.isfinite(optimizer(wide).pool.X).all())


def test_objects_need_only_a_kernel() -> None:
    opt = words()
    run(opt, 15, lambda i: -float(WORDS[i].count("e")))
    assert opt.recommend().params["arm"] in ("beetle", "bee", "antelope")
    assert all(t.params == {"arm": WORDS[t.index]} for t in opt.trials)
    mean, std = opt.predict([{"arm": "cow"}, {"index": 8}])
    assert mean[0] == mean[1]
    assert std[0] == std[1]


def test_unhashable_objects_are_told_apart_by_identity() -> None:
    arms = [{"w": w} for w in WORDS]
    kernel = lambda A, B: overlap([a["w"] for a in A], [b["w"] for b in B])  # noqa: E731
    opt = optimizer(arms, surrogate=bo.BKB(kernel=kernel, noise=0.01))
    asked = run(opt, 10, lambda i: float(len(WORDS[i])))
    assert asked == run(words(), 10, lambda i: float(len(WORDS[i])))


def test_tuples_in_a_pool_are_arms_and_not_bounds() -> None:
    trial = optimizer(bo.Pool([(0.0, 1.0), (2.0, 3.0)])).ask()
    assert trial.index in (0, 1)
    assert list(trial.params.values()) in ([0.0, 1.0], [2.0, 3.0])


def test_past_data_may_be_rows_params_or_numbers() -> None:
    opt = optimizer(TABLE)
    by_params, by_index = opt.tell(TABLE.iloc[5].to_dict(), 1.0), opt.tell({"index": 5}, 1.0)
    assert by_params.index == by_index.index == 5
    told = opt.tell(TABLE.iloc[[3, 9]], [1.0, 2.0])
    assert [t.index for t in told] == [3, 9]
    elsewhere = opt.tell({"dose": 0.123, "steps": 99, "solvent": "oil"}, 0.0)  # not in the pool, but of its kind
    assert elsewhere.index is None
    assert elsewhere.params["solvent"] == "oil"
    # Scaled to the pool's range and back.
    assert elsewhere.params["dose"] == pytest.approx(0.123, rel=1e-12)
    assert elsewhere.params["steps"] == pytest.approx(99, rel=1e-12)
    with pytest.raises(ArgumentError, match="'mud'"):
        opt.tell({"dose": 0.1, "steps": 1, "solvent": "mud"}, 0.0)


TWICE = np.repeat(ARMS, 2, axis=0)


def test_rows_with_equal_values_are_different_rows_of_which_one_comes_first_without_noise() -> None:
    opt = optimizer(TWICE[:60], duplicates="avoid")
    asked = run(opt, 60, lambda i: value(i // 2))
    assert sorted(asked) == list(range(60))
    # One repeat decides that there is no noise.
    assert len({i // 2 for i in asked[:31]}) == 30
    with pytest.raises(SpaceExhaustedError, match="all 60 arms have been"):
        opt.ask()


def test_rows_with_names_are_different_candidates_also_without_noise() -> None:
    known = range(0, 60, 2)
    best = {2 * i + 1 for i in sorted(known, key=value)[:3]}
    frame = pd.DataFrame(TWICE, columns=["a", "b", "c"]).assign(well=[f"W{i}" for i in range(120)])

    def plate(pool: Any) -> set[int | None]:
        opt = optimizer(pool, duplicates="avoid", n_startup_trials=30)
        for i in known:
            opt.tell({"index": 2 * i}, value(i))
        return {trial.index for trial in opt.ask(12)}

    assert best <= plate(bo.Pool(frame, id_column="well"))
    assert not best & plate(TWICE)


def test_the_start_up_design_has_rows_with_equal_values_last() -> None:
    opt = optimizer(TWICE[:20], duplicates="avoid", n_startup_trials=30)
    rows = [trial.index for trial in opt.ask(25) if trial.index is not None]
    assert len({i // 2 for i in rows[:10]}) == 10
    assert sorted(rows) == list(range(20))


def test_where_values_are_noisy_a_row_equal_to_a_good_one_comes_before_poor_rows() -> None:
    rng = np.random.default_rng(0)
    opt = optimizer(TWICE, duplicates="avoid", n_startup_trials=20)
    asked = run(opt, 60, lambda i: value(i // 2) + 0.05 * float(rng.standard_normal()))
    best = min(range(60), key=value)
    assert {2 * best, 2 * best + 1} <= set(asked)
    assert len(set(asked)) == 60


def test_suggestions_name_the_rows_that_have_no_trial_among_those_with_equal_values() -> None:
    opt = optimizer(TWICE[:16], duplicates="avoid")
    for i in range(1, 16, 2):
        opt.tell({"index": i}, value(i // 2))
    assert sorted(trial.index for trial in opt.ask(8) if trial.index is not None) == list(range(0, 16, 2))
    may_repeat = optimizer(np.repeat(ARMS[:2], 3, axis=0))
    assert {trial.index for trial in may_repeat.ask(30)} == set(range(6))


def test_pending_arms_are_not_proposed_again() -> None:
    opt = optimizer(ARMS[:8], n_startup_trials=3)
    for n in (8, 8):  # in the initial design, and by the model
        trials = opt.ask(n)
        assert {t.index for t in trials} == set(range(8))
        for t in trials:
            opt.tell(t, value(t.index))
    assert len(opt.ask(11)) == 11  # more workers than arms share


def test_rows_whose_look_up_was_interrupted_are_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = EncodedPool(bo.Pool(ARMS), scale=True, has_kernel=False)
    candidates = PoolCandidates(pool, None)
    candidates.closed(pool.X[:2])

    def interrupted(X: torch.Tensor) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(candidates, "rows_of", interrupted)
        with pytest.raises(KeyboardInterrupt):
            candidates.closed(pool.X[:4])
    for n in (3, 5, 1):
        assert torch.nonzero(candidates.closed(pool.X[:n]))[:, 0].tolist() == [*range(n)]


def test_constraint_holds_for_every_arm() -> None:
    for acquisition in ("ucb", "logei", "thompson"):
        opt = optimizer(TABLE, feasible=lambda p: p["solvent"] == "oil", acquisition=acquisition)
        asked = run(opt, 12, lambda i: -float(TABLE["solvent"][i] == "acid"))
        assert {TABLE["solvent"][i] for i in asked} == {"oil"}
    with pytest.raises(ArgumentError, match="feasible: expected points to propose"):
        optimizer(TABLE, feasible=lambda p: False).ask()


# -- pools that change ---------------------------------------------------------------------------------------------


def test_removed_arms_leave_the_posterior_unchanged() -> None:
    opt = optimizer(ARMS)
    run(opt, 12)
    before = opt.predict(ARMS_PARAMS[:30])
    opt.set_pool(ARMS[:30])
    after = opt.predict(ARMS_PARAMS[:30])
    assert np.array_equal(before[0], after[0])
    assert np.array_equal(before[1], after[1])
    for _ in range(10):
        trial = opt.ask()
        assert trial.index < 30
        assert list(trial.params.values()) == ARMS[trial.index].tolist()
        opt.tell(trial, value(trial.index))


ARMS_PARAMS = [dict(zip(("x0", "x1", "x2"), row, strict=True)) for row in ARMS.tolist()]


def test_indices_refer_to_the_current_pool() -> None:
    opt = optimizer(ARMS)
    run(opt, 12)
    best = opt.recommend()
    reverse = ARMS[::-1]
    opt.set_pool(reverse)
    again = opt.recommend()
    assert again.params == best.params
    assert again.index == 59 - best.index
    for _ in range(5):
        trial = opt.ask()
        assert list(trial.params.values()) == reverse[trial.index].tolist()
        opt.tell(trial, value(59 - trial.index))


def test_the_order_of_the_arms_does_not_matter_to_the_model() -> None:
    a, b = optimizer(ARMS), optimizer(ARMS)
    rows = run(a, 8)
    assert run(b, 8) == rows
    b.set_pool(ARMS[::-1])
    for _ in range(10):
        one, two = a.ask(), b.ask()
        assert one.params == two.params
        a.tell(one, value(one.index))
        b.tell(two, value(59 - two.index))


def test_new_arms_are_found_when_they_are_better() -> None:
    opt = optimizer(ARMS[ARMS[:, 0] < 0.5], direction="maximize")
    for _ in range(10):
        trial = opt.ask()
        opt.tell(trial, trial.params["x0"])
    opt.set_pool(ARMS)
    asked = [opt.ask().params["x0"] for _ in range(3)]
    assert max(asked) > 0.5


def test_blocked_arms_stay_blocked() -> None:
    opt = optimizer(ARMS[:20], duplicates="avoid")
    seen = {ARMS[i].tobytes() for i in run(opt, 15)}
    opt.fail(failed := opt.ask())
    seen.add(ARMS[failed.index].tobytes())
    opt.set_pool(ARMS[5:30])  # 0 to 4 leave, 20 to 29 come
    opt.set_pool(ARMS[:30])  # 0 to 4 are back
    trials = opt.ask(30)
    assert len(trials) == 30 - 16  # fewer than asked for: that is all there are
    assert not seen & {ARMS[t.index].tobytes() for t in trials}
    with pytest.raises(SpaceExhaustedError):
        opt.ask()


def test_trials_of_arms_that_have_gone_can_still_be_told() -> None:
    opt = optimizer(ARMS)
    pending = opt.ask(5)
    opt.set_pool(ARMS[:10])
    for t in pending:
        opt.tell(t, value(t.index))
    assert [t.state for t in opt.trials] == ["COMPLETE"] * 5
    best = opt.recommend()
    assert best.params in [t.params for t in pending]
    told = [t.value for t in opt.trials]
    assert min(told) <= best.mean <= max(told)


def test_new_categories_get_codes_of_their_own() -> None:
    opt = optimizer(TABLE)
    run(opt, 6)
    mud = TABLE.assign(solvent="mud")
    opt.set_pool(mud)
    opt.tell({"dose": 0.5, "steps": 1, "solvent": "mud"}, 3.0)
    tar = TABLE.assign(solvent="tar")
    opt.set_pool(tar)
    arms = [{"dose": 0.5, "steps": 1, "solvent": s} for s in ("oil", "mud", "tar")]
    assert len(set(opt.encode(arms)[:, 2].tolist())) == 3
    assert opt.ask().params["solvent"] == "tar"
    assert opt.trials[6].params["solvent"] == "mud"


def test_new_objects_join_the_old_ones() -> None:
    opt = words()
    run(opt, 8, lambda i: float(len(WORDS[i])))
    opt.set_pool([*WORDS[5:], "elephant", "eel"])
    trial = opt.ask()
    assert trial.params["arm"] == [*WORDS[5:], "elephant", "eel"][trial.index]
    opt.tell(trial, 1.0)
    mean, _ = opt.predict([{"arm": "eel"}, {"arm": "ant"}])
    assert np.isfinite(mean).all()


# -- what is refused -----------------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[Any, str]] = {
    **BAD_POOLS,
    "string": ("abc", "space_or_pool"),
    "set": ({1, 2}, "space_or_pool"),
    "number": (3, "space_or_pool"),
    "generator": ((i for i in range(3)), "space_or_pool"),
    "none": (None, "space_or_pool"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_pool_is_refused(name: str) -> None:
    pool, words_ = REFUSED[name]
    with pytest.raises((ArgumentError, ArgumentTypeError), match=words_):
        bo.Optimizer(pool)


@pytest.fixture(scope="module")
def asked_of_table() -> list[int | None]:
    """What is asked for over the table where nothing is refused."""
    return run(optimizer(sample_pools.TABLE), 6)


@pytest.mark.parametrize("name", BAD_REPLACEMENTS)
def test_refused_replacement_leaves_the_pool_as_it_was(name: str, asked_of_table: list[int | None]) -> None:
    opt = optimizer(sample_pools.TABLE)
    assert run(opt, 4) == asked_of_table[:4]
    with pytest.raises((ArgumentError, ArgumentTypeError)):
        opt.set_pool(BAD_REPLACEMENTS[name])
    assert run(opt, 2) == asked_of_table[4:]


def test_objects_are_replaced_by_a_list_only() -> None:
    opt = words()
    for bad in ([], ARMS, {"a": 1}, 3):
        with pytest.raises(BkbError, match="pool"):
            opt.set_pool(bad)
    assert opt.ask().params["arm"] in WORDS


def test_space_has_no_pool_to_set() -> None:
    with pytest.raises(ArgumentError, match="search space"):
        bo.Optimizer({"x": (0.0, 1.0)}).set_pool(ARMS)


@pytest.mark.parametrize("index", [-1, 60, 1.5, True, "3", None])
def test_bad_row_numbers_are_refused(index: Any) -> None:
    opt = optimizer(ARMS)
    with pytest.raises((ArgumentError, ArgumentTypeError), match="index"):
        opt.tell({"index": index}, 1.0)
    assert opt.trials == []


def test_an_arm_that_has_gone_is_not_recommended() -> None:
    opt = optimizer(ARMS)
    asked = run(opt, 20)
    best = opt.recommend()
    opt.set_pool(np.delete(ARMS, best.index, axis=0))
    second = opt.recommend()
    assert second.index is not None
    assert second.params != best.params
    others = [ARMS_PARAMS[i] for i in set(asked) - {best.index}]
    assert second.mean == pytest.approx(opt.predict(others)[0].min(), abs=1e-12)
    opt.set_pool(np.delete(ARMS, sorted(set(asked)), axis=0))
    assert opt.recommend().index is None
    # An arm that has gone is decoded from its encoded point, to rounding.
    assert opt.recommend().params == pytest.approx(best.params, rel=1e-14)


@pytest.mark.parametrize(("noise", "repeats"), [(0.0, False), (0.5, True)])
def test_a_row_is_pending_twice_only_where_values_are_noisy_and_nothing_else_comes_close(
    noise: float, repeats: bool
) -> None:
    # One row is far better than the others: with noise a second value of it pays more than a first one elsewhere.
    rng = np.random.default_rng(0)
    arms = np.linspace(0.0, 1.0, 30)[:, None]
    opt = optimizer(arms, direction="maximize")
    for i in [*range(30), 12, 12]:
        opt.tell({"index": i}, 10.0 * (i == 12) + noise * float(rng.standard_normal()))
    rows = [trial.index for trial in opt.ask(6)]
    assert (len(set(rows)) < len(rows)) == repeats
    avoiding = optimizer(arms, direction="maximize", duplicates="avoid")
    avoiding.tell({"index": 12}, 10.0)
    assert len({trial.index for trial in avoiding.ask(20)}) == 20
