"""Compiled loops: each has floating-point flags of its own, whoever calls it first."""

import ast
import errno
import logging
import os
from pathlib import Path

import pytest

import bkbopt
from bkbopt._support import compiled as module
from bkbopt._support.compiled import compiled, fused, noticed, watched
from tests.fresh_loops import fresh_loop

#: Its square is rounded by 2^-60, which a fused multiply-add keeps.
X = 1.0 + 2.0**-30


@compiled
def plain(x: float) -> float:
    return x * x - 1.0


@fused
def calls_plain(x: float) -> float:
    return plain(x)


@fused
def with_fused(x: float) -> float:
    return x * x - 1.0


@compiled
def calls_fused(x: float) -> float:
    return with_fused(x)


def test_a_plain_loop_that_a_fused_one_calls_first_is_not_fused() -> None:
    assert calls_plain(X) == X * X - 1.0
    assert plain(X) == X * X - 1.0


def test_a_fused_loop_that_a_plain_one_calls_first_is_what_it_is_by_itself() -> None:
    assert calls_fused(X) == with_fused(X)


def test_inlined_loops_are_called_by_loops_with_the_same_flags_only() -> None:
    """Code that is inlined takes the flags of its caller, so a caller with others would change what it computes."""
    seen = 0
    for path in Path(bkbopt.__file__).parent.rglob("*.py"):
        if "inlined" not in (source := path.read_text()):
            continue
        functions = [f for f in ast.parse(source).body if isinstance(f, ast.FunctionDef)]
        kinds = {f.name: {d.id for d in f.decorator_list if isinstance(d, ast.Name)} for f in functions}
        inlined_here = {name for name, kind in kinds.items() if "inlined" in kind}
        assert all(name.startswith("_") for name in inlined_here), f"{path}: other files could call it"
        for f in functions:
            called = {c.func.id for c in ast.walk(f) if isinstance(c, ast.Call) and isinstance(c.func, ast.Name)}
            if called & inlined_here:
                assert kinds[f.name] & {"fused", "inlined"}, f"{path}: {f.name} calls {called & inlined_here}"
                seen += 1
    assert seen > 5


def test_a_loop_is_named_before_it_is_compiled_and_not_when_it_is_called_again(tmp_path: Path) -> None:
    twice, names = fresh_loop(tmp_path), list[str]()
    with watched(names.append):
        assert twice(1.0) == twice(1.0) == 2.0
    assert names == ["bkbopt.fresh.twice"]
    with watched(names.append):
        fresh_loop(tmp_path)(1.0)  # from the cache on the disk
    assert len(names) == 1


def test_users_get_one_notice_for_all_loops_of_a_block(tmp_path: Path) -> None:
    notices = list[str]()
    with noticed(notices.append):
        fresh_loop(tmp_path / "a")(1.0)
        fresh_loop(tmp_path / "b")(1.0)
    (notice,) = notices
    assert "Compiling loops" in notice


def test_the_first_loop_of_a_process_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    module._log_once.cache_clear()
    with caplog.at_level(logging.INFO, "bkbopt"):
        fresh_loop(tmp_path / "a")(1.0)
        fresh_loop(tmp_path / "b")(1.0)
    assert [r.levelname for r in caplog.records] == ["INFO"]


@pytest.mark.parametrize("fault", ["no folder", "full disk"])
def test_loops_that_cannot_be_kept_are_compiled_in_memory_and_one_warning_says_so(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(module, "_reasons", [])
    if fault == "no folder":
        monkeypatch.setattr("numba.core.caching.CacheImpl._locator_classes", [])
    else:
        monkeypatch.setattr("numba.core.caching.IndexDataCacheFile.save", full)
    with caplog.at_level(logging.WARNING):
        assert [fresh_loop(tmp_path / name)(1.5) for name in ("one", "two")] == [3.0, 3.0]
    (record,) = caplog.records
    assert "not kept for other processes" in record.message
    assert "NUMBA_CACHE_DIR" in record.message


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("left", [0.0, 0.5])
def test_a_kept_loop_whose_file_is_cut_off_is_compiled_and_kept_again(ending: str, left: float, tmp_path: Path) -> None:
    fresh_loop(tmp_path)(1.5)
    (file,) = tmp_path.rglob(f"*.{ending}")
    file.write_bytes(file.read_bytes()[: int(left * file.stat().st_size)])
    names: list[str] = []
    with watched(names.append):
        assert [fresh_loop(tmp_path)(1.5) for _ in range(2)] == [3.0, 3.0]
    assert names == ["bkbopt.fresh.twice"]
