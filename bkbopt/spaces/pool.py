"""stub"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Pool:
    arms: Any


class EncodedPool:
    pass
