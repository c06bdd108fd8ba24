"""What a log in a file is opened with: the arguments that it was made with, and what the file cannot hold."""

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import bkbopt as bo
from bkbopt.errors import ArgumentError, ArgumentTypeError, StateFileError, StorageError
from tests.optimizer.stored_logs import BOX, POOL, advance, optimizer, table

FRAME = pd.DataFrame({"dose": POOL[:, 0], "solvent": ["water", "oil", "acid"] * 20})
WORDS = ["ant", "bee", "cat", "antelope", "beetle", "catfish", "ape", "bat"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"direction": "maximize"}, r"directions is \[\"minimize\"\] in the log and \[\"maximize\"\] here"),
        ({"surrogate": "exact"}, r"surrogate.class is \"BKB\" in the log and \"ExactGP\" here\. Pass"),
        ({"seed": 1}, "the log has another seed"),
        ({"surrogate": bo.BKB(bo.kernels.rbf(3))}, r"surrogate.kernel is the default in the log and \{"),
        ({"surrogate": bo.BKB(qbar=3.0)}, r"others: surrogate.options.qbar is 2.0 in the log and 3.0 here\. "),
        ({"surrogate": bo.BKB(coins="pull")}, r"surrogate.options.coins is \"arm\" in the log and \"pull\" here"),
        ({"constraints": ["g"]}, "constraints is"),
        ({"duplicates": "avoid"}, 'duplicates is "allow" in the log and "avoid" here'),
        ({"acquisition": "logei"}, "acquisition is"),
        ({"acquisition": lambda mean, variance: mean}, "in the log and a function of the user here"),
        ({"feasible": lambda params: True}, "the log was made without feasible="),
        ({"deterministic": True}, "deterministic is"),
        ({"space": {"x": (0.0, 2.0)}}, "the search space that .* got another: 'x' is .* in the log and .* here"),
        ({"space": POOL}, "expected the pool that .* the log has a search space, the call a pool"),
    ],
)
def test_other_arguments_are_refused_with_the_difference(options: Any, words: str, path: Path) -> None:
    advance(optimizer(path, seed=0), 2)
    before = path.read_bytes()
    with pytest.raises(ArgumentError, match=words):
        optimizer(path, **{"seed": 0, **options})
    assert path.read_bytes() == before


