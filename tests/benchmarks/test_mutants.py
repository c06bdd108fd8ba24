"""The list of faults matches the source, and the runner distinguishes detected from undetected mutants."""

import ast
from pathlib import Path

import pytest

from benchmarks.mutants import __main__ as program
from benchmarks.mutants.catalogue import FAULTS, LATER, ROOMS
from benchmarks.mutants.fault import ROOT, Fault
from benchmarks.mutants.runner import look_for, pass_without


def rooms() -> set[str]:
    """What is on top of the package, and below `adapters`: folders and modules that hold more than names."""
    own = {path.stem for path in (ROOT / "bkbopt").iterdir() if path.suffix in {"", ".py"}}
    adapters = {f"adapters/{path.stem}" for path in (ROOT / "bkbopt" / "adapters").iterdir()}
    return {room for room in own | adapters if not room.split("/")[-1].startswith("__")} - {"adapters", "errors"}


@pytest.mark.parametrize("room", ROOMS)
def test_the_faults_of_a_room_have_their_place_in_the_source_and_leave_code(room: str) -> None:
    for fault in ROOMS[room]:
        source = (ROOT / "bkbopt" / fault.file).read_text(encoding="utf-8")
        ast.parse(fault.sown(source), fault.name)
        assert fault.text != fault.instead, fault.name
        assert fault.tests, fault.name
        assert [test for test in fault.tests if not (ROOT / "tests" / test.split("::")[0]).exists()] == [], fault.name


def test_every_room_of_the_package_has_faults_or_is_to_have_some() -> None:
    assert ROOMS.keys() | LATER == rooms()
    assert not ROOMS.keys() & LATER
    assert all(fault.file.startswith(room) for room, faults in ROOMS.items() for fault in faults)
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 40


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of one function, with a test of it."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    files = {
        "bkbopt/__init__.py": "",
        "bkbopt/double.py": "def double(x):\n    unused = 1\n    return 2 * x\n",
        "tests/test_double.py": "from bkbopt.double import double\n\n\ndef test_double():\n    assert double(2) == 4\n",
        "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "instead", "by", "ran"),
    [
        ("2 * x", "3 * x", "test_double.py::test_double", True),
        ("unused = 1", "unused = 2", None, True),
        ("return 2 * x", "return (", None, False),
    ],
    ids=["noticed", "not noticed", "no code"],
)
def test_mutants_are_told_apart_by_what_the_tests_say(
    text: str, instead: str, by: str | None, ran: bool, project: Path
) -> None:
    found = look_for(Fault("a fault", "double.py", text, instead, ("test_double.py",)), project)
    assert found.by == by
    assert (found.error is None) == ran


def test_tests_that_fail_by_themselves_are_found_out(project: Path) -> None:
    path = project / "tests" / "test_double.py"
    path.write_text(path.read_text().replace("== 4", "== 5"))
    assert "1 failed" in (pass_without(["test_double.py"], project) or "")


def test_a_text_that_is_not_there_once_is_refused() -> None:
    fault = Fault("a fault", "double.py", "x", "y", ("test_double.py",))
    for source in ("", "x + x"):
        with pytest.raises(ValueError, match=r"a fault: expected the text once in bkbopt/double.py, got it \d times"):
            fault.sown(source)


def test_names_are_printed_and_unknown_ones_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["--list", "--only", "residual is forgotten"]) == 0
    assert capsys.readouterr().out == "posterior/model.py: the residual is forgotten\n"
    with pytest.raises(SystemExit):
        program.main(["--only", "no such fault"])
