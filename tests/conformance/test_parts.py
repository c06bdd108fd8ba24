"""The protocol of a part of a pool, for every place of its rows."""

import contextlib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import bkbopt as bo
from bkbopt.posterior.model import Model
from bkbopt.search.maximizers.cluster_parts import ClusterPart
from bkbopt.search.maximizers.parts import LocalPart, Part
from bkbopt.search.maximizers.versions import Versions
from bkbopt.spaces.pool import Pool
from bkbopt.spaces.remote import RemotePart
from bkbopt.spaces.stored import StoredPool, encoded_pool
from tests.conformance.suites import check_complete, implementations
from tests.spaces.stored_sources import mapped

X = torch.as_tensor(np.random.default_rng(3).random((3000, 2), dtype=np.float32)).double()
OPEN = np.zeros(0, dtype=np.bool_)


def of_memory(folder: Path) -> Part:
    return LocalPart(X)


def of_disk(folder: Path) -> Part:
    pool = encoded_pool(Pool(mapped(folder / "rows.f8", X.numpy())), scale=False, has_kernel=False)
    assert isinstance(pool, StoredPool)
    return LocalPart(pool.X)


PARTS: dict[str, Callable[[Path], Part]] = {"memory": of_memory, "disk": of_disk}
#: The class of each part.
KINDS = {"memory": LocalPart, "disk": LocalPart, "cluster": ClusterPart}


@contextlib.contextmanager
def of_cluster(folder: Path) -> Iterator[Part]:
    distributed = pytest.importorskip("distributed")
    np.save(folder / "rows.npy", X.numpy())
    with (
        distributed.LocalCluster(n_workers=1, processes=False, dashboard_address="127.0.0.1:0") as cluster,
        distributed.Client(cluster) as client,
    ):
        pool = encoded_pool(Pool(folder, client=client), scale=False, has_kernel=False)
        assert isinstance(pool, StoredPool)
        (remote,) = pool.rows.parts
        assert isinstance(remote, RemotePart)
        yield ClusterPart(remote, pool.columns, {})


@pytest.fixture(params=[*PARTS, pytest.param("cluster", marks=pytest.mark.slow)])
def part(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Part]:
    if request.param != "cluster":
        part = PARTS[request.param](tmp_path)
        assert type(part) is KINDS[request.param]
        yield part
        return
    with warnings.catch_warnings(), of_cluster(tmp_path) as part:
        warnings.simplefilter("ignore")  # of event loops that the cluster is done with
        assert type(part) is KINDS["cluster"]
        yield part


def test_every_part_of_the_package_is_a_subject() -> None:
    check_complete(implementations(Part), {kind.__name__ for kind in KINDS.values()}, {})


def surrogate(n: int = 8) -> bo.BKB:
    gp = bo.BKB(bo.kernels.rbf(2, 0.3), noise=0.04)
    gp.observe(X[:n], torch.sin(5.0 * X[:n, 0]))
    return gp


def ucb(model: Model, beta: float) -> Tensor:
    mean, variance = model(X)
    return mean + beta * variance.sqrt()


def every(part: Part, width: Any, current: int = 255) -> np.ndarray:
    """All bounds in order of the rows; of those left out, infinity."""
    found = part.bounds(np.asarray(width, dtype=np.float64), -np.inf, 3000, OPEN, current)
    out = np.full(3000, np.inf)
    out[found.rows] = found.bounds
    return out


def scanned(part: Part, model: Model) -> Part:
    part.scan(model, int)
    return part


def test_bounds_after_a_scan_are_the_scores_rounded_up(part: Part) -> None:
    model, told = surrogate().model, []
    part.scan(model, told.append)
    bounds, exact = every(part, [2.0]), ucb(model, 2.0).numpy()
    assert sum(told) == len(part) == 3000
    # The scan's formula rounds relative to k(x, x), 1e-12 with this kernel.
    assert (bounds > exact - 1e-12).all()
    assert np.allclose(bounds, exact, rtol=0, atol=1e-6)  # float32


def test_the_largest_bounds_above_a_number_come_and_what_the_rest_has_at_most(part: Part) -> None:
    bounds = every(scanned(part, surrogate().model), [2.0])
    order = np.sort(bounds)[::-1]
    for most, above in ((1, -np.inf), (50, -np.inf), (50, order[20]), (1000, order[1001]), (5, order[0])):
        found = part.bounds(np.array([2.0]), above, most, OPEN, 255)
        expected = np.sort(bounds[bounds > above])[::-1]
        assert found.n_above == len(expected)
        assert np.sort(found.bounds)[::-1].tolist() == expected[:most].tolist()
        assert np.array_equal(bounds[found.rows], found.bounds)
        assert len(set(found.rows.tolist())) == len(found.rows)
        missing = expected[most:]
        assert found.rest >= missing.max(initial=-np.inf)
        assert np.isneginf(found.rest) == (len(missing) == 0)


