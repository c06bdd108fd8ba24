"""A search over rows in files makes the same suggestions as the search over the same rows in memory."""

import itertools
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bkbopt as bo
from bkbopt._support import progress
from bkbopt.errors import ArgumentError, SpaceExhaustedError
from bkbopt.spaces import stored_rows, tables
from bkbopt.spaces.stored import StoredPool
from tests.spaces.stored_sources import FRAME, mapped, parquet
from tests.sweeps import slow_but

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
RNG = np.random.default_rng(0)
ROWS = RNG.random((3000, 3), dtype=np.float32)


def value(params: Any) -> float:
    return float(np.sin(5.0 * params["x0"]) + np.cos(4.0 * params["x1"]) + params["x2"])


def parts_of(folder: Path, rows: np.ndarray, n: int = 7) -> list[Any]:
    """The rows in files of very different sizes."""
    cuts = np.sort(np.random.default_rng(1).choice(len(rows) - 1, n - 1, replace=False)) + 1
    folder.mkdir(exist_ok=True)
    return [mapped(folder / f"{i}.f4", piece) for i, piece in enumerate(np.split(rows, cuts))]


def asked(opt: bo.Optimizer, steps: int, batches: Any = (1,), noise: float = 0.1) -> list[int | None]:
    """Rows asked for by batches of these sizes, over and over; values are noisy."""
    rng, out = np.random.default_rng(2), list[int | None]()
    sizes = itertools.cycle(batches)
    while len(out) < steps:
        for trial in opt.ask(next(sizes)):
            out.append(trial.index)
            opt.tell(trial, value(trial.params) + noise * rng.standard_normal())
    return out


def both(folder: Path, rows: np.ndarray = ROWS, **options: Any) -> tuple[bo.Optimizer, bo.Optimizer]:
    """Searches over the same rows in memory and in files."""
    return bo.Optimizer(rows, seed=3, **options), bo.Optimizer(parts_of(folder, rows), seed=3, **options)


# -- the same asks -------------------------------------------------------------------------------------------------


OPTIONS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "no row twice": {"duplicates": "avoid"},
    "logei": {"acquisition": "logei", "direction": "maximize"},
    "thompson": {"acquisition": "thompson"},
    "feasible": {"feasible": lambda params: params["x0"] < 0.3},
    "exact": {"surrogate": "exact"},
    "no fit": {"fit": False, "surrogate": bo.BKB(bo.kernels.rbf(3, 0.4), noise=0.01)},
}


@pytest.mark.parametrize("name", slow_but(OPTIONS.keys() - {"defaults", "logei", "exact"}, OPTIONS))
def test_asks_are_those_over_the_rows_in_memory(name: str, tmp_path: Path) -> None:
    memory, stored = both(tmp_path, n_startup_trials=4, **OPTIONS[name])
    assert asked(stored, 14, (1, 1, 5)) == asked(memory, 14, (1, 1, 5))
    assert stored.recommend() == memory.recommend()


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"duplicates": "avoid"}], ids=["allow", "avoid"])
def test_asks_are_those_over_a_hundred_thousand_rows_in_memory(options: dict[str, Any], tmp_path: Path) -> None:
    rows = np.random.default_rng(4).random((100_000, 4), dtype=np.float32)
    memory, stored = both(tmp_path / "first", rows, **options)
    assert asked(stored, 150, (1, 1, 1, 9)) == asked(memory, 150, (1, 1, 1, 9))
    more = np.random.default_rng(5).random((20_000, 4), dtype=np.float32)
    parts = parts_of(tmp_path / "first", rows)
    parts = [*parts[:2], *parts[3:], *parts_of(tmp_path / "more", more, 2)]
    stored.set_pool(parts)
    memory.set_pool(np.concatenate(parts))
    assert asked(stored, 150, (1, 1, 1, 9)) == asked(memory, 150, (1, 1, 1, 9))


