"""`BKBGenerator`: the optimizer as a gest-api generator, for libEnsemble, Xopt and Optimas."""

from bkbopt.errors import extra

with extra("gest"):
    from bkbopt.adapters.gest.generator import BKBGenerator

__all__ = ["BKBGenerator"]
