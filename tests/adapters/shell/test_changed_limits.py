"""Outcome constraints that change in a log, in the shell: what is refused, and tables that are told again."""

from pathlib import Path

import pytest

import bkbopt as bo
from bkbopt.adapters.shell.jobs import outcome_of
from bkbopt.adapters.shell.progress import Progress
from bkbopt.optimizer.log.log_file import LogFile
from tests.adapters.shell.calls import call, refused

SPACE = """
seed = 0
constraints = {}
[space]
x = {{ type = "float", low = 0.0, high = {} }}
"""
PAST = "x,heat,value,user_attrs_mass\n0.1,60,1.0,0.4\n0.2,65,0.8,0.6\n0.3,80,0.5,0.7\n"


@pytest.fixture
def state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    call(capsys, "init", space(tmp_path, '["heat <= 70"]'), tmp_path / "state")
    return tmp_path / "state"


def space(folder: Path, constraints: str, high: float = 1.0) -> Path:
    path = folder / "space.toml"
    path.write_text(SPACE.format(constraints, high))
    return path


@pytest.mark.parametrize("constraints", ['["heat < 70"]', "false"])
def test_a_change_with_invalid_constraints_does_not_set_the_space(
    state: Path, constraints: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = state.read_bytes()
    assert "constraints: expected" in refused(capsys, "change", state, space(tmp_path, constraints, high=2.0))
    assert state.read_bytes() == before


@pytest.mark.parametrize("constraint", ["heat < 70", "\udcff <= 70"])
def test_a_change_with_an_invalid_constraint_does_not_set_the_rows(
    constraint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pandas")
    (tmp_path / "rows.csv").write_text("x\n1\n2\n3\n")
    (tmp_path / "other.csv").write_text("x\n1\n2\n")
    state = tmp_path / "state"
    call(capsys, "init", "--pool", tmp_path / "rows.csv", state)
    before = state.read_bytes()
    refused(
        capsys, "change", state, tmp_path / "other.csv", "--pool", tmp_path / "rows.csv", "--constraint", constraint
    )
    assert state.read_bytes() == before


def test_a_table_is_told_once_though_its_constraints_have_changed(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    past = tmp_path / "past.csv"
    past.write_text(PAST)
    assert call(capsys, "tell", state, "--from", past)[0]["complete"] == 3
    for constraints in ("[]", '["mass >= 0.5"]', '["heat <= 70", "mass >= 0.5"]'):
        call(capsys, "change", state, space(tmp_path, constraints))
        (told,) = call(capsys, "tell", state, "--from", past)
        assert (told["complete"], told["told_before"], told["ignored_columns"]) == (0, 3, [])
    past.write_text(PAST.replace("60,1.0", "61,1.0"))
    assert call(capsys, "tell", state, "--from", past)[0]["complete"] == 1


def test_a_table_with_ids_is_told_once_though_its_constraints_have_changed(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    past = tmp_path / "past.csv"
    past.write_text("id,heat,value,user_attrs_mass\n0,60,1.0,0.4\n")
    call(capsys, "ask", state)
    assert call(capsys, "tell", state, "--from", past)[0]["complete"] == 1
    call(capsys, "change", state, space(tmp_path, '["mass >= 0.5"]'))
    assert call(capsys, "tell", state, "--from", past)[0]["told_before"] == 1


def test_the_progress_of_a_log_follows_its_constraints(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "past.csv").write_text(PAST)
    call(capsys, "tell", state, "--from", tmp_path / "past.csv")
    progress = Progress(LogFile(state))
    assert progress.summary() == "best 0.8 (trial 1)"
    for constraints, best in (
        ('["heat <= 62"]', "best 1 (trial 0)"),
        ("[]", "best 0.5 (trial 2)"),
        ('["mass <= 0.65"]', "best 0.8 (trial 1)"),
    ):
        call(capsys, "change", state, space(tmp_path, constraints))
        assert progress.update()
        assert progress.summary() == best
        assert not progress.update()
    outcome = outcome_of("2.5 mass=0.1 heat=3", progress.aims)  # as a command prints it, during `bkbopt run`
    assert outcome.constraints == {"mass": 0.1}


def test_a_parameter_may_have_the_name_of_a_former_constraint(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = space(tmp_path, "[]")
    path.write_text(path.read_text() + "heat = { type = 'float', low = 0.0, high = 99.0 }\n")
    call(capsys, "change", state, path)
    (tmp_path / "past.csv").write_text(PAST)
    call(capsys, "tell", state, "--from", tmp_path / "past.csv")
    assert [t.params["heat"] for t in bo.Optimizer.load(state).trials] == [60.0, 65.0, 80.0]


def test_the_help_of_each_option_of_change_is_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        call(capsys, "change", "--help")
    text = " ".join(capsys.readouterr().out.split())
    assert text.count("the value that earlier trials had for a new parameter") == 1
    assert "--feasible RULE a rule for the rows of a pool" in text
