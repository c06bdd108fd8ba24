"""Invalid input raises a typed error and leaves the state unchanged; extreme but valid input works."""

import math
import subprocess
import sys
import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import bkbopt as bo
from bkbopt.errors import ArgumentError, ArgumentTypeError, BkbError, KernelError, UnknownTrialError
from tests.sweeps import sweep

ROOT = Path(__file__).resolve().parents[2]
SPACE = {"x": (0.0, 1.0), "n": bo.Int(1, 5), "kind": ["a", "b"]}
OK = {"x": 0.5, "n": 2, "kind": "a"}
NAN, INF = math.nan, math.inf
FRAME = pd.DataFrame(
    {"dose": np.arange(12) / 10.0, "solvent": ["water", "oil", "acid"] * 4}, index=[f"row {i}" for i in range(12)]
)


def told() -> bo.Optimizer:
    """An optimizer with eight values, two trials running (8 and 9) and one in the queue (10)."""
    opt = bo.Optimizer(SPACE, seed=0, n_startup_trials=4, constraints=["g"])
    for _ in range(8):
        trial = opt.ask()
        opt.tell(trial, trial.params["x"] + trial.params["n"])
    opt.ask(2)
    opt.enqueue({"x": 0.75})
    return opt


def front() -> bo.Optimizer:
    """Two objectives, two constraints, five values, two trials running (5 and 6)."""
    opt = bo.Optimizer(SPACE, directions=["minimize", "maximize"], constraints=["g", "h"], seed=0, n_startup_trials=9)
    for _ in range(5):
        trial = opt.ask()
        opt.tell(trial, [trial.params["x"], trial.params["n"]], constraints={"g": -1.0})
    opt.ask(2)
    return opt


def table() -> bo.Optimizer:
    """A data frame with labels; five values, two trials running (5 and 6)."""
    opt = bo.Optimizer(FRAME, seed=0, n_startup_trials=9)
    for trial in opt.ask(5):
        opt.tell(trial, trial.params["dose"])
    opt.ask(2)
    return opt


def state(opt: bo.Optimizer) -> bytes:
    """All that a state file holds."""
    with tempfile.TemporaryDirectory() as folder:
        opt.save(Path(folder) / "state")
        return (Path(folder) / "state").read_bytes()


