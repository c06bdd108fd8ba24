"""Tasks of Optuna's samplers: noise determined by a seed, correct minima, spaces with branches."""

import math
import re

import numpy as np
import optuna
import pytest
from botorch.test_functions import Griewank, Rosenbrock

from benchmarks.functions import from_botorch
from benchmarks.pipelines import PIPELINES
from benchmarks.structured_functions import mixed_bowl
from benchmarks.tasks import (
    _CLASSIC,
    _DEVELOPMENT,
    DEVELOPMENT,
    HELD_OUT,
    SETS,
    TASKS,
    of_problem,
)
from benchmarks.tuning import N_SPLITS, TUNING, random_settings
from tests.sweeps import slow_but

FUNCTIONS = [name for name in SETS["all"] if name not in TUNING]
MODELS = TUNING | PIPELINES
every_model = pytest.mark.parametrize("name", MODELS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_noise_of_a_tenth_of_their_scale(name: str) -> None:
    task = TASKS[name]()
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    trial = study.ask()
    task.suggest(trial)
    told, counted = zip(*(task.observe(trial.params, seed=1, number=i) for i in range(400)), strict=True)
    assert set(counted) == {task.truth(trial.params)}
    # Four standard errors of a standard deviation from 400 draws.
    assert np.std(np.array(told) - counted) == pytest.approx(0.1 * task.scale, rel=0.15)
    assert task.minimum is not None
    assert task.truth(trial.params) > task.minimum


@pytest.mark.parametrize("function", [Rosenbrock(6), Griewank(6)])
def test_functions_of_botorch_keep_their_box_and_minimum(function: Rosenbrock | Griewank) -> None:
    problem = from_botorch("theirs", function)
    np.testing.assert_array_equal(np.array([problem.low, problem.high]), function.bounds.numpy())
    np.testing.assert_allclose(problem.value(problem.minimizers), problem.minimum, rtol=0, atol=1e-12)
    task = of_problem(problem)
    best = {f"x{j}": x for j, x in enumerate(problem.minimizers[0])}
    assert task.truth(best) == pytest.approx(problem.minimum, abs=1e-12)


def test_every_task_is_for_development_or_held_out() -> None:
    functions = ("noiseless", "decades", "penalties", "rates", "noisy", "heavy-tails", "outliers", "too-good")
    others = {name for kind in (*functions, "models", "choices", "choices-noiseless") for name in SETS[kind]}
    others |= {name for kind in SETS if kind.startswith("bbob") for name in SETS[kind]}
    assert sorted(DEVELOPMENT + HELD_OUT) == sorted(TASKS.keys() - others) == sorted(SETS["all"])
    kinds = [
        {re.sub(r"\d+", "", name) for name in names if TASKS[name]().minimum is not None}
        for names in (DEVELOPMENT, HELD_OUT)
    ]
    alone = {"branin", "ackley-off", "rosenbrock", "griewank-off", "rastrigin-off", "schwefel", "shekel"}
    assert kinds[0] - kinds[1] == alone  # the classic functions that have a rotated or mirrored counterpart
    assert not kinds[1] - kinds[0]


@pytest.mark.parametrize("name", SETS["choices"])
def test_functions_of_choices_are_reached_by_their_names_and_noisy(name: str) -> None:
    task, exact = TASKS[name](), TASKS[f"{name}-noiseless"]()
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    trials = [study.ask() for _ in range(40)]
    for trial in trials:
        task.suggest(trial)
    values = np.array([task.truth(trial.params) for trial in trials])
    told = np.array([task.observe(trial.params, 0, i)[0] for i, trial in enumerate(trials)])
    assert [exact.observe(trial.params, 0, 3) for trial in trials] == [(value, value) for value in values]
    # Four standard errors of a standard deviation from 40 draws.
    assert np.std(told - values) == pytest.approx(0.1 * task.scale, rel=0.45)
    assert len(set(values)) == 40


def test_a_noiseless_task_tells_the_true_value() -> None:
    task = TASKS["hartmann6-noiseless"]()
    params = {f"x{j}": 0.3 for j in range(6)}
    assert task.observe(params, 0, 5) == (task.truth(params), task.truth(params))
    assert task.note == "6 floats, no noise"


@pytest.mark.parametrize(("kind", "share", "signs"), [("outliers", 0.05, {-1.0, 1.0}), ("too-good", 0.03, {-1.0})])
def test_some_values_of_a_task_with_outliers_are_wrong(kind: str, share: float, signs: set[float]) -> None:
    plain, task = TASKS["hartmann6"](), TASKS[f"hartmann6-{kind}"]()
    params = {f"x{j}": 0.5 for j in range(6)}
    both = np.array([[t.observe(params, 0, number) for t in (plain, task)] for number in range(1000)])
    np.testing.assert_array_equal(both[:, 0, 1], both[:, 1, 1])  # what is counted is right
    errors = both[:, 1, 0] - both[:, 0, 0]
    wrong = errors[errors != 0.0] / task.scale
    assert {*np.sign(wrong)} == signs
    # Within three standard errors of shares and standard deviations.
    assert len(wrong) / 1000 == pytest.approx(share, abs=3 * (share / 1000) ** 0.5)
    assert np.mean(wrong**2) ** 0.5 == pytest.approx(2.0, rel=3 / (2 * len(wrong)) ** 0.5)


def test_an_interquartile_range_of_values_over_decades_is_a_factor_of_ten() -> None:
    plain, task = TASKS["hartmann6"](), TASKS["hartmann6-decades"]()
    params = {f"x{j}": 0.5 for j in range(6)}
    (noisy, true), (told, counted) = plain.observe(params, 0, 5), task.observe(params, 0, 5)
    assert counted == true == task.truth(params)
    assert math.log10(told) * plain.scale == pytest.approx(noisy - plain.minimum, rel=1e-12)  # rounding of 10^x


@pytest.mark.parametrize("kind", ["noisy", "tails"])
def test_noise_has_the_spread_that_its_note_says(kind: str) -> None:
    task = TASKS[f"hartmann6-{kind}"]()
    params = {f"x{j}": 0.5 for j in range(6)}
    observed = [task.observe(params, 0, i) for i in range(400)]
    assert {counted for _, counted in observed} == {task.truth(params)}
    noise = np.array([told - counted for told, counted in observed]) / task.scale
    q1, q3 = np.percentile(noise, [25, 75])
    # Of a normal distribution of standard deviation 1, and of a tenth of Student's t with two degrees of freedom; the
    # range of 400 values has a standard error of 6 and 8 %.
    assert q3 - q1 == pytest.approx({"noisy": 1.349, "tails": 0.1633}[kind], rel=0.2)


@pytest.mark.parametrize("name", SETS["rates"])
def test_a_task_of_rates_has_the_minimum_of_the_task_on_linear_ranges(name: str) -> None:
    plain, task = TASKS[name.removesuffix("-rates")](), TASKS[name]()
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    trial = study.ask()
    task.suggest(trial)
    assert len(trial.params) == int(task.note.split()[0])
    assert trial.distributions["rate"] == optuna.distributions.FloatDistribution(1e-4, 1.0)
    assert trial.distributions["momentum"] == optuna.distributions.FloatDistribution(0.0, 0.999)
    assert task.minimum == plain.minimum
    assert task.scale == plain.scale
    # The ends of both ranges are those of the parameters in their places; a momentum of zero is the lowest of them.
    problem = next(p for p in (*_CLASSIC, *_DEVELOPMENT) if p.name == plain.name)
    rest = {f"x{j}": x for j, x in enumerate(problem.minimizers[0]) if j > 1}
    for rate, momentum, ends in ((1e-4, 0.0, 0), (1.0, 0.999, 1)):
        first = {f"x{j}": problem.bounds[j][ends] for j in (0, 1)}
        told = {"rate": rate, "momentum": momentum, **rest}
        assert task.truth(told) == pytest.approx(plain.truth({**first, **rest}), rel=1e-9)
    assert task.observe(told, 1, 2) == pytest.approx(plain.observe({**first, **rest}, 1, 2), rel=1e-9)


@pytest.mark.parametrize("name", SETS["penalties"])
def test_a_part_of_a_task_with_penalties_has_them_and_the_best_point_has_none(name: str) -> None:
    plain, task = TASKS[name.removesuffix("-penalties")](), TASKS[name]()
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    trials = [study.ask() for _ in range(200)]
    n_failed = 0
    for trial in trials:
        task.suggest(trial)
        told, counted = task.observe(trial.params, 0, 1)
        n_failed += told == 1e10
        assert counted == task.truth(trial.params) == plain.truth(trial.params) + task.scale * (told == 1e10)
    assert 0.3 - 0.1 < n_failed / 200 < 0.6 + 0.1  # three standard errors
    problem = next(p for p in (*_CLASSIC, *_DEVELOPMENT) if p.name == plain.name)
    best = {f"x{j}": float(x) for j, x in enumerate(problem.minimizers[0])}
    assert task.truth(best) == plain.truth(best)


def test_integers_and_choices_are_suggested_as_integers_and_categories() -> None:
    problem = mixed_bowl(5, seed=0)
    task = of_problem(problem)
    trial = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0)).ask()
    task.suggest(trial)
    assert [type(trial.params[f"x{j}"]) for j in range(5)] == [float, float, int, int, str]
    best = dict(zip(trial.params, problem.minimizers[0], strict=True))
    for choice in range(4):
        settings = {**best, "x4": "abcd"[choice]}
        expected = float(problem.value([*problem.minimizers[0][:-1], choice]))
        assert task.truth(settings) == expected
        assert (expected < 1e-20) == (choice == problem.minimizers[0][-1])


