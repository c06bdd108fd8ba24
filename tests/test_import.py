"""Side effects of `import bkbopt`: it prints nothing, and imports no module before one of its names is used."""

import json
import pickle
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import bkbopt
from bkbopt import learners, optimizer

#: One process for all: the fixtures start interpreters.
pytestmark = pytest.mark.xdist_group("import")
ROOT = Path(__file__).resolve().parent.parent
OPTIONAL = ("botorch", "gest_api", "gpytorch", "linear_operator", "matplotlib", "optuna", "pandas", "river", "sklearn")
# SciPy is a requirement, but its import takes long and most calls do without.
NOT_AT_IMPORT = (*OPTIONAL, "scipy")
# Modules of which commands are made that only keep a log, and what these have no time to import.
LIGHT = (
    "bkbopt",
    "bkbopt.errors",
    "bkbopt.optimizer",
    "bkbopt.optimizer.log_file",
    "bkbopt.optimizer.log_labels",
    "bkbopt.optimizer.trial_tables",
    "bkbopt.optimizer.trials",
    "bkbopt.search.trials.directions",
    "bkbopt.search.trials.reports",
    "bkbopt.search.trials.states",
    "bkbopt.adapters.shell",
)
#: The public names that are no modules.
NAMED = [value for value in (getattr(bkbopt, name) for name in bkbopt.__all__) if not isinstance(value, ModuleType)]
HEAVY = (*NOT_AT_IMPORT, "numba", "numpy", "torch", "tqdm")


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
    """What importing the optimizer prints, and on the last three lines the file, and the modules there are then.

    The modules of the package are followed by those of its learners.
    """
    return run_python("""
import sys, json
import bkbopt
bkbopt.Optimizer
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
sys.modules.update(dict.fromkeys({OPTIONAL!r}))
import bkbopt as bo
tried = {{
    "botorch": lambda: __import__("bkbopt.adapters.botorch"),
    "gest": lambda: __import__("bkbopt.adapters.gest"),
    "optuna": lambda: __import__("bkbopt.adapters.optuna"),
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


def test_the_optimizer_pulls_in_no_optional_or_slow_package(printed: list[str]) -> None:
    assert sorted(set(json.loads(printed[-2])) & set(NOT_AT_IMPORT)) == []


def test_the_optimizer_leaves_the_learners_alone(printed: list[str]) -> None:
    assert [m for m in json.loads(printed[-2]) if m.startswith("bkbopt.learners")] == []
    assert "numba" not in json.loads(printed[-2])


def test_modules_of_the_log_import_no_numerical_package() -> None:
    (line,) = run_python(f"""
import sys, json
import {", ".join(LIGHT)}
print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))
""")
    assert json.loads(line) == []


def test_every_public_name_resolves_and_is_listed() -> None:
    assert [name for name in bkbopt.__all__ if not hasattr(bkbopt, name)] == []
    assert set(bkbopt.__all__) <= set(dir(bkbopt))
    assert "Optimizer" in dir(optimizer)
    assert bkbopt.Optimizer is optimizer.Optimizer


@pytest.fixture(scope="module")
def used() -> dict[str, Any]:
    """What a fresh interpreter finds that uses the package's names in one way after the other."""
    named = pickle.dumps(NAMED)
    (line,) = run_python(f"""
import json, pickle
import bkbopt as bo
missing = sorted(set(bo.__all__) - set(dir(bo)))
pickled = pickle.loads({named!r})
modules = [bo.confidence, bo.errors, bo.kernels, bo.learners, bo.optimizer, bo.posterior, bo.search, bo.spaces]
modules += [bo.surrogates, bo.search.criteria.acquisition, bo.search.trials.reports]
plots = hasattr(bo, "plots")
from bkbopt import *
unstarred = sorted(set(bo.__all__) - set(globals()))
found = dict(missing=missing, n=len(pickled), modules=[m.__name__ for m in modules], plots=plots, unstarred=unstarred)
print(json.dumps(found))
""")
    found: dict[str, Any] = json.loads(line)
    return found


def test_names_are_listed_before_they_are_imported_and_modules_need_no_import_statement(used: dict[str, Any]) -> None:
    assert used["missing"] == []
    assert not used["plots"]
    names = ("confidence", "errors", "kernels", "learners", "optimizer", "posterior", "search", "spaces", "surrogates")
    assert used["modules"] == [
        f"bkbopt.{name}" for name in (*names, "search.criteria.acquisition", "search.trials.reports")
    ]


def test_star_import_brings_every_public_name(used: dict[str, Any]) -> None:
    assert used["unstarred"] == []


@pytest.mark.parametrize("module", [bkbopt, optimizer], ids=lambda module: module.__name__)
def test_an_unknown_name_is_an_attribute_error(module: ModuleType) -> None:
    with pytest.raises(AttributeError, match=f"^module '{module.__name__}' has no attribute 'Optimiser'$"):
        module.Optimiser  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'Optimiser'"):
        exec(f"from {module.__name__} import Optimiser")


def test_public_classes_and_functions_are_pickled_by_name(used: dict[str, Any]) -> None:
    assert pickle.loads(pickle.dumps(NAMED)) == NAMED
    assert used["n"] == len(NAMED)


def test_every_learner_is_known_by_its_name_and_listed() -> None:
    assert [name for name in learners.__all__ if not hasattr(learners, name)] == []
    assert set(learners.__all__) <= set(dir(learners))
    with pytest.raises(AttributeError, match="no attribute 'Perceptron'"):
        learners.Perceptron  # type: ignore[attr-defined]  # noqa: B018


def test_learners_import_no_compiler_before_they_learn(printed: list[str]) -> None:
    assert sorted(set(json.loads(printed[-1])) & {"numba", *NOT_AT_IMPORT}) == []


@pytest.mark.parametrize(("name", "package"), [("botorch", "botorch"), ("gest", "gest_api"), ("optuna", "optuna")])
def test_an_adapter_without_its_library_names_the_extra(name: str, package: str, refused: dict[str, str]) -> None:
    assert refused[name] == (
        f"MissingPackageError {package}: this call needs the package, which is not installed; "
        f'run pip install "bkbopt[{name}]", or in a checkout pip install ".[{name}]".'
    )


def test_the_package_of_adapters_imports_none_of_them() -> None:
    (line,) = run_python(f"""
import sys, json
import bkbopt, bkbopt.adapters
print(json.dumps([name for name in {OPTIONAL!r} if name in sys.modules]))
""")
    assert json.loads(line) == []


def test_several_objectives_need_no_optional_package() -> None:
    (line,) = run_python(f"""
import sys
sys.modules.update(dict.fromkeys({OPTIONAL!r}))
import bkbopt as bo
opt = bo.Optimizer({{"x": (0.0, 1.0)}}, directions=["minimize", "maximize"], n_startup_trials=3, seed=0)
for _ in range(5):
    trial = opt.ask()
    opt.tell(trial, [trial.params["x"], trial.params["x"] ** 0.5])
print(len(opt.best_trials), opt.hypervolume([1.0, 0.0]) > 0.0, len(opt.recommend_front()) > 0)
""")
    assert line.split() == ["5", "True", "True"]
