"""What every interface keeps to: the same problem, seed and log give the points of an `Optimizer`.

An adapter with ask and tell joins by a line in `INTERFACES`, or by a file of tests that runs this suite.
"""

import contextlib
import io
import json
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import optuna
import pytest
from gest_api.vocs import VOCS, ContinuousVariable
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

import bkbopt as bo
from bkbopt import adapters
from bkbopt.adapters import shell
from bkbopt.adapters.gest import BKBGenerator
from bkbopt.adapters.optuna import BKBSampler
from tests.conformance.suites import check_complete, joined

pytestmark = pytest.mark.usefixtures("quiet_optuna")

#: The problem: names in order, since Optuna's columns are those of the names in order.
SPACE = {"depth": bo.Int(1, 30), "kind": bo.Categorical(["a", "b", "c"]), "x": bo.Float(-2.0, 3.0)}
SEED = 3


class Interface(Protocol):
    """An adapter at work on `SPACE`, larger values being better."""

    def ask(self) -> dict[str, Any]:
        """The parameters of a new trial, which is running from now on."""
        ...

    def tell(self, number: int, value: float | None) -> None:
        """End the trial of the ask with this number, from 0; None for a failed evaluation."""
        ...


class Study:
    """Optuna's."""

    def __init__(self, folder: Path) -> None:
        self.study = optuna.create_study(direction="maximize", sampler=BKBSampler(seed=SEED))
        # Of the first trial of a study no parameter is known before it runs, so it is given the optimizer's point.
        self.study.enqueue_trial(dict(bo.Optimizer(SPACE, seed=SEED).ask().params))

    def ask(self) -> dict[str, Any]:
        kinds = {"depth": IntDistribution(1, 30), "kind": CategoricalDistribution(["a", "b", "c"])}
        return self.study.ask({**kinds, "x": FloatDistribution(-2.0, 3.0)}).params

    def tell(self, number: int, value: float | None) -> None:
        state = optuna.trial.TrialState.FAIL if value is None else None
        self.study.tell(number, value, state=state)


class Generator:
    """gest-api's."""

    def __init__(self, folder: Path) -> None:
        variables = {"depth": ContinuousVariable(domain=[1, 30], dtype=int), "kind": {"a", "b", "c"}, "x": [-2.0, 3.0]}
        self.generator = BKBGenerator(VOCS(variables=variables, objectives={"f": "MAXIMIZE"}), seed=SEED)

    def ask(self) -> dict[str, Any]:
        (point,) = self.generator.suggest(1)
        return {name: point[name] for name in SPACE}

    def tell(self, number: int, value: float | None) -> None:
        self.generator.ingest([{"_id": number, "f": value}])


class Shell:
    """The command line."""

    SPACE = """
    direction = "maximize"
    seed = 3
    [space]
    depth = { type = "int", low = 1, high = 30 }
    kind = ["a", "b", "c"]
    x = { type = "float", low = -2.0, high = 3.0 }
    """

    def __init__(self, folder: Path) -> None:
        (folder / "space.toml").write_text(self.SPACE)
        self.state = str(folder / "state")
        self.call("init", str(folder / "space.toml"), self.state)

    def call(self, *arguments: str) -> str:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            assert shell.main(list(arguments)) == 0
        return out.getvalue()

    def ask(self) -> dict[str, Any]:
        params: dict[str, Any] = json.loads(self.call("ask", self.state))["params"]
        return params

    def tell(self, number: int, value: float | None) -> None:
        if value is None:
            self.call("fail", self.state, str(number))
        else:
            self.call("tell", self.state, str(number), str(value))


INTERFACES: dict[str, Callable[[Path], Interface]] = {"gest": Generator, "optuna": Study, "shell": Shell}
#: Adapters without ask and tell.
EXEMPT = {
    "botorch": "a model: BoTorch chooses the points",
    "river": "online learners",
}


def test_every_adapter_is_a_subject_or_exempt() -> None:
    modules = {info.name for info in pkgutil.iter_modules(adapters.__path__)}
    elsewhere = {
        name.removeprefix("adapters.") for name in joined("test_interfaces", {f"adapters.{m}" for m in modules})
    }
    check_complete(modules, INTERFACES.keys() | elsewhere, EXEMPT)


@pytest.fixture(params=INTERFACES)
def interface(request: pytest.FixtureRequest, tmp_path: Path) -> Interface:
    return INTERFACES[request.param](tmp_path)


def value(params: dict[str, Any]) -> float:
    return -((params["x"] - 1.0) ** 2) - 0.1 * params["depth"] * (params["kind"] == "a")


def test_points_are_those_of_an_optimizer(interface: Interface) -> None:
    optimizer = bo.Optimizer(SPACE, direction="maximize", seed=SEED)
    running: list[tuple[int, bo.Trial]] = []
    for number in range(15):  # start-up trials and trials of the model
        trial = optimizer.ask()
        assert interface.ask() == dict(trial.params), number
        running.append((number, trial))
        while len(running) > number % 3:  # up to two run at once, and end in another order
            number_, trial = running.pop(number % len(running))
            if number_ % 7 == 5:
                optimizer.fail(trial)
                interface.tell(number_, None)
            else:
                optimizer.tell(trial, value(dict(trial.params)))
                interface.tell(number_, value(dict(trial.params)))
