"""Invalid input raises a typed error and leaves the state unchanged."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import bkbopt as bo
from bkbopt.errors import ArgumentError, ArgumentTypeError, BkbError, KernelError, UnknownTrialError
from tests.optimizer.bad_calls import INF, NAN, OK, SPACE, VICTIMS, fault, state, told
from tests.sweeps import sweep

ROOT = Path(__file__).resolve().parents[2]

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
    "directions and another direction": {"directions": ["minimize", "minimize"], "direction": "maximize"},
    "directions string": {"directions": "minimize"},
    "directions unknown": {"directions": ["minimize", "up"]},
    "constraints text": {"constraints": "g < 3"},
    "constraints number in a dict": {"constraints": {"g": 60}},
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
    "bounds in an array": np.array([[0.0, 1.0], [-5.0, 5.0]]),
    "bounds in lists": [[0, 1], [-5.0, 5.0]],
    "bounds in a tensor": torch.tensor([[0.0, 1.0]], requires_grad=True),
    "condition on nothing": {"x": lambda: bo.Float(0.0, 1.0, when={"kind": "a"})},
    "condition on itself": {"n": lambda: bo.Int(0, 3, when={"n": 1})},
}


def construct(name: str) -> bo.Optimizer:
    space = SPACES[name]
    if isinstance(space, dict):
        space = {k: v() if callable(v) else v for k, v in space.items()}
    return bo.Optimizer(space)


def all_faults() -> list[str]:
    """Every bad call, option and space, made once; for the run with `python -O`."""
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


def test_kernel_of_objects_that_depends_on_their_order_is_refused() -> None:
    def before(A: Any, B: Any) -> Any:
        return [[1.0 if a == b else 0.1 + 0.2 * (a < b) for b in B] for a in A]

    with pytest.raises(KernelError, match=r"kernel: expected k\(a, b\) = k\(b, a\), got 0.3 for objects 0 and 1"):
        bo.Optimizer(["ant", "bee", "cow"], seed=0, surrogate=bo.BKB(kernel=before))


@pytest.mark.parametrize("noise", [0.0, -1.0, NAN, INF, "1", 1j])
def test_bad_noise_is_refused(noise: Any) -> None:
    for surrogate in (bo.BKB, bo.ExactGP, bo.FourierGP):
        with pytest.raises((ArgumentError, ArgumentTypeError), match="noise"):
            surrogate(noise=noise)


@pytest.mark.parametrize("array", [np.array(1.0), torch.tensor(1.0), np.zeros(3)])
def test_an_array_without_rows_is_refused(array: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^pool: expected shape \(n, d\), got \(([13],)?\)"):
        bo.Optimizer(array)


@pytest.mark.parametrize("answer", [bool, np.bool_, int, float, torch.tensor, lambda holds: np.array([holds])])
def test_what_answers_a_constraint_on_parameters(answer: Any) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0, feasible=lambda p: answer(p["x"] <= 0.4))
    assert all(trial.params["x"] <= 0.4 for trial in opt.ask(5))


@pytest.mark.parametrize("answer", [lambda x: 0.4 - x, lambda x: [x <= 0.4], lambda x: None, lambda x: str(x <= 0.4)])
def test_slacks_of_a_constraint_on_parameters_and_other_objects_are_no_answers(answer: Any) -> None:
    parts = {"x": [0.1, 0.5, 0.9], "k": ["a", "b"]}
    for opt in (
        bo.Optimizer({"x": (0.0, 1.0)}, seed=0, feasible=lambda p: answer(p["x"])),
        bo.Optimizer(bo.Pool.product(parts, feasible=lambda p: answer(p["x"])), seed=0),
    ):
        with pytest.raises(ArgumentTypeError, match=r"^feasible: expected True or False, got .*; return a comparison"):
            opt.ask()
        assert len(opt.trials) == 0
