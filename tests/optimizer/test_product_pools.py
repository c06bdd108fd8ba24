"""Product pools by ask and tell: beside the listed rows, and where these are too many to list."""

import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bkbopt as bo
from bkbopt.errors import ArgumentError, SpaceExhaustedError
from bkbopt.optimizer.translation.description import describe_pool, read_pool
from tests.sweeps import slow_but

RNG = np.random.default_rng(0)
SOLVENTS = pd.DataFrame({"name": list("abcdefgh"), "polarity": RNG.random(8), "class": ["x", "y"] * 4})
LIGANDS = pd.DataFrame(RNG.random((9, 2)), columns=["u", "v"])
PARTS: dict[str, Any] = {"solvent": bo.Pool(SOLVENTS, id_column="name"), "ligand": LIGANDS, "T": [20, 60, 80]}
LARGE: dict[str, Any] = {**PARTS, "more": np.random.default_rng(1).random((300, 2)), "most": range(40)}


def listed() -> pd.DataFrame:
    rows = itertools.product(SOLVENTS.itertuples(index=False), LIGANDS.to_numpy(), PARTS["T"])
    columns = ["solvent.polarity", "solvent.class", "ligand.u", "ligand.v", "T"]
    return pd.DataFrame([[s[1], s[2], *v, t] for s, v, t in rows], columns=columns)


ROWS = listed()


def value(index: int) -> float:
    row = ROWS.iloc[index]
    return float(math.sin(4.0 * row["solvent.polarity"]) + row["ligand.u"] * row["T"] / 80 - row["ligand.v"] ** 2)


def value_of(params: Any) -> float:
    return float(math.sin(4.0 * params["solvent.polarity"]) + params["ligand.u"] - params["more.x0"] ** 2)


def pair(**options: Any) -> tuple[bo.Optimizer, bo.Optimizer]:
    options = {"seed": 0, "n_startup_trials": 4, "direction": "maximize", **options}
    return bo.Optimizer(bo.Pool.product(PARTS), **options), bo.Optimizer(ROWS, **options)


def large(**options: Any) -> bo.Optimizer:
    return bo.Optimizer(bo.Pool.product(LARGE), **{"seed": 0, "n_startup_trials": 4, **options})


def run(opt: bo.Optimizer, n: int) -> list[Any]:
    trials = []
    for _ in range(n):
        trials.append(opt.ask())
        opt.tell(trials[-1], value_of(trials[-1].params))
    return trials


def is_cool(params: Any) -> bool:
    return bool(params["T"] < 70 or params["solvent.class"] == "x")


OPTIONS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "no row twice": {"duplicates": "avoid"},
    "logei": {"acquisition": "logei"},
    "thompson": {"acquisition": "thompson"},
    "exact": {"surrogate": "exact"},
    "feasible": {"feasible": is_cool},
    "theorem": {"beta": bo.confidence.Srinivas()},
}


@pytest.mark.parametrize("name", slow_but(["no row twice", "thompson", "feasible"], OPTIONS))
@pytest.mark.usefixtures("few_draws")
def test_a_small_product_is_asked_as_its_rows_in_a_list(name: str) -> None:
    mine, other = pair(**OPTIONS[name])
    for _ in range(9):
        trials = mine.ask(), other.ask()
        assert trials[0].index == trials[1].index
        assert dict(trials[1].params).items() <= dict(trials[0].params).items()
        for opt, trial in zip((mine, other), trials, strict=True):
            opt.tell(trial, value(trial.index))
    batches = [[t.index for t in opt.ask(8)] for opt in (mine, other)]
    assert batches[0] == batches[1]
    held = [[t.index for t in opt.ask(3, fixed={"T": 20, "solvent.class": "y"})] for opt in (mine, other)]
    assert held[0] == held[1]
    assert mine.recommend().index == other.recommend().index
    assert mine.regret_certificate().bound == other.regret_certificate().bound


def test_trials_are_named_by_the_labels_of_their_parts() -> None:
    mine, _ = pair()
    trial = mine.ask()
    assert list(trial.params) == ["solvent", "solvent.polarity", "solvent.class", "ligand", "ligand.u", "ligand.v", "T"]
    assert type(trial.index) is int
    assert mine.trials_dataframe()["params_solvent"].tolist() == [trial.params["solvent"]]


