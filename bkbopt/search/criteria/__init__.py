"""Criteria, which suggestions maximise: acquisition functions of one model, and scores of several models."""

from typing import TYPE_CHECKING

from bkbopt._support.lazy import lazy

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, {}, ("acquisition",))