def test_held_columns_constraints_and_failures_are_as_in_memory(tmp_path: Path) -> None:
    rows = ROWS.copy()
    rows[:, 2] = np.round(3.0 * rows[:, 2])
    memory, stored = both(tmp_path, rows, constraints=["c"], n_startup_trials=4)
    out: list[list[Any]] = [[], []]
    for opt, seen in zip((memory, stored), out, strict=True):
        for i in range(16):
            trial = opt.ask(fixed={"x2": float(i % 4)}) if i % 3 == 0 else opt.ask()
            seen.append(trial.params)
            if i % 8 == 5:
                opt.fail(trial)
            else:
                opt.tell(trial, value(trial.params), constraints={"c": trial.params["x0"] - 0.5})
    assert out[0] == out[1]


def test_several_objectives_are_as_in_memory(tmp_path: Path) -> None:
    out = []
    for opt in both(tmp_path, directions=["minimize", "maximize"], n_startup_trials=5):
        rows = []
        for _ in range(9):
            trial = opt.ask()
            rows.append(trial.index)
            opt.tell(trial, (value(trial.params), trial.params["x1"]))
        out.append(rows)
    assert out[0] == out[1]


def test_points_told_by_value_are_rows_and_each_row_is_proposed_once_also_of_equal_ones(tmp_path: Path) -> None:
    rows = np.concatenate([ROWS[:12], ROWS[:12]])
    memory, stored = both(tmp_path, rows, duplicates="avoid", n_startup_trials=3)
    for opt in (memory, stored):
        told = opt.tell([{f"x{j}": float(v) for j, v in enumerate(row)} for row in ROWS[:4]], [1.0, 2.0, 0.5, 3.0])
        assert [trial.index for trial in told] == [0, 1, 2, 3]
        opt.tell_rows([18], [2.5])
    taken = [asked(opt, 19) for opt in (stored, memory)]
    assert taken[0] == taken[1]
    assert sorted(row for row in taken[0] if row is not None) == [*range(4, 18), *range(19, 24)]
    with pytest.raises(SpaceExhaustedError):
        stored.ask()


def test_set_pool_adds_and_removes_parts(tmp_path: Path) -> None:
    memory, stored = both(tmp_path, n_startup_trials=2)
    parts, more = parts_of(tmp_path, ROWS), parts_of(tmp_path / "more", 1.5 * ROWS[:100] + 0.01, 2)
    for pieces in ([*parts[2:], *more], [*more, *parts[:3]], parts):
        for opt, pool in ((memory, np.concatenate(pieces)), (stored, pieces)):
            opt.set_pool(pool)
        assert isinstance(stored.pool, StoredPool)
        assert asked(stored, 4) == asked(memory, 4)
    before = stored.pool
    search = stored._core.designer.candidates.pool.search
    stored.set_pool([*parts, *more[:1]])  # no value in between, and no mark: the model and its bounds hold
    stored.ask()
    after = stored._core.designer.candidates.pool.search
    assert (after.n_scans, after.n_scanned) == (0, len(more[0]))
    assert after.parts[: len(parts)] == search.parts
    stored.set_pool(before.pool)
    before = stored.pool
    with pytest.raises(ArgumentError, match="columns of the first pool"):
        stored.set_pool(mapped(tmp_path / "other", ROWS[:, :2]))
    assert stored.pool is before


def test_a_pool_in_memory_and_one_in_files_take_turns(tmp_path: Path) -> None:
    frame = FRAME.drop(columns="name")
    stored = bo.Optimizer(parquet(tmp_path / "a.parquet", frame[:200]), seed=0, n_startup_trials=3)
    memory = bo.Optimizer(frame[:200], seed=0, n_startup_trials=3)
    for i, pool in enumerate([frame[150:400], parquet(tmp_path / "b.parquet", frame[300:])]):
        out = []
        for opt in (stored, memory):
            trials = opt.ask(4)
            opt.tell(trials, [trial.params["dose"] for trial in trials])
            out.append([trial.params for trial in trials])
            opt.set_pool(pool)
        assert out[0] == out[1], i


