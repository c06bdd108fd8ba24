"""The timing of BoTorch's models meets the data that it says, ends in time, and prints every table."""

import pytest
import torch
from botorch.test_functions import Hartmann

from benchmarks import botorch_speed
from benchmarks.botorch_speed import MODELS, Measured, make_data, measure, within_limit
from tests.sweeps import slow_but

FIELDS = set(Measured().__dict__)


def test_half_of_the_points_lie_around_the_best_one() -> None:
    X, Y = make_data(1_001, seed=0)
    assert (X.shape, Y.shape) == ((1_001, 6), (1_001, 1))
    assert bool(((X >= 0.0) & (X <= 1.0)).all())
    distance = (X - torch.tensor(Hartmann(6)._optimizers[0])).norm(dim=1)
    # A normal deviation of 0.15 in six dimensions stays below 0.65 (chi-square, 1 - 0.004); of random points few do.
    assert 480 <= int((distance < 0.65).sum()) <= 700
    again = make_data(1_001, seed=0)
    assert torch.equal(X, again[0])
    assert torch.equal(Y, again[1])


def test_the_noise_has_the_deviation_that_is_said() -> None:
    X, Y = make_data(4_000, seed=1)
    noise = Y[:, 0] - Hartmann(6, negate=True)(X)
    assert float(noise.std()) == pytest.approx(botorch_speed.NOISE_SD, rel=0.05)  # four standard errors


@pytest.mark.parametrize(
    "name",
    # The fit of the last one takes a thousand steps.
    slow_but({"BKB 300"}, ["BKB 300", "exact", "variational 300"]),
)
def test_a_measurement_has_every_number(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, _ = MODELS[name]
    monkeypatch.setitem(MODELS, name, (make, 12))
    numbers: dict[str, float] = {}
    measure(name, 40, 1, numbers.__setitem__, restarts=1, raw_samples=4)
    assert set(numbers) == FIELDS
    assert all(numbers[field] > 0.0 for field in ("fit", "first", "again", "q1", "q4", "rmse"))
    own = Measured(**numbers)
    assert own.total("q4") == pytest.approx(numbers["fit"] + numbers["first"] + numbers["q4"], rel=1e-12)


def test_a_measurement_ends_at_its_limit_and_keeps_what_it_has() -> None:
    measured, done = within_limit("exact", 20, 1, limit=0.0)
    assert not done
    assert measured == Measured()
    assert measured.total("q1") is None


def test_a_model_over_the_limit_is_left_out_at_larger_sizes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[str, int]] = []

    def instead(name: str, n: int, *rest: object) -> tuple[Measured, bool]:
        asked.append((name, n))
        if name == "exact" and n > 50:
            return Measured(fit=99.0), False
        seconds = 10.0 if name == "exact" else 0.1 * n / 50
        return Measured(seconds, seconds, seconds, -0.5 if name == "exact" else -0.4, 0.1, seconds, seconds, 1.0), True

    monkeypatch.setattr(botorch_speed, "within_limit", instead)
    options = ["--sizes", "50", "100", "200", "--models", "BKB 300", "exact", "--threads", "1", "--turns", "1"]
    botorch_speed.main(options)
    assert asked == [("BKB 300", 50), ("exact", 50), ("BKB 300", 100), ("exact", 100), ("BKB 300", 200)]
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["BKB", "300", "50", "100", "100", "20", "-", "-"] in lines  # times, NLPD, growth
    assert ["BKB", "300", "100", "-", "-", "-", "2", "2"] in lines
    assert ["exact", "99", "-", "-", "-", "-", "-", "-", "-", "-", "-"] in lines


def test_models_take_turns_while_they_have_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[str, int]] = []
    clock = [0.0]
    # The exact model is ten times slower than BKB, and both are slower from turn to turn, as on a machine that is used.
    cost = {"BKB 300": 6.0, "exact": 60.0}

    def instead(name: str, n: int, threads: int, limit: float, *rest: int) -> tuple[Measured, bool]:
        turn = rest[-1]
        asked.append((name, turn))
        seconds = cost[name] * (turn + 1)
        clock[0] += min(seconds, limit)
        third = seconds / 3.0
        return Measured(third, third, third, -0.5, 0.1, third, third, 1.0), seconds <= limit

    monkeypatch.setattr(botorch_speed, "within_limit", instead)
    monkeypatch.setattr(botorch_speed.time, "monotonic", lambda: clock[0])
    botorch_speed.main(["--sizes", "50", "--models", "BKB 300", "exact", "--limit", "200"])
    # After 60 and 120 seconds the exact model has 20 left.
    assert asked == [("BKB 300", 0), ("exact", 0), ("BKB 300", 1), ("exact", 1), ("BKB 300", 2)]
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["BKB", "300", *["4"] * 5, "12", "12", "-0.5", "0.1", "1"] in lines  # the median of 6, 12 and 18
    assert ["exact", *["30"] * 5, "90", "90", "-0.5", "0.1", "1"] in lines
    # Of the two turns that both have, not of the medians, which would be 7.5.
    assert ["BKB", "300", "50", "10", "10", "0", "-", "-"] in lines


@pytest.mark.slow
def test_a_turn_has_data_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []

    def recorded(n: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
        seeds.append(seed)
        return make_data(n, seed)

    monkeypatch.setattr(botorch_speed, "make_data", recorded)
    found: list[dict[str, float]] = []
    for turn in (0, 1, 1):
        found.append({})
        measure("BKB 300", 30, 1, found[-1].__setitem__, restarts=1, raw_samples=4, turn=turn)
    assert len(set(seeds[:8])) == 7  # those of use before are the same
    assert seeds[4:8] == seeds[8:]
    assert found[0]["rmse"] != found[1]["rmse"] == found[2]["rmse"]


@pytest.mark.slow
def test_a_measurement_runs_in_a_process_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--sizes", "30", "--models", "BKB 300", "--threads", "1", "--restarts", "1", "--raw-samples", "4"]
    botorch_speed.main([*options, "--turns", "1"])
    (row,) = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("  BKB 300  ")][:1]
    assert "-" not in row
    assert len(row) == 2 + 10
