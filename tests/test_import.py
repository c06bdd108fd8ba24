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
    "bkbopt.optimizer.log.aims",
    "bkbopt.optimizer.log.attributes",
    "bkbopt.optimizer.log.log_file",
    "bkbopt.optimizer.log.log_labels",
    "bkbopt.optimizer.log.log_rows",
    "bkbopt.optimizer.log.log_schema",
    "bkbopt.optimizer.log.objectives",
    "bkbopt.optimizer.log.reporting",
    "bkbopt.optimizer.log.trial_list",
    "bkbopt.optimizer.log.trial_log",
    "bkbopt.optimizer.log.trial_tables",
    "bkbopt.optimizer.log.trials",
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
def lines() -> list[str]:
    """What a fresh interpreter prints that uses the package's names in one way after the other, and last what it found.

    Found are the file, the modules there are after the use of the optimizer and after that of the learners, and names.
    """
    named = pickle.dumps(NAMED)
    return run_python(f"""
import sys, json, pickle
import bkbopt as bo
missing = sorted(set(bo.__all__) - set(dir(bo)))
bo.Optimizer
found = dict(missing=missing, file=bo.__file__, of_the_optimizer=sorted(sys.modules))
exec("from bkbopt.learners import *", {{}})
found["of_the_learners"] = sorted(sys.modules)
found["n"] = len(pickle.loads({named!r}))
modules = [bo.analysis, bo.confidence, bo.errors, bo.kernels, bo.learners, bo.optimizer, bo.posterior, bo.search]
modules += [bo.spaces, bo.surrogates, bo.search.criteria.acquisition, bo.search.trials.reports]
found["modules"] = [module.__name__ for module in modules]
found["plots"] = hasattr(bo, "plots")
from bkbopt import *
found["unstarred"] = sorted(set(bo.__all__) - set(globals()))
print(json.dumps(found))
""")


@pytest.fixture(scope="module")
def used(lines: list[str]) -> dict[str, Any]:
    """What that interpreter found."""
    found: dict[str, Any] = json.loads(lines[-1])
    return found


@pytest.fixture(scope="module")
def without_optional() -> dict[str, str]:
    """The errors, by what was tried, of an interpreter in which the optional packages cannot be imported.

    Under "several" is what it prints of several objectives: the number of best trials, and whether there are a
    hypervolume and a recommended front.
    """
    # None in sys.modules makes every import of that name fail, as if it were not installed.
    (line,) = run_python(f"""
import sys, json
sys.modules.update(dict.fromkeys({OPTIONAL!r}))
import bkbopt as bo
opt = bo.Optimizer({{"x": (0.0, 1.0)}}, directions=["minimize", "maximize"], n_startup_trials=4, seed=0)
for _ in range(5):
    trial = opt.ask()
    opt.tell(trial, [trial.params["x"], trial.params["x"] ** 0.5])
several = f"{{len(opt.best_trials)}} {{opt.hypervolume([1.0, 0.0]) > 0.0}} {{len(opt.recommend_front()) > 0}}"
tried = {{
    "botorch": lambda: __import__("bkbopt.adapters.botorch"),
    "gest": lambda: __import__("bkbopt.adapters.gest"),
    "optuna": lambda: __import__("bkbopt.adapters.optuna"),
}}
found = dict(several=several)
for name, attempt in tried.items():
    try:
        attempt()
    except ImportError as error:
        found[name] = f"{{type(error).__name__}} {{error}}"
print(json.dumps(found))
""")
    found: dict[str, str] = json.loads(line)
    return found


def test_import_prints_nothing(lines: list[str]) -> None:
    assert lines[:-1] == []


def test_import_finds_this_package(used: dict[str, Any]) -> None:
    # A folder without __init__.py would import too, as an empty namespace, and pass every other test here.
    assert used["file"] == str(ROOT / "bkbopt" / "__init__.py")


def test_the_optimizer_pulls_in_no_optional_or_slow_package(used: dict[str, Any]) -> None:
    assert sorted(set(used["of_the_optimizer"]) & set(NOT_AT_IMPORT)) == []


def test_the_optimizer_leaves_the_learners_alone(used: dict[str, Any]) -> None:
    assert [m for m in used["of_the_optimizer"] if m.startswith("bkbopt.learners")] == []
    assert "numba" not in used["of_the_optimizer"]


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


def test_names_are_listed_before_they_are_imported_and_modules_need_no_import_statement(used: dict[str, Any]) -> None:
    assert used["missing"] == []
    assert not used["plots"]
    names = ("analysis", "confidence", "errors", "kernels", "learners", "optimizer", "posterior", "search", "spaces")
    assert used["modules"] == [
        f"bkbopt.{name}" for name in (*names, "surrogates", "search.criteria.acquisition", "search.trials.reports")
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


def test_learners_import_no_compiler_before_they_learn(used: dict[str, Any]) -> None:
    assert sorted(set(used["of_the_learners"]) & {"numba", *NOT_AT_IMPORT}) == []


@pytest.mark.parametrize(("name", "package"), [("botorch", "botorch"), ("gest", "gest_api"), ("optuna", "optuna")])
def test_an_adapter_without_its_library_names_the_extra(
    name: str, package: str, without_optional: dict[str, str]
) -> None:
    assert without_optional[name] == (
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


def test_several_objectives_need_no_optional_package(without_optional: dict[str, str]) -> None:
    assert without_optional["several"].split() == ["5", "True", "True"]
