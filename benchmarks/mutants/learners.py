"""Faults of the online learners and the linear bandits."""

from benchmarks.mutants.fault import Fault

__all__ = ["LEARNERS"]

BASE = ("learners/test_base.py",)
INPUT = ("learners/test_base_input.py", "learners/test_base.py")
STATES = ("learners/test_base_states.py",)
FILES = ("learners/test_states.py",)
EXPANSIONS = ("learners/test_expansion.py",)
KONS = ("learners/test_kons.py",)
UNITS = ("learners/test_units.py",)
SEVERAL = ("learners/test_several.py",)

LEARNERS = (
    Fault(
        "a third label is found after the rows before it were learnt",
        "learners/core.py",
        "undo.callback(self._set_attributes, vars(self).copy())",
        "pass",
        (*INPUT, *STATES),
    ),
    Fault(
        "a kernel that fails half-way leaves half a state",
        "learners/core.py",
        "undo.callback(self._set_attributes, vars(self._copy()))",
        "pass",
        STATES,
    ),
    Fault(
        "fit goes on where it was",
        "learners/base.py",
        "fresh = type(self)(**self.get_params())",
        "fresh = copy.deepcopy(self)",
        BASE,
    ),
    Fault(
        "the sign of margins is lost on the way out",
        "learners/classes.py",
        "return 1.0 if not len(self.order) or self.order[0] == 0 else -1.0",
        "return 1.0",
        BASE,
    ),
    Fault(
        "a saved learner forgets its generator",
        "learners/several.py",
        'learner._rng.bit_generator.state = generator_state(saved["rng"])',
        "pass",
        STATES,
    ),
    Fault(
        "units change after the first rows",
        "learners/units.py",
        "if self._X is None:\n            return None",
        "if self._X is None:\n            self.c = X.mean(0)\n            return None",
        UNITS,
    ),
    Fault(
        "rows are not learnt again in new units",
        "learners/core.py",
        "self._learn_scaled(units.scaled_rows(first[0]), units.scaled_targets(first[1]))",
        "pass",
        UNITS,
    ),
    Fault(
        "a column without a unit shows its size",
        "learners/units.py",
        "Z[:, ~known] = np.sign(Z[:, ~known])",
        "pass",
        UNITS,
    ),
    Fault(
        "predictions stay in the learner's units",
        "learners/units.py",
        "return p * self.slope + self.c_y if self.targets else p",
        "return p",
        UNITS,
    ),
    Fault(
        "a further class begins with the second one's learner",
        "learners/several.py",
        "learner._heads.append(learner._started_clone())",
        "learner._heads.append(learner._heads[0]._copy())",
        SEVERAL,
    ),
    Fault(
        "margins are kept in the wrong place of the ring",
        "learners/probabilities.py",
        "RECENT + (start + n) % RECENT",
        "RECENT + start % RECENT",
        SEVERAL,
    ),
    Fault(
        "parameters that wait for the next fit are lost in a file",
        "learners/learner_states.py",
        "return learner.set_params(**params)",
        "return learner",
        ("learners/test_forks.py",),
    ),
    Fault(
        "terms are lost where room grows",
        "learners/expansion.py",
        "new.size[:] = old.size",
        "new.size[:] = old.size - 1",
        FILES,
    ),
    Fault(
        "the logistic slope overflows",
        "learners/losses.py",
        "-y * np.exp(-np.logaddexp(0.0, y * p))",
        "-y / (1.0 + np.exp(y * p))",
        ("learners/test_losses.py",),
    ),
    Fault(
        "a compiled slope has another kink",
        "learners/losses.py",
        "return -y if y * p < 1.0 else 0.0",
        "return -y if y * p < 0.0 else 0.0",
        ("learners/test_losses.py",),
    ),
    Fault(
        "a curvature is larger than it may be",
        "learners/losses.py",
        "return 1.0 / (8.0 * C * C)",
        "return 1.0 / (4.0 * C * C)",
        ("learners/test_losses.py",),
    ),
    Fault(
        "a window is one round too long",
        "learners/descent.py",
        "first + t + 1 - window",
        "first + t - window",
        EXPANSIONS,
    ),
    Fault(
        "a margin of zero is no mistake",
        "learners/perceptrons/plain.py",
        "if block.y[t] * p[t] <= 0.0:",
        "if block.y[t] * p[t] < 0.0:",
        EXPANSIONS,
    ),
    Fault(
        "a removal is not made up for",
        "learners/descent.py",
        "scale(a, n - 1, n / (n - 1.0))",
        "scale(a, n - 1, 1.0)",
        EXPANSIONS,
    ),
    Fault(
        "passive-aggressive steps are not bounded",
        "learners/perceptrons/passive_aggressive.py",
        "tau = min(C, loss / kt)",
        "tau = loss / kt",
        EXPANSIONS,
    ),
    Fault(
        "damage is not added up",
        "learners/perceptrons/forgetron.py",
        "sums[0] += (size * phi)",
        "sums[0] = (size * phi)",
        EXPANSIONS,
    ),
    Fault(
        "a point in the span is added to the terms",
        "learners/perceptrons/projectron.py",
        "near = outside <= max(threshold * threshold, 1e-10 * kt)",
        "near = outside <= threshold * threshold * 0.5",
        EXPANSIONS,
    ),
    Fault(
        "a Newton step projects to the other side",
        "learners/kons.py",
        "c -= (ybar - yhat) * alpha / r",
        "c += (ybar - yhat) * alpha / r",
        KONS,
    ),
    Fault(
        "the weight of slopes lags a round behind",
        "learners/kons.py",
        "step_weight(rule, g, block.first + t + 1)",
        "step_weight(rule, g, max(block.first + t, 1))",
        KONS,
    ),
    Fault(
        "rows enter by the wrong coin",
        "learners/kons.py",
        "return coins.uniforms[t, 1] < max(p, coins.gamma)",
        "return coins.uniforms[t, 0] < max(p, coins.gamma)",
        KONS,
    ),
    Fault(
        "a regret bound forgets a part",
        "learners/kons.py",
        "4.0 * self._C**2 * excess",
        "2.0 * self._C**2 * excess",
        KONS,
    ),
    Fault(
        "an accepted row is learnt before it is in the dictionary",
        "learners/prosnkons.py",
        "if not restart and t >= offered and offer(kors, k, block.diagonal[t], block.uniforms[t], v_kors)[1]:\n"
        "            return t, True",
        "if not restart and t >= offered and offer(kors, k, block.diagonal[t], block.uniforms[t], v_kors)[1]:\n"
        "            out[t] = 0.0\n            return t + 1, True",
        ("learners/test_prosnkons.py",),
    ),
    Fault(
        "exact weights are those of slopes",
        "learners/newton.py",
        "return 2.0 / (g * g) if g != 0.0 else 0.0",
        "return 2.0",
        KONS,
    ),
    Fault(
        "a new epoch keeps its old weights",
        "learners/prosnkons.py",
        "if not self._restart:",
        "if True:",
        ("learners/test_prosnkons.py",),
    ),
    Fault(
        "scores have no oversampling",
        "learners/kors.py",
        "min(1.0, kors.beta * (1.0 + kors.eps) * c / (c + kors.alpha))",
        "min(1.0, kors.beta * c / (c + kors.alpha))",
        ("learners/test_pkawv.py", "learners/test_kors.py"),
    ),
    Fault(
        "the sampler's ridge ignores its probabilities",
        "learners/kors.py",
        "kors.alpha * p**kors.power",
        "kors.alpha",
        ("learners/test_kors.py",),
    ),
    Fault(
        "forward predictions shrink too little",
        "learners/ridge.py",
        "p / np.diag(L) ** 2 if forward",
        "p / np.diag(L) if forward",
        ("learners/test_ridge.py",),
    ),
    Fault(
        "a single row predicts as ridge regression",
        "learners/ridge.py",
        "out[t] = p / (1.0 + h) if forward else p",
        "out[t] = p",
        ("learners/test_ridge.py",),
    ),
    Fault(
        "a new feature has no ridge",
        "learners/ridge.py",
        "A[:r, r], A[r, r] = self.A, c, d + self.lam",
        "A[:r, r], A[r, r] = self.A, c, d",
        ("learners/test_ridge.py", "learners/test_pkawv.py"),
    ),
    Fault(
        "a new feature overlaps with the old ones",
        "learners/nystrom.py",
        "(self.gram(x[None], self.X.rows)[0] - self._Z[: self.X.n, :r] @ z) / root",
        "self.gram(x[None], self.X.rows)[0] / root",
        ("learners/test_pkawv.py",),
    ),
    Fault(
        "a refresh keeps the matrix of the old features",
        "learners/forks.py",
        "np.zeros(self._features())\n        self._inverse = np.eye(self._features()) / float(self._params.alpha)\n",
        "np.zeros(self._features())\n",
        ("learners/test_forks.py",),
    ),
    Fault(
        "a sketch forgets the new point's own value",
        "learners/features/sketched.py",
        "(cross + cross.T + kappa * np.outer(s, s))",
        "(cross + cross.T)",
        ("learners/features/test_sketched.py",),
    ),
    Fault(
        "what a sketch shrinks is not added up",
        "learners/bandits/soful.py",
        "self.rho += shrunk",
        "self.rho = shrunk",
        ("learners/bandits/test_soful.py",),
    ),
    Fault(
        "Taylor features have another factorial",
        "learners/features/taylor.py",
        "torch.lgamma(torch.cat(levels).double() + 1.0)",
        "torch.lgamma(torch.cat(levels).double() + 2.0)",
        ("learners/features/test_taylor.py",),
    ),
    Fault(
        "the middle node counts twice",
        "learners/features/quadrature.py",
        "weight[half] *= 0.5",
        "pass",
        ("learners/features/test_quadrature.py",),
    ),
)
