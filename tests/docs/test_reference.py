"""Every public name has one entry in the reference, and an example or a reason to have none."""

import importlib

from docs.public_names import ENTRIES, MACHINERY, NAMES, PUBLIC, modules_on_top

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
        "SurrogateBase",
    },
    "records that only the package makes": {
        "Column",
        "Coverage",
        "Dependence",
        "Diagnostics",
        "Draw",
        "EncodedPool",
        "FrontPoint",
        "KorsDraw",
        "Loss",
        "Recommendation",
        "RegretCertificate",
        "Residual",
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


def test_list_of_machinery_names_only_what_there_is() -> None:
    assert MACHINERY.keys() <= modules_on_top()


def test_no_public_name_has_two_entries_in_the_reference() -> None:
    # Names without an entry are appended when the pages are built.
    assert len(NAMES) == len(ENTRIES) == len({id(value) for value in ENTRIES.values()})


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
