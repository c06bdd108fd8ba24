"""What surrogates take and refuse: observations in any form, noise, kernels, and kernels that fail half-way."""

import copy
import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from bkbopt import BKB
from bkbopt.errors import ArgumentError, ArgumentTypeError, KernelError
from tests.conformance.surrogate_subjects import FACTORIES, KERNEL, NOISE, XS, data, same, told

# -- what SurrogateBase does for all of them -------------------------------------------------------------------------

FORMS: dict[str, Callable[[np.ndarray], object]] = {
    "list": lambda A: A.tolist(),
    "Fortran-ordered": np.asfortranarray,
    "strided": lambda A: np.repeat(A, 2, axis=0)[::2],
    "float32": lambda A: A.astype(np.float32),
    "frame": lambda A: pd.DataFrame(A) if A.ndim == 2 else pd.Series(A, index=range(7, 7 + len(A))),
    "tensor": torch.as_tensor,
    "float32 tensor": lambda A: torch.as_tensor(A, dtype=torch.float32),
}


@pytest.mark.parametrize("form", FORMS)
def test_input_of_any_form_gives_the_same_result_and_is_not_changed(form: str) -> None:
    X, y = (v.astype(np.float32).astype(np.float64) for v in data())  # exact in float32, too
    Xs = XS.astype(np.float32).astype(np.float64)
    plain, other = told(BKB, X, y), FORMS[form]
    given = other(X), other(y), other(Xs)
    kept = copy.deepcopy(given)
    gp = told(BKB, *given[:2])
    posterior = gp.posterior(given[2])
    assert torch.equal(posterior.mean, plain.posterior(Xs).mean)
    assert torch.equal(posterior.variance, plain.posterior(Xs).variance)
    for a, b in zip(given, kept, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("name", ["BKB", "ExactGP", "FourierGP", "pkawv"])
def test_read_only_input_is_taken_and_later_changes_do_not_reach_the_surrogate(name: str) -> None:
    X, y = data()
    X.setflags(write=False)
    y.setflags(write=False)
    gp = told(FACTORIES[name], X, y)
    mine = torch.as_tensor(data()[0]).clone()
    twin = told(FACTORIES[name], mine, data()[1])
    mine.zero_()
    assert same(gp, twin)


REFUSED: list[tuple[object, object, type[Exception], str]] = [
    (np.zeros((2, 3)), [1.0, 2.0], ArgumentError, r"^X: expected shape \(n, 2\), got \(2, 3\)"),
    (np.zeros((2, 2)), [1.0], ArgumentError, r"^y: expected shape \(2,\).*got \(1,\)"),
    (np.zeros((2, 2)), [1.0, math.nan], ArgumentError, r"^y: expected finite values, got nan at position 1"),
    (np.zeros((2, 2)), [-math.inf, 1.0], ArgumentError, r"^y: expected finite values, got -inf at position 0"),
    (
        [[0.0, 1.0], [math.nan, 0.0]],
        [1.0, 1.0],
        ArgumentError,
        r"^X: expected finite values, got \[nan, 0.0\] in row 1",
    ),
    (np.zeros((1, 2)), None, ArgumentTypeError, r"^y: expected real numbers, got NoneType"),
    (np.zeros((1, 2)), [None], ArgumentTypeError, r"^y: expected real numbers, got None"),
    (np.zeros((1, 2)), [1j], ArgumentTypeError, r"^y: expected real numbers, got list of dtype complex128"),
    (np.zeros((1, 2)), [True], ArgumentTypeError, r"^y: expected real numbers, got list of dtype bool"),
    (np.zeros((1, 2)), ["1.0"], ArgumentTypeError, r"^y: expected real numbers, got list of dtype <U3"),
    ([["a", "b"]], [1.0], ArgumentTypeError, r"^X: expected real numbers, got list of dtype <U1"),
    (torch.zeros(1, 2, dtype=torch.complex64), [1.0], ArgumentTypeError, r"^X: expected real numbers, got a tensor"),
]


@pytest.mark.parametrize(("X", "y", "error", "message"), REFUSED, ids=[m for *_, m in REFUSED])
def test_refused_observations_leave_the_surrogate_as_it_was(
    X: object, y: object, error: type[Exception], message: str
) -> None:
    gp, twin = told(BKB), told(BKB)
    with pytest.raises(error, match=message):
        gp.observe(X, y)
    for one in (gp, twin):  # equal now, and after more of the same
        one.observe(XS, np.arange(21.0))
    assert same(gp, twin)
    assert gp.observations.total == 61


@pytest.mark.parametrize("noise", [0.0, -1.0, math.nan, math.inf])
def test_noise_that_is_no_variance_is_refused(noise: float) -> None:
    with pytest.raises(ArgumentError, match=r"^noise: expected a positive finite variance \(y squared\), got"):
        BKB(KERNEL, noise)


@pytest.mark.parametrize("noise", ["0.1", True, 1j, [0.1]])
def test_noise_of_another_type_is_refused(noise: object) -> None:
    with pytest.raises(ArgumentTypeError, match=r"^noise: expected a positive finite variance"):
        BKB(KERNEL, noise)  # type: ignore[arg-type]


def test_kernel_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(ArgumentTypeError, match=r"^kernel: expected"):
        BKB("rbf", NOISE)


# -- undoing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "rows"), [("ExactGP", 5), ("ExactGP", 70), ("BKB", 1), ("BKB", 5), ("BKB", 70), ("pkawv", 5)]
)
def test_kernel_that_fails_half_way_leaves_the_surrogate_as_it_was(name: str, rows: int) -> None:
    def with_a_hole(A: Tensor, B: Tensor) -> Tensor:
        K = KERNEL(A, B)
        return torch.where((A[:, :1] > 5.0) | (B[:, :1] > 5.0).T, math.nan, K)

    gp, twin, fresh = (FACTORIES[name](with_a_hole, NOISE) for _ in range(3))
    X, y = data()
    for one in (gp, twin):
        one.observe(X, y)
    # The last of the new rows is the bad one; those before it must not stay either.
    bad = np.vstack([np.random.default_rng(1).random((rows - 1, 2)), [[6.0, 0.0]]])
    for one in (gp, fresh):
        with pytest.raises(KernelError, match="finite"):
            one.observe(bad, np.ones(rows))
    inside = XS[:20]
    fresh.observe(X, y)
    assert torch.equal(gp.fantasy(torch.as_tensor(inside)).root, twin.fantasy(torch.as_tensor(inside)).root)
    for one in (gp, twin, fresh):
        for x in inside:
            one.observe(x[None], [1.0])
    a, b, c = (one.posterior(inside) for one in (gp, twin, fresh))
    for other in (b, c):
        assert torch.equal(a.mean, other.mean)
        assert torch.equal(a.variance, other.variance)
    assert gp.observations.total == twin.observations.total == fresh.observations.total == 60
