"""Threads of torch in forked processes."""

import multiprocessing
import os

import pytest
import torch

import bkbopt as bo


def ask_and_multiply(opt: bo.Optimizer) -> None:
    for trial in opt.ask(3):
        opt.tell(trial, 1.0)
    torch.ones(10**6).mul(2.0)
    os._exit(10 + torch.get_num_threads())


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # of Python 3.12, where the parent has threads
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_forked_process_computes_where_its_parent_has_used_several_threads() -> None:
    opt, before = bo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=0), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for trial in opt.ask(3):
            opt.tell(trial, 1.0)
        torch.ones(10**6).mul(2.0)
        child = multiprocessing.get_context("fork").Process(target=ask_and_multiply, args=(opt,))
        child.start()
        child.join(60.0)  # without a limit of its threads it would wait for ever
        child.kill()
        child.join()
        assert child.exitcode == 11
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
