"""What `load` refuses: every damaged, forged or foreign file, by one type of error."""

import io
import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from bkbopt import Optimizer
from bkbopt._support import files as storage
from bkbopt.errors import StateFileError
from tests._support.state_files import STATE, saved, signature


def rewritten(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    """`path` as an intact zip with some members replaced: what a forger, or another program, could write."""
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()} | members
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return path


def edited(path: Path, change: Callable[[dict[str, object]], object]) -> Path:
    """`path` with `change` made to the JSON document."""
    with zipfile.ZipFile(path) as archive:
        document = json.loads(archive.read("state.json"))
    change(document)
    return rewritten(path, {"state.json": json.dumps(document).encode()})


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def test_load_of_a_missing_file_is_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        storage.load(tmp_path / "missing", kind="test")


@pytest.mark.parametrize("content", [b"", b"PK", b"x,y\n1,2\n", b"\0" * 1000])
def test_load_refuses_what_is_no_zip(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state.bkb"
    path.write_bytes(content)
    with pytest.raises(StateFileError, match=r"state\.bkb: .*corrupt"):
        storage.load(path, kind="test")


@pytest.mark.parametrize("twentieth", range(20))
def test_load_refuses_a_file_cut_short(tmp_path: Path, twentieth: int) -> None:
    path = saved(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * twentieth // 20])
    with pytest.raises(StateFileError, match="corrupt"):
        storage.load(path, kind="test")


def test_flipped_bit_is_refused_or_harmless(tmp_path: Path) -> None:
    path, expected = saved(tmp_path), signature(STATE)
    content = path.read_bytes()
    refused = 0
    for bit in random.Random(0).sample(range(8 * len(content)), 600):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        try:
            loaded = storage.load(path, kind="test")
        except StateFileError:
            refused += 1
        else:
            assert signature(loaded) == expected, bit
    # The harmless places are the dates, versions and attributes in the zip's own records.
    assert refused > 400


@pytest.mark.parametrize("save_npz", [np.savez, np.savez_compressed])
def test_load_refuses_a_foreign_npz(tmp_path: Path, save_npz: Callable[..., None]) -> None:
    save_npz(tmp_path / "x.npz", x=np.arange(3))
    with pytest.raises(StateFileError, match="was not written by bkbopt"):
        storage.load(tmp_path / "x.npz", kind="test")


@pytest.mark.parametrize("document", [b"[]", b"{}", b'{"format": "other", "kind": "test"}'])
def test_load_refuses_a_foreign_header(tmp_path: Path, document: bytes) -> None:
    with pytest.raises(StateFileError, match="was not written by bkbopt"):
        storage.load(rewritten(saved(tmp_path), {"state.json": document}), kind="test")


def test_load_refuses_another_kind(tmp_path: Path) -> None:
    with pytest.raises(StateFileError, match="of kind 'optimizer', got one of kind 'test'"):
        storage.load(saved(tmp_path), kind="optimizer")


def test_load_says_what_a_log_of_trials_is_loaded_with(tmp_path: Path) -> None:
    Optimizer({"x": (0.0, 1.0)}, storage=tmp_path / "runs.db", seed=0).ask()
    with pytest.raises(StateFileError, match=r"of kind 'learner', got an SQLite file; .* with bkbopt\.Optimizer"):
        storage.load(tmp_path / "runs.db", kind="learner")


def test_load_refuses_a_newer_format_before_it_reads_any_array(tmp_path: Path) -> None:
    path = edited(saved(tmp_path), lambda document: document.update(format_version=7, bkbopt_version="9.9"))
    rewritten(path, {"array_0.npy": b"not an array"})
    with pytest.raises(StateFileError, match=r"format 1 .*got format 7 \(bkbopt 9\.9\); upgrade bkbopt"):
        storage.load(path, kind="test")


@pytest.mark.parametrize(
    "state",
    [
        None,
        [1],
        {"x": {"$array": 9}},
        {"x": {"$array": "0"}},
        {"x": {"$array": 0}, "y": {"$array": 0}},
        {"x": {"$tuple": 1}},
        {"x": {"$dict": [1]}},
        {"x": {"$dict": [["a"]]}},
        {"x": {"$dict": [[1, 2]]}},
        {"x": {"$float": "7f"}},
        {"x": {"$float": 1.0}},
        {"x": {"$int": "ten"}},
        {"x": {"$datetime": "yesterday"}},
        {"x": {"$unknown": 1}},
    ],
)
def test_load_refuses_a_forged_tree(tmp_path: Path, state: object) -> None:
    path = edited(saved(tmp_path), lambda document: document.update(state=state))
    with pytest.raises(StateFileError, match="corrupt"):
        storage.load(path, kind="test")


@pytest.mark.parametrize("field", ["kind", "format_version", "state"])
def test_load_refuses_a_header_with_a_field_missing(tmp_path: Path, field: str) -> None:
    path = edited(saved(tmp_path), lambda document: document.pop(field))
    with pytest.raises(StateFileError, match="corrupt"):
        storage.load(path, kind="test")


@pytest.mark.parametrize("text", [b"{", b"\xff", b"[" * 100_000, b"1" * 10_000])
def test_load_refuses_json_that_cannot_be_parsed(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(StateFileError, match="corrupt"):
        storage.load(rewritten(saved(tmp_path), {"state.json": text}), kind="test")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        npy(np.arange(12.0)) + b"more",
        npy(np.arange(12.0))[:-1],
        # A hundred million gigabytes claimed in a hundred bytes, and a shape that no array has.
        npy(np.zeros(1)).replace(b"(1,), }" + b" " * 16, b"(10000000000000000,), }"),
        npy(np.zeros(1)).replace(b"(1,), }" + b" " * 4, b"(-1,-1), } "),
        npy(np.zeros(1)).replace(b"'<f8'", b"'|O8'"),
        npy(np.zeros(1)).replace(b"{'descr'", b"(((((((("),
        npy(np.zeros(1)).replace(b"{'descr'", b"'''descr"),
    ],
)
def test_load_refuses_a_forged_array(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(StateFileError, match="corrupt"):
        storage.load(rewritten(saved(tmp_path), {"array_0.npy": content}), kind="test")


def test_load_refuses_a_pickled_array(tmp_path: Path) -> None:
    content = npy(np.array([{"an": "object"}], dtype=object))
    with pytest.raises(StateFileError, match="corrupt"):
        storage.load(rewritten(saved(tmp_path), {"array_0.npy": content}), kind="test")


def test_load_refuses_strings_as_a_tensor(tmp_path: Path) -> None:
    path = saved(tmp_path, {"x": torch.zeros(2)})
    with pytest.raises(StateFileError, match="corrupt"):
        storage.load(rewritten(path, {"array_0.npy": npy(np.array(["a"]))}), kind="test")


def test_load_refuses_compressed_members_which_could_unfold_without_bound(tmp_path: Path) -> None:
    path = rewritten(saved(tmp_path), {"array_0.npy": npy(np.zeros(10**6))}, zipfile.ZIP_DEFLATED)
    with pytest.raises(StateFileError, match="a member is compressed"):
        storage.load(path, kind="test")


def test_load_refuses_a_file_with_an_array_left_out(tmp_path: Path) -> None:
    path = saved(tmp_path)
    with zipfile.ZipFile(path) as archive:
        document = archive.read("state.json")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("state.json", document)
    with pytest.raises(StateFileError, match="corrupt"):
        storage.load(path, kind="test")
