"""The parameters of a search space, of all kinds."""

from bkbopt.spaces.choices import Categorical, Ordinal
from bkbopt.spaces.numeric import Float, Int

__all__ = ["Categorical", "Float", "Int", "Ordinal", "Parameter"]

Parameter = Float | Int | Categorical | Ordinal
