"""Dictionary samplers: which observed points become inducing points."""

from bkbopt.dictionaries.kors import KORS, KorsDraw, draw_kors
from bkbopt.dictionaries.rls import Draw, draw_rls, draw_uniform

__all__ = ["KORS", "Draw", "KorsDraw", "draw_kors", "draw_rls", "draw_uniform"]
