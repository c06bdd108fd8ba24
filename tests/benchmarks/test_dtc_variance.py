"""The benchmark of the variance under a budget: its FITC is the textbook's, and the documented claims hold."""

import numpy as np
import pytest
import torch

import bkbopt as bo
from benchmarks import dtc_variance
from bkbopt.kernels import gram

CASE = dtc_variance.CASES[1]


def test_all_tables_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    dtc_variance.main(["--points", "120", "--seeds", "1"])
    out = capsys.readouterr().out
    assert all(case.name in out for case in dtc_variance.CASES)
    assert all(group in out for group in dtc_variance.GROUPS)
    assert "leverage_sum" in out


def test_fitc_is_the_process_whose_noise_has_the_residuals() -> None:
    n, m = 80, 12
    found = dtc_variance.measure(CASE, n, m, 0)
    X = dtc_variance._points(CASE, n, 0, None)
    bkb = bo.BKB(CASE.kernel, CASE.noise, max_inducing=m, seed=0)
    bkb.observe(X, torch.zeros(n))
    S = bkb.inducing
    T = torch.cat([dtc_variance._points(CASE, n // 2, 1, None), dtc_variance._points(CASE, n // 2, 2, S)])
    K, K_XS, K_TS = gram(CASE.kernel, S).numpy(), CASE.kernel(X, S).numpy(), CASE.kernel(T, S).numpy()
    Q, q = K_XS @ np.linalg.solve(K, K_XS.T), K_TS @ np.linalg.solve(K, K_XS.T)
    E = Q + np.diag(1.0 - np.diag(Q) + CASE.noise)  # Snelson and Ghahramani 2006, one evaluation a point
    variance = 1.0 - (q * np.linalg.solve(E, q.T).T).sum(1)
    np.testing.assert_allclose(found.variances["FITC"], variance, rtol=1e-9, atol=1e-12)


def test_dtc_is_wide_far_from_the_dictionary_and_too_narrow_near_it() -> None:
    found = dtc_variance.measure(CASE, 400, 30, 0)
    ratio = found.variances["DTC"] / found.variances["exact"]
    away, near = found.unseen >= 0.5, found.unseen < 0.01
    assert bool((ratio >= found.unseen * (1.0 - 1e-9)).all())  # for certain: the exact variance is below k(x, x)
    assert int(away.sum()) > 20
    assert float(ratio[away].min()) > 1.0
    assert int(near.sum()) > 20
    assert float(ratio[near].min()) < 0.5
    miss = (found.f - found.means["DTC"]).square() / found.variances["DTC"]
    assert float(miss[near].mean()) > 10.0
