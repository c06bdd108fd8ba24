"""Search spaces and pools: parameters, conditions, and points to and from encoded columns."""

from bkbopt.spaces.arms import Arms
from bkbopt.spaces.pool import EncodedPool, Pool
from bkbopt.spaces.product_pool import ProductPool
from bkbopt.spaces.space import Categorical, Column, Float, Int, Ordinal, Parameter, Space
from bkbopt.spaces.stored import StoredPool

__all__ = [
    "Arms",
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
    "StoredPool",
]