@pytest.mark.usefixtures("few_draws")
def test_regret_and_predictions_are_those_over_the_rows_in_memory(tmp_path: Path) -> None:
    memory, stored = both(tmp_path, n_startup_trials=4)
    asked(memory, 9)
    asked(stored, 9)
    # Blocks of other sizes: rounding only.
    assert stored.regret_certificate().bound == pytest.approx(memory.regret_certificate().bound, rel=1e-6)
    assert stored.predict([{"x0": 0.1, "x1": 0.2, "x2": 0.3}]) == memory.predict([{"x0": 0.1, "x1": 0.2, "x2": 0.3}])
    assert stored.ask().index == memory.ask().index


# -- logs ----------------------------------------------------------------------------------------------------------


def test_a_log_with_whole_numbers_beyond_2_to_the_53_opens(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [0.1, 0.2, 0.3], "lot": [2**60, 2**60 + 256, 7]})
    opt = bo.Optimizer(frame, seed=0, storage=tmp_path / "log.db")
    for trial in opt.ask(3):
        opt.tell(trial, trial.params["x"])
    assert bo.Optimizer.open(tmp_path / "log.db", pool=frame).trials == opt.trials
    assert sorted(trial.params["lot"] for trial in opt.trials) == [7, 2**60, 2**60 + 256]


def test_a_log_with_rounded_whole_numbers_opens_with_these_as_floats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pd.DataFrame({"x": [0.1, 0.2, 0.3], "lot": [2**60 + 1, 2**60 + 300, 7]})
    with monkeypatch.context() as earlier:  # versions that rounded them
        earlier.setattr(tables, "check_whole", lambda *_: None)
        opt = bo.Optimizer(frame, seed=0, storage=tmp_path / "log.db")
        for trial in opt.ask(3):
            opt.tell(trial, trial.params["x"])
    with pytest.raises(ArgumentError, match=r"pass them as floats if they may be rounded\.$"):
        bo.Optimizer.open(tmp_path / "log.db", pool=frame)
    again = bo.Optimizer.open(tmp_path / "log.db", pool=frame.astype(float))
    assert [(t.index, t.value) for t in again.trials] == [(t.index, t.value) for t in opt.trials]
    assert again.recommend(fixed={"index": 0}).mean == opt.recommend(fixed={"index": 0}).mean


