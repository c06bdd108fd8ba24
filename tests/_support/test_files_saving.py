"""What `save` refuses, and that it replaces a file in one step or not at all."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch

from bkbopt._support import files as storage
from bkbopt.errors import ArgumentError, ArgumentTypeError, BkbError
from tests._support.state_files import ROOT, saved, signature

# --- what save refuses ------------------------------------------------------------------------------------------------


class Point(NamedTuple):
    x: int


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (np.array([None, 1]), ArgumentError, r"state\['a'\]\[1\]: expected an array of numbers.*dtype object"),
        (np.zeros(2, "f8,i4"), ArgumentError, "expected an array of numbers"),
        ({1: "x"}, ArgumentError, r"state\['a'\]\[1\]: expected a dict with string keys, got the key 1 of type int"),
        ({"\ud800": 1}, ArgumentError, "lone surrogate"),
        ("\ud800\udc00", ArgumentError, "lone surrogate"),
        (torch.zeros(2, dtype=torch.bfloat16), ArgumentError, "expected a dense tensor.*bfloat16"),
        (torch.eye(2).to_sparse(), ArgumentError, "expected a dense tensor.*sparse"),
        (torch.zeros(2, device="meta"), ArgumentError, "expected a dense tensor.*meta"),
        (np.ma.masked_array([1.0]), ArgumentTypeError, "MaskedArray"),
        (np.longdouble(1), ArgumentTypeError, "longdouble"),
        ({1, 2}, ArgumentTypeError, r"state\['a'\]\[1\]: expected None, a bool.*got builtins.set"),
        (1 + 2j, ArgumentTypeError, "got builtins.complex"),
        (b"x", ArgumentTypeError, "got builtins.bytes"),
        (Point(1), ArgumentTypeError, "Point"),
        (len, ArgumentTypeError, "builtin_function"),
    ],
)
def test_save_refuses_what_would_not_come_back(
    tmp_path: Path, value: object, error: type[BkbError], message: str
) -> None:
    path = saved(tmp_path)
    before = path.read_bytes()
    with pytest.raises(error, match=message):
        storage.save(path, {"a": [0, value]}, kind="test")
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


def test_save_refuses_a_state_that_contains_itself(tmp_path: Path) -> None:
    state: dict[str, object] = {}
    state["self"] = state
    with pytest.raises(ArgumentError, match="holds itself"):
        storage.save(tmp_path / "x", state, kind="test")


def test_deepest_nesting_that_save_takes_can_be_loaded(tmp_path: Path) -> None:
    value: object = 1
    for level in range(storage._MAX_DEPTH):
        value = (value,) if level % 2 else {"$": value}
    assert signature(storage.load(saved(tmp_path, {"x": value}), kind="test")) == signature({"x": value})
    with pytest.raises(ArgumentError, match="levels of nesting"):
        saved(tmp_path, {"x": [value]})


def test_save_refuses_a_state_that_is_no_mapping(tmp_path: Path) -> None:
    with pytest.raises(ArgumentTypeError, match="state: expected a dict, got list"):
        storage.save(tmp_path / "x", [1], kind="test")  # type: ignore[arg-type]


def test_save_refuses_a_kind_that_is_no_string(tmp_path: Path) -> None:
    with pytest.raises(ArgumentTypeError, match="kind: expected a str, got NoneType"):
        storage.save(tmp_path / "x", {}, kind=None)  # type: ignore[arg-type]


def test_save_refuses_a_folder_as_path(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="path: expected a regular file"):
        storage.save(tmp_path, {}, kind="test")


def test_save_into_a_missing_folder_names_the_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="missing"):
        storage.save(tmp_path / "missing" / "x", {}, kind="test")


# --- one step, or none ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", ["replace", "fsync"])
def test_failed_save_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    path = saved(tmp_path)
    before = path.read_bytes()

    def fail(*args: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(os, function, fail)
    with pytest.raises(OSError, match="no space left"):
        storage.save(path, {"x": 1}, kind="test")
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


def test_killed_writer_leaves_the_old_file(tmp_path: Path) -> None:
    path = saved(tmp_path)
    before = path.read_bytes()
    # The process dies without any clean-up when all is written and only the rename is left to do.
    code = (
        "import os, sys; from bkbopt._support import files as storage; os.replace = lambda *paths: os._exit(9); "
        "storage.save(sys.argv[1], {'x': 1}, kind='test')"
    )
    result = subprocess.run([sys.executable, "-c", code, str(path)], cwd=ROOT, check=False, timeout=300)
    assert result.returncode == 9
    assert path.read_bytes() == before


@pytest.mark.skipif(os.name != "posix", reason="permissions and links as POSIX has them")
class TestOnPosix:
    def test_new_file_gets_the_permissions_of_the_umask(self, tmp_path: Path) -> None:
        previous = os.umask(0o027)
        try:
            path = saved(tmp_path)
        finally:
            os.umask(previous)
        assert path.stat().st_mode & 0o777 == 0o640

    def test_existing_file_keeps_its_permissions(self, tmp_path: Path) -> None:
        path = saved(tmp_path)
        path.chmod(0o600)
        assert saved(tmp_path).stat().st_mode & 0o777 == 0o600

    @pytest.mark.parametrize("exists", [True, False])
    def test_symbolic_link_is_followed(self, tmp_path: Path, exists: bool) -> None:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        if exists:
            (elsewhere / "real").write_bytes(b"old")
        link = tmp_path / "link"
        link.symlink_to(elsewhere / "real")
        storage.save(link, {"x": 1}, kind="test")
        assert link.is_symlink()
        assert storage.load(elsewhere / "real", kind="test") == {"x": 1}

    def test_save_refuses_a_device(self) -> None:
        with pytest.raises(ArgumentError, match="path: expected a regular file"):
            storage.save("/dev/null", {}, kind="test")
