"""What `import bkbopt` costs others: nothing printed, and no optional or slow package pulled in."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bkbopt import learners

ROOT = Path(__file__).resolve().parent.parent
OPTIONAL = ("botorch", "gpytorch", "linear_operator", "matplotlib", "optuna", "pandas", "sklearn")
# SciPy is a requirement, but its import takes long and most calls do without.
NOT_AT_IMPORT = (*OPTIONAL, "scipy")


def run_python(code: str) -> list[str]:
    """The lines that a fresh interpreter, started in the repository, prints for `code` on both streams together."""
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    assert result.returncode == 0, result.stdout
    return result.stdout.splitlines()


@pytest.fixture(scope="module")
def printed() -> list[str]:
    """What importing prints, and on the last three lines what is asked for: the file, and the modules there are then.

    The modules of the package are followed by those of its learners.
    """
    return run_python("""
import sys, json
import bkbopt
of_the_package = sorted(sys.modules)
from bkbopt.learners import *
print(bkbopt.__file__)
print(json.dumps(of_the_package))
print(json.dumps(sorted(sys.modules)))
""")


@pytest.fixture(scope="module")
def refused() -> dict[str, str]:
    """The errors, by what was tried, of an interpreter in which the optional packages cannot be imported."""
    # None in sys.modules makes every import of that name fail, as if it were not installed.
    (line,) = run_python(f"""
import sys, json
sys.modules.update(dict.fromkeys({(*OPTIONAL, "numba")!r}))
import bkbopt as bo
def learner(name):
    bo.Optimizer({{"x": (0.0, 1.0)}}, surrogate=name)
tried = {{
    "botorch": lambda: __import__("bkbopt.adapters.botorch"),
    "optuna": lambda: __import__("bkbopt.adapters.optuna"),
    "krr": lambda: learner("krr"),
    "pkawv": lambda: learner("pkawv"),
}}
errors = {{}}
for name, attempt in tried.items():
    try:
        attempt()
    except ImportError as error:
        errors[name] = f"{{type(error).__name__}} {{error}}"
print(json.dumps(errors))
""")
    errors: dict[str, str] = json.loads(line)
    return errors


def test_import_prints_nothing(printed: list[str]) -> None:
    assert printed[:-3] == []


def test_import_finds_this_package(printed: list[str]) -> None:
    # A folder without __init__.py would import too, as an empty namespace, and pass every other test here.
    assert printed[-3] == str(ROOT / "bkbopt" / "__init__.py")


def test_import_pulls_in_no_optional_or_slow_package(printed: list[str]) -> None:
    assert sorted(set(json.loads(printed[-2])) & set(NOT_AT_IMPORT)) == []


def test_import_leaves_the_learners_alone(printed: list[str]) -> None:
    # Their names are known; their classes are imported when a surrogate is made of one. State files know kernels by
    # `gram`, which annotates arrays as `losses` does and checks by `states`.
    of_the_surrogate = {"recipes", "spans", "surrogate", "gram", "losses", "states"}
    learners = {m.removeprefix("bkbopt.learners.") for m in json.loads(printed[-2]) if m.startswith("bkbopt.learners.")}
    assert learners == of_the_surrogate
    assert "numba" not in json.loads(printed[-2])


def test_every_learner_is_known_by_its_name_and_listed() -> None:
    assert [name for name in learners.__all__ if not hasattr(learners, name)] == []
    assert set(learners.__all__) <= set(dir(learners))
    with pytest.raises(AttributeError, match="no attribute 'Perceptron'"):
        learners.Perceptron  # type: ignore[attr-defined]  # noqa: B018


def test_learners_import_no_compiler_before_they_learn(printed: list[str]) -> None:
    assert sorted(set(json.loads(printed[-1])) & {"numba", *NOT_AT_IMPORT}) == []


@pytest.mark.parametrize("name", ["botorch", "optuna"])
def test_an_adapter_without_its_library_names_the_extra(name: str, refused: dict[str, str]) -> None:
    assert refused[name] == (
        f"MissingPackageError {name}: expected this package, which is not installed; "
        f'pip install "bkbopt[{name}]" brings it.'
    )


def test_learners_that_compile_their_rounds_are_refused_without_the_compiler_before_a_search_begins(
    refused: dict[str, str],
) -> None:
    assert refused["pkawv"].startswith("MissingPackageError numba: ")
    assert "krr" not in refused
