"""Settings that all tests share."""

import os
import signal
import tempfile
from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

from tests.memory import memory_folder

# Each change of a log waits for the disk several times, which would take longer than most tests of logs.
if (memory := memory_folder()) is not None:
    tempfile.tempdir = os.environ["TMPDIR"] = memory

# A shell starts a job in the background of a script with Ctrl-C ignored, and all processes of the tests would inherit
# that: those that tests interrupt would never end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The first call of a torch operation pays for its lazy start, which a deadline would blame on one unlucky example.
# In CI the examples are the same at every run: a change is judged by what it changes.
settings.register_profile("bkbopt", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("bkbopt")

# The matrices of the tests are small, and several test processes may share the cores.
torch.set_num_threads(1)


@pytest.fixture(scope="module")
def quiet_optuna() -> Iterator[None]:
    """Silence Optuna's reports of trials, and its warnings about failed ones."""
    import optuna  # takes half a second, which most test modules need not pay

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)
