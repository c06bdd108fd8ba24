"""Options of the programs have the defaults that their help says."""

import importlib

import pytest

from benchmarks.__main__ import PROGRAMS, TOOLS
from benchmarks.arguments import Arguments

TEXT = "Something.\n\nRun it as `python -m benchmarks.something`."


def parser() -> Arguments:
    found = Arguments(TEXT)
    found.option("--seeds", 10, quick=2, help="runs")
    found.option("--betas", (5.0, 3.0), help="widths")
    found.option("--rows", None, quick=300, help="rows at most")
    found.option("--peers", ("a", "b"), quick=("a",), choices=("a", "b"), help="optimisers")
    return found


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], (10, (5.0, 3.0), None, ("a", "b"))),
        (["--quick"], (2, (5.0, 3.0), 300, ("a",))),
        (["--quick", "--seeds", "0", "--betas", "1", "--rows", "7", "--peers", "b"], (0, [1.0], 7, ["b"])),
    ],
)
def test_what_is_given_comes_before_the_default(words: list[str], expected: tuple[object, ...]) -> None:
    options = parser().parse_args(words)
    assert (options.seeds, options.betas, options.rows, options.peers) == expected


def test_help_says_how_to_run_it_and_all_defaults() -> None:
    text = " ".join(parser().format_help().split())
    assert text.startswith("usage: python -m benchmarks.something")
    for part in (
        "10; with --quick 2)",
        "(default 5.0 3.0)",
        "all; with --quick 300)",
        "a, b (default all; with --quick a)",
    ):
        assert part in text


@pytest.mark.parametrize("module", [*PROGRAMS.values(), *TOOLS])
def test_every_program_of_the_list_has_help(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        importlib.import_module(f"benchmarks.{module}").main(["--help"])
    assert end.value.code == 0
    assert f"usage: python -m benchmarks.{module.removesuffix('.__main__')} [-h] [--" in capsys.readouterr().out
