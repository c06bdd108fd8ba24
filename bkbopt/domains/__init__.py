"""Where the search takes place: a box of mixed parameters, or a finite pool. Translates points, proposes the next."""

from bkbopt.domains.base import Domain
from bkbopt.domains.box import BoxDomain
from bkbopt.domains.pool import Pool, PoolDomain

__all__ = ["BoxDomain", "Domain", "Pool", "PoolDomain"]
