"""The package of OptunaHub loads as OptunaHub loads it, and has the form that its registry asks for."""

import inspect
import runpy
import shutil
from pathlib import Path
from types import ModuleType

import optuna
import pytest
import yaml

import bkbopt.adapters.optuna

optunahub = pytest.importorskip("optunahub")

PACKAGE = Path(__file__).resolve().parents[2] / "examples" / "optunahub"


@pytest.fixture
def module() -> ModuleType:
    """The package, loaded from this checkout."""
    return optunahub.load_local_module(PACKAGE.name, registry_root=str(PACKAGE.parent))


def front_matter() -> dict[str, object]:
    """The header of the README."""
    empty, header, _ = (PACKAGE / "README.md").read_text().split("---\n", 2)
    assert empty == ""
    return yaml.safe_load(header)


def test_the_package_exports_the_sampler_and_nothing_else(module: ModuleType) -> None:
    assert module.__name__ == "optunahub_registry.package.optunahub"
    assert module.__all__ == ["BKBSampler"]
    assert module.BKBSampler is bkbopt.adapters.optuna.BKBSampler


def test_a_study_runs_with_the_loaded_sampler(module: ModuleType) -> None:
    sampler = module.BKBSampler(seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda trial: (trial.suggest_float("x", -5, 5) - 1.0) ** 2, n_trials=15)
    assert -5.0 <= sampler.recommend(study).params["x"] <= 5.0
    assert [trial.state for trial in study.trials] == [optuna.trial.TrialState.COMPLETE] * 15


def test_a_copy_in_a_registry_loads_by_its_name_there(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "package" / "samplers" / "bkb")
    copy = optunahub.load_local_module("samplers/bkb", registry_root=str(tmp_path / "package"))
    assert copy.__name__ == "optunahub_registry.package.samplers.bkb"
    assert copy.BKBSampler is bkbopt.adapters.optuna.BKBSampler


def test_the_example_ends_with_a_recommendation(capsys: pytest.CaptureFixture[str]) -> None:
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        runpy.run_path(str(PACKAGE / "example.py"), run_name="__main__")
    finally:
        optuna.logging.set_verbosity(verbosity)
    out = capsys.readouterr().out
    assert "best observed: " in out
    assert "recommended: " in out


def test_the_front_matter_has_the_fields_of_the_registry() -> None:
    header = front_matter()
    assert list(header) == ["author", "title", "description", "tags", "optuna_versions", "license"]
    assert all(isinstance(header[key], str) for key in ("author", "title", "description"))
    for key in ("tags", "optuna_versions"):
        entries = header[key]
        assert isinstance(entries, list)
        assert all(isinstance(entry, str) for entry in entries)
    assert "sampler" in header["tags"]  # asked of everything below package/samplers
    assert header["license"] == "MIT License"


def test_the_front_matter_names_the_version_of_optuna_that_is_tested() -> None:
    assert front_matter()["optuna_versions"] == [optuna.__version__]


def test_the_readme_shows_the_options_that_the_sampler_has(module: ModuleType) -> None:
    readme = (PACKAGE / "README.md").read_text()
    signature = inspect.signature(module.BKBSampler)
    shown = ", ".join(f"{p.name}={_default(p.default)}" for p in signature.parameters.values())
    assert f"`BKBSampler(*, {shown})`" in readme


def _default(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def test_the_licence_is_the_project_s() -> None:
    assert (PACKAGE / "LICENSE").read_bytes() == (PACKAGE.parents[1] / "LICENSE").read_bytes()
