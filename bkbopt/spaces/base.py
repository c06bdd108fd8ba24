"""The base of all parameters: the condition under which they are active, and values in internal form.

The *internal form* of a value is a float: the number itself, or the number of the choice (see
`bkbopt.spaces.numbering`). Logs, encodings and searches hold values in this form under *column keys*: the parameter's
name with its kind, its scale and its first list of choices. A parameter with another kind or scale has another column;
ranges, steps and lists of choices may change within a column, the latter by `ParameterBase.after`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, Self

from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.spaces.scales import Scale
from bkbopt.spaces.values import as_python, shown

__all__ = ["Column", "Kind", "ParameterBase", "Params", "Point", "checked_when", "ordered", "set_fields"]

Kind = Literal["float", "int", "categorical", "ordinal"]
#: A point as users write it: values by name of the parameter.
Params = Mapping[str, Any]
#: A point as logs and searches hold it: values in internal form by column key.
Point = Mapping[str, float]


@dataclass(frozen=True)
class Column:
    """One encoded column: the parameter it stands for, its kind, and its number of values (None on a continuum)."""

    name: str
    kind: Kind
    n_values: int | None


class ParameterBase(ABC):
    """The interface of a parameter for spaces and encodings; the subclasses are frozen dataclasses.

    Attributes:
        when: the values of other parameters under which this one is active; None if it always is.
        kind: of the parameter's column.
        absent: value of the encoded column if the parameter is not active.
    """

    when: Mapping[str, Any] | None
    kind: ClassVar[Kind]
    absent: ClassVar[float] = 0.5

    @property
    @abstractmethod
    def n_values(self) -> int | None:
        """Number of values: None on a continuum, 1 if the parameter is fixed."""

    @property
    @abstractmethod
    def expected(self) -> str:
        """The allowed values, as a text for messages."""

    @property
    @abstractmethod
    def first(self) -> Any:
        """The first value: the lowest number, or the first in the list."""

    @property
    @abstractmethod
    def scale(self) -> Scale:
        """The geometry of the encoded column; of no use if the parameter is fixed."""

    @abstractmethod
    def locate(self, value: object) -> float | int | None:
        """Return the position of a value; None if the value is not allowed."""

    @abstractmethod
    def value(self, position: float) -> Any:
        """Return the value at a position."""

    @abstractmethod
    def external(self, number: float) -> Any:
        """Return the value whose internal form is `number`, which may lie outside of the range as it is now."""

    @property
    def n_numbers(self) -> int | None:
        """Number of values in internal form, those of earlier lists too; see `n_values`."""
        return self.n_values

    @property
    def generation(self) -> int:
        """How many other lists of values the parameter had before; 0 for a range."""
        return 0

    def unconditional(self) -> Self:
        """Return the parameter without its condition."""
        return self if self.when is None else replace(self, when=None)  # type: ignore[type-var]  # a dataclass

    def after(self, earlier: "ParameterBase | None") -> Self:
        """Return the parameter as the successor of one of the same name, so that both have one column.

        A listed value keeps the number that it has in the earlier parameter. Ranges, and successors of another kind,
        are what they are.
        """
        return self

    @abstractmethod
    def column_key(self, name: str) -> str:
        """Return the key of the column that the parameter has under this name.

        Example:
            >>> import bkbopt as bo
            >>> bo.Float(1e-4, 1.0, log=True).column_key("rate"), bo.Categorical(["a", "b"]).column_key("kind")
            ('rate (float, log)', "kind of ('a', 'b')")
        """

    def internal(self, value: object) -> float:
        """Return the internal form of a value.

        Raises:
            ArgumentError: the value is not one of the parameter's.
        """
        position = self.locate(value)
        if position is None:
            raise ArgumentError(f"expected {self.expected}, got {shown(value)}")
        return self.internal_at(position)

    def internal_at(self, position: float) -> float:
        """Return the internal form of the value at a position."""
        return float(self.value(position))

    @property
    def internal_values(self) -> tuple[float, ...]:
        """The internal forms of all values of a discrete parameter, in order."""
        if self.n_values == 1:
            return (self.internal(self.first),)
        return tuple(map(self.internal_at, range(self.n_values or 0)))

    def __repr__(self) -> str:
        shown_fields = [f for f in fields(self) if f.repr and (f.name != "when" or self.when is not None)]  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in shown_fields)})"


def set_fields(instance: object, **values: object) -> None:
    """Set fields of a frozen dataclass while it is made."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)


def checked_when(when: object) -> Mapping[str, tuple[Any, ...]] | None:
    """A condition as a dict from the names of other parameters to tuples of their values.

    Raises:
        ArgumentTypeError: no dict, or a name that is no string.
        ArgumentError: no names, or no values for one.
    """
    if when is None:
        return None
    if not isinstance(when, Mapping):
        raise ArgumentTypeError(f'when: expected a dict such as {{"model": "svm"}}, got {shown(when)}')
    if not when:
        raise ArgumentError("when: expected the name of a parameter and its values, got an empty dict: leave it out")
    out: dict[str, tuple[Any, ...]] = {}
    for name, values in when.items():
        if not isinstance(name, str):
            raise ArgumentTypeError(f"when: expected names of parameters, got {shown(name)}")
        several = isinstance(values, (list, tuple, set, frozenset))
        out[name] = tuple(map(as_python, ordered(values))) if several else (as_python(values),)
        if not out[name]:
            raise ArgumentError(f"when: expected at least one value of {name!r}, got none")
    return out


def ordered(values: Iterable[Any]) -> Iterable[Any]:
    """The values; those of a set in an order that is the same in every process."""
    is_set = isinstance(values, (set, frozenset))
    return sorted(values, key=lambda value: (type(value).__name__, repr(value))) if is_set else values
