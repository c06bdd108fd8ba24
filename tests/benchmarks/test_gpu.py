"""The benchmark of a GPU runs on the processor, and says so where there is no GPU."""

import pytest
import torch

from benchmarks import gpu


def test_the_table_compares_two_devices(capsys: pytest.CaptureFixture[str]) -> None:
    gpu.main(["--rows", "600", "--features", "12", "--device", "cpu", "--threads", "1"])
    row = capsys.readouterr().out.splitlines()[-1].split()
    assert row[0] == "600"
    assert float(row[-2]) == 0.0
    assert row[-1] == f"{gpu.STEPS + 1}/{gpu.STEPS + 1}"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_gpu_the_program_says_so_and_ends(capsys: pytest.CaptureFixture[str]) -> None:
    gpu.main(["--quick"])
    assert capsys.readouterr().out == "gpu: torch finds no CUDA device on this machine, so nothing was measured.\n"
