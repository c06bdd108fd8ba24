"""What a state in a file has to be."""

from typing import Any

import numpy as np
import pytest
import torch

from bkbopt._support.state_forms import Count, Floats, Form, Ints, Maybe, Number, Size, checked, generator_state
from bkbopt.errors import StateFileError

FORM = Form(
    {
        "n": Count(0, 5),
        "W": Floats(("m", "r"), -9.0, 9.0),
        "root": Floats(("r", "r"), diagonal=0.0),
        "rows": Ints(("m",), "t"),
        "sum": Number(0.0),
        "size": Size("m"),
        "second": Maybe(Form({"w": Floats(("r",), tensor=True)})),
    },
    most={"m": 3},
    least={"m": 2},
)


def state(**changed: object) -> dict[str, object]:
    good = {
        "n": 1,
        "W": np.ones((3, 2)),
        "root": np.eye(2),
        "rows": np.array([0, 4, 4]),
        "sum": 0.5,
        "size": 3,
        "second": {"w": torch.ones(2, dtype=torch.float64)},
    }
    return {**good, **changed}


def test_state_of_its_form_is_copied() -> None:
    given = state()
    out = checked(given, FORM, {"t": 5})
    assert out["n"] == 1
    assert out["W"].tolist() == np.ones((3, 2)).tolist()
    given["W"][:] = 0.0  # type: ignore[index]
    assert out["W"].all()
    assert checked(state(second=None), FORM, {"t": 5})["second"] is None


BAD: dict[str, tuple[dict[str, object], str]] = {
    "type": ({"n": True}, r"'n' to be a whole number from 0 to 5, got bool"),
    "range": ({"n": 6}, r"'n' to be a whole number from 0 to 5, got a number out of range"),
    "float for a count": ({"n": 1.0}, r"'n' to be a whole number .* got float"),
    "NaN": ({"sum": float("nan")}, r"'sum' to be a finite number from 0 to inf, got nan"),
    "negative": ({"sum": -1.0}, r"'sum' to be a finite number from 0 to inf, got -1.0"),
    "single precision": ({"W": np.ones((3, 2), np.float32)}, r"'W' to be a float64 array .* got float32 of shape"),
    "other bytes": ({"W": np.ones((3, 2), ">f8")}, r"'W' to be a float64 array"),
    "list": ({"W": [[1.0]]}, r"'W' to be a float64 array of shape \(m, r\), got list"),
    "axes": ({"W": np.ones(3)}, r"'W' to be a float64 array"),
    "NaN in an array": ({"W": np.full((3, 2), np.nan)}, r"'W' to be finite numbers from -9 to 9, got nan"),
    "entry": ({"W": np.full((3, 2), 10.0)}, r"'W' to be finite numbers from -9 to 9, got 10"),
    "shape": ({"root": np.eye(3)}, r"'root' to be an array of shape \(r = 2, r = 2\), got \(3, 3\)"),
    "diagonal": ({"root": np.zeros((2, 2))}, r"'root' to be a matrix with a diagonal above 0, got 0.0"),
    "index": ({"rows": np.array([0, 1, 5])}, r"'rows' to be whole numbers from 0 to below 5, got 0 to 5"),
    "negative index": ({"rows": np.array([0, -1, 1])}, r"'rows' to be whole numbers from 0 to below 5, got -1 to 1"),
    "size": ({"size": 2}, r"'size' to be a whole number from 3 to 3"),
    "array for a tensor": ({"second": {"w": np.ones(2)}}, r"'second''s 'w' to be a tensor, got ndarray"),
    "new name": ({"more": 1}, r"the state to be a dict of n, W, root"),
    "few": (
        {"W": np.ones((1, 2)), "rows": np.array([0]), "size": 1},
        "the state to be one with m from 2, got m = 1",
    ),
    "many": (
        {"W": np.ones((4, 2)), "rows": np.array([0] * 4), "size": 4},
        "the state to be one with m up to 3, got m = 4",
    ),
}


@pytest.mark.parametrize("bad", BAD)
def test_state_of_another_form_is_refused(bad: str) -> None:
    changed, message = BAD[bad]
    with pytest.raises(StateFileError, match=f"^path: expected .*{message}.*restore it from a copy"):
        checked(state(**changed), FORM, {"t": 5})


def test_states_that_are_no_dict_or_lack_a_name_are_refused() -> None:
    for wrong in (None, [], {**state(), "n": 1} | {"W": None}, {k: v for k, v in state().items() if k != "n"}):
        with pytest.raises(StateFileError):
            checked(wrong, FORM, {"t": 5})


def test_generators_that_numpy_would_take_are_refused() -> None:
    good: dict[str, Any] = dict(np.random.default_rng(0).bit_generator.state)
    assert generator_state(good) == good
    words = good["state"]
    for change in (
        {"uinteger": 2**32},
        {"has_uint32": 2},
        {"bit_generator": "MT19937"},
        {"state": {**words, "inc": words["inc"] + 1}},
        {"state": {**words, "state": 2**128}},
    ):
        with pytest.raises(StateFileError, match="generator"):
            generator_state({**good, **change})


# -- files ------------------------------------------------------------------------------------------------------------
