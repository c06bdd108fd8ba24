"""Threads, processes and machines on one study: no worker proposes a point that another one is evaluating."""

import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import BaseStorage, GrpcStorageProxy, InMemoryStorage, RDBStorage
from optuna.trial import FrozenTrial, TrialState

from bkbopt.adapters.optuna import BKBSampler
from bkbopt.adapters.optuna import sampler as sampler_module
from bkbopt.adapters.optuna.columns import internal_point, key_of
from bkbopt.adapters.optuna.independent import independent_value
from tests.adapters.optuna.shared_studies import (
    CELLS,
    CONTINUOUS,
    GRID,
    KEY,
    Space,
    cost,
    finish,
    joined,
    n_distinct,
    new_study,
    point,
)
from tests.adapters.optuna.worker import optimize
from tests.sweeps import slow_but, sweep

SPACES = pytest.mark.parametrize("space", [CONTINUOUS, GRID, CELLS], ids=["continuous", "4x4", "12 cells"])


def test_running_trials_of_another_branch_block_no_cell() -> None:
    def objective(trial: optuna.Trial) -> float:
        if trial.suggest_categorical("kind", ["line", "grid"]) == "line":
            return 5.0 + trial.suggest_float("x", 0.0, 1.0)
        return abs(trial.suggest_int("n", 0, 8) - 4)

    study = new_study(deterministic_objective=True)
    lines, cells = ({"kind": "line", "x": x} for x in (0.1, 0.3, 0.5, 0.9)), (0, 2, 3, 5, 6, 8)
    for params in [*lines, *({"kind": "grid", "n": n} for n in cells)]:
        study.enqueue_trial(params)
        study.optimize(objective, n_trials=1)
    study.enqueue_trial({"kind": "line", "x": 0.7})
    objective(study.ask())
    trial = study.ask()
    objective(trial)
    assert trial.params == {"kind": "grid", "n": 4}


@SPACES
@pytest.mark.parametrize(("n_startup_trials", "n_finished"), sweep([0, 3, 10], [0, 1, 8]))
def test_ten_asks_in_a_row_give_ten_points(space: Space, n_startup_trials: int, n_finished: int) -> None:
    study = new_study(n_startup_trials=n_startup_trials)
    finish(study, space, n_finished)
    assert n_distinct([study.ask(space) for _ in range(10)]) == 10


@pytest.mark.parametrize(
    ("space", "options"),
    sweep([CONTINUOUS, GRID, CELLS], [{"acquisition": "logei"}, {"acquisition": "thompson"}, {"beta": 0.0}]),
)
def test_ten_asks_in_a_row_give_ten_points_for_every_acquisition(space: Space, options: dict[str, Any]) -> None:
    study = new_study(**options)
    finish(study, space, 8)
    assert n_distinct([study.ask(space) for _ in range(10)]) == 10


@SPACES
def test_ten_asks_in_a_row_give_ten_points_for_two_objectives(space: Space) -> None:
    study = optuna.create_study(directions=["minimize"] * 2, sampler=BKBSampler(seed=0, n_startup_trials=3))
    for _ in range(4):
        trial = study.ask(space)
        study.tell(trial, [cost(trial), -cost(trial)])
    assert n_distinct([study.ask(space) for _ in range(10)]) == 10


@pytest.mark.parametrize("n_startup_trials", [0, 100])
def test_a_grid_is_asked_through_and_then_again(n_startup_trials: int) -> None:
    study = new_study(n_startup_trials=n_startup_trials)
    assert n_distinct([study.ask(GRID) for _ in range(16)]) == 16
    assert n_distinct([study.ask(GRID) for _ in range(3)]) >= 1


def test_samplers_that_take_turns_give_different_points() -> None:
    study = new_study()
    finish(study, CELLS, 5)
    others = [study, joined(study), joined(study, seed=1)]
    assert n_distinct([others[i % 3].ask(CELLS) for i in range(12)]) == 12


def test_a_trial_is_pending_before_it_has_shown_its_parameters() -> None:
    study = new_study()
    finish(study, CELLS, 5)
    trials = []
    for _ in range(12):
        trials.append(joined(study).ask())
        trials[-1].suggest_int("a", 0, 2)
    for trial in trials:
        trial.suggest_categorical("kind", CELLS["kind"].choices)
    assert n_distinct(trials) == 12


