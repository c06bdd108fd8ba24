"""Surrogates on another device than the CPU: the whole path agrees with that of the CPU.

Both optimizers of a test are told the same trials, so that they differ by rounding alone. Each test runs on "cuda"
where there is one (`-m cuda`), and, in a process of its own, on "far", a device that refuses what a GPU refuses. On
"cpu" tests compare the CPU with itself: that shows that they run, and that they can be exact.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import bkbopt as bo
from bkbopt.kernels import ColumnsKernel, RotatedKernel, SumKernel, matern52, rbf
from bkbopt.kernels.base import placed
from bkbopt.search.candidates.product import ProductCandidates
from bkbopt.surrogates import FourierGP
from tests import far_device

ARMS = np.random.default_rng(0).random((400, 3))
#: Posteriors on both devices differ by the rounding errors of sums and factorisations, some hundred terms each, for
#: noise variances of 1e-2 of the signal's; on CUDA sums have another order.
ALIKE = 1e-8
#: A box's suggestion is where a gradient ascent ends: on a flat top, and by another path than in compiled loops.
NEAR = 1e-4


#: Torch's automatic differentiation counts the devices at its first use, so that "far" has to be there before.
ON_FAR = os.environ.get("TEST_FAR_DEVICE") == "1"
if ON_FAR:
    far_device.register()
DEVICES = ["far"] if ON_FAR else ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if name == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    return name


@pytest.mark.slow
@pytest.mark.skipif(not far_device.is_possible(), reason="needs a version of torch with devices written in Python")
def test_all_of_these_pass_on_the_far_device() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", __file__, "-q", "-p", "no:cacheprovider", "-m", "not slow"],
        cwd=Path(__file__).resolve().parents[1],
        env={**os.environ, "TEST_FAR_DEVICE": "1"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "skipped" not in done.stdout.splitlines()[-1]


def value(x: Any) -> float:
    return float(np.sin(4.0 * np.asarray(x)).sum())


def told(space: Any, device: str | None, n: int = 25, **options: Any) -> bo.Optimizer:
    """An optimizer that was told `n` values, the same for every device."""
    given = options.pop("surrogate", {"kernel": None, "noise": None})
    opt = bo.Optimizer(space, surrogate=bo.BKB(**given, device=device), seed=0, direction="maximize", **options)
    rng = np.random.default_rng(1)
    if opt.pool is not None:
        rows = rng.integers(len(opt.pool), size=n).tolist()
        opt.tell_rows(rows, [value(opt.pool.X[row]) + 0.1 * float(rng.standard_normal()) for row in rows])
    else:
        X = rng.random((n, 3))
        opt.tell([{"a": x[0], "b": x[1], "c": x[2]} for x in X], [value(x) for x in X])
    return opt


BOX = {name: bo.Float(0.0, 1.0) for name in "abc"}
GIVEN = {"kernel": matern52(3, 0.5), "noise": 0.01}


@pytest.mark.parametrize("surrogate", [bo.BKB, bo.ExactGP, FourierGP])
def test_posteriors_agree(device: str, surrogate: Any) -> None:
    posteriors = []
    for where in (None, device):
        one = surrogate(noise=0.01, device=where)
        one.observe(ARMS[:60], np.sin(4.0 * ARMS[:60]).sum(1))
        posteriors.append(one.posterior(ARMS[60:90]))
    here, there = posteriors
    assert there.mean.device.type == device
    assert there.mean.cpu().numpy() == pytest.approx(here.mean.numpy(), abs=ALIKE)
    assert there.variance.cpu().numpy() == pytest.approx(here.variance.numpy(), abs=ALIKE)


@pytest.mark.parametrize("fit", [False, True])
def test_a_pool_is_searched_alike(device: str, fit: bool) -> None:
    options = {} if fit else {"surrogate": GIVEN}
    here, there = (told(ARMS, where, fit=fit, **options) for where in (None, device))
    assert [t.index for t in there.ask(12)] == [t.index for t in here.ask(12)]
    for a, b in zip(here.predict_encoded(ARMS[:50]), there.predict_encoded(ARMS[:50]), strict=True):
        assert b == pytest.approx(a, abs=ALIKE)
    assert there.recommend().index == here.recommend().index


@pytest.mark.parametrize("acquisition", ["ucb", "logei", "thompson"])
def test_acquisitions_choose_the_same_rows(device: str, acquisition: str) -> None:
    here, there = (told(ARMS, where, acquisition=acquisition, surrogate=GIVEN, fit=False) for where in (None, device))
    assert [t.index for t in there.ask(3)] == [t.index for t in here.ask(3)]


def test_rows_in_a_file_are_searched_alike(device: str, tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", ARMS)
    rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    here, there = (told(bo.Pool(rows), where, duplicates="avoid") for where in (None, device))
    assert [t.index for t in there.ask(12)] == [t.index for t in here.ask(12)]


def test_products_are_searched_alike(device: str) -> None:
    parts = {"p": ARMS[:20, :2], "q": ARMS[:15, 2:]}
    asked = []
    for where in (None, device):
        opt = told(bo.Pool.product(parts), where, duplicates="avoid")
        opt._core.designer.candidates._pool = ProductCandidates(opt.pool, None)  # by its parts, as if it were larger
        asked.append([t.index for t in opt.ask(12)])
    assert asked[1] == asked[0]


@pytest.mark.parametrize("fit", [False, True])
def test_a_box_is_searched_alike(device: str, fit: bool) -> None:
    options = {} if fit else {"surrogate": GIVEN}
    here, there = (told(BOX, where, fit=fit, **options) for where in (None, device))
    a, b = here.ask(), there.ask()
    assert b.params == pytest.approx(a.params, abs=NEAR)
    here.fail(a)
    there.fail(b)
    assert there.ask().params == pytest.approx(here.ask().params, abs=NEAR)


def test_constraints_and_failures_are_modelled_alike(device: str) -> None:
    asked = []
    for where in (None, device):
        opt = bo.Optimizer(
            ARMS, surrogate=bo.BKB(device=where), seed=0, directions=["maximize", "minimize"], constraints=["c"]
        )
        for row in range(0, 90, 5):
            x = ARMS[row]
            opt.tell({"index": row}, [value(x), float(x.sum())], constraints={"c": float(x[0]) - 0.7})
        opt.fail(opt.ask())
        asked.append([t.index for t in opt.ask(3)])
    assert asked[1] == asked[0]


def test_a_certificate_is_drawn_alike(device: str) -> None:
    bounds = [told(ARMS, where, n=15).regret_certificate().bound for where in (None, device)]
    assert bounds[1] == pytest.approx(bounds[0], rel=1e-6)


@pytest.mark.parametrize(
    "kernel",
    [
        rbf(2, 0.3),
        ColumnsKernel(torch.zeros(2).double(), torch.zeros(2).double()),
        SumKernel((matern52(2), rbf(2))),
        RotatedKernel(matern52(2), torch.eye(2, dtype=torch.float64)),
    ],
)
def test_kernels_move_with_all_their_numbers(device: str, kernel: Any) -> None:
    X = torch.from_numpy(ARMS[:9, :2])
    there = placed(kernel, torch.device(device))
    assert there(X.to(device), X.to(device)).cpu().numpy() == pytest.approx(kernel(X, X).numpy(), abs=1e-12)
    assert placed(kernel, torch.device("cpu")) is kernel


def test_a_botorch_model_moves(device: str) -> None:
    pytest.importorskip("botorch")
    from bkbopt.adapters.botorch import BKBModel

    X = torch.from_numpy(ARMS[:40])
    model = BKBModel(X, torch.sin(4.0 * X).sum(1, keepdim=True))
    here = model.posterior(X[:7])
    there = model.to(device).posterior(X[:7].to(device))
    assert there.mean.detach().cpu().numpy() == pytest.approx(here.mean.detach().numpy(), abs=ALIKE)
    assert there.variance.detach().cpu().numpy() == pytest.approx(here.variance.detach().numpy(), abs=ALIKE)


@pytest.mark.skipif(not ON_FAR, reason="run in a process of its own, see above")
def test_the_far_device_refuses_what_a_gpu_refuses() -> None:
    near, far = torch.arange(6.0).reshape(3, 2), torch.arange(6.0).reshape(3, 2).to("far")
    with pytest.raises(RuntimeError, match="expected all tensors on one device"):
        near + far
    with pytest.raises(RuntimeError, match="numpy"):
        far.numpy()
    with pytest.raises(RuntimeError, match="expected all tensors on one device"):
        near[torch.tensor([0]).to("far")]
    assert torch.equal((far @ far.T).cpu(), near @ near.T)
    assert float((2.0 * far).sum()) == 30.0