def test_equal_bounds_fill_the_room_there_is(part: Part) -> None:
    scanned(part, surrogate().model)
    found = part.bounds(np.array([0.0]), -np.inf, 10, OPEN, 255)
    part.refine(np.arange(3000), surrogate().model, 1)
    part.fold(np.zeros(2), np.zeros(2))  # all bounds are the means
    flat = part.bounds(np.array([0.0]), -np.inf, 10, OPEN, 255)
    assert len(found.rows) == len(flat.rows) == 10


def test_closed_rows_and_those_of_the_current_version_are_left_out(part: Part) -> None:
    model = surrogate().model
    scanned(part, model)
    closed = np.zeros(3000, dtype=np.bool_)
    closed[100:] = True
    part.refine(np.arange(0, 60), model, 1)
    found = part.bounds(np.array([2.0, 2.0]), -np.inf, 3000, closed, 1)
    assert sorted(found.rows.tolist()) == list(range(60, 100))
    assert found.n_above == 40


def test_refined_rows_have_the_posterior_of_the_model(part: Part) -> None:
    gp = surrogate()
    scanned(part, gp.model)
    gp.observe(X[20:30], torch.cos(X[20:30, 1]))
    rows = np.array([4, 5, 1700, 2999])  # fewer than a block
    mean, variance = part.refine(rows, gp.model, 1)
    exact = gp.model(X[torch.from_numpy(rows)])
    assert np.array_equal(mean, exact[0].numpy())
    assert np.array_equal(variance, exact[1].numpy())
    bounds = every(part, [9.0, 1.5])
    assert np.allclose(bounds[rows], ucb(gp.model, 1.5)[torch.from_numpy(rows)].numpy(), rtol=0, atol=1e-6)


def test_bounds_of_older_versions_hold_for_the_current_model_and_still_do_when_they_are_folded(part: Part) -> None:
    gp = surrogate(40)
    rng = np.random.default_rng(0)
    versions = Versions(gp.model)
    scanned(part, gp.model)
    epoch = gp.model.epoch
    while len(versions) < 12:
        row = int(rng.integers(3000))
        gp.observe(X[[row]], torch.sin(5.0 * X[[row], 0]) + 0.2 * float(rng.standard_normal()))
        model = gp.model
        assert model.epoch == epoch
        versions.begin(model)
        part.refine(rng.choice(3000, 40, replace=False), model, len(versions) - 1)
    exact, before = ucb(model, 2.0).numpy(), every(part, versions.widths(2.0).numpy())
    assert (before > exact - 1e-9).all()
    part.fold(versions.growths().numpy(), versions.drifts().numpy())
    versions.fold()
    after = every(part, versions.widths(2.0).numpy())
    assert (after > exact - 1e-9).all()
    assert np.allclose(after, before, rtol=0, atol=1e-5)  # some roundings in float32


def test_rows_are_counted_by_their_bounds_whatever_was_asked_before(part: Part) -> None:
    gp, rng = surrogate(30), np.random.default_rng(1)
    scanned(part, gp.model)
    before = every(part, np.full(60, 2.0))
    for version in range(1, 60):
        width = np.sort(rng.uniform(0.5, 3.0, 60))[::-1] * rng.choice([1.0, 1.0, 0.2, 4.0])
        above = float(np.quantile(before, rng.choice([0.5, 0.99, 0.999])))
        found = part.bounds(width, above, 20, OPEN, 255)
        before = every(part, width)  # it asks for all rows, whatever is known of them
        assert found.n_above == int((before > above).sum())
        # With values from far outside the model's range, which raise some bounds.
        part.refine(rng.choice(3000, 25, replace=False), surrogate(int(rng.integers(1, 8))).model, version)


def test_scores_of_all_rows_come_in_their_order(part: Part) -> None:
    assert torch.equal(part.scores(lambda X: X[:, 0] - 2.0 * X[:, 1], 5), X[:, 0] - 2.0 * X[:, 1])
    assert torch.equal(part.scores(lambda X: X.flip(1), 5), X.flip(1))
