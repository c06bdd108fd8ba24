"""Ask and tell in typical use."""

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import bkbopt as bo
from bkbopt.errors import NotReadyError, TrialStateError, UnknownTrialError
from tests.optimizer.spaces_to_ask import BOX, BOX_POINT, MIXED, POOL, bowl, mixed, optimizer, rows, run

SURROGATES = {
    "bkb": bo.BKB,
    "exact": bo.ExactGP,
    "fourier": lambda: bo.FourierGP(n_frequencies=40),
    "pkawv": lambda: bo.LearnerSurrogate(learner="pkawv"),
    "prosnkons": lambda: bo.LearnerSurrogate(learner="prosnkons"),
    "forks": lambda: bo.LearnerSurrogate(learner="forks", settings={"budget": 4}),
}


#: Spaces with functions on them.
PROBLEMS: list[tuple[Any, Any]] = [(BOX, bowl), (POOL, rows), ({"n": bo.Int(0, 30)}, lambda p: p["n"] ** 2)]


# -- asking and telling --------------------------------------------------------------------------------------------


def test_trials_are_told_in_any_order_and_late() -> None:
    opt = optimizer()
    first = opt.ask(6)
    for t in reversed(first[1:]):
        opt.tell(t, bowl(t.params))
    run(opt, 4)
    late = opt.tell(first[0], bowl(first[0].params))
    assert late.id == 0
    assert late.state == "COMPLETE"
    assert [t.id for t in opt.trials] == list(range(10))
    assert {t.state for t in opt.trials} == {"COMPLETE"}


@pytest.mark.parametrize("name", ["trial", "id", "numpy id"])
def test_trial_is_named_by_itself_or_its_id(name: str) -> None:
    opt = optimizer()
    trial = opt.ask()
    handle = {"trial": trial, "id": trial.id, "numpy id": np.int64(trial.id)}[name]
    assert opt.tell(handle, 1.0).value == 1.0


def test_second_answer_is_refused_and_changes_nothing() -> None:
    opt = optimizer()
    a, b = opt.ask(2)
    opt.tell(a, 1.0)
    opt.fail(b)
    for call in (lambda: opt.tell(a, 2.0), lambda: opt.fail(a), lambda: opt.tell(b, 2.0), lambda: opt.fail(b)):
        with pytest.raises(TrialStateError):
            call()
    assert [t.value for t in opt.trials] == [1.0, None]


@pytest.mark.parametrize("unknown", [5, -1, 10**30])
def test_unknown_ids_are_refused(unknown: int) -> None:
    opt = optimizer()
    opt.ask()
    for call in (lambda: opt.tell(unknown, 2.0), lambda: opt.fail(unknown)):
        with pytest.raises(UnknownTrialError, match="0 to 0"):
            call()


def test_repr_has_the_size_of_the_pool() -> None:
    assert "over 1,200 points" in repr(bo.Optimizer(np.random.default_rng(0).random((1200, 2)), seed=0))


def test_repr_counts_the_trials() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, direction="maximize", seed=0)
    opt.tell(opt.ask(3)[1], 1.0)
    assert repr(opt) == "<Optimizer to maximize over 1 parameter: 3 trials, 1 of them with values>"


def test_options_say_what_an_optimizer_was_made_with_and_a_copy_of_its_log_too(tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "directions": ["maximize"],
        "constraints": ["heat"],
        "n_startup_trials": 7,
        "acquisition": "logei",
        "fit": True,
        "duplicates": "avoid",
        "deterministic": True,
        "perturbations": False,
    }
    opt = bo.Optimizer({"x": (0.0, 1.0)}, surrogate="exact", beta=1.5, feasible=lambda p: p["x"] < 0.9, **given)
    expected = {**given, "directions": ("maximize",), "constraints": ("heat",), "feasible": True}
    expected |= {"surrogate": "ExactGP(noise=None)", "beta": bo.confidence.Constant(1.5)}
    assert opt.options == expected
    opt.save(tmp_path / "log")
    assert bo.Optimizer.load(tmp_path / "log", feasible=lambda p: p["x"] < 0.9).options == expected
    own = bo.Optimizer({"x": (0.0, 1.0)}, acquisition=lambda mean, variance: mean)
    assert own.options["acquisition"] == "<lambda>"


def test_past_data_by_dict_list_and_frame_are_the_same() -> None:
    X = np.random.default_rng(0).random((12, 2))
    params = [{"x": float(a), "y": float(b)} for a, b in X]
    values = [bowl(p) for p in params]
    frame = pd.DataFrame(params)
    ways: list[Any] = [
        lambda o: [o.tell(p, v) for p, v in zip(params, values, strict=True)],
        lambda o: o.tell(params, values),
        lambda o: o.tell(tuple(params), np.array(values)),
        lambda o: o.tell(frame, values),
        lambda o: o.tell(frame.assign(loss=values), "loss"),
        lambda o: o.tell(frame, pd.Series(values, index=range(100, 112))),
        lambda o: o.tell(frame[["y", "x"]], torch.tensor(values, dtype=torch.float64)),
    ]
    asked = []
    for way in ways:
        opt = optimizer()
        told = way(opt)
        assert [t.id for t in told] == list(range(12))
        assert [dict(t.params) for t in opt.trials] == params  # to the last digit
        assert [t.value for t in opt.trials] == values
        asked.append(dict(opt.ask().params))
    assert all(a == asked[0] for a in asked)


