"""A fault, and the text that it changes to make a mutant of the package."""

from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROOT", "Fault"]

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Fault:
    """One typical programming error.

    Attributes:
        name: the error in words.
        file: the file below `bkbopt/`.
        text: the original text, which occurs once.
        instead: the faulty text; the code still runs.
        tests: files or tests below `tests/` that must detect it, without slow ones.
    """

    name: str
    file: str
    text: str
    instead: str
    tests: tuple[str, ...]

    def sown(self, source: str) -> str:
        """The source with the fault.

        Raises:
            ValueError: the text is not there exactly once: the source has changed, and the fault has to follow.
        """
        if source.count(self.text) != 1:
            raise ValueError(
                f"{self.name}: expected the text once in bkbopt/{self.file}, got it {source.count(self.text)} times: "
                f"{self.text!r}."
            )
        return source.replace(self.text, self.instead)
