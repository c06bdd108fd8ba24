"""Dictionary samplers: which observed points become inducing points."""

from bkbopt.dictionaries.rls import Draw, draw_rls, draw_uniform

__all__ = ["Draw", "draw_rls", "draw_uniform"]
