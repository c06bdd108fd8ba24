"""Any sequence of calls leaves an optimizer in a valid state."""

import math
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

import bkbopt as bo
from bkbopt.errors import BkbError, SpaceExhaustedError, TrialStateError


class AskAndTell(RuleBasedStateMachine):
    running = Bundle("running")
    done = Bundle("done")

    @initialize(seed=st.integers(0, 5), surrogate=st.sampled_from(["bkb", "exact"]), avoid=st.booleans())
    def start(self, seed: int, surrogate: str, avoid: bool) -> None:
        self.opt = bo.Optimizer(
            {"n": bo.Int(0, 2), "kind": ["a", "b"], "x": bo.Float(0.0, 1.0, step=0.25)},
            seed=seed,
            n_startup_trials=3,
            surrogate=surrogate,
            duplicates="avoid" if avoid else "allow",
        )
        self.n = self.n_complete = self.n_failed = 0
        self.values: list[float] = []
        self.queue: list[int] = []
        self.given: set[int] = set()

    @rule(target=running)
    def ask(self) -> Any:
        try:
            trial = self.opt.ask()
        except SpaceExhaustedError:
            return None
        # Queued trials come first, unless the space is not theirs any more.
        fitting = [i for i in self.queue if self.fits(self.opt.trials[i])]
        assert trial.id == (fitting[0] if fitting else self.n)
        if fitting:
            self.queue.remove(trial.id)
        else:
            self.n += 1
        assert self.fits(trial)
        return trial

    def fits(self, trial: Any) -> bool:
        assert self.opt.space is not None
        return trial.params.get("x", 0.0) <= self.opt.space.parameters["x"].high

    @rule(x=st.sampled_from([0.25, 0.75]))
    def enqueue(self, x: float) -> None:
        if x > self.opt.space.parameters["x"].high:
            with pytest.raises(BkbError):
                self.opt.enqueue({"x": x})
            return
        # Whole points only: with duplicates="avoid" there may be nothing left to complete others with.
        self.queue.append(self.opt.enqueue({"n": 1, "kind": "a", "x": x}).id)
        self.given.add(self.queue[-1])
        self.n += 1

    @rule(high=st.sampled_from([0.5, 1.0]))
    def set_space(self, high: float) -> None:
        self.opt.set_space({"n": bo.Int(0, 2), "kind": ["a", "b"], "x": bo.Float(0.0, high, step=0.25)})

    @rule(trial=consumes(running), value=st.floats(-1e6, 1e6), by_id=st.booleans(), target=done)
    def tell(self, trial: Any, value: float, by_id: bool) -> Any:
        if trial is not None and self.is_open(trial):
            assert self.opt.tell(trial.id if by_id else trial, value).value == value
            self.n_complete += 1
            self.values.append(value)
        return trial

    @rule(trial=consumes(running), target=done)
    def fail(self, trial: Any) -> Any:
        if trial is not None and self.is_open(trial):
            self.opt.fail(trial)
            self.n_failed += 1
        return trial

    @rule(trial=done)
    def answer_again(self, trial: Any) -> None:
        if trial is not None:
            with pytest.raises(TrialStateError):
                self.opt.tell(trial, 0.0)

    @rule(n=st.integers(-1, 3), value=st.one_of(st.floats(-10.0, 10.0), st.just(math.nan)))
    def past(self, n: int, value: float) -> None:
        params = {"n": n, "kind": "b", "x": 0.5}
        at = [t.id for t in self.opt.trials if t.state == "RUNNING" and t.params == params]
        try:
            trial = self.opt.tell(params, value)
        except BkbError:
            assert n in (-1, 3) or math.isnan(value)
            return
        # The earliest running trial at that point is completed; else it is a trial of its own.
        assert trial.id == (at[0] if at else self.n)
        self.n += not at
        self.n_complete += 1
        self.values.append(value)

    @rule()
    def save_and_load(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.opt.save(Path(folder) / "state")
            again = bo.Optimizer.load(Path(folder) / "state")
        assert again.trials == self.opt.trials
        self.opt = again

    @rule()
    def read(self) -> None:
        if self.n_complete:
            assert math.isfinite(self.opt.recommend().mean)
            assert self.opt.best_trial.value == min(self.values)

    def is_open(self, trial: Any) -> bool:
        """Whether no past data have completed it."""
        return self.opt.trials[trial.id].state == "RUNNING"

    @invariant()
    def counts_agree(self) -> None:
        states = [t.state for t in self.opt.trials]
        assert [t.id for t in self.opt.trials] == list(range(self.n))
        assert states.count("COMPLETE") == self.n_complete
        assert states.count("FAIL") == self.n_failed
        assert states.count("WAITING") == len(self.queue)
        assert len(self.opt.diagnostics) <= self.n

    @invariant()
    def pending_points_differ(self) -> None:
        def points(state: str) -> list[Any]:
            return [tuple(t.params.values()) for t in self.opt.trials if t.state == state and t.id not in self.given]

        if len(self.opt.trials) <= 9:  # half of the points of the smaller space
            # Where values are noisy a point with a value may be pending twice, one without only once.
            new = [point for point in points("RUNNING") if point not in points("COMPLETE")]
            assert len(set(new)) == len(new)


AskAndTell.TestCase.settings = settings(
    max_examples=15, stateful_step_count=25, suppress_health_check=list(HealthCheck), deadline=None
)
TestAskAndTell = AskAndTell.TestCase