def test_values_are_told_by_trial_row_labels_or_parameters() -> None:
    mine, _ = pair()
    told = [mine.tell({"index": 100}, 1.0), mine.tell({"solvent": "d", "ligand": 6, "T": 60}, 2.0)]
    told.append(mine.tell(told[0].params, 3.0))
    told += mine.tell_rows([100, ("d", 6, 60)], [4.0, 5.0])
    assert [t.index for t in told] == [100, 100, 100, 100, 100]
    assert mine.trials[1].params == told[0].params
    assert mine.predict({"solvent": "d", "ligand": 6, "T": 60})[0][0] == pytest.approx(3.0, abs=0.5)


@pytest.mark.usefixtures("few_draws")
def test_a_large_product_is_searched_without_a_list() -> None:
    opt = large()
    trials = run(opt, 25)
    last = [value_of(trial.params) for trial in trials[-8:]]
    best = min(
        math.sin(4.0 * p) + u - x**2 for p in SOLVENTS["polarity"] for u in LIGANDS["u"] for x in LARGE["more"][:, 0]
    )
    assert min(last) == pytest.approx(best, abs=0.05)
    assert opt.recommend().index in {trial.index for trial in trials}
    batch = opt.ask(30)
    assert len({trial.index for trial in batch}) > 20
    assert opt.regret_certificate().bound >= 0.0


def test_a_large_product_holds_what_is_fixed_and_what_is_feasible() -> None:
    opt = bo.Optimizer(bo.Pool.product(LARGE, feasible=is_cool), seed=0, n_startup_trials=4, duplicates="avoid")
    trials = run(opt, 12) + opt.ask(12)
    assert all(is_cool(trial.params) for trial in trials)
    assert len({trial.index for trial in trials}) == 24
    held = opt.ask(4, fixed={"solvent": "b", "most": 7})  # 8,100 rows, all of which are compared
    assert {(t.params["solvent"], t.params["most"]) for t in held} == {("b", 7)}
    held = opt.ask(2, fixed={"solvent.class": "x"})  # half of the rows, still too many
    assert {t.params["solvent.class"] for t in held} == {"x"}
    with pytest.raises(ArgumentError, match="fixed: expected values that an arm of the pool has"):
        opt.ask(fixed={"most": 7.5})


def test_the_constraint_of_a_product_and_that_of_the_optimizer_both_hold() -> None:
    pool = bo.Pool.product(PARTS, feasible=is_cool)
    opt = bo.Optimizer(pool, seed=0, feasible=lambda params: params["ligand"] != 3, duplicates="avoid")
    trials = opt.ask(300)
    assert len(trials) == 8 * 8 * 3 - 4 * 8
    assert all(is_cool(t.params) and t.params["ligand"] != 3 for t in trials)
    with pytest.raises(SpaceExhaustedError, match="pool: all 216 arms"):
        opt.ask()


def test_a_queued_part_is_completed() -> None:
    opt = large()
    run(opt, 6)
    queued = opt.enqueue({"solvent": "c", "T": 60})
    assert queued.params["solvent"] == "c"
    asked = opt.ask()
    assert (asked.params["solvent"], asked.params["T"], asked.id) == ("c", 60, queued.id)
    whole = opt.enqueue({"solvent": "c", "ligand": 1, "T": 60, "more": 5, "most": 3})
    assert opt.ask().index == opt.pool.row_of(("c", 1, 60, 5, 3))  # type: ignore[union-attr]
    assert whole.params["more"] == 5


def test_of_entries_with_equal_values_the_one_that_is_named_is_given() -> None:
    batches = pd.DataFrame({"name": ["a", "b", "c"], "polarity": [0.2, 0.2, 0.9]})
    opt = bo.Optimizer(bo.Pool.product({"solvent": bo.Pool(batches, id_column="name"), "T": [20, 60]}), seed=0)
    for label in ("a", "b"):
        opt.enqueue({"solvent": label, "T": 60})
        for trial in (opt.ask(), opt.ask(fixed={"solvent": label})):
            assert trial.params["solvent"] == label
            opt.tell(trial, 1.0)
        assert opt.recommend(fixed={"solvent": label}).params["solvent"] == label


