"""Several threads on one optimizer, interrupted loops, notebooks, and user-defined functions."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch

import bkbopt as bo
from bkbopt.errors import ArgumentError
from bkbopt.search.designer import Designer
from tests.optimizer.spaces_to_ask import BOX, bowl, optimizer


def test_many_threads_ask_and_tell_without_losing_a_trial() -> None:
    opt = optimizer({"x": bo.Float(0.0, 1.0, step=0.02), "y": bo.Float(-2.0, 2.0, step=0.1)})
    seen: list[int] = []
    errors: list[BaseException] = []

    def work(name: int) -> None:
        try:
            for i in range(3):
                if (name + i) % 4 == 3:
                    opt.enqueue({"x": (name + i) / 50})
                for trial in opt.ask(2):
                    seen.append(trial.id)
                    if (trial.id + name) % 5:
                        opt.tell(trial.id, bowl(trial.params))
                    else:
                        opt.fail(trial)
                if opt.n_complete:
                    repr(opt), opt._repr_html_(), opt.trials_dataframe(), opt.best_trial
        except BaseException as error:  # noqa: BLE001  # to be shown by the main thread
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(seen) == len(set(seen)) == 48
    assert [t.id for t in opt.trials] == list(range(len(opt.trials)))
    assert {t.state for t in opt.trials} <= {"COMPLETE", "FAIL", "WAITING"}
    assert sum(t.state != "WAITING" for t in opt.trials) == 48
    assert opt.n_complete == len(opt.observed()[1]) == sum(t.state == "COMPLETE" for t in opt.trials)


def test_one_trial_is_told_by_one_of_many_threads() -> None:
    opt = optimizer()
    trial = opt.ask()
    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(opt.tell, trial, float(i)) for i in range(8)]
    won = [i for i, answer in enumerate(answers) if answer.exception() is None]
    assert len(won) == 1
    assert opt.trials[0].value == float(won[0])


# -- loops that are interrupted ------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_interrupted_loop_fails_the_trial_that_was_running_and_goes_on(error: type[BaseException]) -> None:
    opt = optimizer()

    def f(params: Any) -> float:
        if len(opt.trials) == 4:
            raise error
        return bowl(params)

    with pytest.raises(error):
        bo.minimize(f, opt, 10)
    queued = ["WAITING"] if error is KeyboardInterrupt else []
    assert [t.state for t in opt.trials] == ["COMPLETE"] * 3 + ["FAIL"] + queued
    bo.minimize(bowl, opt, 3)
    assert [t.state for t in opt.trials[4:]] == ["COMPLETE"] * 3


def test_values_that_an_interrupt_kept_from_the_model_are_learnt_later(monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other = optimizer(), optimizer()
    for opt in (mine, other):
        past = [{"x": i / 5, "y": 0.0} for i in range(5)]
        opt.tell(past, [bowl(params) for params in past])

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Designer, "update", interrupted)
        with pytest.raises(KeyboardInterrupt):
            mine.ask()
    assert mine.ask().params == other.ask().params


def test_interrupted_loop_on_an_executor_fails_and_queues_what_it_leaves_running() -> None:
    opt = optimizer()

    def f(params: Any) -> float:
        if opt.n_complete >= 3:
            raise KeyboardInterrupt
        time.sleep(0.01)
        return bowl(params)

    with ThreadPoolExecutor(3) as pool, pytest.raises(KeyboardInterrupt):
        bo.minimize(f, opt, 30, executor=pool, n_workers=3)
    failed, queued = ([t.params for t in opt.trials if t.state == state] for state in ("FAIL", "WAITING"))
    assert failed == queued
    assert 1 <= len(failed) <= 3
    bo.minimize(bowl, opt, len(queued))
    assert {t.state for t in opt.trials} == {"COMPLETE", "FAIL"}


def test_callback_that_raises_leaves_nothing_running() -> None:
    opt = optimizer()

    def callback(opt: bo.Optimizer, trial: bo.Trial) -> None:
        if trial.id == 2:
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        bo.minimize(bowl, opt, 10, callbacks=callback)
    assert {t.state for t in opt.trials} == {"COMPLETE"}
    with ThreadPoolExecutor(2) as pool, pytest.raises(RuntimeError, match="stop"):
        bo.minimize(bowl, optimizer(), 10, callbacks=callback, executor=pool)


def test_maximize_is_minimize_the_other_way() -> None:
    a = bo.maximize(lambda p: -bowl(p), BOX, 12, seed=0)
    b = bo.minimize(bowl, BOX, 12, seed=0)
    assert [t.params for t in a.trials] == [t.params for t in b.trials]
    assert a.best_trial.value == -b.best_trial.value
    assert len(bo.maximize(lambda p: -bowl(p), a, 2).trials) == 14
    for call in (
        lambda: bo.maximize(bowl, b, 1),
        lambda: bo.maximize(bowl, BOX, 1, direction="minimize"),
        lambda: bo.maximize(bowl, BOX, 1, directions=["maximize"]),
    ):
        with pytest.raises(ArgumentError, match=r"direction|to maximize"):
            call()


# -- notebooks -----------------------------------------------------------------------------------------------------


def test_page_for_notebooks_tells_the_best_the_recommended_and_the_latest() -> None:
    opt = optimizer({"x": (0.0, 1.0), "kind": ["<b>", "&"]}, constraints=["g"])
    assert "no trials" in opt._repr_html_()
    for _ in range(6):
        trial = opt.ask()
        opt.tell(trial, trial.params["x"])
    opt.fail(opt.ask())
    opt.ask()
    opt.enqueue({"kind": "<b>"})
    page = opt._repr_html_()
    for words in ("minimize", "6 complete, 1 fail, 1 running, 1 waiting", "best value told", "recommended", "<table>"):
        assert words in page
    assert "<b>Optimizer</b>" in page
    assert page.count("<b>") == 1  # what users write is escaped
    assert "&lt;b&gt;" in page
    assert page.count("<tr>") == 6  # a head and the latest five


def test_page_for_notebooks_counts_lost_trials_apart_from_failed_ones() -> None:
    opt = optimizer({"x": (0.0, 1.0)})
    opt.fail(opt.ask())
    opt.ask()
    opt.recover(enqueue=True)
    page = opt._repr_html_()
    assert "1 fail, 1 lost (no fault of its point), 1 waiting" in page
    assert page.count("<td>FAIL</td>") == page.count("<td>LOST (no fault of its point)</td>") == 1


def test_page_for_notebooks_of_several_objectives_and_of_no_feasible_trial() -> None:
    several = optimizer(directions=["minimize", "maximize"])
    several.tell([{"x": 0.1, "y": 0.0}, {"x": 0.2, "y": 0.0}], [[1.0, 2.0], [2.0, 3.0]])
    assert "Pareto front: 2 trials" in several._repr_html_()
    limited = optimizer(constraints=["g"])
    limited.tell({"x": 0.1, "y": 0.0}, 1.0, constraints={"g": 1.0})
    assert "1 complete" in limited._repr_html_()


# -- the user's own functions and knowledge ------------------------------------------------------------------------


def mean_and_sd(mean: torch.Tensor, variance: torch.Tensor) -> torch.Tensor:
    return mean + 2.0 * variance.sqrt()


def of_arrays(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    return np.asarray(mean) + 2.0 * np.sqrt(variance)


@pytest.mark.parametrize("acquisition", [mean_and_sd, of_arrays])
@pytest.mark.parametrize(
    "space", [BOX, {"n": bo.Int(0, 40), "k": ["a", "b"]}, np.random.default_rng(0).random((60, 2))]
)
def test_acquisition_of_the_users_is_maximised_as_the_named_one_is(space: Any, acquisition: Any) -> None:
    named, own = (optimizer(space, acquisition=a, beta=2.0, perturbations=False) for a in ("ucb", acquisition))
    for _ in range(8):
        a, b = named.ask(), own.ask()
        values = [v for v in a.params.values() if isinstance(v, (int, float))]
        # Two searches of one function: those of boxes end within rounding of one optimum.
        assert [v for v in b.params.values() if isinstance(v, (int, float))] == pytest.approx(values, abs=1e-3)
        for opt, trial in ((named, a), (own, b)):
            opt.tell(trial, sum((v - 0.3) ** 2 for v in values))


def test_error_of_the_users_acquisition_comes_through_and_changes_nothing() -> None:
    def broken(mean: torch.Tensor, variance: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("mine")

    opt = optimizer(acquisition=broken, n_startup_trials=2)
    for _ in range(2):
        opt.tell(opt.ask(), 1.0)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="mine"):
            opt.ask()
    assert len(opt.trials) == 2


@pytest.mark.parametrize("space", [BOX, np.random.default_rng(0).random((60, 2))])
def test_an_ask_whose_scores_are_refused_changes_nothing(space: Any) -> None:
    scale = 1.0

    def sometimes(mean: torch.Tensor, variance: torch.Tensor) -> torch.Tensor:
        return scale * mean

    opt, twin = (optimizer(space, acquisition=sometimes) for _ in range(2))
    for i in range(6):
        for each in (opt, twin):
            each.tell(each.ask(), float(i % 3))
    scale = float("nan")
    for _ in range(2):
        with pytest.raises(ArgumentError, match=r"^acquisition: expected scores without NaN"):
            opt.ask()
    assert len(opt.trials) == 6
    scale = 1.0
    assert opt.ask().params == twin.ask().params


@pytest.mark.parametrize("space", [BOX, np.random.default_rng(0).random((60, 2))])
def test_a_point_with_a_score_of_minus_infinity_is_not_asked_for(space: Any) -> None:
    def known(mean: torch.Tensor, variance: torch.Tensor) -> torch.Tensor:
        return torch.where(variance > 0.2, -torch.inf, variance)

    surrogate = bo.ExactGP(bo.kernels.rbf(2, 0.5), noise=0.01)
    opt = optimizer(space, acquisition=known, surrogate=surrogate, fit=False)
    for _ in range(8):
        opt.tell(opt.ask(), 0.0)
    deviation = opt.predict([opt.ask().params])[1]
    assert 0.05 < float(deviation[0]) ** 2 <= 0.2


def test_deterministic_objective_is_fitted_without_noise_and_no_point_is_repeated() -> None:
    opt = optimizer({"n": bo.Int(0, 30)}, deterministic=True)
    for _ in range(20):
        trial = opt.ask()
        opt.tell(trial, (trial.params["n"] - 11) ** 2)
    assert len({t.params["n"] for t in opt.trials}) == 20
    assert opt.recommend().params == {"n": 11}
    box, noisy = optimizer(deterministic=True), optimizer()
    for o in (box, noisy):
        for _ in range(10):
            trial = o.ask()
            o.tell(trial, bowl(trial.params) + 0.3 * np.sin(1e5 * trial.params["x"]))
    # 1e-8 of the variance of the values.
    assert box.noise_std == pytest.approx(1e-4 * np.std(box.observed()[1]), rel=0.5)
    assert box.noise_std < noisy.noise_std