def test_a_log_of_rows_in_files_is_opened_with_them_in_any_form(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    first = bo.Optimizer(parts_of(tmp_path, ROWS), seed=3, storage=path)
    told = asked(first, 14)
    with pytest.raises(ArgumentError, match="pool: expected the 3000 rows with the columns x0, x1, x2"):
        bo.Optimizer.open(path)
    with pytest.raises(ArgumentError, match="expected the 3000 rows of the log, got 3000 other rows"):
        bo.Optimizer.open(path, pool=mapped(tmp_path / "reversed", ROWS[::-1]))
    copies = [bo.Optimizer.load(path, pool=pool) for pool in (mapped(tmp_path / "whole", ROWS), ROWS)]
    copies.append(bo.Optimizer(parts_of(tmp_path, ROWS), seed=3, storage=path))
    assert [trial.index for trial in copies[0].trials] == told
    assert len({tuple(asked(opt, 3)) for opt in copies}) == 1


@pytest.mark.parametrize(("d", "named"), [(8, "x6, x7, since"), (11, "x6, x7 and 3 more, since")])
def test_a_log_of_rows_that_are_not_given_says_how_many_columns_they_have(d: int, named: str, tmp_path: Path) -> None:
    frame = pd.DataFrame(np.random.default_rng(0).random((4, d)), columns=[f"x{j}" for j in range(d)])
    bo.Optimizer(frame, storage=tmp_path / "run.db", seed=0)
    with pytest.raises(ArgumentError, match=named):
        bo.Optimizer.open(tmp_path / "run.db")


def test_a_log_keeps_to_a_pool_that_was_set(tmp_path: Path) -> None:
    path, parts = tmp_path / "run.db", parts_of(tmp_path, ROWS)
    opt = bo.Optimizer(parts, seed=3, storage=path)
    asked(opt, 11)
    opt.set_pool(parts[1:])
    asked(opt, 2)
    again = bo.Optimizer.open(path, pool=parts[1:])
    assert again.pool is not None
    assert len(again.pool) == 3000 - len(parts[0])
    assert asked(bo.Optimizer.load(path, pool=parts[1:]), 3) == asked(opt, 3)


# -- bars and interrupts -------------------------------------------------------------------------------------------


@pytest.fixture
def quick_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setattr(stored_rows, "BLOCK_ROWS", 512)


@pytest.mark.usefixtures("quick_bars")
def test_bars_show_where_they_were_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = mapped(tmp_path / "rows", ROWS)

    def search(pool: Any, **options: Any) -> str:
        opt = bo.Optimizer(pool, seed=0, n_startup_trials=2)
        bo.minimize(value, opt, 4, **options)
        return capsys.readouterr().err

    assert search(rows) == ""
    with_bars = search(bo.Pool(rows, show_progress_bar=True))
    assert all(f"{what}:" in with_bars for what in ("columns", "rows indexed", "pool scanned"))
    by_minimize = search(rows, show_progress_bar=True)
    assert "pool scanned:" in by_minimize
    assert "columns" not in by_minimize  # they were read before


def test_no_bar_shows_for_what_is_quick(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start = time.monotonic()
    opt = bo.Optimizer(bo.Pool(mapped(tmp_path / "rows", ROWS[:50]), show_progress_bar=True), seed=0)
    opt.tell(opt.ask(), 1.0)
    assert capsys.readouterr().err == "" or time.monotonic() - start > progress.DELAY


def test_an_interrupted_first_scan_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, stored = both(tmp_path)
    untouched, _ = both(tmp_path)
    asked(stored, 10)
    expected = asked(untouched, 14)
    scans = []

    def interrupted(part: Any, *args: Any) -> None:
        scans.append(part)
        if len(scans) == 3:
            raise KeyboardInterrupt
        scan(part, *args)

    from bkbopt.search.maximizers.parts import LocalPart

    scan = LocalPart.scan
    with monkeypatch.context() as patch:
        patch.setattr(LocalPart, "scan", interrupted)
        with pytest.raises(KeyboardInterrupt):
            stored.ask()
    assert len(stored.trials) == 10
    told = [trial.index for trial in stored.trials]
    rng = np.random.default_rng(2)
    rng.standard_normal(10)
    for _ in range(4):
        trial = stored.ask()
        told.append(trial.index)
        stored.tell(trial, value(trial.params) + 0.1 * rng.standard_normal())
    assert told == expected


# -- real data -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(not (DATA / "casp.npz").exists(), reason=f"the data sets are not there: {DATA}")
def test_a_real_set_is_screened_from_parquet_in_batches(tmp_path: Path) -> None:
    data = np.load(DATA / "casp.npz")
    X, y = data["X"], data["y"]
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])]).assign(key=[f"p{i}" for i in range(len(X))])
    (tmp_path / "casp").mkdir()
    for i, rows in enumerate(np.array_split(np.arange(len(X)), 5)):
        parquet(tmp_path / "casp" / f"{i}.parquet", frame.iloc[rows])
    pool = bo.Pool(tmp_path / "casp", id_column="key")
    opt = bo.Optimizer(pool, direction="minimize", duplicates="avoid", seed=0)
    for _ in range(3):
        batch = opt.ask(384)
        assert opt.pool is not None
        names = [opt.pool.label(trial.index) for trial in batch if trial.index is not None]
        assert names == [f"p{trial.index}" for trial in batch]
        opt.tell(batch, [float(y[trial.index]) for trial in batch])
    indices = [trial.index for trial in opt.trials]
    assert len(set(indices)) == 3 * 384
    # Of random rows one in a hundred is among the best hundredth.
    assert sum(y[i] <= np.quantile(y, 0.01) for i in indices[384:]) > 3 * 0.01 * 2 * 384