VALUES: dict[str, Any] = {
    "nan": NAN,
    "inf": INF,
    "minus inf": -INF,
    "none": None,
    "complex": 1j,
    "numpy complex": np.complex128(1.0),
    "string": "3.0",
    "bool": True,
    "pair": [1.0, 2.0],
    "empty": [],
    "ragged": [[1.0], [1.0, 2.0]],
    "matrix": np.ones((2, 2)),
    "dict": {"value": 1.0},
    "object": object(),
    "nan in an array": np.array([NAN]),
    "complex tensor": torch.tensor(1j),
    "overflowing integer": 10**400,
    "datetime": np.datetime64("2026-01-01"),
    "missing": pd.NA,
}
PARAMS: dict[str, Any] = {
    "above": OK | {"x": 1.5},
    "below": OK | {"x": -0.1},
    "nan": OK | {"x": NAN},
    "inf": OK | {"x": INF},
    "none": OK | {"x": None},
    "string for a number": OK | {"x": "0.5"},
    "complex": OK | {"x": 0.5j},
    "bool for a number": OK | {"x": True},
    "array": OK | {"x": np.array([0.1, 0.2])},
    "fraction of a whole number": OK | {"n": 2.5},
    "whole number outside": OK | {"n": 6},
    "unknown choice": OK | {"kind": "c"},
    "unhashable choice": OK | {"kind": ["a"]},
    "unknown name": OK | {"z": 1.0},
    "missing name": {"x": 0.5, "n": 2},
    "no names": {},
    "index outside of a pool": {"index": 1},
}
#: Fine where only some of the parameters are given.
PARTIAL = {"missing name", "no names"}
HANDLES: dict[str, Any] = {
    "none": None,
    "string": "0",
    "float": 8.0,
    "bool": True,
    "unknown": 99,
    "negative": -1,
    "huge": 10**30,
    "numbers": [1, 2],
    "array": np.array([8]),
    "set": {8},
    "mixed rows": [OK, None],
    "bad second row": [OK, OK | {"x": 7.0}],
}
Call = Callable[[bo.Optimizer], object]
#: Values that a single objective takes and that are no error elsewhere.
ROWS = {"pair"}
CALLS: dict[str, Call] = {
    **{f"tell a trial {k}": lambda o, v=v: o.tell(8, v) for k, v in VALUES.items()},
    **{f"tell params {k}": lambda o, v=v: o.tell(OK, v) for k, v in VALUES.items()},
    **{f"tell rows {k}": lambda o, v=v: o.tell([OK, OK], v) for k, v in VALUES.items() if k not in ROWS},
    **{f"tell std {k}": lambda o, v=v: o.tell(8, 1.0, std=v) for k, v in VALUES.items() if k != "none"},
    **{f"tell a constraint {k}": lambda o, v=v: o.tell(8, 1.0, constraints={"g": v}) for k, v in VALUES.items()},
    **{
        f"tell rows where some fail {k}": lambda o, v=v: o.tell([OK, OK], v, invalid="fail")
        for k, v in VALUES.items()
        if k not in ROWS
    },
    **{f"tell at {k}": lambda o, p=p: o.tell(p, 1.0) for k, p in PARAMS.items()},
    **{f"predict at {k}": lambda o, p=p: o.predict([OK, p]) for k, p in PARAMS.items()},
    **{f"queue {k}": lambda o, p=p: o.enqueue(p) for k, p in PARAMS.items() if k not in PARTIAL},
    **{f"ask with {k} held": lambda o, p=p: o.ask(fixed=p) for k, p in PARAMS.items() if k not in PARTIAL},
    **{
        f"tell to {k}": lambda o, h=h: o.tell(h, [1.0, 2.0] if isinstance(h, list) else 1.0) for k, h in HANDLES.items()
    },
    **{f"fail {k}": lambda o, h=h: o.fail(h) for k, h in HANDLES.items()},
    "fail params": lambda o: o.fail(OK),
    "fail one of two twice": lambda o: o.fail([8, 9, 8]),
    "tell twice": lambda o: o.tell(0, 1.0),
    "tell one twice at once": lambda o: o.tell([8, 8], [1.0, 2.0]),
    "tell the second of two again": lambda o: o.tell([8, 0], [1.0, 2.0]),
    "tell a queued trial": lambda o: o.tell(10, 1.0),
    "fail a queued trial": lambda o: o.fail(10),
    "fail after tell": lambda o: o.fail(0),
    "rows and values of other length": lambda o: o.tell([OK, OK], [1.0]),
    "rows and stds of other length": lambda o: o.tell([OK, OK], [1.0, 2.0], std=0.1),
    "nan among values": lambda o: o.tell([OK, OK], [1.0, NAN]),
    "none among values": lambda o: o.tell([OK, OK], [1.0, None]),
    "negative std": lambda o: o.tell(8, 1.0, std=-0.1),
    "unknown constraint": lambda o: o.tell(8, 1.0, constraints={"heat": 1.0}),
    "constraints in a list": lambda o: o.tell(8, 1.0, constraints=[1.0]),
    "neither value nor constraint": lambda o: o.tell(8, None, constraints={}),
    "invalid": lambda o: o.tell(OK, 1.0, invalid="skip"),
    "columns without a frame": lambda o: o.tell([OK], [1.0], columns=["x"]),
    "columns in a string": lambda o: o.tell(pd.DataFrame([OK | {"y": 1.0}]), "y", columns="x"),
    "columns that are not there": lambda o: o.tell(pd.DataFrame([OK | {"y": 1.0}]), "y", columns=["x", "z"]),
    "frame without the column": lambda o: o.tell(pd.DataFrame([OK]), "loss"),
    "frame without the constraint": lambda o: o.tell(pd.DataFrame([OK]), [1.0], constraints={"g": "heat"}),
    "frame with a stranger": lambda o: o.tell(pd.DataFrame([OK | {"z": 1.0}]), [1.0]),
    "frame with nan": lambda o: o.tell(pd.DataFrame([OK | {"x": NAN}]), [1.0]),
    "frame with nan values": lambda o: o.tell(pd.DataFrame([OK | {"loss": NAN}]), "loss"),
    "frame with text for values": lambda o: o.tell(pd.DataFrame([OK | {"loss": "3"}]), "loss", invalid="fail"),
    "frame with a column twice": lambda o: o.tell(pd.DataFrame([[0.5, 2, "a", 1]], columns=[*OK, "x"]), [1.0]),
    **{f"ask {n!r}": lambda o, n=n: o.ask(n) for n in (0, -1, 1.5, NAN, INF, "3", True, [2], 2j)},
    **{f"useful workers {n!r}": lambda o, n=n: o.useful_workers(limit=n) for n in (0, 1.5, "3", NAN)},
    **{f"hold {v!r}": lambda o, v=v: o.ask(fixed=v) for v in ([1], "x", 3)},
    **{f"queue {v!r}": lambda o, v=v: o.enqueue(v) for v in ([1], "x", 3, None)},
    **{f"set the space {v!r}": lambda o, v=v: o.set_space(v) for v in (None, 3, {}, {"x": (1.0, 0.0)}, {"x": []})},
    "set a pool on a space": lambda o: o.set_pool([[1.0]]),
    "tell rows of a space": lambda o: o.tell_rows([0], [1.0]),
    "hypervolume of two": lambda o: o.hypervolume([1.0, 2.0]),
    "predict a number": lambda o: o.predict([3.0]),
    "predict a string": lambda o: o.predict("x"),
}
#: Calls on an optimizer with several objectives.
FRONT_CALLS: dict[str, Call] = {
    **{f"values {k}": lambda o, v=v: o.tell(5, v) for k, v in VALUES.items() if k != "pair"},
    **{f"second value {k}": lambda o, v=v: o.tell(5, [1.0, v]) for k, v in VALUES.items() if k != "bool"},
    **{f"values of rows {k}": lambda o, v=v: o.tell([OK, OK], v) for k, v in VALUES.items() if k != "matrix"},
    **{
        f"values of rows where some fail {k}": lambda o, v=v: o.tell([OK, OK], v, invalid="fail")
        for k, v in VALUES.items()
        if k != "matrix"
    },
    **{f"stds {k}": lambda o, v=v: o.tell(5, [1, 2], std=v) for k, v in VALUES.items() if k not in ("none", "pair")},
    **{f"reference {k}": lambda o, v=v: o.hypervolume(v) for k, v in VALUES.items() if k != "pair"},
    "three values": lambda o: o.tell(5, [1.0, 2.0, 3.0]),
    "one column for two": lambda o: o.tell(pd.DataFrame([OK | {"y": 1.0}]), "y"),
    "text among the columns": lambda o: o.tell(pd.DataFrame([OK | {"y": 1.0, "z": "2"}]), ["y", "z"]),
    "best trial": lambda o: o.best_trial,
    "recommendation": lambda o: o.recommend(),
    "certificate": lambda o: o.regret_certificate(),
}
#: Calls on a pool.
POOL_CALLS: dict[str, Call] = {
    **{
        f"tell_rows {rows!r}": lambda o, rows=rows: o.tell_rows(rows, [1.0])
        for rows in (["nobody"], [12], [-1], [True], [1.5], [None], "row 1", 3, [["row 1"]], ["row 1", "row 2"])
    },
    "rows without a value": lambda o: o.tell_rows(["row 1"], [NAN]),
    **{
        f"at {params!r}": lambda o, params=params: o.tell(params, 1.0)
        for params in (
            {"index": "row 1"},
            {"index": 12},
            {"dose": 0.1},
            {"dose": 0.1, "solvent": "mud"},
            {"dose": "0.1", "solvent": "oil"},
            {"dose": NAN, "solvent": "oil"},
            {"dose": 0.1, "solvent": "oil", "x": 1.0},
        )
    },
    **{
        f"{verb} {params!r}": lambda o, call=call, params=params: call(o, params)
        for verb, call in (("hold", lambda o, p: o.ask(fixed=p)), ("queue", lambda o, p: o.enqueue(p)))
        for params in ({"dose": 0.55}, {"solvent": "mud"}, {"x": 1.0}, {"index": 12}, {"index": "row 1"}, [1])
    },
    **{
        f"pool {i}": lambda o, pool=pool: o.set_pool(pool)
        for i, pool in enumerate(
            (None, 3, [], FRAME[["dose"]], FRAME.iloc[:0], FRAME.assign(dose=NAN), [[1.0, 2.0, 3.0]])
        )
    },
    "set a space on a pool": lambda o: o.set_space({"x": (0.0, 1.0)}),
}
VICTIMS: dict[str, tuple[Callable[[], bo.Optimizer], dict[str, Call]]] = {
    "a single objective": (told, CALLS),
    "several objectives": (front, FRONT_CALLS),
    "a pool": (table, POOL_CALLS),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "direction": {"direction": "up"},
    "direction None": {"direction": None},
    "direction list": {"direction": ["minimize"]},
    "seed negative": {"seed": -1},
    "seed fraction": {"seed": 1.5},
    "seed string": {"seed": "1"},
    "seed nan": {"seed": NAN},
    "n_startup_trials negative": {"n_startup_trials": -1},
    "n_startup_trials fraction": {"n_startup_trials": 2.5},
    "n_startup_trials None": {"n_startup_trials": None},
    "surrogate name": {"surrogate": "gp"},
    "surrogate class": {"surrogate": bo.BKB},
    "surrogate number": {"surrogate": 3},
    "acquisition": {"acquisition": "ei"},
    "beta negative": {"beta": -1.0},
    "beta nan": {"beta": NAN},
    "beta string": {"beta": "wide"},
    "beta class": {"beta": bo.confidence.Srinivas},
    "fit without kernel": {"fit": False},
    "fit number": {"fit": 1},
    "deterministic": {"deterministic": "no"},
    "perturbations": {"perturbations": None},
    "directions empty": {"directions": []},
    "directions string": {"directions": "minimize"},
    "directions unknown": {"directions": ["minimize", "up"]},
    "constraints string": {"constraints": "g"},
    "constraints numbers": {"constraints": [1]},
    "constraints twice": {"constraints": ["g", "g"]},
    "acquisition class": {"acquisition": type("A", (), {"__call__": lambda self, m, v: m})},
    "duplicates": {"duplicates": "never"},
    "feasible": {"feasible": 3},
}
SPACES: dict[str, Any] = {
    "reversed": {"x": (1.0, 0.0)},
    "nan": {"x": (NAN, 1.0)},
    "inf": {"x": (0.0, INF)},
    "overflowing": {"x": (-1e308, 1e308)},
    "log of zero": {"x": lambda: bo.Float(0.0, 1.0, log=True)},
    "string bounds": {"x": ("0", "1")},
    "three bounds": {"x": (0.0, 0.5, 1.0)},
    "no choices": {"x": []},
    "no parameters": {},
    "none": None,
    "number": 3,
    "string": "x",
    "names that are no strings": {3: (0.0, 1.0)},
    "reversed pair": [(0.0, 1.0), (1.0, 0.0)],
    "nan pair": [(0.0, NAN)],
    "set": {1, 2},
    "condition on nothing": {"x": lambda: bo.Float(0.0, 1.0, when={"kind": "a"})},
    "condition on itself": {"n": lambda: bo.Int(0, 3, when={"n": 1})},
}


