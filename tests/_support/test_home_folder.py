"""Paths of users may begin with `~`, as in a shell."""

from pathlib import Path

import numpy as np
import pytest

import bkbopt as bo
from bkbopt.learners import OnlineKRR

SPACE = {"x": bo.Float(0.0, 1.0)}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.chdir(tmp_path)
    return home


@pytest.mark.parametrize("path", ["~/log.db", Path("~/log.db")], ids=["text", "path"])
def test_a_log_is_in_the_home_folder(path: str | Path, home: Path) -> None:
    opt = bo.Optimizer(SPACE, storage=path, seed=0)
    opt.tell(opt.ask(), 1.0)
    assert (home / "log.db").exists()
    assert len(bo.Optimizer.open(path).trials) == 1
    opt.save("~/copy.db")
    assert len(bo.Optimizer.load("~/copy.db").trials) == 1
    assert [each.name for each in home.parent.iterdir()] == ["home"]


def test_a_learner_is_in_the_home_folder(home: Path) -> None:
    OnlineKRR().partial_fit(np.zeros((1, 2)), [1.0]).save("~/learner.npz")
    assert (home / "learner.npz").exists()
    assert isinstance(OnlineKRR.load("~/learner.npz"), OnlineKRR)
    with pytest.raises(FileNotFoundError):
        OnlineKRR.load("~/other.npz")


def test_rows_are_in_the_home_folder(home: Path) -> None:
    np.save(home / "rows.npy", np.eye(3))
    for arms in ("~/rows.npy", Path("~/rows.npy"), [Path("~/rows.npy")], "~"):
        assert len(bo.Optimizer(bo.Pool(arms)).pool or ()) == 3
    with pytest.raises(FileNotFoundError, match="other"):
        bo.Pool("~/other.npy")


def test_a_folder_whose_name_is_a_tilde_has_another_path(home: Path) -> None:
    Path("./~").mkdir()
    bo.Optimizer(SPACE, storage="./~/log.db", seed=0)
    assert Path("./~/log.db").exists()
    assert not (home / "log.db").exists()
