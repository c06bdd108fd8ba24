"""Search spaces and pools: parameters, conditions, and points to and from encoded columns."""

from bkbopt.spaces.pool import EncodedPool, Pool
from bkbopt.spaces.product_pool import ProductPool
from bkbopt.spaces.space import Categorical, Column, Float, Int, Ordinal, Parameter, Space

__all__ = [
    "Categorical",
    "Column",
    "EncodedPool",
    "Float",
    "Int",
    "Ordinal",
    "Parameter",
    "Pool",
    "ProductPool",
    "Space",
]