def test_past_data_do_away_with_the_initial_design() -> None:
    opt = optimizer()
    opt.tell([{"x": 0.1 * i, "y": 0.0} for i in range(6)], range(6))
    opt.ask()
    assert opt.diagnostics[-1].n_inducing is not None


def test_fixed_values_and_numpy_scalars_in_past_data() -> None:
    opt = optimizer(MIXED)
    trial = opt.tell({"x": np.float32(0.5), "n": np.int64(3), "kind": np.str_("b")}, np.float64(1.0))
    assert trial.params == {"x": 0.5, "n": 3, "kind": "b", "k": 7}
    assert [type(v) for v in trial.params.values()] == [float, int, str, int]
    params = {"x": 0.25, "n": 3.0, "kind": "b", "k": 7}
    assert opt.tell(params, 1.0).params["n"] == 3
    params["x"] = 0.75  # the caller's dict stays the caller's
    assert opt.trials[1].params["x"] == 0.25


def test_empty_past_data_are_nothing() -> None:
    opt = optimizer()
    assert opt.tell([], []) == []
    assert opt.tell(pd.DataFrame({"x": [1.0], "y": [0.0], "loss": [2.0]}).iloc[:0], "loss") == []
    assert opt.trials == []


def test_asked_point_told_again_by_its_params_is_the_same_point() -> None:
    opt = optimizer()
    run(opt, 6)
    trial = opt.ask()
    opt.tell(trial, 0.5)
    again = opt.tell(dict(trial.params), 0.5)
    assert again.id == trial.id + 1
    assert len(opt.surrogate.observations) == 7
    assert opt.surrogate.observations.total == 8


def test_observed_values_and_points_come_in_the_order_in_which_they_were_told() -> None:
    opt = optimizer(MIXED)
    a, b, c = opt.ask(3)
    for trial, value in ((b, 2.0), (c, 0.5), (a, 1.0)):
        opt.tell(trial, value)
    X, y = opt.observed()
    assert y.tolist() == [2.0, 0.5, 1.0]
    assert torch.equal(X, opt.encode([dict(t.params) for t in (b, c, a)]))
    trials, *same = opt.observed_trials()
    assert [trial.id for trial in trials] == [b.id, c.id, a.id]
    assert torch.equal(X, same[0])
    assert np.array_equal(y, same[1])
    mean, std = opt.predict([a.params, b.params])
    assert np.array_equal(opt.predict_encoded(X[[2, 0]]), (mean, std))


# -- seeds and directions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("space", "f"), [(BOX, bowl), (MIXED, mixed), (POOL, rows)])
def test_same_seed_same_asks(space: Any, f: Any) -> None:
    a, b, other = (run(optimizer(space, seed=s), 8, f, noise=0.1) for s in (3, 3, 4))
    assert a == b
    assert a != other


def test_no_seed_differs_from_run_to_run() -> None:
    assert bo.Optimizer(BOX).ask(2)[1].params != bo.Optimizer(BOX).ask(2)[1].params


def test_the_global_generators_are_left_alone() -> None:
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    run(optimizer(), 8)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002


@pytest.mark.parametrize(
    ("surrogate", "problem"),
    [
        ("bkb", (BOX, bowl)),
        ("forks", (POOL, rows)),
        *(pytest.param(name, problem, marks=pytest.mark.slow) for name in SURROGATES for problem in PROBLEMS[:2]),
    ],
)
@pytest.mark.usefixtures("few_draws")
def test_directions_mirror_each_other(surrogate: str, problem: tuple[Any, Any]) -> None:
    space, f = problem
    down = optimizer(space, surrogate=SURROGATES[surrogate](), direction="minimize")
    up = optimizer(space, surrogate=SURROGATES[surrogate](), direction="maximize")
    assert run(down, 10, f) == run(up, 10, lambda p: -f(p))
    a, b = down.recommend(), up.recommend()
    assert (a.params, a.mean, a.std) == (b.params, -b.mean, b.std)
    assert down.best_trial.value == -up.best_trial.value
    assert down.regret_certificate().bound == up.regret_certificate().bound


@pytest.mark.usefixtures("few_draws")
def test_caller_keeps_threads_gradient_mode_and_quiet() -> None:
    out = io.StringIO()
    before = torch.get_num_threads(), torch.is_grad_enabled()
    with redirect_stdout(out), redirect_stderr(out):
        opt = optimizer()
        run(opt, 8)
        read_everything(opt)
    assert (torch.get_num_threads(), torch.is_grad_enabled()) == before
    assert out.getvalue() == ""


