"""The digest that separates results of different versions of the code."""

import subprocess
import sys
from pathlib import Path

import pytest

import bkbopt
from benchmarks.comparison import NOT_SEARCH, source_digest

SEARCH = """
import sys
import optuna
import bkbopt as bo
from bkbopt.adapters.optuna import BKBSampler
optuna.logging.set_verbosity(optuna.logging.ERROR)
study = optuna.create_study(sampler=BKBSampler(seed=0))
study.optimize(lambda t: t.suggest_float("x", 0, 1) + (t.suggest_categorical("k", "ab") == "a"), n_trials=15)
bo.minimize(lambda p: p["x"], {"x": (0.0, 1.0)}, n_trials=15, seed=0)
print(*sys.modules)
"""


@pytest.mark.slow
def test_search_loads_none_of_the_parts_that_are_left_out_of_its_digest() -> None:
    done = subprocess.run([sys.executable, "-c", SEARCH], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "bkbopt.search.designer" in loaded
    for part in NOT_SEARCH:
        assert (Path(bkbopt.__file__).parent / part).exists()
        name = "bkbopt." + part.removesuffix(".py").replace("/", ".")
        assert not [module for module in loaded if module == name or module.startswith(f"{name}.")]


def test_digest_sees_code_and_neither_comments_nor_docstrings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bkbopt, "__file__", str(tmp_path / "__init__.py"))

    def digest(source: str, without: tuple[str, ...] = ()) -> str:
        (tmp_path / "part.py").write_text(source)
        return source_digest(without)

    first = digest('"""One."""\n\ndef f(x):\n    """Two."""\n    return x  # three\n')
    assert digest('"""Four."""\ndef f(x):\n    """Five."""\n    return x\n') == first
    assert digest('"""Four."""\ndef f(x):\n    """Five."""\n    return 2 * x\n') != first
    assert digest("x = 1\n", ("part.py",)) == digest("x = 2\n", ("part.py",))
