"""The README's figure is drawn from what the two benchmarks keep."""

import json
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from benchmarks import optuna_quality, optuna_speed, readme_figure


@pytest.mark.slow
def test_figure_is_drawn_from_what_the_benchmarks_keep(tmp_path: Path) -> None:
    speed, quality, picture = tmp_path / "speed.json", tmp_path / "quality", tmp_path / "images" / "optuna.png"
    few = ["--sizes", "12", "--samplers", "tpe", "--spaces", "6 floats"]
    optuna_speed.main([*few, "--steps", "1", "--repeats", "1", "--running", "0", "--json", str(speed)])
    (row,) = json.loads(speed.read_text())
    assert (row["sampler"], row["finished"], row["space"]) == ("tpe", 12, "6 floats")
    for peer in ("tpe", "random"):
        few = ["--peers", peer, "--problems", "branin", "--seeds", "2", "--trials", "300", "--jobs", "1"]
        optuna_quality.main([*few, "--out", str(quality)])
    readme_figure.main(["--speed", str(speed), "--quality", str(quality), "--to", str(picture)])
    assert picture.stat().st_size > 10_000


def test_lines_are_the_numbers_that_the_quality_table_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ["--peers", "random", "--problems", "branin", "levy8-off", "--seeds", "2", "--trials", "300", "--jobs", "1"]
    optuna_quality.main([*few, "--out", str(tmp_path)])
    table = capsys.readouterr().out.split("the whole set")[1]
    ax = Figure().add_subplot()
    readme_figure.draw_quality(ax, readme_figure.kept_results(tmp_path))
    trials, regrets = ax.lines[0].get_data()
    assert list(trials) == [100, 300]
    for regret in regrets:
        assert f"{regret:.4f} +-" in table
