"""A picture that follows a run."""

import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import bkbopt as bo
from bkbopt import errors

pytest.importorskip("matplotlib", reason="matplotlib is not installed; the extra plots brings it")

from matplotlib.figure import Figure

from bkbopt import plots

ROOT = Path(__file__).resolve().parents[2]
SPACE = {"x": (0.0, 1.0)}


class Clock:
    """A clock that advances only by the time of the pictures."""

    def __init__(self, picture: float) -> None:
        self.now, self.picture = 0.0, picture
        self.shown: list[float] = []

    def show(self, figure: Figure) -> None:
        self.shown.append(self.now)
        self.now += self.picture

    def follow(self, live: plots.LivePlot, opt: bo.Optimizer, seconds: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """A trial at each second; the clock goes on by what the pictures take beside."""
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        for _ in range(seconds):
            live(opt, opt.tell({"x": 0.5}, 1.0))  # type: ignore[arg-type]
            self.now += 1.0


def blank(opt: bo.Optimizer) -> Figure:
    return Figure()


def test_pictures_are_as_far_apart_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(0.0)
    live = plots.LivePlot(every=3.0, draw=blank, show=clock.show)
    clock.follow(live, bo.Optimizer(SPACE, seed=0), 10, monkeypatch)
    assert clock.shown == [0.0, 3.0, 6.0, 9.0]


def test_pictures_take_a_tenth_of_the_time_the_first_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(1.0)
    live = plots.LivePlot(every=0.0, draw=blank, show=clock.show)
    clock.follow(live, bo.Optimizer(SPACE, seed=0), 25, monkeypatch)
    assert clock.shown == [0.0, 2.0, 12.0, 22.0]  # a second each, and nine without one


def test_the_last_picture_is_of_the_whole_run_and_the_run_is_as_without() -> None:
    seen: list[int] = []

    def draw(opt: bo.Optimizer) -> Figure:
        seen.append(opt.n_complete)
        return plots.convergence(opt).figure  # type: ignore[return-value]

    shown: list[Figure] = []
    live = plots.LivePlot(every=3600.0, draw=draw, show=shown.append)
    opt = bo.minimize(lambda p: p["x"], SPACE, 12, seed=0, callbacks=live)
    assert seen == [1, 12]
    assert len(shown) == 2
    live.finish(opt)
    assert seen == [1, 12]  # nothing is new
    other = bo.minimize(lambda p: p["x"], SPACE, 12, seed=0)
    assert [trial.params for trial in other.trials] == [trial.params for trial in opt.trials]


def test_nothing_is_drawn_before_a_value_is_feasible() -> None:
    opt, shown = bo.Optimizer(SPACE, constraints=["heat"], seed=0), []
    live = plots.LivePlot(every=0.0, show=shown.append)
    live(opt, opt.fail(opt.ask()))
    live(opt, opt.tell({"x": 0.5}, 1.0, constraints={"heat": 1.0}))  # type: ignore[arg-type]
    assert not shown
    live(opt, opt.tell({"x": 0.6}, 1.0, constraints={"heat": 0.0}))  # type: ignore[arg-type]
    assert len(shown) == 1


@pytest.mark.parametrize(
    ("k", "label", "n_axes"), [(1, "evaluations", 1), (2, "value 0 (minimize)", 1), (3, "evaluations", 3)]
)
def test_the_picture_fits_to_the_objectives(k: int, label: str, n_axes: int) -> None:
    shown: list[Figure] = []
    opt = bo.Optimizer(SPACE, directions=["minimize", "maximize", "minimize"][:k], seed=0)
    told = opt.tell([{"x": 0.2}, {"x": 0.7}], [[1.0, 2.0, 3.0][:k], [2.0, 3.0, 1.0][:k]])
    assert isinstance(told, list)
    plots.LivePlot(show=shown.append)(opt, told[0])
    axes = shown[0].axes
    assert (axes[0].get_xlabel(), len(axes)) == (label, n_axes)


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        ("loss", ["loss"]),
        (["loss"], ["loss"]),
        (["cost", "yield"], ["cost (minimize)", "yield (maximize)"]),
        ("loss", [f"best loss {j} so far" for j in range(3)]),
        (["cost", "yield", "time"], [f"best {name} so far" for name in ("cost", "yield", "time")]),
    ],
)
def test_values_have_the_names_given(names: str | list[str], shown: list[str]) -> None:
    k, pictures = len(shown), list[Figure]()
    opt = bo.Optimizer(SPACE, directions=["minimize", "maximize", "minimize"][:k], seed=0)
    told = opt.tell([{"x": 0.2}, {"x": 0.7}], [[1.0, 2.0, 3.0][:k], [2.0, 3.0, 1.0][:k]])
    assert isinstance(told, list)
    plots.LivePlot(show=pictures.append, value_names=names)(opt, told[0])
    axes = pictures[0].axes
    labels = [axes[0].get_xlabel(), axes[0].get_ylabel()] if k == 2 else [ax.get_ylabel() for ax in axes]
    assert labels == shown