def test_all_rows_of_a_large_product_are_refused_where_a_list_of_them_is_needed() -> None:
    opt = large()
    run(opt, 5)
    assert opt.pool is not None
    with pytest.raises(ArgumentError, match="pool: expected at most 1,000,000 rows to be listed"):
        opt.predict_encoded(opt.pool.X)  # type: ignore[arg-type]
    mine, other = pair()
    for one in (mine, other):
        one.tell_rows([3, 50, 120], [1.0, 2.0, 0.0])
    assert mine.pool is not None
    assert other.pool is not None
    means = mine.predict_encoded(mine.pool.X)[0], other.predict_encoded(other.pool.X)[0]  # type: ignore[arg-type]
    assert np.array_equal(*means)


@pytest.mark.parametrize("parts", [PARTS, LARGE], ids=["small", "large"])
def test_a_log_holds_the_parts_and_goes_on_as_without_a_break(parts: Any, tmp_path: Path) -> None:
    pool = bo.Pool.product(parts)
    mine = bo.Optimizer(pool, seed=3, n_startup_trials=4, storage=tmp_path / "a.db")
    for t in mine.ask(8):
        mine.tell(t, t.params["ligand.u"] - t.params["solvent.polarity"])
    mine.save(tmp_path / "b.db")
    other = bo.Optimizer(pool, seed=3, n_startup_trials=4)
    for t in other.ask(8):
        other.tell(t, t.params["ligand.u"] - t.params["solvent.polarity"])
    expected = [(t.index, t.params) for t in other.ask(2)]
    for other in (
        bo.Optimizer.load(tmp_path / "b.db"),
        bo.Optimizer.load(tmp_path / "b.db", pool=pool),
        bo.Optimizer.load(tmp_path / "a.db"),
    ):
        assert [t.params for t in other.trials] == [t.params for t in mine.trials]
        assert [t.index for t in other.trials] == [t.index for t in mine.trials]
        assert [(t.index, t.params) for t in other.ask(2)] == expected
    again = bo.Optimizer(bo.Pool.product(parts), seed=3, n_startup_trials=4, storage=tmp_path / "a.db")
    assert len(again.trials) == 8


