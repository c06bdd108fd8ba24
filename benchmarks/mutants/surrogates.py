"""Faults of the surrogates: dictionaries, fits, pending points and caches."""

from benchmarks.mutants.fault import Fault

__all__ = ["SURROGATES"]

BKB = ("surrogates/test_bkb.py",)
FANTASY = ("surrogates/test_fantasy.py",)
FIT = ("surrogates/test_gradients.py", "surrogates/test_fit.py")
PENDING = ("surrogates/test_pending.py",)
SAMPLING = ("surrogates/test_sampling.py",)

SURROGATES = (
    Fault(
        "the column of a pending point is that of one without variance",
        "surrogates/pending.py",
        "(self.state.lam / (1.0 + u @ u)).sqrt()",
        "self.state.lam**0.5",
        ("surrogates/test_fantasy.py",),
    ),
    Fault(
        "appended features are taken to leave standard deviations as they are",
        "surrogates/epochs.py",
        "    return math.inf if e <= 0.0 else max(1.0, e**-0.5)",
        "    return 1.0",
        FANTASY,
    ),
    Fault(
        "the features of another dictionary are taken for those of the last one",
        "surrogates/epochs.py",
        "        and _features_agree(new.W[:m, :r], old)\n",
        "",
        FANTASY,
    ),
    Fault(
        "known noise variances are taken for unknown ones",
        "surrogates/gradients.py",
        "data.unknown(M.diagonal() / data.n).sum()",
        "(M.diagonal() / data.n).sum()",
        ("surrogates/test_known_noise.py",),
    ),
    Fault(
        "a fit of unknown noise changes known variances",
        "surrogates/fit_data.py",
        "torch.where(self.known > 0.0, self.known, noises)",
        "noises",
        ("surrogates/test_known_noise.py",),
    ),
    Fault(
        "known noise has no weight",
        "surrogates/bkb.py",
        "self._state.update_and_leverage(z, y, weight)",
        "self._state.update_and_leverage(z, y, 1.0)",
        ("surrogates/test_known_noise.py",),
    ),
    Fault(
        "a draw is due a whole leverage too late",
        "surrogates/bkb.py",
        "or 1.0 + self._spent > self.leverage_budget",
        "or self._spent > self.leverage_budget",
        BKB,
    ),
    Fault(
        "a kernel that fails half-way leaves rows in the table",
        "surrogates/bkb.py",
        "            restore_rest()\n            self._table = table",
        "            restore_rest()",
        ("conformance/test_surrogate_input.py",),
    ),
    Fault(
        "a copy writes into the table of its original",
        "surrogates/bkb.py",
        "other._table = copy.deepcopy(self._table, memo)",
        "pass",
        FANTASY,
    ),
    Fault(
        "a fantasy knows nothing of what was observed since",
        "surrogates/base.py",
        "                restore()\n        self._kept = ()",
        "                restore()",
        FANTASY,
    ),
    Fault(
        "other pending points of the same number are taken for counted",
        "surrogates/pending.py",
        "if _is_stop(len(one.X), p) and torch.equal(one.X, X[: len(one.X)])",
        "if _is_stop(len(one.X), p)",
        (*PENDING, *FANTASY),
    ),
    Fault(
        "inducing points of pending ones move the mean",
        "surrogates/pending.py",
        ".with_mean(observed.w)",
        "",
        FANTASY,
    ),
    Fault(
        "the points that were closest to being left out stay",
        "surrogates/sampling.py",
        "(p - thrown)[rows], descending=True",
        "(p - thrown)[rows], descending=False",
        SAMPLING,
    ),
    Fault(
        "pulls do not count in a draw",
        "surrogates/sampling.py",
        "(qbar * n * leverage_at",
        "(qbar * leverage_at",
        SAMPLING,
    ),
    Fault(
        "the coins of all pulls are one",
        "surrogates/sampling.py",
        "-torch.expm1(pulls * torch.log1p",
        "-torch.expm1(torch.log1p",
        SAMPLING,
    ),
    Fault(
        "what the features do not see counts half",
        "surrogates/leverages.py",
        "unseen.clamp_max(1.0)",
        "unseen.clamp_max(0.5)",
        BKB,
    ),
    Fault(
        "the sampling's lam is not that of the residual",
        "surrogates/leverages.py",
        "self.table.residual / (lam * scale)",
        "self.table.residual / lam",
        ("surrogates/test_leverages.py",),
    ),
    Fault(
        "a subset has the spread of all repeats",
        "surrogates/fit_data.py",
        "self.within * float(repeats.sum()) / max(self.n_repeats, 1.0)",
        "self.within",
        ("surrogates/test_fit_data.py",),
    ),
    Fault(
        "no part of a subset lies far apart",
        "surrogates/fit_data.py",
        "(pool)], most // 2)",
        "(pool)], 0)",
        ("surrogates/test_fit_data.py",),
    ),
    Fault(
        "a sum over columns is kept whatever the values say",
        "surrogates/structure.py",
        "ANGLE_MARGIN, SUM_MARGIN = 1.0, 3.0",
        "ANGLE_MARGIN, SUM_MARGIN = 1.0, -1e9",
        ("surrogates/test_structure.py",),
    ),
    Fault(
        "fits start with little noise only",
        "surrogates/structure.py",
        "noisy = self.fit(self.start, NOISY) if self.fit_noise else quiet",
        "noisy = quiet",
        ("surrogates/test_structure.py",),
    ),
    Fault(
        "many columns always have a trend",
        "surrogates/structure.py",
        "return beside if beside.value > best.value + SUM_MARGIN else best",
        "return beside",
        ("surrogates/test_structure.py",),
    ),
    Fault(
        "few columns are chosen for nothing",
        "surrogates/structure.py",
        "+ math.log(math.comb(len(order), k))",
        "",
        ("surrogates/test_structure.py",),
    ),
    Fault(
        "the columns with the longest lengthscales are the active ones",
        "surrogates/structure.py",
        "argsort(stable=True).tolist()]",
        "argsort(stable=True, descending=True).tolist()]",
        ("surrogates/test_structure.py",),
    ),
    Fault(
        "a trend beside few columns is of all columns",
        "surrogates/structure.py",
        "(*stationary.categorical, *stationary.inactive)",
        "stationary.categorical",
        ("surrogates/test_structure.py",),
    ),
    Fault(
        "of many columns the points far apart are fitted",
        "surrogates/fit_data.py",
        "if self.U.shape[1] > MANY:",
        "if self.U.shape[1] > 10**9:",
        ("surrogates/test_fit_data.py",),
    ),
    Fault(
        "the worst of several fits is taken",
        "surrogates/structure.py",
        "best = max(fits, key=lambda fit: log_evidence(comparison, fit.kernel, fit.noise))",
        "best = min(fits, key=lambda fit: log_evidence(comparison, fit.kernel, fit.noise))",
        ("surrogates/test_structure.py",),
    ),
    Fault(
        "the best of several fits is not continued on more points",
        "surrogates/structure.py",
        "chosen = _continued(comparison, best, fit_noise)",
        "chosen = best",
        ("surrogates/test_structure.py",),
    ),
    Fault(
        "a rotation may have any angles for nothing",
        "surrogates/structure.py",
        "ANGLE_MARGIN, SUM_MARGIN = 1.0, 3.0",
        "ANGLE_MARGIN, SUM_MARGIN = -1e9, 3.0",
        ("surrogates/test_structure.py",),
    ),
    Fault(
        "a constant mean is not shrunk",
        "surrogates/fit.py",
        "P[0, 1] / (P[1, 1] + settings.mean_precision)",
        "P[0, 1] / P[1, 1]",
        FIT,
    ),
)
