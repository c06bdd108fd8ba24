"""Optimizers to analyse."""

import pytest

import bkbopt as bo
from tests.searched import arms_searched, mixed_searched


@pytest.fixture(scope="session")
def mixed() -> bo.Optimizer:
    return mixed_searched()


@pytest.fixture(scope="session")
def arms() -> bo.Optimizer:
    return arms_searched()