def construct(name: str) -> bo.Optimizer:
    space = SPACES[name]
    if isinstance(space, dict):
        space = {k: v() if callable(v) else v for k, v in space.items()}
    return bo.Optimizer(space)


def fault(call: Callable[[], object]) -> str | None:
    """What is wrong with the refusal of a call, or None."""
    try:
        call()
    except BkbError as error:
        typed = isinstance(error, (ValueError, TypeError, KeyError, RuntimeError))
        return None if typed and len(str(error)) > 20 else f"a poor error: {error!r}"
    except Exception as error:  # noqa: BLE001  # which is what must not happen
        return f"a foreign error: {error!r}"
    return "no error"


def all_faults() -> list[str]:
    """Every bad call of this file, made once; for the run with `python -O`."""
    found = {}
    for what, (make, calls) in VICTIMS.items():
        opt = make()
        before = state(opt)
        found |= {f"{what}, {k}": fault(lambda c=c, opt=opt: c(opt)) for k, c in calls.items()}
        found[what] = None if state(opt) == before else "changed"
    found |= {f"option {k}": fault(lambda o=o: bo.Optimizer(SPACE, **o)) for k, o in OPTIONS.items()}
    found |= {f"space {k}": fault(lambda k=k: construct(k)) for k in SPACES}
    return [f"{k}: {v}" for k, v in found.items() if v is not None]