# -- reading changes nothing ---------------------------------------------------------------------------------------


def read_everything(opt: bo.Optimizer) -> None:
    opt.recommend()
    opt.predict([t.params for t in opt.trials[:3]])
    opt.surrogate.posterior(opt.encode([t.params for t in opt.trials[:2]]))
    opt.regret_certificate()
    opt.useful_workers(limit=4)
    opt.trials_dataframe()
    opt.observed()
    assert (opt.beta > 0.0, opt.noise_std > 0.0) == (True, True)
    assert opt._repr_html_()
    assert opt.best_trial in opt.trials


# That reading changes no surrogate is a test of each of them; what the designer keeps does not depend on which it is.
@pytest.mark.parametrize(
    ("surrogate", "problem"),
    [
        *zip(("bkb", "exact", "forks"), PROBLEMS, strict=True),
        *(pytest.param(name, problem, marks=pytest.mark.slow) for name in SURROGATES for problem in PROBLEMS),
    ],
)
@pytest.mark.usefixtures("few_draws")
def test_reading_never_changes_the_asks_to_come(surrogate: str, problem: tuple[Any, Any]) -> None:
    space, f = problem
    quiet, read = (optimizer(space, surrogate=SURROGATES[surrogate](), n_startup_trials=3) for _ in range(2))
    for i in range(7):
        a, b = quiet.ask(), read.ask()
        assert a.params == b.params
        if i % 3 != 1:  # some stay pending
            quiet.tell(a, f(a.params))
            read.tell(b, f(b.params))
        read_everything(read)


def test_nothing_can_be_read_before_the_first_value() -> None:
    opt = optimizer()
    opt.ask()
    calls = {
        "recommend": opt.recommend,
        "regret_certificate": opt.regret_certificate,
        "predict": lambda: opt.predict([BOX_POINT]),
        "surrogate": lambda: opt.surrogate,
        "noise_std": lambda: opt.noise_std,
        "beta": lambda: opt.beta,
    }
    for name, call in calls.items():
        with pytest.raises(NotReadyError, match=f"^{name}: expected at least one value of an objective, got none"):
            call()
    with pytest.raises(NotReadyError, match="best_trial"):
        _ = opt.best_trial
    opt.tell(0, 1.0)
    assert opt.recommend().mean == pytest.approx(1.0)


# -- results -------------------------------------------------------------------------------------------------------


def test_best_trial_is_the_best_told() -> None:
    for direction, pick in (("minimize", min), ("maximize", max)):
        opt = optimizer(direction=direction)
        run(opt, 7)
        assert opt.best_trial.value == pick(t.value for t in opt.trials)


def test_recommendation_is_the_predicted_best_of_the_tried() -> None:
    opt = optimizer(MIXED)
    run(opt, 12, mixed, noise=0.1)
    opt.ask()
    tried = [t.params for t in opt.trials if t.state == "COMPLETE"]
    mean, std = opt.predict(tried)
    rec = opt.recommend()
    assert rec.params == tried[int(mean.argmin())]
    assert rec.mean == pytest.approx(float(mean.min()), rel=1e-9)
    assert rec.std == pytest.approx(float(std[mean.argmin()]), rel=1e-6)
    assert rec.index is None


def test_prediction_is_in_the_users_units() -> None:
    big = optimizer()
    small = optimizer()
    assert run(big, 10, lambda p: 2.0**40 * bowl(p)) == run(small, 10)
    for a, b in zip(big.predict([BOX_POINT]), small.predict(BOX_POINT), strict=True):
        assert a == 2.0**40 * b
    mean, std = big.predict([])
    assert mean.shape == std.shape == (0,)


def test_diagnostics_tell_every_ask() -> None:
    opt = optimizer()
    run(opt, 9)
    assert [d.trial for d in opt.diagnostics] == list(range(9))
    assert [d.n_values for d in opt.diagnostics] == list(range(9))
    assert all(d.ask_seconds > 0.0 for d in opt.diagnostics)
    start, model = opt.diagnostics[:5], opt.diagnostics[5:]
    assert all(d.n_inducing is d.beta is d.effective_dimension is d.confidence_gap is None for d in start)
    for d in model:
        assert d.n_inducing >= 1
        assert 0.0 < d.effective_dimension <= d.n_values
        assert d.beta > 0.0
        assert d.noise_std > 0.0
        assert d.confidence_gap >= 0.0
    opt.ask(2)
    assert opt.diagnostics[-1].confidence_gap is None  # one was pending


def test_dataframe_has_a_row_for_each_trial() -> None:
    opt = optimizer(MIXED)
    run(opt, 3, mixed)
    table = opt.trials_dataframe()
    assert list(table.columns) == [
        "number", "value", "datetime_start", "datetime_complete", "duration",
        "params_x", "params_n", "params_kind", "params_k", "state",
    ]  # fmt: skip
    assert table["value"].tolist() == [t.value for t in opt.trials]
