"""What to evaluate next: standardisation, fitted models, acquisition functions and their maximisers."""

from typing import TYPE_CHECKING

from bkbopt._support.lazy import lazy

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, {}, ("acquisition", "reports"))
