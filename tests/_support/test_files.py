"""State files: everything comes back as it went in, and every damaged or foreign file is refused by one error type."""

import errno
import io
import json
import os
import random
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bkbopt._support import files as storage
from bkbopt.errors import ArgumentError, ArgumentTypeError, BkbError, StateFileError
from tests.sweeps import slow_but

ROOT = Path(__file__).resolve().parents[2]

STATE: dict[str, object] = {
    "seed": 2**127 + 1,
    "best": -0.0,
    "values": [0.1, float("nan"), float("inf"), float("-inf"), 5e-324, 1e300],
    "params": {"kernel": "rbf", "C": 1.5, "log": True, "cap": None, "naïve": "σ²"},
    "pair": (1, ("a", [])),
    "started": datetime(2026, 2, 3, 4, 5, 6, 789, tzinfo=UTC),
    "pool": np.arange(12.0).reshape(3, 4),
    "counts": torch.tensor([1, 2, 3]),
    "$ref": {"$array": 0},
}


def signature(value: object) -> object:
    """A value that compares equal exactly when type, structure and every bit agree (NaN included)."""
    match value:
        case dict():
            return dict, [(key, signature(item)) for key, item in value.items()]
        case list() | tuple():
            return type(value), [signature(item) for item in value]
        case float():
            return float, struct.pack(">d", value)
        case datetime():
            return datetime, value, value.utcoffset()
        case torch.Tensor():
            return torch.Tensor, value.dtype, value.device, signature(value.numpy())
        case np.ndarray():
            return np.ndarray, value.dtype.str, value.shape, value.tobytes()
    return type(value), value


def saved(folder: Path, state: dict[str, object] = STATE) -> Path:
    path = folder / "state.bkb"
    storage.save(path, state, kind="test")
    return path


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


# --- what goes in comes out -------------------------------------------------------------------------------------------

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(2**20_000), max_value=2**20_000)
    | st.floats()
    | st.text()
    | st.datetimes(timezones=st.none() | st.just(UTC))
)
arrays = hnp.arrays(
    st.sampled_from(["f8", ">f8", "f4", "f2", "i8", "i1", "u8", "?", "c16", "U3", "S2", "M8[ns]", "m8[s]"]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
)
tensors = hnp.arrays(
    st.sampled_from(["f8", "f4", "f2", "i8", "i4", "u1", "?", "c16"]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
).map(torch.from_numpy)
keys = st.text() | st.sampled_from(["$", "$array", "$dict", "$tuple"])
trees = st.recursive(
    scalars | arrays | tensors,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4) | st.tuples(inner, inner),
    max_leaves=12,
)


@given(st.dictionaries(keys, trees, max_size=4))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_round_trip_is_exact(tmp_path: Path, state: dict[str, object]) -> None:
    assert signature(storage.load(saved(tmp_path, state), kind="test")) == signature(state)


def test_nan_keeps_its_payload(tmp_path: Path) -> None:
    (nan,) = struct.unpack(">d", bytes.fromhex("fff8000000abcdef"))
    assert signature(storage.load(saved(tmp_path, {"x": nan}), kind="test")) == signature({"x": nan})


def test_time_zone_comes_back_as_fixed_offset(tmp_path: Path) -> None:
    moment = datetime(2026, 7, 1, tzinfo=timezone(timedelta(hours=5, minutes=45, seconds=1)))
    assert signature(storage.load(saved(tmp_path, {"x": moment}), kind="test")) == signature({"x": moment})


def test_numpy_scalars_come_back_as_python_scalars_of_the_same_value(tmp_path: Path) -> None:
    state = {"f": np.float64(0.1), "g": np.float32(0.1), "i": np.int8(-3), "b": np.bool_(True), "s": np.str_("a")}
    expected = {"f": 0.1, "g": float(np.float32(0.1)), "i": -3, "b": True, "s": "a"}
    assert signature(storage.load(saved(tmp_path, state), kind="test")) == signature(expected)


def test_any_mapping_comes_back_as_dict(tmp_path: Path) -> None:
    path = tmp_path / "state.bkb"
    storage.save(path, MappingProxyType({"inner": MappingProxyType({"x": 1})}), kind="test")
    assert signature(storage.load(path, kind="test")) == signature({"inner": {"x": 1}})


def test_array_layouts_all_come_back_by_value(tmp_path: Path) -> None:
    base = np.arange(24.0).reshape(4, 6)
    read_only = base.copy()
    read_only.setflags(write=False)
    for array in (np.asfortranarray(base), base[::2, ::-1], read_only):
        loaded = storage.load(saved(tmp_path, {"x": array}), kind="test")["x"]
        assert signature(loaded) == signature(array)
        assert isinstance(loaded, np.ndarray)
        assert loaded.flags.writeable


def test_tensor_views_and_gradients_come_back_as_plain_tensors(tmp_path: Path) -> None:
    parameter = torch.nn.Parameter(torch.arange(4, dtype=torch.float64))
    state: dict[str, object] = {"p": parameter, "c": torch.tensor([1 + 2j]).conj(), "t": torch.ones(2, 3).T}
    loaded = storage.load(saved(tmp_path, state), kind="test")
    expected = {"p": parameter.detach(), "c": torch.tensor([1 - 2j]), "t": torch.ones(3, 2)}
    assert signature(loaded) == signature(expected)


def test_equal_states_give_equal_files(tmp_path: Path) -> None:
    first = saved(tmp_path).read_bytes()
    assert saved(tmp_path).read_bytes() == first


def test_numpy_reads_the_file_without_pickle(tmp_path: Path) -> None:
    with np.load(saved(tmp_path), allow_pickle=False) as archive:
        assert archive["array_0"].tolist() == np.arange(12.0).reshape(3, 4).tolist()


@pytest.mark.parametrize("option", slow_but({"-B"}, ["-B", "-O"]))
def test_new_process_reads_what_the_old_one_wrote(option: str, tmp_path: Path) -> None:
    path, copy = saved(tmp_path), tmp_path / "copy.bkb"
    code = (
        "import sys; from bkbopt._support import files as storage; "
        "storage.save(sys.argv[2], storage.load(sys.argv[1], kind='test'), kind='test')"
    )
    subprocess.run([sys.executable, option, "-c", code, str(path), str(copy)], cwd=ROOT, check=True, timeout=300)
    # Equal states give equal files, so that the other process saw the same state bit for bit.
    assert copy.read_bytes() == path.read_bytes()


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


# --- what load refuses ------------------------------------------------------------------------------------------------


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
