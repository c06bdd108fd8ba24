"""Faults of the trials of a log, as the search sees them."""

from benchmarks.mutants.fault import Fault

__all__ = ["TRIALS"]

CURVES = ("search/trials/test_curves.py",)
HISTORY = ("search/trials/test_history.py",)
RELEARNING = ("search/quantities/test_relearning.py",)

TRIALS = (
    Fault(
        "a constraint with few values is not learnt",
        "search/trials/history.py",
        "first if len(column.y) >= first else 1",
        "first",
        ("optimizer/test_optimizer_search.py",),
    ),
    Fault(
        "combinations of other parameters are counted from the last trials on",
        "search/trials/presence.py",
        "counted, n, counts = tuple(keys), 0, Counter()",
        "counted, n, counts = tuple(keys), n, Counter()",
        ("search/trials/test_presence.py",),
    ),
    Fault(
        "the first of a pruned trial's values counts",
        "search/trials/curves.py",
        "step = max(curve, default=None)",
        "step = min(curve, default=None)",
        CURVES,
    ),
    Fault(
        "estimates from few complete trials only",
        "search/trials/curves.py",
        "self._known += [(curve, steps, self.sign * self(curve), True) for curve, steps, _ in list(group)]",
        "pass",
        CURVES,
    ),
    Fault(
        "trials that were pruned earlier count in an estimate",
        "search/trials/curves.py",
        "if is_pruned and steps[-1] <= step:",
        "if False:",
        CURVES,
    ),
    Fault(
        "a pruned trial that was poorer than all others has the value of the poorest",
        "search/trials/curves.py",
        "if -math.inf < v < worst:",
        "if False:",
        CURVES,
    ),
    Fault(
        "estimates of learnt rows change between marks",
        "search/trials/valued_rows.py",
        "FinalValues(self.sign, self.curves[:mark], self.y[:mark])",
        "FinalValues(self.sign, self.curves, self.y)",
        HISTORY,
    ),
    Fault(
        "a late trial is appended",
        "search/trials/history.py",
        "bisect.insort(self.finished, evaluation, key=lambda other: other.order)",
        "self.finished.append(evaluation)",
        HISTORY,
    ),
    Fault(
        "a late trial voids nothing",
        "search/trials/history.py",
        "if self._penalties.update(self.finished) or late:",
        "if self._penalties.update(self.finished):",
        HISTORY,
    ),
    Fault(
        "columns come in the order of their first trials",
        "search/trials/history.py",
        "sorted(self.parameters.keys() - set(first))",
        "[key for key in self.parameters if key not in first]",
        HISTORY,
    ),
    Fault(
        "trials fail where they succeeded",
        "search/trials/history.py",
        "1.0 if failed else -1.0",
        "-1.0 if failed else 1.0",
        HISTORY,
    ),
    Fault(
        "outcomes by chance are penalties",
        "search/trials/penalties.py",
        "-math.inf if by_chance or len(at_penalty) < REPEATS else found",
        "found",
        ("search/trials/test_penalties.py",),
    ),
    Fault(
        "the worst of some labels is a penalty",
        "search/trials/penalties.py",
        "max(FEWEST, DIFFERENT * n_better)",
        "1",
        ("search/trials/test_penalties.py",),
    ),
    Fault(
        "penalties of an earlier mark are forgotten",
        "search/trials/penalties.py",
        "kinds.total(), known",
        "kinds.total(), -math.inf",
        ("search/trials/test_penalties.py",),
    ),
    Fault(
        "penalties outlive a late trial",
        "search/trials/history.py",
        "        if late:\n            self._penalties.forget()  # before trials move, in case of an interrupt",
        "        if late:\n            pass",
        ("search/trials/test_penalties.py",),
    ),
    Fault(
        "trials before a mark are not judged again",
        "search/trials/penalties.py",
        "[self._judged(evaluation, best) for evaluation in finished]",
        "list(finished)",
        ("search/trials/test_penalties.py",),
    ),
    Fault(
        "a change of the space that was interrupted is half done",
        "search/trials/history.py",
        "was_interrupted, self._interrupted = self._interrupted, True",
        "was_interrupted, self._interrupted = False, True",
        HISTORY,
    ),
    Fault(
        "an interrupted update forgets ranges",
        "search/trials/history.py",
        "        self._merge_all()\n        self._void()\n",
        "        self._void()\n",
        HISTORY,
    ),
    Fault(
        "rows keep their codes when an end is stretched",
        "search/trials/history.py",
        "True, dict(stretches), None\n            self._void()",
        "True, dict(stretches), None",
        ("search/test_input_stretching.py",),
    ),
    Fault(
        "ends are stretched whatever the evidence",
        "search/input_stretching.py",
        "if gained < margin:",
        "if gained < -math.inf:",
        ("search/test_input_stretching.py",),
    ),
    Fault(
        "ends far from the best points are stretched",
        "search/input_stretching.py",
        "by.slope(middle) > 1.0",
        "by.slope(middle) > 0.0",
        ("search/test_input_stretching.py",),
    ),
    Fault(
        "a late trial changes no decision on stretched ends",
        "search/input_stretching.py",
        "if self._decided == (history.version, mark):",
        "if self._decided[1] == mark and mark:",
        ("search/test_input_stretching.py",),
    ),
    Fault(
        "ends are compared by values that are not warped alone",
        "search/input_stretching.py",
        "if scaled.may_be_warped:",
        "if scaled.may_be_warped and False:",
        ("search/test_input_stretching.py",),
    ),
    Fault(
        "a copy of a model that learns some rows changes the model",
        "search/quantities/quantity.py",
        "copy.deepcopy(self.surrogate, {id(self.surrogate.observations): known})",
        "self.surrogate",
        (*RELEARNING, "plots/test_coverage.py", "plots/test_all.py"),
    ),
    Fault(
        "outliers are learnt again with full weight",
        "search/quantities/quantity.py",
        "v.new_tensor(list(self.outliers.values()))",
        "1.0",
        RELEARNING,
    ),
    Fault(
        "what would have been recommended knows constraints that came later",
        "search/models.py",
        "rows.places < n) for name, quantity",
        "rows.places >= 0) for name, quantity",
        ("optimizer/results/test_earlier_recommendations.py",),
    ),
)
