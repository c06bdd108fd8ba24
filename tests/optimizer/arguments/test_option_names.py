"""Unknown arguments of the ready-made loop: the messages name what is meant."""

import inspect
import re

import pytest

import bkbopt as bo
from bkbopt.errors import ArgumentTypeError
from bkbopt.optimizer.arguments.option_names import ELSEWHERE


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        ("budget", "; do you mean n_trials?"),
        ("n_calls", "; do you mean n_trials?"),
        ("random_state", "; do you mean seed?"),
        ("kappa", "; do you mean beta?"),
        ("num_workers", "; do you mean executor=ThreadPoolExecutor(4)?"),
        ("x0", "; do you mean opt.tell(points, values), and then opt in place of the space?"),
    ],
)
def test_names_of_other_packages_lead_to_the_arguments_that_are_meant(given: str, advice: str) -> None:
    message = f"^{given}: expected an argument of minimize or Optimizer, got an unknown one{re.escape(advice)}$"
    with pytest.raises(ArgumentTypeError, match=message):
        bo.minimize(abs, {"x": (0.0, 1.0)}, **{given: 3})


def test_no_name_of_another_package_is_an_argument_and_all_that_is_advised_is_one() -> None:
    known = {name for of in (bo.minimize, bo.Optimizer) for name in inspect.signature(of).parameters}
    for meant, elsewhere in ELSEWHERE.items():
        assert meant.split("=")[0] in known or meant.startswith("opt.")
        assert not known & set(elsewhere)
