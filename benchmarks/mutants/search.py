"""Faults of the search: what is learnt from a log, and what is proposed next."""

from benchmarks.mutants.fault import Fault

__all__ = ["SEARCH"]

ASCENT = ("search/test_ascent.py",)
BOX = ("search/test_box_maximizer.py",)
DESIGNER = ("search/test_designer.py",)
FAILURES = ("optimizer/test_failures.py",)
HISTORY = ("search/test_history.py",)
LAW = ("search/test_law.py",)
POOL = ("search/test_pool_maximizer.py",)
QUANTITY = ("search/test_quantity.py",)
SCALING = ("search/test_scaling.py",)
SEVERAL = ("optimizer/test_several_objectives.py",)

SEARCH = (
    Fault(
        "an ascent takes steps that lose",
        "search/_loops.py",
        "f >= rows.f[i] + ARMIJO * max(promised, 0.0)",
        "f >= rows.f[i] - 1.0",
        ASCENT,
    ),
    Fault(
        "an ascent remembers steps along bounds",
        "search/_loops.py",
        "        free[j] = 0.0 if out else 1.0",
        "        free[j] = 1.0",
        ASCENT,
    ),
    Fault(
        "the slope of the expected improvement forgets its mean",
        "search/acquisition.py",
        "(1.0 / sd - e * by_mean)",
        "(1.0 / sd)",
        ("search/test_acquisition.py",),
    ),
    Fault(
        "a late trial is appended",
        "search/history.py",
        "bisect.insort(self.finished, evaluation, key=lambda other: other.order)",
        "self.finished.append(evaluation)",
        HISTORY,
    ),
    Fault(
        "a late trial voids nothing",
        "search/history.py",
        "        if late:\n            self._void()",
        "        if late:\n            pass",
        HISTORY,
    ),
    Fault(
        "columns come in the order of their first trials",
        "search/history.py",
        "sorted(self.parameters.keys() - set(first))",
        "[key for key in self.parameters if key not in first]",
        HISTORY,
    ),
    Fault(
        "trials fail where they succeeded",
        "search/history.py",
        "1.0 if failed else -1.0",
        "-1.0 if failed else 1.0",
        HISTORY,
    ),
    Fault(
        "a mark of failures ends before its failure",
        "search/history.py",
        "self._failures[last_mark(self.n_failed, 1) - 1] + 1)",
        "self._failures[last_mark(self.n_failed, 1) - 1])",
        HISTORY,
    ),
    Fault(
        "a mark comes a row late",
        "search/quantity.py",
        "max(mark + 1, math.ceil(GROWTH * mark))) <= n:",
        "max(mark + 1, math.ceil(GROWTH * mark))) < n:",
        QUANTITY,
    ),
    Fault(
        "rows that moved are taken for known",
        "search/quantity.py",
        "built = (rows.version, mark)",
        "built = (0, mark)",
        QUANTITY,
    ),
    Fault(
        "constraints hold above zero",
        "search/models.py",
        "Quantity(self._limits, self.seed, stream, -1.0,",
        "Quantity(self._limits, self.seed, stream, 1.0,",
        (*SEVERAL, *FAILURES),
    ),
    Fault(
        "pending points of several objectives improve the front again",
        "search/models.py",
        "            if len(self.pending):\n",
        "            if False:\n",
        ("search/test_models.py",),
    ),
    Fault(
        "searches start from the best points, feasible or not",
        "search/models.py",
        "(rank - 1e3 * lost).topk",
        "rank.topk",
        ("search/test_models.py",),
    ),
    Fault(
        "a Thompson draw is another one at each look",
        "search/criteria.py",
        "np.random.default_rng(self.seed)), excluded)",
        "np.random.default_rng()), excluded)",
        LAW,
    ),
    Fault(
        "a certificate has the word of the posterior for it",
        "search/certificate.py",
        "0.5 * (1.0 + confidence) * (len(gap) + 1)",
        "confidence * (len(gap) + 1)",
        ("search/test_certificate.py",),
    ),
    Fault(
        "a certificate takes the fitted hyper-parameters for certain",
        "search/quantity.py",
        "        if not self.options.fit:\n            return [(self.model",
        "        if True:\n            return [(self.model",
        ("search/test_certificate.py",),
    ),
    Fault(
        "a point counts as checked before it is",
        "search/candidates.py",
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
        "search/pool_maximizer.py",
        ".clamp_min_(0.0).div_(model.lam).sqrt_()",
        ".clamp_min_(0.0).sqrt_()",
        POOL,
    ),
    Fault(
        "perturbations go one way only",
        "search/box_maximizer.py",
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
        "late values cut off the bad regions",
        "search/scaling.py",
        "min(_floor(z), _floor(z[:FIRST]))",
        "_floor(z)",
        SCALING,
    ),
    Fault(
        "an offset is divided before it is subtracted",
        "search/scaling.py",
        "return float(s.median()) if narrow else 0.0",
        "return 0.0",
        SCALING,
    ),
    Fault(
        "far values are measured by their own side",
        "search/scaling.py",
        "(q3 - median) or top - median",
        "(q3 - float(ordered[0])) or top - median",
        SCALING,
    ),
    Fault(
        "a far value of a limit changes its side",
        "search/scaling.py",
        "min(lowest, 0.0) - away",
        "lowest - away",
        SCALING,
    ),
    Fault(
        "late values make early ones far",
        "search/scaling.py",
        "for part in (quarter, quarter[:FIRST])]",
        "for part in (quarter,)]",
        SCALING,
    ),
    Fault(
        "a prediction overflows",
        "search/scaling.py",
        "(away + self.origin)).clamp(-LARGEST, LARGEST)",
        "(away + self.origin))",
        SCALING,
    ),
    Fault(
        "bent values are compared without the slopes of the map",
        "search/bending.py",
        " + float((data.n * scaler.log_slopes(data.ybar)).sum())",
        "",
        ("search/test_bending.py",),
    ),
    Fault(
        "a deviation of bent values is everywhere that at the best",
        "search/scaling.py",
        "self.scale * slope * self.unit",
        "self.scale * self.unit",
        SCALING,
    ),
    Fault(
        "the limit's zero is clamped with the values",
        "search/quantity.py",
        "return self.scaler.place(0.0)",
        "return float(self.scaler.transform(torch.zeros(1, dtype=torch.float64))[0])",
        ("search/test_scaling.py", "search/test_quantity.py"),
    ),
    Fault(
        "known noise of the user's own units is bounded in ours",
        "search/quantity.py",
        "(lam / std.square()).clamp(*OWN_WEIGHTS)",
        "lam / std.square().clamp(1e-12, 1e12)",
        QUANTITY,
    ),
    Fault(
        "kappa^2 is that of the first points",
        "search/quantity.py",
        "self._of(X[self._n :]))",
        "0.0) or self._of(X[:PRIOR_BLOCK])",
        QUANTITY,
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
        "        self._pool, self._candidates = None, {}\n\n    # -- the two verbs",
        "\n    # -- the two verbs",
        (*LAW, "search/test_pool_candidates.py"),
    ),
    Fault(
        "an update that was interrupted is gone on with",
        "search/designer.py",
        "models = self._models.pop(first, None)",
        "models = self._models.get(first)",
        LAW,
    ),
    Fault(
        "a change of the space that was interrupted is half done",
        "search/history.py",
        "was_interrupted, self._interrupted = self._interrupted, True",
        "was_interrupted, self._interrupted = False, True",
        HISTORY,
    ),
    Fault(
        "an interrupted update forgets ranges",
        "search/history.py",
        "for name in evaluation.constraints}\n        self._merge_all()\n",
        "for name in evaluation.constraints}\n",
        HISTORY,
    ),
    Fault(
        "a whole number of a schedule gets into the log",
        "search/models.py",
        "float(confidence(context))",
        "confidence(context)",
        ("faults/test_crafted_logs.py",),
    ),
)
