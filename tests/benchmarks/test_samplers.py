"""The samplers of the comparison follow their sources."""

import itertools
from collections import Counter

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from benchmarks import turbo
from benchmarks.ask_tell_samplers import _native
from benchmarks.samplers import SAMPLERS, NoisyCma, missing_packages, quiet_optuna
from benchmarks.turbo import Region, TurboSampler, learn, thompson


def bowl(trial: optuna.Trial) -> float:
    x, y = (trial.suggest_float(name, -1.0, 1.0) for name in "xy")
    noise = np.random.default_rng(trial.number).standard_normal()
    return float((x - 0.3) ** 2 + (y + 0.6) ** 2 + 0.02 * noise)


def study_of(sampler: optuna.samplers.BaseSampler, n_trials: int) -> optuna.Study:
    with quiet_optuna():
        study = optuna.create_study(sampler=sampler)
        study.optimize(bowl, n_trials)
    return study


def test_cma_for_noise_has_four_times_the_population_and_recommends_the_mean() -> None:
    study = study_of(NoisyCma(0), 120)
    generations = Counter(trial.system_attrs.get("cma:generation") for trial in study.trials)
    assert generations[0] == generations[1] == generations[2] == 4 * (4 + 2)  # 3 log 2 = 2.08
    assert isinstance(study.sampler, NoisyCma)
    found = study.sampler.recommend(study).params
    optimizer = study.sampler._restore_optimizer(study.trials)
    assert optimizer is not None
    np.testing.assert_allclose([found["x"], found["y"]], 2 * optimizer.mean - 1, rtol=0, atol=1e-12)
    assert found["x"] == pytest.approx(0.3, abs=0.15)
    assert found["y"] == pytest.approx(-0.6, abs=0.15)


def test_cma_that_recommends_its_mean_makes_the_trials_of_plain_cma() -> None:
    plain, mean = (study_of(SAMPLERS[name](3), 40) for name in ("cmaes", "cmaes_mean"))
    assert [trial.params for trial in plain.trials] == [trial.params for trial in mean.trials]
    assert mean.sampler.recommend(mean).params not in [trial.params for trial in mean.trials]  # type: ignore[attr-defined]


def test_cma_for_noise_recommends_the_best_trial_before_it_has_a_mean() -> None:
    study = study_of(NoisyCma(0), 1)
    assert isinstance(study.sampler, NoisyCma)
    assert study.sampler.recommend(study).params == study.best_params


def test_regions_grow_by_successes_shrink_by_failures_and_collapse() -> None:
    region = Region(dim=6)
    for _ in range(3):
        region.count(True)
    assert (region.length, region.successes) == (1.6, 0)
    for _ in range(3):
        region.count(True)
    assert region.length == 1.6  # the largest
    for _ in range(5):
        region.count(False)
    region.count(True)  # which ends the row of failures
    for _ in range(6):
        assert region.length == 1.6
        region.count(False)
    assert region.length == 0.8
    halvings = 0
    while not region.collapsed:
        for _ in range(6):
            region.count(False)
        halvings += 1
    assert halvings == 7  # 0.8 / 2^7 is the first below 0.5^7
    small = Region(dim=2)
    for _ in range(4):
        small.count(False)
    assert small.length == 0.4  # never fewer than four failures


