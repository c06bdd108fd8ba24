"""State files: everything comes back as it went in."""

import struct
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bkbopt._support import files as storage
from tests._support.state_files import ROOT, saved, signature
from tests.sweeps import slow_but

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
