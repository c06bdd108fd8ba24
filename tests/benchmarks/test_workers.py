"""The simulated crowd serves its workers under a virtual clock, and what it counts is true."""

import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks import workers
from benchmarks.batch_problems import Target, of_rows
from benchmarks.functions import Array
from benchmarks.workers import CROWDS, Driver, Fate, fate_of, simulate

# Values 0, 1, 2, ... of rows 0, 1, 2, ...; every trial has the row of its number.
LINE: Target = of_rows("line", np.zeros((1_000, 1)), np.arange(1_000.0))


class Watched:
    """A driver that hands out rows in turn and takes a second of the clock for each call of `ask`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fates: dict[int, Fate]) -> None:
        self.asked: list[int] = []
        self.told: list[int] = []
        self.failed: list[int] = []
        self.batches: list[int] = []
        self.clock = 0.0
        monkeypatch.setattr(time, "process_time", lambda: self.clock)
        monkeypatch.setattr(workers, "fate_of", lambda number, seed: fates.get(number, Fate(10.0, has_value=True)))
        self.driver = Driver(self.ask, self.tell, self.failed.extend, lambda: np.array(self.told[0]))

    def ask(self, n: int) -> tuple[list[int], Array]:
        self.clock += 1.0
        self.batches.append(n)
        numbers = list(range(len(self.asked), len(self.asked) + n))
        self.asked += numbers
        return numbers, np.array(numbers)

    def tell(self, numbers: list[int], values: list[float]) -> None:
        self.told += numbers


def test_workers_wait_for_the_optimizer_and_are_served_together(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = Watched(monkeypatch, {})
    found = simulate(LINE, crowd.driver, 3, 6, seed=0)
    # Asks end at 1 s and, for the three that come back at 11 s, at 12 s; the last values come at 22 s.
    assert crowd.batches == [3, 3]
    assert crowd.told == [0, 1, 2, 3, 4, 5]
    assert found["minutes"] == pytest.approx(22.0 / 60.0)
    assert found["busy"] == pytest.approx(60.0 / 66.0)
    assert found["ms"] == pytest.approx(2_000.0 / 6)


def test_large_crowds_are_served_in_several_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "AT_ONCE", 4)
    crowd = Watched(monkeypatch, {})
    simulate(LINE, crowd.driver, 10, 10, seed=0)
    assert crowd.batches[:3] == [4, 4, 2]


def test_jobs_that_crash_or_never_return_fail_their_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    fates = {0: Fate(5.0, has_value=False), 1: Fate(50.0, has_value=False, vanishes=True)}
    crowd = Watched(monkeypatch, fates)
    found = simulate(LINE, crowd.driver, 2, 6, seed=0)
    assert crowd.failed == [0, 1]
    assert 0 not in crowd.told
    assert 1 not in crowd.told
    assert len(crowd.told) == 6
    assert found["failed"] == 2.0
    # The first worker: 5 s and then jobs of 10 s; the other one is lost until 51 s.
    assert found["busy"] < 0.6


def test_regret_is_counted_in_the_order_of_return(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = Watched(monkeypatch, {0: Fate(25.0, has_value=True)})
    found = simulate(LINE, crowd.driver, 2, 5, seed=0)
    assert crowd.told == [1, 2, 0, 3, 4]
    assert found["last_fifth"] == pytest.approx(4.0 / LINE.scale)
    assert found["average"] == pytest.approx(2.0 / LINE.scale)
    assert found["recommended"] == pytest.approx(1.0 / LINE.scale)


def test_jobs_have_the_distribution_that_is_said() -> None:
    fates = [fate_of(number, 0) for number in range(20_000)]
    seconds = np.array([fate.seconds for fate in fates])
    assert np.median(seconds) == pytest.approx(10.0, rel=0.03)
    assert np.mean(seconds > 60.0) == pytest.approx(0.016, abs=0.004)  # 84 % of the stragglers, and few others
    assert np.mean([not fate.has_value for fate in fates]) == pytest.approx(0.0213, abs=0.004)
    assert np.mean([fate.vanishes for fate in fates]) == pytest.approx(0.001, abs=0.0008)
    assert fate_of(7, 0) == fates[7]
    assert fate_of(7, 1) != fates[7]


def test_the_program_keeps_its_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--workers", "3", "--trials", "14", "--out", str(tmp_path)]
    workers.main(options)
    assert "2 runs, 0 of them done before" in capsys.readouterr().out
    workers.main([*options, "--tables-only"])
    rows = [line.split()[:3] for line in capsys.readouterr().out.splitlines()]
    assert all(["3", name, "1"] in rows for name in CROWDS)
