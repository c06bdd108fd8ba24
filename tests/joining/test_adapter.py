"""An adapter that is defined outside of the package, in the suite of all interfaces."""

from pathlib import Path
from typing import Any

import pytest
from skopt.space import Categorical, Integer, Real

import bkbopt as bo
from tests.conformance import test_interfaces
from tests.conformance.suites import suite
from tests.conformance.test_interfaces import SEED, SPACE, Interface
from tests.joining.newcomers.adapter import ListOptimizer

globals().update(suite(test_interfaces, "interface"))


class Lists:
    """See `Interface`; scikit-optimize minimises."""

    def __init__(self, folder: Path) -> None:
        kinds = [Integer(1, 30, name="depth"), Categorical(["a", "b", "c"], name="kind"), Real(-2.0, 3.0, name="x")]
        self.optimizer = ListOptimizer(kinds, seed=SEED)
        self.asked: list[list[Any]] = []

    def ask(self) -> dict[str, Any]:
        self.asked.append(self.optimizer.ask())
        return dict(zip(SPACE, self.asked[-1], strict=True))

    def tell(self, number: int, value: float | None) -> None:
        self.optimizer.tell(self.asked[number], None if value is None else -value)


@pytest.fixture
def interface(tmp_path: Path) -> Interface:
    return Lists(tmp_path)


def test_dimensions_become_parameters() -> None:
    space = ListOptimizer([Real(1e-3, 1.0, prior="log-uniform", name="rate"), Integer(2, 5, name="n")]).optimizer.space
    assert dict(space.items) == {"rate": bo.Float(1e-3, 1.0, log=True), "n": bo.Int(2, 5)}