def test_a_log_from_before_an_option_goes_on_with_its_default(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(bo.BKB, "_OPTIONS", tuple(name for name in bo.BKB._OPTIONS if name != "coins"))
        advance(optimizer(path, seed=0), 6)
    with pytest.raises(ArgumentError, match=r"surrogate.options.coins is \"arm\" in the log and \"pull\" here"):
        optimizer(path, seed=0, surrogate=bo.BKB(coins="pull"))
    again = optimizer(path, seed=0)
    assert len(again.trials) == 6
    assert isinstance(again.surrogate, bo.BKB)
    assert again.surrogate.coins == "arm"


@pytest.mark.parametrize("name", ["", ":memory:", "a\0b.db", "sqlite:///runs.db", b"runs.db", 3, "."])
def test_storage_other_than_the_path_of_a_file_is_refused(
    name: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for use in (optimizer, bo.Optimizer.open):
        with pytest.raises(
            (ArgumentError, ArgumentTypeError, StorageError), match=r"storage: expected (the path of )?a file"
        ):
            use(name)
    assert not list(tmp_path.iterdir())


def test_beta_and_startup_trials_given_anew_hold_from_then_on(path: Path) -> None:
    bo.Optimizer(BOX, storage=path, seed=0, beta=1.5, n_startup_trials=3)
    kept = bo.Optimizer(BOX, storage=path)
    assert (kept.confidence, kept.n_startup_trials) == (bo.confidence.Constant(1.5), 3)
    new = bo.Optimizer(BOX, storage=path, beta=bo.confidence.Srinivas(delta=0.2), n_startup_trials=5)
    assert (new.confidence, new.n_startup_trials) == (bo.confidence.Srinivas(delta=0.2), 5)
    opened = bo.Optimizer.open(path)
    assert (opened.confidence, opened.n_startup_trials) == (bo.confidence.Srinivas(delta=0.2), 5)
    assert bo.Optimizer(BOX, storage=path, n_startup_trials=10).n_startup_trials == 10  # the default may be given too
    assert bo.Optimizer(BOX, storage=path).n_startup_trials == 10
    assert bo.Optimizer(BOX).n_startup_trials == 10


def test_a_log_that_cannot_be_read_keeps_its_options(path: Path) -> None:
    optimizer(path, seed=0).ask()
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE log SET space = 1")
    before = path.read_bytes()
    with pytest.raises(StateFileError, match="a row with a wrong checksum"):
        optimizer(path, seed=0, beta=1.5, n_startup_trials=3)
    assert path.read_bytes() == before


def test_a_pool_is_recognised_by_its_rows(path: Path) -> None:
    advance(optimizer(path, POOL, seed=0), 6)
    assert advance(optimizer(path, POOL.copy()), 2)
    other = POOL.copy()
    other[3, 1] += 1e-9
    for pool in (other, POOL[:-1], POOL[::-1].copy()):
        with pytest.raises(ArgumentError, match="expected the pool that"):
            optimizer(path, pool)


@pytest.mark.parametrize("large", [False, True])
def test_a_pool_that_does_not_travel_is_given_again(large: bool, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool: Any = POOL if large else FRAME
    if large:
        monkeypatch.setattr("bkbopt.optimizer.translation.description.LARGEST", 100)
    expected = advance(optimizer(space=pool, seed=0), 10)
    assert advance(optimizer(path, pool, seed=0), 8) == expected[:8]
    with pytest.raises(ArgumentError, match=r"pool: expected the 60 rows"):
        bo.Optimizer.open(path)
    with pytest.raises(ArgumentError, match=r"pool: expected the 60 rows of the log, got 59"):
        bo.Optimizer.open(path, pool=pool[:59])
    assert advance(bo.Optimizer.open(path, pool=pool), 1) == expected[8:9]
    assert advance(optimizer(path, pool), 1) == expected[9:]
    if not large:
        assert path.stat().st_size < 40_000
    optimizer(path, pool).set_pool(pool[10:50])
    with pytest.raises(ArgumentError, match="pool: expected the 40 rows"):
        optimizer(path, pool)
    assert len(bo.Optimizer.open(path, pool=pool[10:50]).pool or ()) == 40


def letters(A: list[Any], B: list[Any]) -> list[list[float]]:
    return [[len(set(str(a)) & set(str(b))) / (len(set(str(a))) * len(set(str(b)))) ** 0.5 for b in B] for a in A]


@pytest.mark.parametrize("objects", [WORDS, [tuple(w) for w in WORDS]], ids=["text", "tuples"])
def test_objects_are_given_again_and_text_can_be_read_in_the_file(objects: list[Any], path: Path) -> None:
    def surrogate() -> bo.BKB:
        return bo.BKB(kernel=letters, noise=0.1)

    pool = bo.Pool(objects)
    opt = bo.Optimizer(pool, storage=path, seed=0, n_startup_trials=3, surrogate=surrogate())
    for _ in range(5):
        trial = opt.ask()
        opt.tell(trial, float(len(trial.params["arm"])))
    again = bo.Optimizer.open(path, pool=objects, surrogate=surrogate())
    assert again.trials == opt.trials
    assert again.ask().params == bo.Optimizer.load(path, pool=objects, surrogate=surrogate()).trials[-1].params
    assert set(table(path)["params_arm"]) <= (
        set(WORDS) if objects is WORDS else {f'{{"object":{i}}}' for i in range(8)} | {None}
    )


@pytest.mark.parametrize("rows", [WORDS, pd.DataFrame({"x": [1.0, 2.0, 3.0], "kind": ["a", "b", "a"]})])
def test_a_pool_that_another_process_has_set_has_to_be_given_by_opening_the_log_again(rows: Any, path: Path) -> None:
    more = {"surrogate": bo.BKB(kernel=letters, noise=0.1)} if rows is WORDS else {}
    here = bo.Optimizer(rows, storage=path, seed=0, **more)
    bo.Optimizer.open(path, pool=rows, **more).set_pool(rows[:2])
    words = r"pool= with them to Optimizer.open or load.* Another process has called set_pool: here too, open the log"
    with pytest.raises(ArgumentError, match=words):
        here.ask()


def test_options_that_a_log_cannot_store_are_refused_before_a_file_is_made(path: Path) -> None:
    for options, words in (
        ({"space": {"x": [object(), object()]}}, "choices"),
        ({"space": {"x": ["\ud800", "b"]}}, "valid Unicode"),
        ({"constraints": ["a", "\ud800"]}, "constraints: expected names that are valid Unicode"),
        ({"space": pd.DataFrame({"t": [(1, 2), (1, 2), (3, 4)]})}, "into text"),
    ):
        with pytest.raises(ArgumentError, match=words):
            optimizer(path, **options)
    assert not path.exists()


@pytest.mark.parametrize("pool", [FRAME, "rows.csv", [1, 2]], ids=["frame", "path", "list"])
def test_a_pool_is_refused_for_a_log_with_a_search_space(pool: Any, path: Path) -> None:
    advance(optimizer(path, seed=0), 2)
    for opened in (bo.Optimizer.open, bo.Optimizer.load):
        with pytest.raises(
            ArgumentError, match=r"pool: expected none, since the log has a search space, got .*; leave"
        ):
            opened(path, pool=pool)


def test_missing_folder_and_missing_file_are_the_systems_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="folder"):
        optimizer(tmp_path / "nowhere" / "runs.db")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        bo.Optimizer.open(tmp_path / "runs.db")


@pytest.mark.parametrize("end", ["/", "/.", "/.."])
def test_a_path_that_ends_as_that_of_a_folder_is_refused_whether_or_not_the_file_is_there(end: str, path: Path) -> None:
    for _ in range(2):
        before = path.read_bytes() if path.exists() else None
        for call in (lambda: optimizer(f"{path}{end}"), lambda: bo.Optimizer.open(f"{path}{end}")):
            with pytest.raises(StorageError, match=r"expected a file, got the folder '.*'; name a file in it"):
                call()
        assert (path.read_bytes() if path.exists() else None) == before
        optimizer(path, seed=0)


def test_an_empty_file_becomes_a_log_and_cannot_be_opened_as_one(path: Path) -> None:
    path.touch()
    with pytest.raises(StateFileError, match="expected a log"):
        bo.Optimizer.open(path)
    advance(optimizer(path, seed=0), 2)
    assert len(bo.Optimizer.open(path).trials) == 2


@pytest.mark.parametrize("content", [b"\n", b"0", b"no", b"a" * 5000, b"\0" * 4096], ids=len)
def test_a_file_that_is_no_log_stays_as_it_is_however_short(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    for call in (lambda: optimizer(path), lambda: bo.Optimizer.open(path), lambda: bo.Optimizer.load(path)):
        with pytest.raises(StateFileError, match=r"expected a log of bkbopt, got .* \(file is not a database\)"):
            call()
    assert path.read_bytes() == content
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    optimizer(None).save(path)  # which replaces any file
    assert bo.Optimizer.load(path).trials == []


def test_a_file_that_sqlite_was_making_when_the_power_failed_becomes_a_log(path: Path) -> None:
    path.write_bytes(b"S")  # on FAT under macOS; elsewhere it is empty
    advance(optimizer(path, seed=0), 1)
    assert len(bo.Optimizer.open(path).trials) == 1


def test_a_log_in_write_ahead_form_is_turned_back(path: Path) -> None:
    advance(optimizer(path, seed=0), 3)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
    advance(bo.Optimizer.open(path), 1)
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
