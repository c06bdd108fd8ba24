"""Faults of candidates, and of the maximisers over them."""

from benchmarks.mutants.fault import Fault

__all__ = ["CANDIDATES"]

ASCENT = ("search/maximizers/test_ascent.py",)
BOX = ("search/maximizers/test_box.py",)
DESIGNER = ("search/test_designer.py",)
LAW = ("search/test_law.py",)
PARTS = ("conformance/test_parts.py",)
POOL = ("search/maximizers/test_pool.py",)
PRODUCT = ("search/candidates/test_product.py",)
WALK = ("search/candidates/test_feasible_walk.py",)
SLICES = ("search/test_slices.py",)

CANDIDATES = (
    Fault(
        "lines of a random walk do not shrink on both sides",
        "search/candidates/feasible_walk.py",
        "low[:], high[:] = np.where(t < 0.0, t, low), np.where(t < 0.0, high, t)",
        "high[:] = np.where(t < 0.0, high, t)",
        WALK,
    ),
    Fault(
        "a random walk takes points that are not feasible",
        "search/candidates/feasible_walk.py",
        "found = rows[feasible(tried[rows])]",
        "found = rows",
        WALK,
    ),
    Fault(
        "a small feasible set is not looked for from known points",
        "search/candidates/feasible_walk.py",
        "if len(known) else known",
        "if False else known[:0]",
        WALK,
    ),
    Fault(
        "scores under constraints are kept when there are new values",
        "search/candidates/listed.py",
        "self._in_batch.of(key, ",
        "self._in_batch.of(0, ",
        ("search/test_choosing.py",),
    ),
    Fault(
        "what is recommended with fixed values is in the best region without them",
        "search/candidate_sets.py",
        "regions_of(self._history, space, fixed, rng)",
        "regions_of(self._history, space, {}, rng)",
        SLICES,
    ),
    Fault(
        "a score that cannot be differentiated is not climbed",
        "search/maximizers/box.py",
        "if np.isnan(slopes).any():",
        "if False:",
        ("_support/test_foreign_kernels.py",),
    ),
    Fault(
        "differences step out of the space",
        "search/maximizers/ascent.py",
        "torch.where(before > 0.5, -STEP, STEP)",
        "STEP",
        ASCENT,
    ),
    Fault(
        "an ascent takes steps that lose",
        "search/maximizers/_loops.py",
        "f >= rows.f[i] + ARMIJO * max(promised, 0.0)",
        "f >= rows.f[i] - 1.0",
        ASCENT,
    ),
    Fault(
        "an ascent remembers steps along bounds",
        "search/maximizers/_loops.py",
        "        free[j] = 0.0 if _is_blocked(rows.x[i, j], g[i, j]) else 1.0",
        "        free[j] = 1.0",
        ASCENT,
    ),
    Fault(
        "a point counts as checked before it is",
        "search/candidates/listed.py",
        "self._infeasible[row] = not self._feasible(",
        "self._checked[row] = True\n            self._infeasible[row] = not self._feasible(",
        LAW,
    ),
    Fault(
        "bounds are in units of the noise",
        "search/maximizers/versions.py",
        ".clamp_min_(0.0).div_(self.last.lam).sqrt_()",
        ".clamp_min_(0.0).sqrt_()",
        POOL,
    ),
    Fault(
        "folded bounds forget how far the mean has drifted",
        "search/maximizers/pool.py",
        "        self.mu.addcmul_(self.sd, self.versions.drifts().index_select(0, self.version))\n",
        "",
        POOL,
    ),
    Fault(
        "lines through a better row are taken for those seen before",
        "search/maximizers/product.py",
        "stale = dict.fromkeys(q for q in range(len(lines)) if q != p)",
        "stale.pop(p, None)",
        PRODUCT,
    ),
    Fault(
        "a search over parts ends before its cross",
        "search/maximizers/product.py",
        "            if found.row is None:\n                break\n",
        "            break\n",
        PRODUCT,
    ),
    Fault(
        "rows of a product that are taken are proposed",
        "search/candidates/product.py",
        "return row not in closed and self.usable(row)",
        "return self.usable(row)",
        PRODUCT,
    ),
    Fault(
        "a list of other points is taken for the one closed before",
        "search/candidates/listed.py",
        "if known is None or known[0] != each_row or not torch.equal(known[1], taken[: len(known[1])]):",
        "if known is None or known[0] != each_row:",
        ("search/candidates/test_listed.py",),
    ),
    Fault(
        "shared starts are those of before the last fit",
        "search/candidates/box.py",
        "if self._shared is None or self._shared.key != key:",
        "if self._shared is None:",
        ("search/candidates/test_box_batches.py",),
    ),
    Fault(
        "suggestions of a large batch start at the worst of the shared points",
        "search/candidates/box.py",
        "argsort(scores, descending=True, stable=True)[:FRONT]",
        "argsort(scores, stable=True)[:FRONT]",
        ("search/candidates/test_box_batches.py",),
    ),
    Fault(
        "a cross of many parts has those whose second entries are worst",
        "search/maximizers/product.py",
        "key=lambda p: -climb.seconds[p]",
        "key=lambda p: climb.seconds[p]",
        PRODUCT,
    ),
    Fault(
        "perturbations go one way only",
        "search/maximizers/box.py",
        "((X - x).abs() > near)",
        "((X - x) > near)",
        (*BOX, *DESIGNER),
    ),
    Fault(
        "the candidates of another space are kept",
        "search/candidate_sets.py",
        "self._before, self._pool, self._regions = self._pool or self._before, None, Latest(KEPT)",
        "self._before = self._pool or self._before",
        (*LAW, "search/candidates/test_listed.py"),
    ),
    Fault(
        "no greedy suggestion spreads",
        "search/candidates/box.py",
        "SPREAD = 0.3",
        "SPREAD = 0.0",
        ("search/candidates/test_box_batches.py",),
    ),
    Fault(
        "regions share the maximiser of another one",
        "search/candidates/box.py",
        "key = shared.numbers, shared.data, *row_keys(scope.incumbents)",
        "key = shared.numbers, shared.data",
        ("search/candidates/test_box_batches.py",),
    ),
    Fault(
        "greedy suggestions are around the maximiser of before the last values",
        "search/candidates/box.py",
        "if self._maximised is None or self._maximised.key != key:",
        "if self._maximised is None:",
        ("search/candidates/test_box_batches.py", "search/test_law.py"),
    ),
    Fault(
        "bounds of rows in files are rounded to the nearest",
        "search/maximizers/parts.py",
        "np.nextafter(values.numpy().astype(np.float32), np.float32(np.inf))",
        "values.numpy().astype(np.float32)",
        PARTS,
    ),
    Fault(
        "groups of rows are not told of new bounds",
        "search/maximizers/parts.py",
        "        raise_tops(self._groups, rows, self._mu, self._sd)\n",
        "",
        PARTS,
    ),
    Fault(
        "bounds that did not fit into an answer are forgotten",
        "search/maximizers/parted.py",
        "if found.rest <= computed.best - computed.slack:",
        "if True:",
        ("search/maximizers/test_parted.py",),
    ),
)