@pytest.mark.parametrize("what", VICTIMS)
def test_bad_calls_are_refused_and_change_nothing_then_or_later(what: str) -> None:
    make, calls = VICTIMS[what]
    abused = make()
    before, found = state(abused), {}
    for name, call in calls.items():
        found[name] = fault(lambda call=call, opt=abused: call(opt))
        if state(abused) != before:
            found[name] = "the state has changed"
            abused, before = (again := make()), state(again)
    assert {name: what for name, what in found.items() if what is not None} == {}
    spared = make()
    for opt in (abused, spared):
        opt.fail(len(opt.trials) - (3 if opt.directions == ("minimize",) and opt.space else 2))
    assert [t.params for t in abused.ask(3)] == [t.params for t in spared.ask(3)]


@pytest.mark.parametrize("name", OPTIONS)
def test_bad_option_is_refused_by_name(name: str) -> None:
    with pytest.raises((ArgumentError, ArgumentTypeError), match=name.split(maxsplit=1)[0]):
        bo.Optimizer(SPACE, **OPTIONS[name])


@pytest.mark.parametrize("name", SPACES)
def test_bad_space_is_refused(name: str) -> None:
    assert fault(lambda: construct(name)) is None


@pytest.mark.slow  # a process of its own
def test_bad_input_is_refused_without_asserts_too() -> None:
    program = (
        "import importlib.util, sys\n"
        "spec = importlib.util.spec_from_file_location('bad_input', sys.argv[1])\n"
        "module = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "assert False  # asserts are off\n"
        "print('\\n'.join(module.all_faults()))\n"
    )
    command = [sys.executable, "-O", "-c", program, str(Path(__file__).resolve())]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.stderr == ""
    assert done.stdout.strip() == ""


