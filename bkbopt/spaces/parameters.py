"""The parameters of a search space, of all kinds."""

from bkbopt.spaces.choices import Categorical, Ordinal
from bkbopt.spaces.numeric import Float, Int
from bkbopt.spaces.values import as_python, shown

__all__ = ["Categorical", "Float", "Int", "Ordinal", "Parameter", "as_python", "shown"]

Parameter = Float | Int | Categorical | Ordinal
