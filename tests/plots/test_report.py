"""A run as one page: every kind of run, few trials and many, and log texts that contain markup."""

import base64
import io
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bkbopt as bo
from bkbopt import errors
from bkbopt._support.showing import with_deviation

pytest.importorskip("matplotlib", reason="matplotlib is not installed; the extra plots brings it")

from PIL import Image

from bkbopt import plots
from bkbopt.plots.report import FRONT
from tests.plots.pages import Node, read

#: One process for all: the fixture is a run.
pytestmark = pytest.mark.xdist_group("report")
HOSTILE = "<script>alert(1)</script>"


def reported(opt: bo.Optimizer, folder: Path, **options: Any) -> Node:
    """The page of a run, with coarse pictures, which take less time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_module("bkbopt.plots.page"), "DPI", 40)
        plots.report(opt, folder / "run.html", **options)
    return read((folder / "run.html").read_text(encoding="utf-8"))


def headings(page: Node) -> list[str]:
    return [heading.text for heading in page.all("h2")]


def captions(page: Node) -> list[str]:
    return [caption.text for caption in page.all("figcaption")]


def rows(page: Node, table: str) -> list[dict[str, str]]:
    """The rows of a table by its caption, which begins with those words."""
    found = next(t for t in page.all("table") if t.all("caption")[0].text.startswith(table))
    head = [cell.text for cell in found.all("th")]
    return [
        {name: cell.full_text for name, cell in zip(head, row.all("td"), strict=True)}
        for row in found.all("tbody")[0].all("tr")
    ]


@pytest.fixture(scope="module")
def written(mixed: bo.Optimizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the report of a run, and its log before and after."""
    folder = tmp_path_factory.mktemp("report")
    mixed.save(folder / "before")
    plots.report(mixed, folder / "run.html", title="Nightly", value_names=["loss (s)"])
    mixed.save(folder / "after")
    return folder


def test_a_run_of_mixed_parameters_has_all_parts_and_a_small_file(mixed: bo.Optimizer, written: Path) -> None:
    page = read((written / "run.html").read_text(encoding="utf-8"))
    assert page.all("title")[0].text == "Nightly"
    assert headings(page) == ["Result", "Progress", "Parameters", "Model", "Trials", "Set-up"]
    pictures = [image.attributes["src"].partition(",")[2] for image in page.all("img")]
    assert len(pictures) == 2 + 2 + 4 + 2
    for data in pictures:
        image = Image.open(io.BytesIO(base64.b64decode(data)))
        assert image.size == (1000, 840)
        assert len(set(image.convert("L").tobytes())) > 10  # something is drawn
    assert (written / "run.html").stat().st_size < 500_000
    best, choice = mixed.best_trial, mixed.recommend()
    assert f"{best.value:.6g}" in page.full_text
    assert with_deviation(choice.mean, choice.std) in page.full_text
    shown = rows(page, "17 trials")
    assert [row["trial"] for row in shown] == [str(i) for i in range(17)]
    assert shown[best.id]["loss (s)"] == f"{best.value:.6g}"
    assert shown[best.id]["note"].startswith("best")
    assert shown[-1]["state"] == "failed"
    assert shown[-1]["loss (s)"] == ""
    assert {row["parameter"] for row in rows(page, "The search space")} == {"rate", "layers", "kind", "drop", "fixed"}
    assert {"option": "n_startup_trials", "value": "8"} in rows(page, "Arguments")
    assert {"package": "bkbopt", "version": bo.__version__} in rows(page, "Versions")


def test_a_report_without_values_says_so(tmp_path: Path) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
    page = reported(opt, tmp_path)
    assert headings(page) == ["Result", "Set-up"]
    assert "There are no values yet" in page.full_text
    opt.fail(opt.ask())
    opt.enqueue({"x": 0.5})
    page = reported(opt, tmp_path)
    assert headings(page) == ["Result", "Trials", "Set-up"]
    assert [row["state"] for row in rows(page, "2 trials")] == ["failed", "queued"]
    assert not page.all("img")


def test_a_lost_trial_is_told_from_a_failed_one(tmp_path: Path) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
    opt.fail(opt.ask())
    assert "Lost trials" not in reported(opt, tmp_path).full_text
    opt.ask()
    opt.recover(enqueue=True)
    page = reported(opt, tmp_path)
    assert [row["state"] for row in rows(page, "3 trials")] == ["failed", "lost", "queued"]
    assert "3 trials (1 queued, 1 failed, 1 lost)" in page.full_text
    assert "Lost trials ended for a reason that is not their point" in page.full_text


