"""Every public name has an entry in the reference, and an example or a reason to have none."""

import importlib
import pkgutil
import re
from pathlib import Path

import bkbopt
from bkbopt import adapters

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
ENTRY = re.compile(r"^\.\. auto(?:class|data|exception|function):: (\S+)$", re.MULTILINE)
NAMES = [name for page in sorted(REFERENCE.glob("*.md")) for name in ENTRY.findall(page.read_text(encoding="utf-8"))]
ENTRIES = {name: getattr(importlib.import_module(name.rpartition(".")[0]), name.rpartition(".")[2]) for name in NAMES}

#: Modules on top of the package, and adapters, whose names are not public, or are so in another place.
MACHINERY = {
    "adapters": "a package of packages",
    "adapters.shell": "the command-line tool; its page says how it is called",
    "optimizer": "`Optimizer`, `Trial`, `minimize`, `maximize` and `theory` are bkbopt's",
    "search": "how the optimizer finds what to evaluate",
}
#: Public modules further down.
PARTS = (
    "learners.features",
    "learners.kors",
    "posterior.features",
    "search.acquisition",
    "search.reports",
    "surrogates.sampling",
)
#: Names without an example of their own.
NO_EXAMPLE = {
    "constants": {"LOSSES", "Parameter"},
    "protocols and base classes": {
        "Acquisition",
        "Arms",
        "ClosedFormAcquisition",
        "ClosedFormKernel",
        "Confidence",
        "FeatureMap",
        "FittableKernel",
        "Kernel",
        "LinearBandit",
        "OnlineLearner",
        "Predictor",
        "Surrogate",
    },
    "records that only the package makes": {
        "Column",
        "Diagnostics",
        "Draw",
        "EncodedPool",
        "KorsDraw",
        "Loss",
        "Recommendation",
        "RegretCertificate",
        "Share",
        "StoredPool",
    },
    "errors, which `BkbError` shows how to catch": {
        "ArgumentError",
        "ArgumentTypeError",
        "KernelError",
        "MissingPackageError",
        "NotReadyError",
        "SpaceExhaustedError",
        "StateFileError",
        "StorageError",
        "TrialStateError",
        "UnknownTrialError",
    },
}


def modules_on_top() -> set[str]:
    """Names of the modules and packages right below `bkbopt` that have no underscore in front, and of the adapters."""
    on_top = {info.name for info in pkgutil.iter_modules(bkbopt.__path__) if not info.name.startswith("_")}
    return on_top | {f"adapters.{info.name}" for info in pkgutil.iter_modules(adapters.__path__)}


def public_names() -> dict[str, object]:
    """What the public modules export, modules left out."""
    modules = ["bkbopt", *(f"bkbopt.{name}" for name in sorted({*modules_on_top(), *PARTS} - MACHINERY.keys()))]
    found: dict[str, object] = {}
    for name in modules:
        module = importlib.import_module(name)
        found |= {f"{name}.{export}": getattr(module, export) for export in module.__all__}
    return {name: value for name, value in found.items() if not hasattr(value, "__path__") and name not in modules}


PUBLIC = public_names()


def test_list_of_machinery_names_only_what_there_is() -> None:
    assert MACHINERY.keys() <= modules_on_top()


def test_every_public_name_has_one_entry_in_the_reference() -> None:
    entries = [id(value) for value in ENTRIES.values()]
    assert len(NAMES) == len(ENTRIES)
    assert {name for name, value in PUBLIC.items() if entries.count(id(value)) != 1} == set()


def test_every_entry_of_the_reference_is_public() -> None:
    values = {id(value) for value in PUBLIC.values()}
    assert {name for name, value in ENTRIES.items() if id(value) not in values} == set()


def has_example(name: str) -> bool:
    """Whether the docstring has one, or that of the package shows the name at work."""
    module, _, export = name.rpartition(".")
    lines = (importlib.import_module(module).__doc__ or "").splitlines()
    return ">>> " in (PUBLIC[name].__doc__ or "") or any(f"{export}(" in line for line in lines if ">>> " in line)


def test_every_public_name_has_an_example_or_is_listed() -> None:
    exempt = set().union(*NO_EXAMPLE.values())
    assert {name.rpartition(".")[2] for name in PUBLIC if not has_example(name)} == exempt


def test_list_of_names_without_example_is_short() -> None:
    exempt = set().union(*NO_EXAMPLE.values())
    assert len(exempt) < len(PUBLIC) / 4
