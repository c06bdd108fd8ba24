"""Search spaces: parameters, mixed spaces, and points to and from encoded columns."""

from bkbopt.spaces.space import Categorical, Column, Float, Int, Ordinal, Parameter, Space

__all__ = ["Categorical", "Column", "Float", "Int", "Ordinal", "Parameter", "Space"]