def test_error_names_argument_expectation_and_value() -> None:
    opt = told()
    for call, words in (
        (lambda: opt.tell(8, NAN), ["value", "finite", "nan", "fail"]),
        (lambda: opt.tell(8, None), ["value", "None", "fail"]),
        (lambda: opt.tell(OK | {"x": 1.5}, 1.0), ["'x'", "[0.0, 1.0]", "1.5"]),
        (lambda: opt.tell(OK | {"kind": "c"}, 1.0), ["'kind'", "'a', 'b'", "'c'"]),
        (lambda: opt.tell([OK, OK | {"n": 9}], [1.0, 2.0]), ["'n'", "row 1", "[1, 5]", "9"]),
        (lambda: opt.tell(99, 1.0), ["trial", "0 to 10", "99"]),
        (lambda: opt.ask(0), ["n: ", ">= 1", "0"]),
    ):
        with pytest.raises(BkbError) as caught:
            call()
        for word in words:
            assert word in str(caught.value)


def test_unknown_trial_is_a_key_error_that_reads_well() -> None:
    with pytest.raises(KeyError) as caught:
        told().tell(99, 1.0)
    assert isinstance(caught.value, UnknownTrialError)
    assert not str(caught.value).startswith(("'", '"'))


# -- kernels that misbehave ----------------------------------------------------------------------------------------


def wrong_shape(A: Any, B: Any) -> Any:
    return torch.ones(len(A), len(B) + 1)


def not_finite(A: Any, B: Any) -> Any:
    return torch.full((len(A), len(B)), NAN)


def negative(A: Any, B: Any) -> Any:
    return -torch.exp(-torch.cdist(A, B))


def indefinite(A: Any, B: Any) -> Any:
    return torch.cdist(A, B) + 0.1


@pytest.mark.parametrize(
    ("kernel", "surrogate"), sweep([wrong_shape, not_finite, negative, indefinite], [bo.BKB, bo.ExactGP])
)
def test_bad_kernel_is_named_and_nothing_is_proposed(kernel: Any, surrogate: Any) -> None:
    opt = bo.Optimizer(
        np.random.default_rng(0).random((40, 2)), seed=0, n_startup_trials=15, surrogate=surrogate(kernel, noise=1e-6)
    )
    for i, trial in enumerate(opt.ask(15)):
        opt.tell(trial, float(i))
    for _ in range(2):  # and again, in the same words
        with pytest.raises(KernelError, match="kernel"):
            opt.ask()
        assert len(opt.trials) == 15


@pytest.mark.parametrize("noise", [0.0, -1.0, NAN, INF, "1", 1j])
def test_bad_noise_is_refused(noise: Any) -> None:
    for surrogate in (bo.BKB, bo.ExactGP, bo.FourierGP):
        with pytest.raises((ArgumentError, ArgumentTypeError), match="noise"):
            surrogate(noise=noise)