@every_model
def test_a_loss_is_decided_by_seed_and_trial(name: str) -> None:
    tuning = MODELS[name]
    settings = random_settings(tuning, 1)[0]
    task = TASKS[name]()
    first, again = (task.observe(settings, seed=3, number=7) for _ in range(2))
    assert first == again
    assert first[0] == first[1]  # what the sampler is told is what the average counts
    assert len({task.observe(settings, seed=3, number=i)[0] for i in range(10)}) > 1


@pytest.mark.parametrize("name", slow_but({"svm", "ridge"}, MODELS))
def test_the_true_value_is_the_mean_over_all_splits(name: str) -> None:
    tuning = MODELS[name]
    settings = min(random_settings(tuning, 8), key=lambda s: s.get("n_estimators", s.get("max_iter", 0)))  # a fast one
    losses = tuning.losses(settings)
    assert losses.shape == (N_SPLITS,)
    assert TASKS[name]().truth(settings) == pytest.approx(losses.mean(), rel=1e-15)
    assert tuning.observe(settings, seed=0, number=0) in losses


@every_model
def test_notes_count_the_parameters_of_the_branches(name: str) -> None:
    settings = random_settings(MODELS[name], 80)
    lengths = {len(branch) for branch in settings}
    counts = [int(number) for number in re.findall(r"\d+", MODELS[name].note)]
    assert (min(lengths), max(lengths)) == (counts[0], counts[min(1, len(counts) - 1)])
    assert len({parameter for branch in settings for parameter in branch}) == counts[-1]


def test_a_diverged_network_is_worth_a_guess() -> None:
    tuning = TUNING["mlp"]
    settings = {
        "layers": 3,
        **{f"width{i}": 64 for i in range(3)},
        "activation": "relu",
        "alpha": 1e-6,
        "batch_size": 16,
        "max_iter": 15,
        "solver": "sgd",
        "sgd_rate": 1e8,
        "momentum": 0.98,
    }
    assert tuning.loss(settings, 0) == pytest.approx(0.9, abs=0.1)


@pytest.mark.slow
def test_scales_that_are_written_down_are_of_the_size_of_those_measured() -> None:
    for tuning in MODELS.values():
        values = [np.mean([tuning.loss(s, split) for split in range(2)]) for s in random_settings(tuning, 40)]
        lower, upper = np.quantile(values, [0.25, 0.75])
        # 40 settings on two splits for 120 on forty: the same order of size is all that can be asked.
        assert abs(math.log((upper - lower) / tuning.iqr)) < math.log(2.0)
