"""The search: standardised values, fitted models, acquisition functions, their maximisers, and the designer."""

from typing import TYPE_CHECKING

from bkbopt._support.lazy import lazy

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, {}, ("criteria", "trials"))