def test_names_that_do_not_fit_are_refused() -> None:
    with pytest.raises(errors.ArgumentTypeError, match="value_names: expected a text, or a list of texts, got 3"):
        plots.LivePlot(show=print, value_names=3)  # type: ignore[arg-type]
    with pytest.raises(errors.ArgumentError, match=r"value_names: expected none beside draw.*got 'loss'"):
        plots.LivePlot(show=print, draw=blank, value_names="loss")
    live = plots.LivePlot(show=print, value_names=["loss", "time"])
    with pytest.raises(errors.ArgumentError, match="value_names: expected 1, one for each objective"):
        bo.minimize(lambda p: p["x"], SPACE, 3, callbacks=live, seed=0)


def test_a_function_that_returns_axes_shows_their_figure() -> None:
    shown: list[Figure] = []
    live = plots.LivePlot(draw=plots.convergence, show=shown.append)
    bo.minimize(lambda p: p["x"], SPACE, 3, callbacks=live, seed=0)
    assert {type(figure) for figure in shown} == {Figure}


def test_a_function_that_returns_no_picture_is_refused() -> None:
    live = plots.LivePlot(draw=lambda opt: None, show=print)  # type: ignore[arg-type,return-value]
    with pytest.raises(errors.ArgumentTypeError, match="draw: expected a function that returns a figure or Axes"):
        bo.minimize(lambda p: p["x"], SPACE, 3, callbacks=live, seed=0)


def test_a_notebook_shows_one_picture_and_replaces_it(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("IPython", reason="the extra notebooks brings it")
    import IPython
    import IPython.display

    shown: list[tuple[str, Any]] = []

    def display(figure: Figure, *, display_id: bool) -> SimpleNamespace:
        assert display_id
        shown.append(("new", figure))
        return SimpleNamespace(update=lambda figure: shown.append(("in place", figure)))

    monkeypatch.setattr(IPython, "get_ipython", lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setattr(IPython.display, "display", display)
    bo.minimize(lambda p: p["x"], SPACE, 3, seed=0, callbacks=plots.LivePlot(every=0.0, draw=blank))
    assert [how for how, _ in shown[:2]] == ["new", "in place"]
    assert all(isinstance(figure, Figure) for _, figure in shown)


def test_outside_of_a_notebook_the_refusal_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(errors.ArgumentError, match=r"expected a notebook.*Pass show="):
        plots.LivePlot()
    # A shell of IPython in a terminal has no kernel, and shows no pictures.
    terminal = SimpleNamespace(get_ipython=SimpleNamespace)
    monkeypatch.setitem(sys.modules, "IPython", terminal)  # type: ignore[arg-type]
    with pytest.raises(errors.ArgumentError, match=r"expected a notebook.*Pass show="):
        plots.LivePlot()


def test_arguments_of_the_wrong_kind_are_refused() -> None:
    with pytest.raises(errors.ArgumentTypeError, match="draw: expected a callable or None, got str"):
        plots.LivePlot(draw="overview", show=print)  # type: ignore[arg-type]
    with pytest.raises(errors.ArgumentTypeError, match="show: expected a callable or None, got int"):
        plots.LivePlot(show=3)  # type: ignore[arg-type]
    with pytest.raises(errors.ArgumentError, match="every: expected a number of seconds >= 0"):
        plots.LivePlot(every=-1.0, show=print)


def test_without_matplotlib_it_is_refused_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(errors.MissingPackageError, match=r"bkbopt\[plots\]"):
        plots.LivePlot(show=print)


@pytest.mark.slow  # a kernel starts, and imports torch
def test_in_a_kernel_one_picture_is_replaced_beside_the_progress_bar() -> None:
    pytest.importorskip("nbclient", reason="the extra notebooks brings it")
    import nbformat
    from nbclient import NotebookClient

    code = """
import bkbopt as bo
from bkbopt import plots

live = plots.LivePlot(every=0.0)
opt = bo.minimize(lambda p: p["x"], {"x": (0.0, 1.0)}, 6, seed=0, callbacks=live, show_progress_bar=True)
"""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(ROOT)}}).execute()
    outputs = notebook.cells[0].outputs
    (picture,) = [output for output in outputs if "image/png" in output.get("data", {})]
    assert picture.data["image/png"].startswith("iVBORw0KGgo")  # the signature of PNG in base64
    others = "".join(output.get("text", "") for output in outputs)
    assert "Warning" not in others
