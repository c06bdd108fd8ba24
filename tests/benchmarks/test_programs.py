"""Every program of the benchmarks runs to its end at a tiny size, and what it counts is true."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import __main__ as all_programs
from benchmarks import box_speed, import_time, kernel_overhead, pool_speed, report, sample_efficiency
from benchmarks.algorithm1 import make_pool_problem

TINY_POOL = ["--steps", "12", "--arms", "300", "--betas", "3", "--seeds", "2", "--large", "400", "--threads", "1"]


def test_pool_speed_prints_every_table(capsys: pytest.CaptureFixture[str]) -> None:
    pool_speed.main(TINY_POOL)
    out = capsys.readouterr().out
    for row in ("core ", "optimizer ", "baseline ", "literal, sampled ", "scan ", "refine ", "400 arms"):
        assert row in out
    assert "300 arms: 12 of 12 lazy choices equal the argmax computed in full" in out


def test_pool_speed_is_a_multiple_of_the_fastest_form(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fastest, forms, ran = pool_speed.Form(512, 1), [], []

    def time_forms(*args: object) -> dict[pool_speed.Form, pool_speed.Outcome]:
        timed = time_as_it_is(*args)
        forms.extend(timed)
        return {form: replace(o, wall=0.5 if form == fastest else 1.0) for form, o in timed.items()}

    def run_literal(*args: object) -> pool_speed.Outcome:
        ran.append(args[-1])
        return replace(run_as_it_is(*args), wall=8.0)

    time_as_it_is, run_as_it_is = pool_speed.time_forms, pool_speed.run_literal
    monkeypatch.setattr(pool_speed, "time_forms", time_forms)
    monkeypatch.setattr(pool_speed, "run_literal", run_literal)
    pool_speed.compare_speed(300, 12, [3.0], threads=2)
    assert set(forms) == {pool_speed.Form(block, n) for block in pool_speed.BLOCKS for n in (1, 2)}
    assert ran == [fastest]
    out = capsys.readouterr().out
    assert str(fastest) in out
    cells = {line.split()[0]: line.split()[-10:] for line in out.splitlines()[2:7]}
    assert float(cells["baseline"][2]) == 1.0
    assert float(cells["literal,"][2]) == 8.0  # eight seconds in full, one as printed


def test_both_sides_meet_the_same_first_arm_and_noise() -> None:
    problem = make_pool_problem(200)
    runs = [run(problem, 8, 3.0, 5) for run in (pool_speed.run_core, pool_speed.run_optimizer)]
    runs.append(pool_speed.run_literal(problem, 8, 3.0, 5, pool_speed.Form(None, 1)))
    first = [run.arms[0] for run in runs]
    assert first == [first[0]] * 3
    noise = [run.rewards - problem.f[run.arms] for run in runs]
    # The rewards' own rounding is all that differs.
    np.testing.assert_allclose(noise[1:], [noise[0]] * 2, rtol=0, atol=1e-14)


def test_stages_of_the_core_add_up_to_its_time() -> None:
    core = pool_speed.run_core(make_pool_problem(300), 30, 3.0, seed=0)
    assert sum(core.parts.values()) == pytest.approx(core.wall, rel=1e-9)
    assert min(core.parts[stage] for stage in ("scan", "refine", "observe")) > 0
    assert core.parts["draw"] >= 0  # in so short a run every inducing point may have been appended


def test_box_speed_prints_every_case(capsys: pytest.CaptureFixture[str]) -> None:
    box_speed.main(["--sizes", "14", "90", "--window", "2", "--true-run", "12"])
    out = capsys.readouterr().out
    for case in box_speed.CASES.values():
        assert f"{case.title}; windows of 2" in out
    assert "a true run" in out


def test_box_speed_reaches_the_sizes_it_names() -> None:
    rows = box_speed.measure(box_speed.CASES["smooth"], [12, 40], window=2)
    column = box_speed.HEADER.index("unique")
    # The points are distinct: the noise keeps the fixed kernel from settling on one in so few trials.
    assert [(row[0], row[column]) for row in rows] == [(12, 12), (40, 40)]


def test_kernels_that_are_compared_are_equal() -> None:
    ours, theirs = kernel_overhead.pair_of_kernels()
    X = torch.as_tensor(np.random.default_rng(0).random((20, kernel_overhead.D)))
    # GPyTorch computes the distance by differences, ours by products: 1e-12 is their rounding at |x|^2 / l^2 near 60.
    torch.testing.assert_close(ours(X, X[:7]), theirs(X, X[:7]).to_dense().detach(), rtol=0, atol=1e-11)


def test_kernel_overhead_prints_a_ratio_a_size(capsys: pytest.CaptureFixture[str]) -> None:
    kernel_overhead.main(["--repeats", "2"])
    assert capsys.readouterr().out.count(" x ") == 4


def test_sample_efficiency_computes_nothing_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--peers", "random", "bkbopt", "--problems", "branin", "--seeds", "2", "--trials", "12", "--jobs", "1"]
    sample_efficiency.main([*options, "--out", str(tmp_path)])
    assert "4 runs, 0 of them done before" in capsys.readouterr().out
    written = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(written) == 4
    sample_efficiency.main([*options, "--out", str(tmp_path)])
    out = capsys.readouterr().out
    assert "4 runs, 4 of them done before" in out
    assert "branin, d = 2, 12 trials" in out
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == written


@pytest.mark.parametrize("name", sample_efficiency.OFF_CENTRE)
def test_minimum_stays_inside_but_off_the_centre_of_the_cut_box(name: str) -> None:
    problem = sample_efficiency.problem_named(name)
    usual = sample_efficiency.PROBLEMS[name]
    place = (np.array(problem.minimizers[0]) - problem.low) / (problem.high - problem.low)
    assert (np.abs(place - 0.5) > 0.05).all()
    assert (np.abs(place - 0.5) < 0.36).all()
    assert ((problem.low >= usual.low) & (problem.high <= usual.high)).all()
    assert problem.value(problem.minimizers[0]) == pytest.approx(problem.minimum, abs=1e-12)
    assert problem.noise_sd == pytest.approx(problem.iqr / 10)


def test_thread_limits_are_given_back() -> None:
    before = torch.get_num_threads()
    with report.limited_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


def test_tables_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    report.print_table("title", ("name", "x"), [("a", 1.23456), ("long", None), ("b", 12345.6)], "note")
    assert capsys.readouterr().out.splitlines() == [
        "",
        "title",
        "  name      x",
        "  a     1.235",
        "  long      -",
        "  b     12346",
        "  note",
    ]


def test_programs_run_by_name_in_the_order_of_the_registry(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[tuple[str, bool]] = []
    monkeypatch.setattr(all_programs, "run", lambda name, quick: calls.append((name, quick)))
    all_programs.main(["box", "pool", "--quick"])
    all_programs.main([])
    assert calls == [("pool", True), ("box", True), *((name, False) for name in all_programs.PROGRAMS)]
    with pytest.raises(SystemExit):
        all_programs.main(["speed"])
    assert "expected programs among" in capsys.readouterr().err


def test_list_has_every_program() -> None:
    folder, listed = Path(all_programs.__file__).parent, {*all_programs.PROGRAMS.values(), *all_programs.TOOLS}
    measured_by_others = {"__main__", "crowd_parts", "kind_parts"}
    found = {
        str(path.relative_to(folder).with_suffix("")).replace("/", ".")
        for path in folder.rglob("*.py")
        if "\ndef main(" in path.read_text(encoding="utf-8")
    }
    assert found - measured_by_others == listed
    lines = [line for line in all_programs.listed().splitlines() if "benchmarks." in line]
    assert len(lines) == len(listed)
    assert all(line.endswith(".") for line in lines)


def test_a_program_of_the_list_is_run_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[str]] = []
    monkeypatch.setattr(box_speed, "main", calls.append)
    all_programs.run("box", True)
    all_programs.run("box", False)
    assert calls == [["--quick"], []]


def test_import_time_prints_its_ratio(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(import_time, "import_seconds", lambda statement: 1.0 if statement == "import torch" else 1.1)
    import_time.main(["--runs", "3"])
    assert "median ratio 1.100" in capsys.readouterr().out