def points(n: int, dim: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.random((n, dim))
    return X, 50 + 10 * ((X - 0.4) ** 2).sum(1) + 0.1 * rng.standard_normal(n)


def test_means_are_those_of_the_formula_with_and_without_a_new_fit() -> None:
    X, y = points(25)
    first = learn(X[:20], y[:20])
    second = learn(X[:23], y[:23], first)
    assert second.fitted == 20
    for (name, a), (_, b) in zip(
        first.gp.named_parameters(), second.gp.named_parameters(), strict=True
    ):  # three trials later the hyper-parameters are the same
        assert a.tolist() == b.tolist(), name
    scale = y[:20].mean(), y[:20].std(ddof=1)
    kernel, noise = second.gp.covar_module, second.gp.likelihood.noise.item()
    K = kernel(second.gp.train_inputs[0]).to_dense().detach().numpy()
    expected = K @ np.linalg.solve(
        K + noise * np.eye(23), (y[:23] - scale[0]) / scale[1] - second.gp.mean_module.constant.item()
    )
    expected = scale[0] + scale[1] * (expected + second.gp.mean_module.constant.item())
    np.testing.assert_allclose(second.means(X[:23]), expected, rtol=1e-6)
    assert learn(X[:24], y[:24], second).fitted == 24


def test_thompson_stays_in_the_region() -> None:
    model = learn(*points(25))
    centre = np.array([0.05, 0.5, 0.9])
    half = 0.1 * model.lengths()
    assert np.prod(model.lengths()) == pytest.approx(1.0)
    found = np.array([thompson(model, centre, 0.2, np.random.default_rng(seed)) for seed in range(20)])
    assert len(np.unique(found, axis=0)) > 5
    assert np.all(found >= np.maximum(centre - half, 0.0) - 1e-12)
    assert np.all(found <= np.minimum(centre + half, 1.0) + 1e-12)
    assert np.all(np.abs(found - centre).max(0) > 0)


@pytest.mark.slow
def test_turbo_finds_a_bowl_and_recommends_the_smallest_posterior_mean() -> None:
    # In two dimensions 28 failures in a row end a region.
    study = study_of(TurboSampler(0, 10), 36)
    late = [trial.params for trial in study.trials[-10:]]
    distances = [np.hypot(params["x"] - 0.3, params["y"] + 0.6) for params in late]
    assert np.median(distances) < 0.2  # uniform points: 0.9
    assert isinstance(study.sampler, TurboSampler)
    found = study.sampler.recommend(study).params
    assert found in [trial.params for trial in study.trials]
    assert np.hypot(found["x"] - 0.3, found["y"] + 0.6) < 0.15


@pytest.mark.slow
def test_a_collapsed_region_is_forgotten_but_for_its_centre(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def watched(X: np.ndarray, y: np.ndarray, before: turbo.Local | None) -> turbo.Local:
        sizes.append(len(y))
        return learn(X, y, before)

    monkeypatch.setattr(turbo, "SMALLEST", 0.5)  # the first halving collapses it
    monkeypatch.setattr(turbo, "learn", watched)
    sampler = TurboSampler(0, 10)
    study_of(sampler, 60)
    falls = [b for a, b in itertools.pairwise(sizes) if b < a]
    assert falls  # regions collapsed
    assert set(falls) == {10}  # the next one began with its own start-up points
    assert len(sampler._settled) - len(falls) in (0, 1)  # the last one may not have its start-up points yet


@pytest.mark.parametrize("name", ["hebo", "smac"])
def test_optional_samplers_take_columns_of_all_kinds_and_values_on_a_log_scale(name: str) -> None:
    if lacking := missing_packages(name):
        pytest.skip(f"{lacking[0]} is optional, and not installed")

    def mixed(trial: optuna.Trial) -> float:
        rate = trial.suggest_float("rate", 1e-4, 1.0, log=True)
        width = trial.suggest_int("width", 2, 64, log=True)
        depth = trial.suggest_int("depth", 1, 6)
        kind = trial.suggest_categorical("kind", ["a", "b", "c"])
        return float((np.log10(rate) + 2) ** 2 + abs(np.log2(width) - 3) + depth + "bca".index(kind))

    with quiet_optuna():
        study = optuna.create_study(sampler=SAMPLERS[name](0))
        study.optimize(mixed, 18)
    assert len({trial.params["rate"] for trial in study.trials}) > 10
    assert {type(value) for value in study.trials[-1].params.values()} == {float, int, str}


@pytest.mark.parametrize(
    ("value", "distribution", "expected"),
    [
        (np.float64(1.0 + 1e-12), FloatDistribution(0.0, 1.0), 1.0),
        (np.int64(5), IntDistribution(1, 9), 5),
        (np.str_("b"), CategoricalDistribution(["a", "b"]), "b"),
    ],
)
def test_values_of_others_become_pythons_own(value: object, distribution: object, expected: object) -> None:
    found = _native(value, distribution)  # type: ignore[arg-type]
    assert found == expected
    assert type(found) is type(expected)
