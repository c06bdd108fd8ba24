"""The result of every harness of faults: one row of the table that `python -m benchmarks.fault_table` prints."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["FAILED", "Row"]

#: Outcomes that begin so are faults of ours; all others are as they should be.
FAILED = "FAILED"


@dataclass(frozen=True)
class Row:
    """A line of the table.

    Attributes:
        injected: what was done to the program.
        outcomes: how often each outcome was seen; one that begins with `FAILED` must not be.
        times: how often it was done; where it is left out, the number of outcomes.
        unit: what is counted, for the table.
    """

    injected: str
    outcomes: Mapping[str, int] = field(default_factory=Counter)
    times: int | None = None
    unit: str = ""

    @property
    def failures(self) -> dict[str, int]:
        """The forbidden outcomes."""
        return {what: count for what, count in self.outcomes.items() if what.startswith(FAILED)}

    @property
    def how_often(self) -> str:
        """The number of times with its unit."""
        times = sum(self.outcomes.values()) if self.times is None else self.times
        return f"{times:,} {self.unit}".strip()

    @property
    def outcome(self) -> str:
        """All outcomes with their numbers; the number of a single one that always came is left out."""
        always = len(self.outcomes) == 1
        parts = [what if always else f"{what}: {count:,}" for what, count in sorted(self.outcomes.items())]
        return "; ".join(parts)
