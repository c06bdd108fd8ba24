"""Faults of the search for proposals: criteria, candidates, maximizers, batches and the designer."""

from benchmarks.mutants.fault import Fault

__all__ = ["SEARCH"]

ASCENT = ("search/maximizers/test_ascent.py",)
BOX = ("search/maximizers/test_box.py",)
DESIGNER = ("search/test_designer.py",)
FAILURES = ("optimizer/test_failures.py",)
LAW = ("search/test_law.py",)
PARTS = ("conformance/test_parts.py",)
POOL = ("search/maximizers/test_pool.py",)
PRODUCT = ("search/candidates/test_product.py",)
SLICES = ("search/test_slices.py",)

SEARCH = (
    Fault(
        "what is recommended with fixed values is the upper confidence bound's maximiser",
        "search/criteria/expected.py",
        "UpperBound.over(model, 0.0)",
        "UpperBound.over(model, 2.0)",
        SLICES,
    ),
    Fault(
        "what is recommended with fixed values is in the best region without them",
        "search/designer.py",
        "regions_of(self.history, self.problem.space, fixed, rng)",
        "regions_of(self.history, self.problem.space, {}, rng)",
        SLICES,
    ),
    Fault(
        "constraints of a recommendation with fixed values hold with probability one half",
        "search/slices.py",
        "(sure, 0.5) if fantasy.constraints",
        "(0.5,) if fantasy.constraints",
        SLICES,
    ),
    Fault(
        "the slope of a bound counts for every objective",
        "search/criteria/criterion.py",
        'torch.einsum("ij,jil->il", by_bounds, torch.stack(by_X))',
        "torch.stack(by_X).sum(0)",
        ("search/criteria/test_criterion.py",),
    ),
    Fault(
        "a repeat in the best branch comes before a new point of another one",
        "search/designer.py",
        "passes = (False, True) if self.history.is_conditional else (True,)",
        "passes = (True,)",
        ("optimizer/test_spaces_by_ask_and_tell.py",),
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
        "        free[j] = 0.0 if out else 1.0",
        "        free[j] = 1.0",
        ASCENT,
    ),
    Fault(
        "the slope of the expected improvement forgets its mean",
        "search/criteria/acquisition.py",
        "(1.0 / sd - e * by_mean)",
        "(1.0 / sd)",
        ("search/criteria/test_acquisition.py",),
    ),
    Fault(
        "a Thompson draw is another one at each look",
        "search/criteria/criterion.py",
        "np.random.default_rng(self.seed)), excluded)",
        "np.random.default_rng()), excluded)",
        ("optimizer/test_stored_pools.py",),
    ),
    Fault(
        "a point counts as checked before it is",
        "search/candidates/listed.py",
        "self._infeasible[row] = not self._feasible(",
        "self._checked[row] = True\n            self._infeasible[row] = not self._feasible(",
        LAW,
    ),
    Fault(
        "a branch that always fails is not given up",
        "search/regions.py",
        "_visits(branch, [*request.running, *failed])",
        "_visits(branch, list(request.running))",
        (*FAILURES, "adapters/optuna/test_spaces.py"),
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
        "return row not in closed and self._usable(row)",
        "return self._usable(row)",
        PRODUCT,
    ),
    Fault(
        "a list of other points is taken for the one closed before",
        "search/candidates/listed.py",
        "        if not torch.equal(last, taken[:n]):",
        "        if False:",
        ("search/maximizers/test_pool.py",),
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
        "wide steps are no wider than others",
        "search/perturbations.py",
        "max(WIDE_BETA, fantasy.betas[0])",
        "fantasy.betas[0]",
        DESIGNER,
    ),
    Fault(
        "the points of a batch are not pending",
        "search/designer.py",
        "running=(*request.running, suggestion.point)",
        "running=request.running",
        DESIGNER,
    ),
    Fault(
        "the candidates of another space are kept",
        "search/designer.py",
        "self._before, self._pool, self._candidates = self._pool or self._before, None, {}",
        "self._before = self._pool or self._before",
        (*LAW, "search/candidates/test_listed.py"),
    ),
    Fault(
        "an update that was interrupted is gone on with",
        "search/designer.py",
        "models = self._models.pop(first, None)",
        "models = self._models.get(first)",
        LAW,
    ),
    Fault(
        "a batch repeats a row as often as its bound is the largest",
        "search/choosing.py",
        "if sums[first] < BATCH_BUDGET <= sums[first] + leverage:",
        "if False:",
        ("search/test_choosing.py",),
    ),
    Fault(
        "no suggestion of a large batch explores",
        "search/choosing.py",
        "return request.rng(GREEDY).random() * (p + 1) >= 1.0",
        "return True",
        ("search/test_choosing.py",),
    ),
    Fault(
        "large batches are greedy under the user's own schedule of beta",
        "search/options.py",
        "self.rule.is_upper_bound and self.models.fit and isinstance(self.confidence, Practical)",
        "self.rule.is_upper_bound and self.models.fit",
        ("search/test_choosing.py",),
    ),
    Fault(
        "points of a large batch spread without a limit",
        "search/criteria/criterion.py",
        "best - max(self.model.lam**0.5, INDIFFERENT)",
        "best - 10.0 * max(self.model.lam**0.5, INDIFFERENT)",
        ("search/criteria/test_criterion.py",),
    ),
    Fault(
        "greedy suggestions return to a place that running trials will make known",
        "search/criteria/criterion.py",
        "left >= min(STILL_OPEN, float(left.max()))",
        "left >= 0.0",
        ("search/candidates/test_box_batches.py",),
    ),
    Fault(
        "no greedy suggestion spreads",
        "search/candidates/box.py",
        "SPREAD = 0.3",
        "SPREAD = 0.0",
        ("search/candidates/test_box_batches.py",),
    ),
    Fault(
        "wide steps of a large batch stay near the maximiser of the mean",
        "search/choosing.py",
        "candidates, scope.exploring())",
        "candidates, scope)",
        ("search/test_choosing.py",),
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
