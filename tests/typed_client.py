"""What a type checker says of programs that use the package; `make check` runs mypy on it, and nothing runs it.

A line with an ignored error is one that has to be refused: mypy reports ignores that are not needed.
"""

from typing import assert_type

import bkbopt as bo


def answers(opt: bo.Optimizer, trial: bo.Trial) -> None:
    """The types of what comes back."""
    assert_type(opt.ask(), bo.Trial)
    assert_type(opt.ask(3), list[bo.Trial])
    assert_type(opt.ask("useful"), list[bo.Trial])
    assert_type(opt.tell(trial, 0.5), bo.Trial)
    assert_type(opt.tell(trial.id, 0.5, std=0.1), bo.Trial)
    assert_type(opt.tell({"x": 0.5}, {"loss": (0.5, 0.1)}, user_attrs={"host": "a1"}), bo.Trial)
    assert_type(opt.tell([trial, 3], [0.5, 0.7]), list[bo.Trial])
    assert_type(opt.tell([{"x": 0.5}], [0.5], invalid="skip"), list[bo.Trial])
    assert_type(opt.fail(trial, lost=True), bo.Trial)
    assert_type(opt.fail({"x": 0.5}), bo.Trial)
    assert_type(opt.fail([trial, 3]), list[bo.Trial])
    assert_type(opt.recommend(), bo.Recommendation)
    assert_type(opt.recommend_front(), list[bo.FrontPoint])
    assert_type(opt.regret_certificate(), bo.RegretCertificate)
    assert_type(opt.residuals(), list[bo.Residual])
    assert_type(opt.recommended_after([1, 2]), list[bo.Recommendation])
    assert_type(bo.analysis.variance_shares(opt), dict[str, bo.analysis.Share])
    assert_type(bo.analysis.partial_dependence(opt, "x"), bo.analysis.Dependence)
    assert_type(bo.analysis.coverage(opt), bo.analysis.Coverage)
    assert_type(opt.diagnostics, list[bo.Diagnostics])
    assert_type(bo.minimize(lambda params: 0.5, opt, 3, catch=ValueError), bo.Optimizer)


def refusals(opt: bo.Optimizer, trial: bo.Trial) -> None:
    """Mistakes that a type checker finds."""
    opt.directions = ("maximize",)  # type: ignore[misc]
    opt.tell(trial, 0.5, stdev=0.1)  # type: ignore[call-overload]
    opt.fail(3.5)  # type: ignore[call-overload]
    opt.heartbeat({"x": 0.5})  # type: ignore[arg-type]
    bo.Optimizer({"x": (0.0, 1.0)}, direction="minimise")  # type: ignore[arg-type]
    bo.Optimizer({"x": (0.0, 1.0)}, acquisition="usb")  # type: ignore[arg-type]
    bo.minimize(lambda params: 0.5, {"x": (0.0, 1.0)}, 3, sed=0)  # type: ignore[call-arg]
    bo.maximize(lambda params: 0.5, {"x": (0.0, 1.0)}, 3, direct="minimize")  # type: ignore[call-arg]
    bo.Optimizer.load("runs.db", kernel=None)  # type: ignore[call-arg]
