"""`bkbopt run`: values and failures of a command, several at once, and the same command again after any end."""

import json
import re
import signal
import sys
import time
from pathlib import Path

import pytest

import bkbopt as bo
from bkbopt.adapters import shell as cli
from bkbopt.adapters.shell import run as running
from tests.adapters.shell.calls import Copy, call, has_ended, refused, wait_until
from tests.sweeps import slow_but

SPACE = """
seed = 0
n_startup_trials = 4

[space]
x = { type = "float", low = 0.0, high = 1.0 }
kind = ["line", "bowl"]
y = { type = "float", low = 1e-3, high = 1.0, log = true, when = { kind = "bowl" } }
"""
#: Writes down its process and its arguments, and waits for a file of the name "go" where the folder has "wait".
BOX = """
import os, sys, time
x, y, folder = float(sys.argv[1]), sys.argv[2], sys.argv[3]
with open(os.path.join(folder, "calls"), "a") as file:
    file.write(f"{os.environ['BKBOPT_TRIAL']} {os.getpid()} {x!r} {y}\\n")
while os.path.exists(os.path.join(folder, "wait")) and not os.path.exists(os.path.join(folder, "go")):
    time.sleep(0.02)
if x > 0.9 and not y:
    sys.exit("too far")
print("value:")
print((x - 0.3) ** 2 + (float(y) if y else 0.1))
"""
#: What a run says that a signal ends.
ENDING = "bkbopt: ending the commands, within 5 s; a second Ctrl-C ends them at once\nbkbopt: error: interrupted\n"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heartbeats that a test can wait for."""
    for name, seconds in (("BEAT", 0.2), ("SILENCE", 4.0), ("POLL", 0.1)):
        monkeypatch.setattr(running, name, seconds)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "space.toml").write_text(SPACE)
    (tmp_path / "box.py").write_text(BOX)
    return tmp_path


def arguments(folder: Path, *options: object) -> list[str]:
    box = [sys.executable, "-S", str(folder / "box.py"), "{x}", "{y}", str(folder)]
    return ["run", str(folder / "space.toml"), *map(str, options), "--", *box]


def calls(folder: Path) -> list[list[str]]:
    """Trial, process, x and y of every call of the box."""
    path = folder / "calls"
    return [line.split(" ") for line in path.read_text().splitlines()] if path.exists() else []


def trials(folder: Path) -> list[bo.Trial]:
    return bo.Optimizer.load(folder / "space.db").trials


def states(folder: Path) -> list[str]:
    return [trial.state for trial in trials(folder)]


fcntl = pytest.importorskip("fcntl", reason="the locks and signals of these tests are those of POSIX")


# -- to the end --------------------------------------------------------------------------------------------------------


def test_a_run_tells_the_values_of_a_command_and_goes_on_with_the_same_call(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (best,) = call(capsys, *arguments(folder, "--trials", 6))
    done = trials(folder)
    assert [trial.state for trial in done] == ["COMPLETE"] * 6
    for trial, (number, _, x, y) in zip(done, calls(folder), strict=True):
        assert (trial.id, trial.params["x"]) == (int(number), float(x))
        assert y == (repr(trial.params["y"]) if "y" in trial.params else "")
        assert trial.value == (float(x) - 0.3) ** 2 + (float(y) if y else 0.1)
    assert best["observed"]["value"] == min(trial.value for trial in done)
    assert call(capsys, *arguments(folder, "--trials", 6)) == [best]
    call(capsys, *arguments(folder, "--trials", 8))
    assert len(calls(folder)) == len(trials(folder)) == 8
    # One after the other, the trials are those of ask and tell.
    opt = bo.Optimizer(cli.read_space(folder / "space.toml")[0], seed=0, n_startup_trials=4)
    for trial in trials(folder):
        assert dict(opt.ask().params) == dict(trial.params)
        opt.tell(trial.id, trial.value)


def test_failures_are_reported_once_each_and_count(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for x in (0.95, 0.5, 0.97):
        bo.Optimizer(cli.read_space(folder / "space.toml")[0], seed=0, n_startup_trials=4, storage=folder / "space.db")
        call(capsys, "enqueue", folder / "space.db", json.dumps({"x": x, "kind": "line"}))
    assert cli.main(arguments(folder, "--trials", 3, "--jobs", 2, "--quiet")) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["observed"]["id"] == 1
    lines = [f"bkbopt: trial {number}: failed: exit status 1: too far" for number in (0, 2)]
    assert sorted(err.splitlines()) == lines
    assert states(folder) == ["FAIL", "COMPLETE", "FAIL"]
    errors = [trial.user_attrs.get("error") for trial in bo.Optimizer.load(folder / "space.db").trials]
    assert errors == ["exit status 1: too far", None, "exit status 1: too far"]


def test_a_command_that_takes_too_long_fails_and_without_any_value_nothing_is_best(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
    options = ["--trials", "2", "--jobs", "2", "--timeout-per-trial", "0.5", "--storage", str(folder / "other.db")]
    assert cli.main(["run", str(folder / "space.toml"), *options, "--", *words]) == 1
    err = capsys.readouterr().err.splitlines()
    assert sorted(err[:2]) == [f"bkbopt: trial {i}: failed: not finished after 0.5 s" for i in (0, 1)]
    assert err[2].startswith("bkbopt: error: run: expected at least one trial with a value, got none of 2")
    assert not (folder / "space.db").exists()


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("print('loss 0.3'); print('done {x}')", "an output that ends with 'loss 0.3.ndone 0[.][0-9]+', "),
        ("print({x}, {x})", "an output that ends with '0[.][0-9]+ 0[.][0-9]+', "),
        ("pass # {x}", "no output, "),
    ],
)
def test_a_run_stops_after_three_outputs_that_cannot_be_read(
    folder: Path, capsys: pytest.CaptureFixture[str], code: str, shown: str
) -> None:
    options = ["--trials", "50", "--quiet"]
    assert cli.main(["run", str(folder / "space.toml"), *options, "--", sys.executable, "-S", "-c", code]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert [line.startswith(f"bkbopt: trial {i}: failed: ") for i, line in enumerate(lines[:3])] == [True] * 3
    expected = "a number for each objective, and name=number for each constraint, separated by blanks"
    assert re.search(f"error: command: expected {expected} on the last line of its output, got {shown}", lines[3])
    assert "delete " in lines[3]
    assert len(lines) == 4
    assert states(folder) == ["FAIL"] * 3


@pytest.mark.parametrize(
    "code", ["print('nan')", "import os; print('no' if int(os.environ['BKBOPT_TRIAL']) % 3 else 'nan')", "exit(1)"]
)
def test_programs_that_fail_or_print_no_finite_number_do_not_stop_a_run(
    folder: Path, capsys: pytest.CaptureFixture[str], code: str
) -> None:
    words = [sys.executable, "-c", code]
    assert cli.main(["run", str(folder / "space.toml"), "--trials", "6", "--quiet", "--", *words]) == 1
    assert "run: expected at least one trial with a value, got none of 6" in capsys.readouterr().err


def test_a_run_of_constraints_alone_says_that_the_objective_has_no_value(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "space.toml").write_text('constraints = ["heat"]\nseed = 0\n[space]\nx = [1, 2, 3]\n')
    words = [sys.executable, "-S", "-c", "print('heat=1')"]
    assert cli.main(["run", str(tmp_path / "space.toml"), "--trials", "2", "--quiet", "--", *words]) == 1
    assert capsys.readouterr().err == (
        "bkbopt: error: run: expected at least one trial with a value, got none of 2; print a value of the objective "
        "beside those of constraints.\n"
    )


def test_after_a_value_outputs_that_cannot_be_read_do_not_stop_a_run(folder: Path) -> None:
    code = "import os; print('no' if int(os.environ['BKBOPT_TRIAL']) else 1)"
    words = [sys.executable, "-S", "-c", code]
    assert cli.main(["run", str(folder / "space.toml"), "--trials", "6", "--quiet", "--", *words]) == 0
    assert states(folder) == ["COMPLETE"] + ["FAIL"] * 5


def test_a_run_ends_where_there_is_nothing_left_to_propose(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "space.toml").write_text('duplicates = "avoid"\nseed = 0\n[space]\nx = [1, 2, 3]\n')
    words = [sys.executable, "-S", "-c", "print({x})"]
    said = "bkbopt: ended after 3 trials: no point is left to propose\n"
    (best,) = call(capsys, "run", tmp_path / "space.toml", "--trials", 9, "--jobs", 2, "--", *words, said=said)
    assert best["observed"]["params"] == {"x": 1}
    assert len(trials(tmp_path)) == 3


def test_several_objectives_and_constraints_come_on_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("botorch")
    head = 'directions = ["minimize", "maximize"]\nconstraints = ["heat"]\nseed = 0\n'
    (tmp_path / "space.toml").write_text(f"{head}[space]\nx = {{ type = 'float', low = 0.0, high = 1.0 }}\n")
    words = [sys.executable, "-S", "-c", "print({x}, 2 * {x}, 'heat=-1')"]
    front = call(capsys, "run", tmp_path / "space.toml", "--trials", 3, "--", *words)
    assert len(front) == 3
    for trial in call(capsys, "show", tmp_path / "space.db", "--trials"):
        assert trial["values"] == [trial["params"]["x"], 2 * trial["params"]["x"]]
        assert (trial["constraints"], trial["feasible"]) == ({"heat": -1.0}, True)


def test_objectives_with_names_come_by_name_and_are_written_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = 'directions = { loss = "minimize", power = "maximize" }\nseed = 0\n'
    space = tmp_path / "space.toml"
    space.write_text(f"{head}[space]\nx = {{ type = 'float', low = 0.0, high = 1.0 }}\n")
    words = [sys.executable, "-S", "-c", "print('power=' + str(2 * {x}), 'loss=' + str({x}), 'step=3')"]
    front = call(capsys, "run", space, "--trials", 3, "--", *words)
    assert [list(point["means"]) for point in front] == [["loss", "power"]] * 3
    state = tmp_path / "space.db"
    assert call(capsys, "show", state)[0]["directions"] == {"loss": "minimize", "power": "maximize"}
    trials = call(capsys, "show", state, "--trials")
    for trial in trials:
        assert trial["values"] == {"loss": trial["params"]["x"], "power": 2 * trial["params"]["x"]}
        assert trial["user_attrs"] == {"step": 3}
    call(capsys, "export", state, tmp_path / "trials.csv")
    own = (tmp_path / "trials.csv").read_text().replace("values_", "").replace(",params_", ",")
    (tmp_path / "own.csv").write_text(own)  # the names alone, as users write them
    for copy, past in (("a.db", "trials.csv"), ("b.db", "own.csv")):
        call(capsys, "init", space, tmp_path / copy)
        call(capsys, "tell", tmp_path / copy, "--from", tmp_path / past)
        again = call(capsys, "show", tmp_path / copy, "--trials")
        assert [trial["values"] for trial in again] == [trial["values"] for trial in trials]
    space.write_text(space.read_text().replace("seed", 'constraints = ["loss"]\nseed'))
    assert "expected other names than those of objectives, got 'loss'" in refused(capsys, "run", space, "--", *words)


def test_a_run_ends_at_the_regret_that_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "space.toml").write_text("seed = 0\n[space]\nx = { type = 'int', low = 0, high = 10 }\n")
    words = ["--", sys.executable, "-S", "-c", "print(({x} - 2) ** 2)"]
    wanted = ("run", tmp_path / "space.toml", "--stop-at-regret", "0.5", "--trials", 40)
    capsys.readouterr()
    assert cli.main([*map(str, wanted), "--jobs", "2", *words]) == 0
    out, said = capsys.readouterr()
    best = json.loads(out)
    opt = bo.Optimizer.open(tmp_path / "space.db")
    assert best["params"] == {"x": 2}
    assert best["regret_bound"] == opt.regret_certificate().bound <= 0.5
    assert 10 < len(opt.trials) < 40
    assert states(tmp_path) == ["COMPLETE"] * len(opt.trials)
    why = "the regret of the recommended point is at most 0.5 at confidence 0.95"
    assert said == f"bkbopt: ended after {len(opt.trials)} trials: {why}\n"
    assert call(capsys, *wanted, *words, said=said) == [best]  # nothing is left to do
    assert call(capsys, "best", tmp_path / "space.db", "--regret") == [best]
    assert len(call(capsys, "run", tmp_path / "space.toml", "--trials", len(opt.trials) + 1, *words)) == 1
    assert len(trials(tmp_path)) == len(opt.trials)


def test_a_run_that_does_not_reach_the_regret_ends_at_its_number_of_trials(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--trials", 12, "--stop-at-regret", 0)
    (best,) = call(capsys, "run", folder / "space.toml", *options, "--", sys.executable, "-S", "-c", "print({x})")
    assert len(trials(folder)) == 12
    assert best["regret_bound"] > 0.0


# -- what it refuses ---------------------------------------------------------------------------------------------------


def test_a_run_that_cannot_be_is_refused_before_there_is_a_log(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    space = folder / "space.toml"
    for more, message in (
        ((), "expected -- and a command"),
        (("--",), "expected -- and a command"),
        (("--jobs", 0, "--", "awk"), "argument --jobs: expected a whole number >= 1, got 0"),
        (("--trials", -3, "--", "awk"), "argument --trials: expected a whole number >= 1, got -3"),
        (("--timeout-per-trial", "inf", "--", "awk"), "expected a number of seconds"),
        (("--stop-at-regret", "-1", "--", "awk"), "--stop-at-regret: expected a finite regret >= 0, got -1"),
        (("--", sys.executable, "{z}"), "among x, kind, y, got {z}"),
        (("--", "no-such-program"), "expected a program that can be run"),
        (("--", "awk {x}"), "got 'awk {x}' as one word; leave the quotes out"),
        (("awk", "{x}"), "expected -- and a command"),
    ):
        assert message in refused(capsys, "run", space, *more)
    assert sorted(path.name for path in folder.iterdir()) == ["box.py", "space.toml"]


def test_a_regret_of_several_objectives_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "space.toml").write_text('directions = ["minimize", "minimize"]\n[space]\nx = [1, 2, 3]\n')
    wanted = ("run", tmp_path / "space.toml", "--stop-at-regret", 1, "--", sys.executable)
    assert "--stop-at-regret: expected a space with a single objective" in refused(capsys, *wanted)
    assert [path.name for path in tmp_path.iterdir()] == ["space.toml"]


def test_a_log_of_another_space_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bo.Optimizer({"x": (0.0, 2.0)}, seed=0, n_startup_trials=4, storage=folder / "space.db")
    assert "expected the search space that" in refused(capsys, *arguments(folder, "--trials", 1))
    assert trials(folder) == []


# -- other ends --------------------------------------------------------------------------------------------------------


def pids(folder: Path) -> list[int]:
    return [int(row[1]) for row in calls(folder)]


def held(folder: Path, *options: object, count: int) -> Copy:
    """A run whose first `count` commands have begun and do not end."""
    (folder / "wait").touch()
    run = Copy(*arguments(folder, *options))
    wait_until(lambda: len(calls(folder)) == count or run.has_ended())
    assert not run.has_ended()
    return run


@pytest.mark.parametrize("number", slow_but([signal.SIGTERM], [signal.SIGINT, signal.SIGTERM]))
def test_a_signal_ends_the_commands_and_queues_their_points(
    number: signal.Signals, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = held(folder, "--trials", 3, "--jobs", 2, count=2)
    run.send(number)
    assert run.ended() == (130, "", ENDING)
    assert all(map(has_ended, pids(folder)))
    lost = trials(folder)
    assert [trial.state for trial in lost] == ["FAIL", "FAIL", "WAITING", "WAITING"]
    (folder / "go").touch()
    (best,) = call(capsys, *arguments(folder, "--trials", 3, "--jobs", 2))
    assert best["observed"] is not None
    done = trials(folder)
    assert [trial.state for trial in done] == ["FAIL", "FAIL", *["COMPLETE"] * 3]
    assert [trial.params for trial in done[2:4]] == [trial.params for trial in lost[:2]]


def test_a_second_signal_does_without_the_grace(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "box.py").write_text("import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + BOX)
    run = held(folder, "--trials", 2, "--jobs", 2, count=2)
    run.send(signal.SIGINT)
    time.sleep(1.0)
    assert not run.has_ended()
    run.send(signal.SIGINT)
    assert run.ended() == (130, "", ENDING)
    assert all(map(has_ended, pids(folder)))
    assert states(folder) == ["FAIL", "FAIL", "WAITING", "WAITING"]


def test_after_kill_9_the_same_command_makes_what_is_missing(folder: Path) -> None:
    bo.Optimizer(
        cli.read_space(folder / "space.toml")[0], seed=0, n_startup_trials=4, storage=folder / "space.db"
    ).tell({"x": 0.5, "kind": "line"}, 0.14)
    run = held(folder, "--trials", 5, "--jobs", 2, count=2)
    run.send(signal.SIGKILL)
    assert run.ended()[0] == -signal.SIGKILL
    assert states(folder) == ["COMPLETE", "RUNNING", "RUNNING"]
    (folder / "go").touch()  # the commands of the killed run end, and nobody reads what they print
    wait_until(lambda: all(map(has_ended, pids(folder))))
    status, _, err = Copy(*arguments(folder, "--trials", 5, "--jobs", 2)).ended()
    assert status == 0
    again = "lost, since its run has died; its point is queued again"
    lost = [line for line in err.splitlines() if " waiting, " not in line]
    assert sorted(lost) == [f"bkbopt: trial {number}: {again}" for number in (1, 2)]
    done = trials(folder)
    assert sorted(trial.state for trial in done) == [*["COMPLETE"] * 5, "FAIL", "FAIL"]
    complete = [trial.params for trial in done if trial.state == "COMPLETE"]
    assert all(trial.params in complete for trial in done if trial.state == "FAIL")


def test_a_run_that_only_waits_for_a_silent_one_says_so_once(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "SILENCE", 2.0)
    monkeypatch.setattr(running, "POLL", 0.05)
    space, options = cli.read_space(folder / "space.toml")
    bo.Optimizer(space, **options, storage=folder / "space.db").ask(heartbeat=True)
    assert cli.main([str(word) for word in arguments(folder, "--trials", 1)]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "bkbopt: trial 0: waiting, since its run sends no heartbeats; after 2 s without one it is run again",
        "bkbopt: trial 0: lost, since its run has died; its point is queued again",
    ]


def test_trials_of_a_living_run_are_left_alone_and_counted(folder: Path) -> None:
    first = held(folder, "--trials", 4, "--jobs", 2, count=2)
    second = Copy(*arguments(folder, "--trials", 4, "--jobs", 3))
    wait_until(lambda: len(calls(folder)) == 4)
    time.sleep(running.SILENCE + 1.0)  # after which a trial is lost
    assert not second.has_ended()
    (folder / "go").touch()
    results = [run.ended() for run in (first, second)]
    assert [(status, err) for status, _, err in results] == [(0, "")] * 2
    assert states(folder) == ["COMPLETE"] * 4
    assert len(calls(folder)) == 4


def test_a_run_counts_again_when_it_is_its_turn_to_ask(folder: Path) -> None:
    with open(folder / "space.db.run.lock", "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # both runs have seen that two trials are wanted, and wait
        runs = [Copy(*arguments(folder, "--trials", 2, "--jobs", 2)) for _ in range(2)]
        time.sleep(1.0)
        assert not any(run.has_ended() for run in runs)
        fcntl.flock(file, fcntl.LOCK_UN)  # the copies have the file open, too
    assert [run.ended()[0] for run in runs] == [0, 0]
    assert states(folder) == ["COMPLETE"] * 2


def test_trials_without_a_heartbeat_are_not_recovered(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    space, options = cli.read_space(folder / "space.toml")
    bo.Optimizer(space, **options, storage=folder / "space.db").ask()
    call(capsys, *arguments(folder, "--trials", 2))
    assert states(folder) == ["RUNNING", "COMPLETE", "COMPLETE"]


def test_a_trial_that_somebody_fails_meanwhile_is_ended(folder: Path) -> None:
    run = held(folder, "--trials", 2, "--jobs", 1, count=1)
    bo.Optimizer.open(folder / "space.db").fail(0)
    wait_until(lambda: has_ended(pids(folder)[0]))
    (folder / "go").touch()
    status, _, err = run.ended()
    assert status == 0
    message = "its result is not written: run: expected a running trial, but trial 0 was failed already."
    assert err == f"bkbopt: trial 0: {message}\n"
    assert states(folder) == ["FAIL", "COMPLETE"]


def test_a_log_that_goes_away_ends_the_run_and_its_commands(folder: Path) -> None:
    run = held(folder, "--trials", 2, "--jobs", 1, count=1)
    (folder / "space.db").unlink()
    status, out, err = run.ended()
    assert (status, out) == (1, "")
    assert "was removed or replaced" in err
    assert err.count("\n") == 1
    assert has_ended(pids(folder)[0])


# -- counting ----------------------------------------------------------------------------------------------------------


def test_lost_trials_do_not_count(folder: Path) -> None:
    opt = bo.Optimizer(cli.read_space(folder / "space.toml")[0], seed=0, storage=folder / "space.db")
    progress = running.Progress(running.LogFile(folder / "space.db"))

    def made() -> int:
        progress.update()
        anew = running.Progress(running.LogFile(folder / "space.db"))
        assert anew.n_lost == progress.n_lost  # as those see it who read the log whole
        return progress.n_finished - progress.n_lost

    opt.ask(2, heartbeat=True)
    assert made() == 0
    opt.fail(0)
    assert made() == 1
    opt.recover(enqueue=True)
    assert made() == 1  # one failure, and a loss that does not count
    trial = opt.ask(heartbeat=True)
    assert trial.params == opt.trials[1].params
    opt.recover(enqueue=True)
    assert made() == 1
    opt.tell(opt.ask(heartbeat=True), 1.0)
    assert made() == 2
    opt.fail(opt.ask(heartbeat=True))
    assert made() == 3
