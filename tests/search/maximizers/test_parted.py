"""The search over a pool in parts chooses what the search over the same rows in memory chooses."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import bkbopt as bo
from bkbopt.errors import SpaceExhaustedError
from bkbopt.posterior.model import Model
from bkbopt.search.maximizers import parted
from bkbopt.search.maximizers.parted import PartedMaximizer
from bkbopt.search.maximizers.parts import LocalPart
from bkbopt.search.maximizers.pool import PoolMaximizer, joint_sample
from bkbopt.search.maximizers.versions import MAX_VERSIONS
from bkbopt.spaces.remote import LostPartError
from tests.spaces.stored_sources import mapped


def in_parts(X: Tensor, cuts: Any = (1, 200, 1100)) -> PartedMaximizer:
    return PartedMaximizer(X, [LocalPart(part) for part in torch.tensor_split(X, list(cuts))])


def full_argmax(X: Tensor, model: Model, beta: float, excluded: Tensor) -> tuple[int, float]:
    mean, variance = model(X)
    scores = (mean + beta * variance.sqrt()).masked_fill(excluded, -math.inf)
    return int(scores.argmax()), float(scores.max())


def bump(X: Tensor) -> Tensor:
    return torch.sin(5.0 * X[:, 0]) + torch.cos(4.0 * X[:, 1])


@pytest.mark.parametrize("seed", range(2))
def test_argmax_equals_full_evaluation_at_every_step(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = torch.as_tensor(rng.random((1500, 2)))
    bkb = bo.BKB(bo.kernels.rbf(2, 0.3), noise=0.04, seed=seed)
    search, pending = in_parts(X), list[int]()
    bkb.observe(X[:1], bump(X[:1]))
    for step in range(2 * MAX_VERSIONS):
        model = bkb.fantasy(X[pending]) if pending else bkb.model
        beta = 1.0 + rng.random()  # changes at every step
        excluded = torch.as_tensor(rng.random(1500) < 0.2)
        choice = search.argmax(model, beta, excluded)
        index, score = full_argmax(X, model, beta, excluded)
        assert choice.index == index
        # The same formula on rows in another batch: rounding only.
        assert choice.score == pytest.approx(score, rel=1e-9)
        pending.append(choice.index)
        while len(pending) > step % 4:
            i = pending.pop(int(rng.integers(len(pending))))
            bkb.observe(X[[i]], bump(X[[i]]) + 0.2 * float(rng.standard_normal()))
    assert search.n_scans < MAX_VERSIONS


def test_parts_are_asked_again_where_an_answer_had_no_room_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parted, "MOST", 2)
    monkeypatch.setattr(parted, "FRONT", 1)
    rng = np.random.default_rng(0)
    X, none = torch.as_tensor(rng.random((1500, 2))), torch.zeros(1500, dtype=torch.bool)
    bkb, search = bo.BKB(bo.kernels.rbf(2, 0.3), noise=0.04), in_parts(X)
    bkb.observe(X[:1], bump(X[:1]))
    for _ in range(60):
        index = search.argmax(bkb.model, 2.0).index
        assert index == full_argmax(X, bkb.model, 2.0, none)[0]
        bkb.observe(X[[index]], bump(X[[index]]) + 0.2 * float(rng.standard_normal()))


def test_one_maximizer_may_serve_several_surrogates_in_turn() -> None:
    rng = np.random.default_rng(5)
    X = torch.as_tensor(rng.random((500, 2)))
    kernel = bo.kernels.rbf(2, 0.3)
    surrogates: list[Any] = [
        bo.BKB(kernel, noise=0.04),
        bo.ExactGP(kernel, noise=0.04),
        bo.FourierGP(kernel, noise=0.04),
    ]
    search, none = in_parts(X, (90,)), torch.zeros(500, dtype=torch.bool)
    for surrogate in surrogates:
        surrogate.observe(X[:3], bump(X[:3]))
    for _ in range(30):
        surrogate = surrogates[rng.integers(3)]
        choice = search.argmax(surrogate.model, 2.0)
        assert choice.index == full_argmax(X, surrogate.model, 2.0, none)[0]
        surrogate.observe(X[[choice.index]], bump(X[[choice.index]]))


def test_of_tied_rows_the_first_is_chosen_whatever_part_it_is_in() -> None:
    X = torch.as_tensor(np.random.default_rng(0).random((300, 2)))
    X = torch.cat([X, X, X[:50]])
    gp = bo.ExactGP(bo.kernels.rbf(2, 0.3), noise=0.04)
    gp.observe(X[:5], bump(X[:5]))
    for cuts in ((310,), (1, 299, 300, 301), ()):
        first = in_parts(X, cuts).argmax(gp.model, 2.0)
        assert first.index == PoolMaximizer(X).argmax(gp.model, 2.0).index < 300


def test_a_flat_posterior_is_computed_whole_and_its_first_row_chosen() -> None:
    X = torch.linspace(1e3, 1e4, 20_000, dtype=torch.float64)[:, None]  # far from the only value: all scores are equal
    gp = bo.BKB(bo.kernels.rbf(1, 0.3), noise=0.04)
    gp.observe([[0.0]], [1.0])
    search = in_parts(X, (5000, 5001))
    assert search.argmax(gp.model, 2.0).index == 0
    closed = torch.zeros(20_000, dtype=torch.bool)
    closed[:7000] = True
    assert search.argmax(gp.model, 2.0, closed).index == 7000


def test_a_pool_of_excluded_arms_is_exhausted() -> None:
    X = torch.rand(10, 1, dtype=torch.float64)
    gp = bo.BKB(noise=0.04)
    gp.observe(X[:1], [1.0])
    with pytest.raises(SpaceExhaustedError, match="all 10 arms are excluded"):
        in_parts(X, (3,)).argmax(gp.model, 1.0, torch.ones(10, dtype=torch.bool))


class _Interrupting(LocalPart):
    """A part that is interrupted once, in the call of that name."""

    def __init__(self, X: Tensor, call: str) -> None:
        super().__init__(X)
        self.call, self.after = call, 0

    def _interrupt(self, call: str) -> None:
        if call == self.call:
            self.after -= 1
            if self.after == 0:
                raise KeyboardInterrupt

    def scan(self, *args: Any) -> None:
        self._interrupt("scan")
        super().scan(*args)

    def fold(self, *args: Any) -> None:
        self._interrupt("fold")
        super().fold(*args)

    def bounds(self, *args: Any) -> Any:
        self._interrupt("bounds")
        return super().bounds(*args)

    def refine(self, rows: Any, *args: Any) -> Any:
        out = super().refine(rows, *args)  # half of the parts have new values
        self._interrupt("refine")
        return out


@pytest.mark.parametrize("call", ["scan", "fold", "bounds", "refine"])
def test_an_interrupt_changes_nothing(call: str) -> None:
    rng = np.random.default_rng(2)
    X = torch.as_tensor(rng.random((600, 2)))
    gp = bo.BKB(bo.kernels.rbf(2, 0.3), noise=0.04)
    gp.observe(X[:40], bump(X[:40]))
    parts = [_Interrupting(part, call) for part in X.split(200)]
    search, whole = PartedMaximizer(X, parts), PoolMaximizer(X)
    interrupted = 0
    for step in range(MAX_VERSIONS + 20):
        parts[1].after = 1 if step % 3 == 0 or call in ("scan", "fold") else 0
        try:
            choice = search.argmax(gp.model, 2.0)
        except KeyboardInterrupt:
            interrupted += 1
            parts[1].after = 0
            choice = search.argmax(gp.model, 2.0)
        assert choice.index == whole.argmax(gp.model, 2.0).index
        gp.observe(X[[choice.index]], bump(X[[choice.index]]) + 0.2 * float(rng.standard_normal()))
    assert interrupted > 0


class _Dying(LocalPart):
    """A part that loses its bounds, with an error at the next call that needs them."""

    is_lost = False
    n_scans = 0

    def scan(self, *args: Any) -> None:
        self.is_lost = False
        self.n_scans += 1
        super().scan(*args)

    def _look(self) -> None:
        if self.is_lost:
            self._mu = self._sd = np.zeros(0, dtype=np.float32)
            raise LostPartError("part: expected one that was scanned, got one that is new on its worker.")

    def fold(self, *args: Any) -> None:
        self._look()
        super().fold(*args)

    def bounds(self, *args: Any) -> Any:
        self._look()
        return super().bounds(*args)

    def refine(self, *args: Any) -> Any:
        self._look()
        return super().refine(*args)


def test_where_bounds_of_a_part_are_lost_it_alone_is_scanned_again() -> None:
    rng = np.random.default_rng(3)
    X = torch.as_tensor(rng.random((900, 2)))
    gp = bo.BKB(bo.kernels.rbf(2, 0.3), noise=0.04)
    gp.observe(X[:40], bump(X[:40]))
    parts = [_Dying(part) for part in X.split([200, 500, 200])]
    search, whole = PartedMaximizer(X, parts), PoolMaximizer(X)
    since_scan, n_lost, scanned = [0, 0, 0], 0, 0
    for step in range(2 * MAX_VERSIONS):
        if step % 5 == 3:
            number = int(rng.integers(3))
            parts[number].is_lost = True
            since_scan[number] += 1
            n_lost += 1
        i = int(rng.integers(40))  # a known point, so that the epoch goes on
        gp.observe(X[[i]], bump(X[[i]]) + 0.2 * float(rng.standard_normal()))
        beta = 1.0 + rng.random()
        assert search.argmax(gp.model, beta).index == whole.argmax(gp.model, beta).index
        if search.n_scans > scanned:
            scanned = search.n_scans
            since_scan = [0, 0, 0]
            for part in parts:
                part.n_scans = 0
        assert [part.n_scans for part in parts] == since_scan
    assert scanned < n_lost / 2  # most parts that were lost were scanned alone


def test_parts_that_stay_in_the_pool_keep_their_bounds() -> None:
    rng = np.random.default_rng(4)
    X = torch.as_tensor(rng.random((1000, 2)))
    gp = bo.BKB(bo.kernels.rbf(2, 0.3), noise=0.04)
    gp.observe(X[:40], bump(X[:40]))
    own = [_Dying(part) for part in X.split(200)]
    search = PartedMaximizer(X[:600], own[:3])
    for kept in ([0, 1, 2], [1, 2, 3], [4, 2, 0], [0, 1, 2, 3, 4]):
        rows = torch.cat([own[number].X[:] for number in kept])  # type: ignore[misc]
        search = PartedMaximizer(rows, [own[number] for number in kept], before=search)
        for _ in range(3):
            i = int(rng.integers(40))  # a known point, so that the epoch goes on
            gp.observe(X[[i]], bump(X[[i]]) + 0.2 * float(rng.standard_normal()))
            excluded = torch.as_tensor(rng.random(len(rows)) < 0.3)
            index, _ = full_argmax(rows, gp.model, 2.0, excluded)
            assert search.argmax(gp.model, 2.0, excluded).index == index
        assert search.n_scans == (kept == [0, 1, 2])
    # Once for each time that a part came into the pool: part 2 has been there all the time, and part 4 since it came.
    assert [part.n_scans for part in own] == [2, 2, 1, 2, 1]


def test_scans_and_samples_are_those_of_the_rows_in_memory() -> None:
    X = torch.as_tensor(np.random.default_rng(0).random((1200, 2)))
    gp = bo.BKB(bo.kernels.rbf(2, 0.3), noise=0.04)
    gp.observe(X[:30], bump(X[:30]))
    for rows in (X, X[:400]):
        search, whole = in_parts(rows, (256,)), PoolMaximizer(rows)
        for own, other in zip(search.scan(gp.model), whole.scan(gp.model), strict=True):
            # Blocks of other sizes: rounding only.
            assert torch.allclose(own, other, rtol=0, atol=1e-12)
        samples = [joint_sample(each, gp.model, np.random.default_rng(4)) for each in (search, whole)]
        assert torch.allclose(*samples, rtol=0, atol=1e-10)


def test_the_maximizer_of_a_file_keeps_nine_bytes_a_row(tmp_path: Path) -> None:
    rows = mapped(tmp_path / "rows.f4", np.random.default_rng(0).random((20_000, 3), dtype=np.float32))
    opt = bo.Optimizer(rows, seed=0, n_startup_trials=2)
    for _ in range(4):
        trial = opt.ask()
        opt.tell(trial, trial.params["x0"])
    (part,) = opt._core.designer.candidates._pool.search.parts  # type: ignore[union-attr]
    arrays = [value for value in (*vars(part).values(), *part._groups) if isinstance(value, np.ndarray)]
    assert 9.0 * 20_000 <= sum(array.nbytes for array in arrays) < 9.1 * 20_000  # three numbers a group of 256


@pytest.mark.parametrize("n", range(MAX_VERSIONS - 3, MAX_VERSIONS + 1))
def test_a_lost_part_is_scanned_again_however_many_versions_there_are(n: int) -> None:
    rng = np.random.default_rng(1)
    X = torch.as_tensor(rng.random((300, 2)))
    gp = bo.BKB(bo.kernels.rbf(2, 0.3), noise=0.04)
    gp.observe(X[:40], bump(X[:40]))  # enough for a dictionary that stays
    parts = [_Dying(part) for part in X.split(100)]
    search = PartedMaximizer(X, parts)
    for step in range(n + 3):
        parts[1].is_lost = step >= n
        index = search.argmax(gp.model, 1.0).index
        assert index == PoolMaximizer(X).argmax(gp.model, 1.0).index
        gp.observe(X[[index]], bump(X[[index]]) + 0.01 * float(rng.standard_normal()))
    assert parts[1].n_scans > parts[0].n_scans