def test_finished_failed_and_waiting_trials_are_not_pending() -> None:
    study = new_study(deterministic_objective=False)
    trials = [study.ask(CELLS) for _ in range(12)]
    for trial in trials[:6]:
        study.tell(trial, state=TrialState.FAIL)
    study.add_trial(optuna.create_trial(state=TrialState.FAIL))
    # What failed may be asked again; what is running may not.
    running = {point(trial) for trial in trials[6:]}
    assert all(point(study.ask(CELLS)) not in running for _ in range(6))


def test_a_value_without_a_model_is_one_that_no_other_trial_with_the_same_values_has() -> None:
    study = optuna.create_study()
    for _ in range(2):  # the first trial has the centre
        study.ask({"x": FloatDistribution(0.0, 1.0, step=0.5)})
    trial, kinds = study.trials[1], CategoricalDistribution(["a", "b", "c", "d"])
    key = key_of("kind", kinds)
    here = internal_point(trial)
    elsewhere = {name: value + 0.5 for name, value in here.items()}
    others = [*({**here, key: float(i)} for i in (0, 1, 3)), {**elsewhere, key: 2.0}]
    assert {independent_value(seed, trial, "kind", kinds, others) for seed in range(8)} == {2.0}
    drawn = {independent_value(seed, trial, "kind", kinds, others[-1:]) for seed in range(30)}
    assert drawn == {0.0, 1.0, 2.0, 3.0}


def test_a_point_that_a_quick_worker_has_evaluated_meanwhile_is_not_proposed(monkeypatch: pytest.MonkeyPatch) -> None:
    study, publish, points = new_study(), sampler_module.publish, list[dict[str, float]]()
    finish(study, CONTINUOUS, 6)

    def published_and_met(here: optuna.Study, trial: FrozenTrial, values: dict[str, float]) -> None:
        publish(here, trial, values)
        if not points:
            points.append({name: values[key_of(name, one)] for name, one in CONTINUOUS.items()})
            study.add_trial(optuna.trial.create_trial(params=points[0], distributions=CONTINUOUS, value=1.0))

    monkeypatch.setattr(sampler_module, "publish", published_and_met)
    assert study.ask(CONTINUOUS).params != points[0]


def test_another_point_of_a_narrow_range_is_not_taken_for_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    low, high = 1e6, 1e6 + 1e-4  # all of its values agree to ten digits
    space: Space = {"x": FloatDistribution(low, high)}
    study, publish, proposed = new_study(), sampler_module.publish, list[float]()
    finish(study, {**space, "rate": CONTINUOUS["rate"]}, 1)

    def published_beside_another(here: optuna.Study, trial: FrozenTrial, values: dict[str, float]) -> None:
        publish(here, trial, values)
        proposed.append(values[key_of("x", space["x"])])
        other = low if proposed[0] > 0.5 * (low + high) else high
        study.add_trial(optuna.trial.create_trial(params={"x": other}, distributions=space, value=1.0))

    monkeypatch.setattr(sampler_module, "publish", published_beside_another)
    assert [study.ask(space).params["x"]] == proposed


