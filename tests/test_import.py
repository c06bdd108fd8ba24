"""What `import bkbopt` costs others: nothing printed, and no optional or slow package pulled in."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OPTIONAL = ("botorch", "gpytorch", "linear_operator", "matplotlib", "optuna", "pandas", "sklearn")
# SciPy is a requirement, but its import takes long and most calls do without.
NOT_AT_IMPORT = (*OPTIONAL, "scipy")


def run_python(code: str) -> str:
    """What a fresh interpreter, started in the repository, prints for `code` on both streams together."""
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
    return result.stdout


def test_import_prints_nothing() -> None:
    assert run_python("import bkbopt") == ""


def test_import_finds_this_package() -> None:
    # A folder without __init__.py would import too, as an empty namespace, and pass every other test here.
    assert run_python("import bkbopt; print(bkbopt.__file__)").strip() == str(ROOT / "bkbopt" / "__init__.py")


def test_import_pulls_in_no_optional_or_slow_package() -> None:
    code = f"import sys, bkbopt; print(sorted(set(sys.modules) & set({NOT_AT_IMPORT!r})))"
    assert run_python(code).strip() == "[]"


def test_import_leaves_the_learners_alone() -> None:
    # Their names are known; their classes are imported when a surrogate is made of one.
    code = "import sys, bkbopt; print([m for m in sys.modules if m.startswith('bkbopt.learners') or m == 'numba'])"
    assert run_python(code).strip() == "[]"


def test_learners_import_no_compiler_before_they_learn() -> None:
    code = f"import sys, bkbopt.learners; print(sorted(set(sys.modules) & {{'numba', *{NOT_AT_IMPORT!r}}}))"
    assert run_python(code).strip() == "[]"


def test_import_works_where_the_optional_packages_are_missing() -> None:
    # None in sys.modules makes every import of that name fail, as if it were not installed.
    code = f"import sys; sys.modules.update(dict.fromkeys({OPTIONAL!r})); import bkbopt"
    assert run_python(code) == ""


@pytest.mark.parametrize("name", ["botorch", "optuna"])
def test_an_adapter_without_its_library_names_the_extra(name: str) -> None:
    code = f"""
import sys
sys.modules[{name!r}] = None
try:
    import bkbopt.adapters.{name}
except ImportError as error:
    print(type(error).__name__, error)
"""
    assert run_python(code).strip() == (
        f"MissingPackageError {name}: expected this package, which is not installed; "
        f'pip install "bkbopt[{name}]" brings it.'
    )


def test_learners_that_compile_their_rounds_are_refused_without_the_compiler_before_a_search_begins() -> None:
    code = """
import sys
sys.modules["numba"] = None
import bkbopt as bo
bo.Optimizer({"x": (0.0, 1.0)}, surrogate="krr")
try:
    bo.Optimizer({"x": (0.0, 1.0)}, surrogate="pkawv")
except ImportError as error:
    print(type(error).__name__, error)
"""
    assert run_python(code).startswith("MissingPackageError numba: ")