# -- extreme but honest --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("unit", "surrogate"), sweep([1e300, 1e-300, 1.7e308, 1e-310], ["bkb", "exact"]))
def test_extreme_units_are_survived(unit: float, surrogate: str) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0, n_startup_trials=4, surrogate=surrogate)
    for _ in range(12):
        trial = opt.ask()
        opt.tell(trial, (trial.params["x"] - 0.3) ** 2 * unit)
    rec = opt.recommend()
    assert rec.params["x"] == pytest.approx(0.3, abs=0.1)
    assert math.isfinite(rec.mean)
    assert 0.0 <= rec.std < INF
    assert math.isfinite(opt.regret_certificate().bound)
    assert np.isfinite(opt.predict([{"x": 0.9}])).all()


@pytest.mark.parametrize(("value", "acquisition"), sweep([0.0, 5.0, -1e300, 5e-324], ["ucb", "logei", "thompson"]))
def test_constant_values_are_survived(value: float, acquisition: str) -> None:
    opt = bo.Optimizer(SPACE, seed=0, n_startup_trials=3, acquisition=acquisition)
    for _ in range(8):
        opt.tell(opt.ask(), value)
    assert opt.recommend().mean == pytest.approx(value, rel=1e-6, abs=1e-12)
    assert len({tuple(t.params.values()) for t in opt.trials}) == 8


@pytest.mark.parametrize(("surrogate", "outlier"), sweep(["bkb", "exact"], [1e9, -1e9, 1e300, -1e300]))
def test_an_outlier_is_survived_when_it_comes_and_later(surrogate: str, outlier: float) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0, n_startup_trials=4, surrogate=surrogate)
    for i in range(16):
        trial = opt.ask()
        assert math.isfinite(trial.params["x"])
        opt.tell(trial, outlier if i == 9 else (trial.params["x"] - 0.3) ** 2)
        rec = opt.recommend()
        assert math.isfinite(rec.mean)
        assert 0.0 <= rec.std < INF
    if outlier > 0.0:  # one terrible value does not hide where the good ones are
        assert opt.recommend().params["x"] == pytest.approx(0.3, abs=0.15)


def test_values_of_two_magnitudes_are_survived() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0, n_startup_trials=4)
    for i in range(14):
        trial = opt.ask()
        opt.tell(trial, trial.params["x"] * (1e300 if i % 2 else 1e-300))
    recommended = opt.recommend()
    assert recommended.params["x"] < 0.05  # the minimum of both is at zero
    assert abs(recommended.mean) < 1e290


@pytest.mark.parametrize(
    "value", [np.float32(0.5), np.int8(1), np.array(0.5), np.array([0.5]), torch.tensor(0.5), [0.5], 1]
)
def test_any_real_scalar_is_a_value(value: Any) -> None:
    opt = bo.Optimizer(SPACE, seed=0)
    assert opt.tell(opt.ask(), value).value == float(np.asarray(value).reshape(()))
    assert type(opt.trials[0].value) is float


def test_gradients_do_not_leak_in_with_a_value() -> None:
    opt = bo.Optimizer(SPACE, seed=0)
    assert opt.tell(opt.ask(), torch.tensor(0.5, requires_grad=True)).value == 0.5
    opt.tell([OK, OK], torch.tensor([0.5, 1.0], requires_grad=True))
    opt.ask()


def test_zero_width_bounds_fix_a_value_and_wide_ones_work() -> None:
    opt = bo.Optimizer({"x": (2.0, 2.0), "y": (0.0, 1e308), "z": (-1e-308, 1e-308)}, seed=0, n_startup_trials=3)
    for _ in range(8):
        trial = opt.ask()
        assert trial.params["x"] == 2.0
        assert 0.0 <= trial.params["y"] <= 1e308
        opt.tell(trial, trial.params["y"] / 1e308)
    assert opt.recommend().params["y"] < 0.5e308


def test_huge_seed_is_exact() -> None:
    a, b = (bo.Optimizer(SPACE, seed=s).ask().params for s in (2**70, 2**70 + 1))
    assert a != b


def test_fractions_are_numbers_in_params() -> None:
    opt = bo.Optimizer(SPACE, seed=0)
    assert opt.tell(OK | {"x": Fraction(1, 2)}, 1.0).params["x"] == 0.5
