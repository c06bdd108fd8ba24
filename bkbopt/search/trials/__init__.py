"""Trials as the search sees them: their states, evaluations, encoded history and reports."""

from typing import TYPE_CHECKING

from bkbopt._support.lazy import lazy

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, {}, ("reports",))
