"""The oldest versions that `make oldest` installs are those that pyproject.toml allows."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Extras that `make oldest` installs; those for development follow new versions.
TRIED = ("gpytorch", "pandas", "parquet", "plots", "optuna", "botorch", "gest", "river", "dask", "examples")
#: Pinned for another reason, which the file states.
OTHERWISE = {"gpytorch", "pyparsing"}


def test_the_oldest_versions_that_are_tried_are_the_lower_bounds_of_the_requirements() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    required = [*project["dependencies"], *(line for extra in TRIED for line in extras[extra])]
    lower = {line.split(">=")[0]: line.split(">=")[1] for line in required if not line.startswith("bkbopt[")}
    text = (ROOT / "constraints-oldest.txt").read_text(encoding="utf-8")
    pinned = dict(re.findall(r"(?m)^([\w-]+)==([\d.]+)$", text))
    assert {name: pinned.get(name) for name in lower if name not in OTHERWISE} == {
        name: version for name, version in lower.items() if name not in OTHERWISE
    }