def test_attributes_are_columns_of_the_table_of_trials(tmp_path: Path) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
    opt.tell(opt.ask(), 1.0, user_attrs={"host": "<a1>", **{f"metric{i}": 0.25 + i for i in range(21)}})
    page = reported(opt, tmp_path)
    (row,) = rows(page, "1 trial;")
    assert row["host"] == "<a1>"
    assert row["metric18"] == "18.25"
    assert "metric19" not in row
    assert "2 more attributes in trials_dataframe()" in page.full_text


def test_a_single_trial_is_one_trial(tmp_path: Path) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
    opt.ask()
    plots.report(opt, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Minimize value: 1 trial (1 running)" in page
    assert "1 trial; numbers have six digits" in page


def test_a_report_before_there_is_a_model_says_when_it_comes(tmp_path: Path) -> None:
    opt = bo.minimize(lambda p: p["x"], {"x": (0.0, 1.0)}, 3, seed=0)
    page = reported(opt, tmp_path)
    assert headings(page) == ["Result", "Progress", "Trials", "Set-up"]
    assert "There is no model yet: it is used after 10 values, and there are 3." in page.full_text
    assert "Recommended" not in page.full_text
    assert len(page.all("img")) == 2


def test_penalties_are_no_values_of_which_a_model_is_made(tmp_path: Path) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
    opt.tell([{"x": i / 11} for i in range(12)], [0.1, 0.5, 0.2] + [1e10] * 9)
    page = reported(opt, tmp_path)
    assert "There is no model yet: it is used after 10 values, and there are 3." in page.full_text
    assert "Recommended" not in page.full_text


def test_text_of_the_log_stays_text(tmp_path: Path) -> None:
    names = [HOSTILE, '"><img src=x onerror=alert(1)>', "$x^{$ $", "a&amp;b \u6e29\u5ea6"]
    choices = [HOSTILE, "</td></table>", "$\\frac{a$"]
    space = {names[0]: (0.0, 1.0), names[1]: choices, names[2]: (0.0, 1.0), names[3]: (0.0, 1.0)}
    opt = bo.Optimizer(space, constraints={"<b>hot</b>": (None, -0.5)}, n_startup_trials=4, seed=0)
    for _ in range(6):
        trial = opt.ask()
        opt.tell(trial, float(trial.params[names[0]]), constraints={"<b>hot</b>": -1.0})
    page = reported(opt, tmp_path, title=HOSTILE, value_names=["</h1>"])  # `read` knows no element that they would make
    assert page.all("h1")[0].text == HOSTILE
    head = [cell.text for cell in page.all("table")[1].all("th")]
    assert head[1] == "</h1>"
    assert set(names) < set(head)
    assert {row[names[1]] for row in rows(page, "6 trials")} <= set(choices)
    assert [row["constraint"] for row in rows(page, "Constraints")] == ["<b>hot</b> <= -0.5"]
    assert len([row for row in rows(page, "The search space") if row["parameter"] in names]) == 4
    assert "Not drawn (" not in page.full_text
    assert HOSTILE not in (tmp_path / "run.html").read_text(encoding="utf-8")


def test_parameters_that_are_not_active_are_named_and_not_drawn(tmp_path: Path) -> None:
    space = {
        "model": ["svm", "forest"],
        "c": bo.Float(1e-3, 1e3, log=True, when={"model": "svm"}),
        "depth": bo.Int(1, 12, when={"model": "forest"}),
    }
    opt = bo.minimize(
        lambda p: np.log10(p["c"]) ** 2 if p["model"] == "svm" else 9.0 + p["depth"],
        space,
        12,
        n_startup_trials=8,
        seed=0,
    )
    page = reported(opt, tmp_path)
    assert opt.recommend().params["model"] == "svm"
    assert "Not drawn, since inactive at the recommended point: depth." in page.full_text
    assert any(
        "the two most important parameters of those active at the recommended point," in caption
        for caption in captions(page)
    )
    assert not any(caption.startswith("Along depth") for caption in captions(page))
    assert any(caption.startswith("Along c") for caption in captions(page))
    (row,) = [row for row in rows(page, "The search space") if row["parameter"] == "depth"]
    assert row["active where"] == "model is forest"
    assert all((cell["depth"] == "") == (cell["model"] == "svm") for cell in rows(page, "12 trials"))


def test_of_many_parameters_the_most_important_are_drawn_and_the_rest_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("bkbopt.plots.report"), "BARS", 7)
    opt = bo.Optimizer({f"a{i}": (0.0, 1.0) for i in range(9)}, n_startup_trials=4, seed=0)
    rng = np.random.default_rng(0)
    opt.tell([{f"a{i}": float(x) for i, x in enumerate(row)} for row in rng.random((6, 9))], rng.random(6))
    page = reported(opt, tmp_path)
    slices = [caption.split()[1].rstrip(";") for caption in captions(page) if caption.startswith("Along")]
    assert len(slices) == 6
    assert any(caption.endswith("over the whole space: the largest 7 of 9.") for caption in captions(page))
    (rest,) = [p.text.partition(": ")[2].rstrip(".") for p in page.all("p") if "less important" in p.text]
    assert sorted([*slices, *rest.split(", ")]) == sorted(f"a{i}" for i in range(9))


