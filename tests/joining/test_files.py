"""The files that one more of each kind changes in the package: three at most, in a copy of the repository."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conformance import (
    test_acquisitions,
    test_interfaces,
    test_kernels,
    test_schedules,
    test_surrogates,
)
from tests.conformance.suites import suite
from tests.learners import test_base, test_base_input, test_base_states

ROOT = Path(__file__).resolve().parents[2]
NEWCOMERS = ROOT / "tests" / "joining" / "newcomers"
COPIED = ("bkbopt", "tests", "docs", "benchmarks", "pyproject.toml", "README.md")


@dataclass(frozen=True)
class Kind:
    """What a newcomer changes, and the tests that it then has to pass.

    Args:
        at: where its module goes.
        lines: for a file that exists, what stands there and what stands there afterwards.
        suites: arguments of pytest that select its conformance suite.
        names: what the selected tests have in their names.
        own: its own file of tests, made of the one beside this file.
        name: its class.
    """

    at: str
    lines: dict[str, list[tuple[str, str]]]
    suites: list[str]
    names: str
    own: str
    name: str

    @property
    def files(self) -> set[str]:
        return {self.at, *self.lines, self.own}


REGISTER = "NAMED: dict[str, Any] = {"
KINDS = {
    "surrogate": Kind(
        "bkbopt/surrogates/first_points.py",
        {
            "bkbopt/surrogates/__init__.py": [
                ('__all__ = ["BKB", "ExactGP",', '__all__ = ["BKB", "ExactGP", "FirstPoints",'),
                ("import FourierGP\n", "import FourierGP\nfrom bkbopt.surrogates.first_points import FirstPoints\n"),
                (REGISTER, f'{REGISTER}"first": FirstPoints, '),
            ]
        },
        ["tests/conformance/test_surrogates.py"],
        "FirstPoints or subject",
        "tests/surrogates/test_first_points.py",
        "FirstPoints",
    ),
    "acquisition": Kind(
        "bkbopt/search/criteria/acquisition.py",
        {
            "bkbopt/search/criteria/acquisition.py": [('"LogGain"]', '"LogGain", "LogPI"]')],
            "bkbopt/search/criteria/criterion.py": [
                ("    LogFeasibility,\n)", "    LogFeasibility,\n    LogPI,\n)"),
                (
                    "#: The named acquisition functions.\nACQUISITIONS = {",
                    "def _build_logpi(model: Model, _: float, incumbent: float, _rng: object) -> Criterion:\n"
                    "    return _Scored(model, LogPI(incumbent))\n\n\nACQUISITIONS = {\n"
                    '    "logpi": AcquisitionRule(_build_logpi),',
                ),
            ],
        },
        ["tests/conformance/test_acquisitions.py"],
        "logpi or every",
        "tests/search/criteria/test_logpi.py",
        "LogPI",
    ),
    "learner": Kind(
        "bkbopt/learners/recent_mean.py",
        {
            "bkbopt/learners/__init__.py": [
                ('    "FeatureBandit",\n', '    "FeatureBandit",\n    "RecentMean",\n'),
                ('    "KONS": "newton.kons",\n', '    "KONS": "newton.kons",\n    "RecentMean": "recent_mean",\n'),
            ]
        },
        ["tests/learners/test_base.py", "tests/learners/test_base_input.py", "tests/learners/test_base_states.py"],
        "RecentMean or every_learner",
        "tests/learners/test_recent_mean.py",
        "RecentMean",
    ),
    "adapter": Kind(
        "bkbopt/adapters/lists.py",
        {"pyproject.toml": [("gest = [", 'skopt = ["scikit-optimize>=0.10.2"]\ngest = [')]},
        ["tests/test_import.py", "tests/conformance/test_interfaces.py"],
        "import or subject",
        "tests/adapters/test_lists.py",
        "ListOptimizer",
    ),
    "kernel": Kind(
        "bkbopt/kernels/periodic.py",
        {
            "bkbopt/kernels/__init__.py": [
                ('    "Kernel",\n', '    "Kernel",\n    "Periodic",\n'),
                ("import SphericalKernel\n", "import SphericalKernel\nfrom bkbopt.kernels.periodic import Periodic\n"),
            ]
        },
        ["tests/conformance/test_kernels.py"],
        "subject",
        "tests/kernels/test_periodic.py",
        "Periodic",
    ),
    "schedule": Kind(
        "bkbopt/confidence.py",
        {
            "bkbopt/confidence.py": [('    "Constant",\n', '    "Constant",\n    "Growing",\n')],
            "bkbopt/optimizer/translation/description.py": [
                ("(confidence.Constant,", "(confidence.Constant, confidence.Growing,")
            ],
        },
        ["tests/conformance/test_schedules.py"],
        "Growing or subject",
        "tests/test_growing.py",
        "Growing",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_one_more_of_a_kind_changes_three_files_at_most(kind: str) -> None:
    assert len(KINDS[kind].files) <= 3


def test_no_suite_is_empty() -> None:
    suites = [suite(test_surrogates, "factory"), suite(test_acquisitions, "acquisition")]
    suites += [suite(test_interfaces, "interface"), suite(test_schedules, "schedule")]
    suites += [suite(test_kernels, "kernel"), suite(test_kernels, "fittable")]
    suites += [
        suite(module, "make") | suite(module, "base") for module in (test_base, test_base_input, test_base_states)
    ]
    assert min(map(len, suites)) >= 1
    assert sum(map(len, suites)) > 30


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_newcomer_in_the_package_passes_its_suite_and_gets_an_entry_in_the_reference(
    kind: str, tmp_path: Path
) -> None:
    add = KINDS[kind]
    for name in COPIED:
        source = ROOT / name
        ignored = shutil.ignore_patterns("__pycache__")
        (shutil.copytree(source, tmp_path / name, ignore=ignored) if source.is_dir() else shutil.copy(source, tmp_path))
    code, at = (NEWCOMERS / f"{kind}.py").read_text(), tmp_path / add.at
    if at.exists():  # a class in a module that there is
        at.write_text(f"{at.read_text()}\n\n{code[code.index('@dataclass') :]}")
    else:
        at.write_text(code)
    for name, changes in add.lines.items():
        text = (tmp_path / name).read_text()
        for old, new in changes:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        (tmp_path / name).write_text(text)
    tests = (NEWCOMERS.parent / f"test_{kind}.py").read_text()
    module = add.at.removesuffix(".py").replace("/", ".")
    (tmp_path / add.own).write_text(tests.replace(f"tests.joining.newcomers.{kind}", module))

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=900,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    assert " passed" in run("pytest", "-q", "-p", "no:cacheprovider", "-k", add.names, *add.suites)
    assert " passed" in run("pytest", "-q", "-p", "no:cacheprovider", add.own)
    run("pytest", "-q", "-p", "no:cacheprovider", "tests/docs/test_reference.py")
    run("sphinx", "-q", "-E", "-W", "--keep-going", "-d", "trees", "docs", "pages")
    assert f'{add.name}"' in (tmp_path / "pages" / "reference" / "parts.html").read_text()