def test_a_constraint_is_given_again_with_the_pool_or_the_optimizer(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    mine = bo.Optimizer(bo.Pool.product(PARTS, feasible=is_cool), seed=0, duplicates="avoid")
    asked = [t.index for t in mine.ask(20)]
    mine.save(path)
    with pytest.raises(ArgumentError, match="feasible: expected the constraint of yours"):
        bo.Optimizer.load(path)
    more = [t.index for t in mine.ask(20)]
    for given in ({"feasible": is_cool}, {"pool": bo.Pool.product(PARTS, feasible=is_cool)}):
        other = bo.Optimizer.load(path, **given)
        assert [t.index for t in other.trials] == asked
        assert [t.index for t in other.ask(20)] == more


def test_other_parts_than_those_of_the_log_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    pair()[0].save(path)
    for given, message in [
        (bo.Pool.product({**PARTS, "T": [80, 60, 20]}), "expected the parts of the log, got others"),
        (bo.Pool.product({**PARTS, "ligand": LIGANDS.set_index("u", drop=False)}), "expected the parts of the log"),
        (bo.Pool.product({**PARTS, "x": [1]}), "expected the columns"),
        (ROWS, "pool: expected bo.Pool.product"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            bo.Optimizer.load(path, pool=given)
    with pytest.raises(ArgumentError, match="storage: expected the pool that"):
        bo.Optimizer(bo.Pool.product({**PARTS, "T": [20, 60]}), storage=path, direction="maximize", n_startup_trials=4)


def test_labels_that_json_cannot_say_are_refused_by_a_log(tmp_path: Path) -> None:
    frame = LIGANDS.set_index(pd.MultiIndex.from_tuples([(i, i) for i in range(9)]))
    opt = bo.Optimizer(bo.Pool.product({"ligand": frame}))
    with pytest.raises(ArgumentError, match="part 'ligand': expected labels of numbers and text in a log"):
        opt.save(tmp_path / "a.db")


def test_changed_parts_keep_the_trials(tmp_path: Path) -> None:
    mine = bo.Optimizer(bo.Pool.product(PARTS), seed=0, n_startup_trials=4, storage=tmp_path / "a.db")
    for t in mine.ask(10):
        mine.tell(t, value(t.index))
    first = mine.trials
    more = pd.DataFrame({"name": ["new", "a"], "polarity": [0.4, 0.1], "class": ["z", "x"]})
    mine.set_pool(bo.Pool.product({**PARTS, "solvent": bo.Pool(more, id_column="name")}))
    asked = mine.ask(4)
    assert {t.params["solvent"] for t in asked} <= {"new", "a"}
    for t in asked:
        mine.tell(t, 1.0)
    other = bo.Optimizer.load(tmp_path / "a.db")
    assert [t.params["ligand.u"] for t in other.trials[:10]] == [t.params["ligand.u"] for t in first]
    assert [t.index for t in other.trials[10:]] == [t.index for t in asked]
    assert [t.index for t in other.ask(3)] == [t.index for t in mine.ask(3)]
    with pytest.raises(ArgumentError, match="feasible: expected none in set_pool"):
        mine.set_pool(bo.Pool.product(PARTS, feasible=is_cool))


@pytest.mark.parametrize(
    "damage",
    [
        lambda parts: parts[0].update(n=9),
        lambda parts: parts[0].update(d=0),
        lambda parts: parts[0].update(name="T"),
        lambda parts: parts[0].update(labels=[1]),
        lambda parts: parts[0].update(labels=[[1]] * 8),
        lambda parts: parts[0].update(labels=None),
        lambda parts: parts.pop(),
    ],
)
def test_parts_of_a_crafted_log_are_refused(damage: Any) -> None:
    pool = pair()[0].pool
    assert pool is not None
    described = describe_pool(pool)
    damage(described.text["parts"])
    with pytest.raises(ValueError, match=r"part|entries|labels|list"):
        read_pool(described, None, True)


def test_entries_of_a_crafted_log_are_refused() -> None:
    pool = pair()[0].pool
    assert pool is not None
    described = describe_pool(pool)
    assert described.rows is not None
    numbers = np.frombuffer(described.rows).copy()
    numbers[1] = 7.0  # the class of the first solvent, of which there are two
    with pytest.raises(ValueError, match="entries of a part that are none"):
        read_pool(replace(described, rows=numbers.tobytes()), None, True)


def test_many_switches_are_a_product_like_any_other() -> None:
    opt = bo.Optimizer(bo.Pool.product({f"s{i}": [0, 1] for i in range(40)}), seed=0, direction="maximize")
    for _ in range(12):
        trial = opt.ask()
        opt.tell(trial, float(sum(trial.params.values())))
    assert opt.ask(fixed={"s0": 1, "s7": 0}).params.items() >= {"s0": 1, "s7": 0}.items()
    opt.enqueue({"s3": 1})
    assert opt.ask().params["s3"] == 1
    assert opt.recommend().params in [trial.params for trial in opt.trials]


def test_entries_with_few_different_descriptors_are_told_named_and_asked_for(tmp_path: Path) -> None:
    entries = np.arange(100_000)[:, None] % 2
    opt = bo.Optimizer(
        bo.Pool.product({"a": entries, "b": entries, "c": [1, 2, 3]}), seed=0, storage=tmp_path / "log.db"
    )
    first = opt.tell({"a": 99_999, "b": 5, "c": 2}, 1.0)
    assert first.params["a"] == 99_999
    opt.tell_rows([first.index, 7], [0.5, 0.0])
    opt.tell({"a.x0": 1, "b.x0": 0, "c": 3}, 2.0)
    asked = [trial.index for trial in opt.ask(20)]
    assert len({*asked, first.index, 7}) == 22  # of equal rows those without a trial
    assert bo.Optimizer.load(tmp_path / "log.db").recommend() == opt.recommend()