def test_a_pool_has_its_arms_and_their_rows(arms: bo.Optimizer, tmp_path: Path) -> None:
    page = reported(arms, tmp_path)
    assert any(caption.startswith("The arms of the pool over") for caption in captions(page))
    assert [row["column"] for row in rows(page, "The pool, 60 arms")] == ["x0", "x1", "x2"]
    trials = rows(page, "16 trials")
    assert [row["row of the pool"] for row in trials] == [str(trial.index) for trial in arms.trials]
    best = str(arms.recommend().index)
    assert {row["row of the pool"] for row in trials if "recommended" in row["note"]} == {best}
    assert trials[-1]["state"] == "running"
    assert "recommended" not in trials[-1]["note"]


def named_rows(**options: Any) -> bo.Optimizer:
    """Over a pool whose rows have names, with values of six of them."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"u": np.linspace(0.0, 1.0, 12), "name": [f"m{i}" for i in range(12)]})
    opt = bo.Optimizer(bo.Pool(frame, id_column="name"), n_startup_trials=4, seed=0, **options)
    for i in range(6):
        opt.tell({"index": 2 * i}, [0.1 * i] * len(opt.directions))
    return opt


def test_the_names_of_rows_stand_beside_their_numbers(tmp_path: Path) -> None:
    opt = named_rows()
    page = reported(opt, tmp_path)
    shown = [(row["row of the pool"], row["label"]) for row in rows(page, "6 trials")]
    assert shown == [(str(trial.index), trial.label) for trial in opt.trials]
    cards = [node for node in page.all("div") if node.attributes.get("class") == "card"]
    facts = [[fact.text for fact in card.all("dl")[0].children] for card in cards]
    choice = opt.recommend()
    assert facts[0][:4] == ["row of the pool", str(choice.index), "label", choice.label]
    assert facts[1][:4] == ["row of the pool", "0", "label", "m0"]


def test_a_recommended_front_has_the_names_of_its_rows(tmp_path: Path) -> None:
    opt = named_rows(directions=["minimize", "minimize"])
    shown = [row["label"] for row in rows(reported(opt, tmp_path), "recommended points")]
    assert shown == [point.label for point in opt.recommend_front()]


def test_a_pool_of_objects_has_calibration_and_no_slices(tmp_path: Path) -> None:
    def near(A: list[str], B: list[str]) -> np.ndarray:
        return np.exp(-0.5 * np.subtract.outer([float(len(a)) for a in A], [float(len(b)) for b in B]) ** 2)

    pool = ["a", "bb", "ccc", HOSTILE]
    opt = bo.Optimizer(pool, surrogate=bo.BKB(kernel=near), n_startup_trials=2, seed=0)
    opt.tell([{"arm": word} for word in pool[:3]], [0.0, 1.0, 2.0])
    page = reported(opt, tmp_path)
    assert "Parameters" not in headings(page)
    assert "The pool, 4 arms, which have no columns." in page.full_text
    assert [caption.partition(":")[0] for caption in captions(page)][-1] == "Calibration"


@pytest.mark.parametrize("k", [2, 3])
def test_several_objectives_have_their_front_and_no_posterior(k: int, tmp_path: Path) -> None:
    aims = ["minimize", "maximize", "minimize"][:k]
    opt = bo.Optimizer({"x": (0.0, 1.0)}, directions=aims, constraints=["heat"], seed=0)
    values = np.array([[1.0, 2.0, 0.0], [2.0, 3.0, 0.0], [3.0, 1.0, 1.0], [0.0, 9.0, 0.0]])[:, :k]
    opt.tell([{"x": x} for x in (0.1, 0.4, 0.9, 0.95)], values, constraints={"heat": [-1.0, 0.0, -1.0, 1.0]})
    page = reported(opt, tmp_path, value_names=["cost", "yield", "waste"][:k])
    assert headings(page) == ["Result", "Progress", "Pareto front", "Trials", "Set-up"]
    assert len(page.all("img")) == k + k * (k - 1) // 2
    assert "The Pareto front has 2 trials" in page.full_text
    front = [str(trial.id) for trial in opt.best_trials]
    assert [row["trial"] for row in rows(page, "2 trials of the front")] == front
    assert [row["note"] for row in rows(page, "4 trials")] == ["front", "front", "", "infeasible"]
    assert rows(page, "Constraints")[0]["violated"] == "1"


@pytest.mark.parametrize("n", [9, 25])
def test_several_objectives_have_their_recommended_front_once_there_are_models(n: int, tmp_path: Path) -> None:
    opt, rng = (
        bo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, directions=["minimize"] * 2, seed=0),
        np.random.default_rng(0),
    )
    for trial in opt.ask(n):
        x, noise = trial.params["x"], 0.1 * rng.standard_normal(2)
        opt.tell(trial, [x + noise[0], 1.0 - x + trial.params["y"] + noise[1]])
    page = reported(opt, tmp_path, value_names=["cost", "loss"])
    captions = [table.all("caption")[0].text for table in page.all("table")]
    if n < 10:
        assert not any(caption.startswith("recommended points") for caption in captions)
        return
    front = opt.recommend_front()
    shown = rows(page, "recommended points")
    assert [row["cost (mean and sd)"] for row in shown] == [
        with_deviation(point.means[0], point.stds[0]) for point in front[: len(shown)]
    ]
    assert len(shown) == min(len(front), FRONT)


def test_a_run_without_a_feasible_trial_says_so(tmp_path: Path) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, constraints=["heat"], n_startup_trials=2, seed=0)
    opt.tell([{"x": x} for x in (0.1, 0.4, 0.9)], [1.0, 2.0, 3.0], constraints={"heat": [1.0, 2.0, 3.0]})
    page = reported(opt, tmp_path)
    assert "No trial was feasible so far." in page.full_text
    assert not any("best" in row["note"] for row in rows(page, "3 trials"))


def test_values_that_are_all_the_same_at_one_point_make_a_report(tmp_path: Path) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, n_startup_trials=1, seed=0)
    opt.tell([{"x": 0.5}] * 3, [1.0] * 3)
    page = reported(opt, tmp_path)
    assert "Not drawn (Calibration: values left out in turn" in page.full_text
    assert "at least two points" in page.full_text


def test_a_report_changes_nothing_of_the_optimizer(written: Path) -> None:
    assert (written / "after").read_bytes() == (written / "before").read_bytes()
    assert sorted(path.name for path in written.iterdir()) == ["after", "before", "run.html"]


def test_a_refused_report_leaves_the_old_file(tmp_path: Path) -> None:
    path, log = tmp_path / "run.html", tmp_path / "runs.db"
    path.write_text("old")
    opt = bo.Optimizer({"x": (0.0, 1.0)}, storage=log, seed=0)
    before = log.read_bytes()
    refused: list[tuple[type[Exception], str, Callable[[], None]]] = [
        (errors.ArgumentTypeError, "path: expected the path", lambda: plots.report(opt, b"run.html")),  # type: ignore[arg-type]
        (errors.ArgumentTypeError, "opt: expected a bkbopt Optimizer", lambda: plots.report("runs.db", path)),  # type: ignore[arg-type]
        (errors.ArgumentError, "value_names: expected 1", lambda: plots.report(opt, path, value_names=["a", "b"])),
        (errors.ArgumentTypeError, "value_names: expected a text", lambda: plots.report(opt, path, value_names=[1])),  # type: ignore[list-item]
        (errors.ArgumentTypeError, "title: expected a text", lambda: plots.report(opt, path, title=1)),  # type: ignore[arg-type]
        (errors.ArgumentError, "another file than that of the log", lambda: plots.report(opt, log)),
        (FileNotFoundError, "folder", lambda: plots.report(opt, tmp_path / "no" / "run.html")),
    ]
    for error, message, call in refused:
        with pytest.raises(error, match=message):
            call()
    assert path.read_text() == "old"
    assert log.read_bytes() == before


@pytest.mark.slow
def test_ten_thousand_trials_make_a_page_of_a_few_megabytes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    opt = bo.Optimizer({f"x{i}": (0.0, 1.0) for i in range(6)}, seed=0)
    X = rng.random((10_000, 6))
    opt.tell(
        [{f"x{i}": float(x) for i, x in enumerate(row)} for row in X], X.sum(axis=1) + 0.1 * rng.standard_normal(10_000)
    )
    page = reported(opt, tmp_path)
    assert len(rows(page, "10000 trials")) == 10_000
    assert (tmp_path / "run.html").stat().st_size < 4_500_000
    assert len(page.all("img")) == 1 + 2 + 6 + 1