@pytest.mark.parametrize("kind", ["memory", "journal"])
@pytest.mark.parametrize("seed", slow_but([0], range(3)))
def test_two_samplers_that_decide_at_the_same_moment_give_different_points(
    kind: str, seed: int, open_storage: Callable[..., BaseStorage], monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = InMemoryStorage() if kind == "memory" else open_storage(kind)
    study = new_study(storage)
    finish(study, CELLS, 6)
    other = joined(study, seed=seed)
    between: list[optuna.Trial] = []
    interruptions: list[str] = []
    write = storage.set_trial_system_attr

    def interrupted(trial_id: int, key: str, value: Any) -> None:
        """What the first sampler has decided is not written before the other has decided, too."""
        if key.startswith(KEY) and not interruptions:
            interruptions.append(key)
            between.append(other.ask(CELLS))
        write(trial_id, key, value)

    monkeypatch.setattr(storage, "set_trial_system_attr", interrupted)
    trial = study.ask(CELLS)
    assert len(between) == 1
    assert point(between[0]) != point(trial)


def assert_no_two_in_flight_were_the_same(study: optuna.Study) -> None:
    """By the times at which the trials had their parameters and were about to be told."""
    trials = study.get_trials(deepcopy=False)
    assert all(trial.state == TrialState.COMPLETE for trial in trials)
    timed = sorted((trial.user_attrs["from"], trial.user_attrs["to"], trial) for trial in trials if trial.user_attrs)
    pairs = [(one, other) for i, (_, to, one) in enumerate(timed) for start, _, other in timed[i + 1 :] if start < to]
    assert pairs  # or nothing was parallel, and nothing tested
    assert [(one.number, other.number) for one, other in pairs if point(one) == point(other)] == []


@SPACES
def test_threads_share_a_sampler(space: Space) -> None:
    study = new_study()
    finish(study, space, 3)

    def objective(trial: optuna.Trial) -> float:
        for name, distribution in space.items():
            trial._suggest(name, distribution)
        trial.set_user_attr("from", time.time())
        time.sleep(0.1)  # several times as long as a suggestion takes
        trial.set_user_attr("to", time.time())
        return cost(trial)

    study.optimize(objective, n_trials=20, n_jobs=4)
    assert len(study.trials) == 23
    assert_no_two_in_flight_were_the_same(study)


@pytest.fixture
def grpc_storage(
    open_storage: Callable[..., BaseStorage], start_worker: Callable[..., Any]
) -> Iterator[Callable[[], BaseStorage]]:
    proxies: list[GrpcStorageProxy] = []

    def open_() -> BaseStorage:
        pytest.importorskip("grpc", reason="the gRPC proxy needs grpcio")
        pytest.importorskip("google.protobuf", reason="the gRPC proxy needs protobuf")
        with socket.create_server(("localhost", 0)) as probe:
            port = probe.getsockname()[1]
        start_worker("serve", open_storage("sqlite"), host="localhost", port=port).ready().go()
        with pytest.warns(optuna.exceptions.ExperimentalWarning):
            proxies.append(GrpcStorageProxy(host="localhost", port=port))
        proxies[-1].wait_server_ready(timeout=120)
        return proxies[-1]

    yield open_
    for proxy in proxies:
        proxy.close()


def run_together(workers: list[Any]) -> None:
    for worker in workers:
        worker.ready()
    for worker in workers:
        worker.go()
    for worker in workers:
        worker.output()


@pytest.mark.parametrize("kind", slow_but(["journal"], ["sqlite", "journal", "grpc"]))
def test_processes_share_a_study(
    kind: str,
    open_storage: Callable[..., BaseStorage],
    grpc_storage: Callable[[], BaseStorage],
    start_worker: Callable[..., Any],
    floats: Space,
) -> None:
    study = new_study(grpc_storage() if kind == "grpc" else open_storage(kind))
    # As people do: the same program, and so the same seed, on every machine.
    options = {"seed": 0, "n_startup_trials": 3}
    job = {"space": floats, "n_trials": 4, "seconds": 0.3}
    other = start_worker("optimize", study._storage, options, **job).ready()
    other.go()
    optimize(study, **job)
    other.output()
    assert len(study.trials) == 8
    assert_no_two_in_flight_were_the_same(study)


@pytest.mark.slow
def test_processes_share_a_small_grid(
    open_storage: Callable[..., BaseStorage], start_worker: Callable[..., Any]
) -> None:
    study = new_study(open_storage("journal"))
    space: Space = {"a": IntDistribution(0, 4), "b": IntDistribution(0, 4)}
    finish(study, space, 3)
    job = {"space": space, "n_trials": 6, "seconds": 0.2}
    workers = [start_worker("optimize", study._storage, {"seed": 0, "n_startup_trials": 3}, **job) for _ in range(3)]
    run_together(workers)
    assert len(study.trials) == 21
    assert_no_two_in_flight_were_the_same(study)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")  # the heartbeat is one
def test_the_trial_of_a_killed_worker_fails_and_the_study_goes_on(
    tmp_path: Any, start_worker: Callable[..., Any]
) -> None:
    storage = RDBStorage(f"sqlite:///{tmp_path / 'study.db'}", heartbeat_interval=1, grace_period=2)
    study = new_study(storage, n_startup_trials=1)
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=3)
    worker = start_worker("hang", study._storage, {"seed": 0, "n_startup_trials": 1})
    worker.ready().go()
    assert worker.line() == "started"
    killed = study.trials[-1]
    assert killed.state == TrialState.RUNNING
    worker.process.send_signal(signal.SIGKILL)
    worker.process.wait()

    deadline = time.monotonic() + 60.0
    while study.trials[killed.number].state == TrialState.RUNNING and time.monotonic() < deadline:
        time.sleep(0.5)
        study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=1)
    states = Counter(trial.state for trial in study.trials)
    assert study.trials[killed.number].state == TrialState.FAIL
    assert states == {TrialState.FAIL: 1, TrialState.COMPLETE: len(study.trials) - 1}
    storage.engine.dispose()
