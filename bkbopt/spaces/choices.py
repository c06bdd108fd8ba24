"""Parameters that list their values: choices without an order among them, and with one."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.spaces.base import Kind, ParameterBase, checked_when, ordered, set_fields
from bkbopt.spaces.numbering import Numbering
from bkbopt.spaces.scales import Codes, Grid, Scale
from bkbopt.spaces.values import as_python, identity, is_hashable, is_real, places_of, same, shown

__all__ = ["Categorical", "Ordinal"]


class _Listed(ParameterBase):
    """The common base of `Categorical` and `Ordinal`: positions are indices of the choices, internal values numbers.

    Attributes:
        numbering: the numbers of the choices; None if they are the indices, as long as there was no other list.
    """

    _places: dict[object, int]
    numbering: Numbering | None

    @property
    @abstractmethod
    def listed(self) -> tuple[Any, ...]:
        """The values, in order."""

    @cached_property
    def _numbers(self) -> Numbering:
        """The numbers of the choices."""
        return Numbering.first(self.listed) if self.numbering is None else self.numbering

    @property
    def first(self) -> Any:
        """See `ParameterBase`."""
        return self.listed[0]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Listed) or type(self) is not type(other):
            return NotImplemented
        alike = len(self.listed) == len(other.listed) and all(map(same, self.listed, other.listed))
        return alike and self.when == other.when and self.numbering == other.numbering

    def __hash__(self) -> int:
        return hash((type(self), len(self.listed)))  # choices need not be hashable

    @property
    def n_values(self) -> int | None:
        """See `ParameterBase`."""
        return len(self.listed)

    @property
    def expected(self) -> str:
        """See `ParameterBase`."""
        if len(self.listed) == 1:
            return f"the fixed value {shown(self.listed[0])}"
        more = ", ..." if len(self.listed) > 10 else ""
        return f"one of {', '.join(map(shown, self.listed[:10]))}{more} (of the same type)"

    def locate(self, value: object) -> float | int | None:
        """See `ParameterBase`."""
        value = as_python(value)
        key = identity(value)
        if is_hashable(key):
            return self._places.get(key)
        return next((place for place, choice in enumerate(self.listed) if same(choice, value)), None)

    def value(self, position: float) -> Any:
        """See `ParameterBase`."""
        return self.listed[int(position)]

    def internal_at(self, position: float) -> float:
        """See `ParameterBase`."""
        return float(self._numbers.own[int(position)])

    def external(self, number: float) -> Any:
        """See `ParameterBase`."""
        return self._numbers.values[int(number)]

    @property
    def places(self) -> tuple[float, ...]:
        """The place in the column of each value that has a number, by number."""
        return self._numbers.places

    @property
    def n_numbers(self) -> int | None:
        """See `ParameterBase`."""
        return len(self._numbers.values)

    @property
    def generation(self) -> int:
        """See `ParameterBase`."""
        return self._numbers.generation

    def unconditional(self) -> Self:
        """See `ParameterBase`."""
        return self if self.when is None else self._numbered(self.numbering, None)

    def after(self, earlier: ParameterBase | None) -> Self:
        """See `ParameterBase`."""
        if not isinstance(earlier, _Listed) or type(earlier) is not type(self):
            return self if self.numbering is None else self._numbered(None, self.when)
        if len(self.listed) == len(earlier.listed) and all(map(same, self.listed, earlier.listed)):
            known = earlier.numbering
            return self if known is self.numbering else self._numbered(known, self.when)
        known = earlier._numbers
        found = map(self.locate, known.values)
        positions = [None if position is None else int(position) for position in found]
        return self._numbered(known.continued(self.listed, positions, ordered=self.kind == "ordinal"), self.when)

    def _numbered(self, numbering: Numbering | None, when: Mapping[str, Any] | None) -> Self:
        """The same values with other numbers and another condition."""
        out = type(self)(self.listed, when=when)  # type: ignore[call-arg]  # the subclasses take both
        set_fields(out, numbering=numbering)
        return out

    @property
    def _first_listed(self) -> tuple[Any, ...]:
        """The values of the first list."""
        return self._numbers.values[: self._numbers.n_first]

    def _take(self, argument: str, given: object) -> None:
        """Check the values and the condition of a new parameter."""
        if not isinstance(given, Iterable) or isinstance(given, (str, bytes, Mapping)):
            raise ArgumentTypeError(f"{argument}: expected a list of values, got {shown(given)}")
        values = tuple(map(as_python, ordered(given)))
        set_fields(self, **{argument: values, "when": checked_when(self.when)})
        set_fields(self, _places=places_of(argument, values))
        if not values:
            raise ArgumentError(f"{argument}: expected at least one value, got none")


@dataclass(frozen=True, eq=False, repr=False)
class Categorical(_Listed):
    """One of several choices without an order among them.

    Choices may be any objects. Two are the same if they have the same type and compare equal, so 1, 1.0 and True are
    three choices; NaN is the same as NaN; objects that compare element by element (arrays) are the same only if they
    are one object. Numpy's numbers, bools and strings become Python's. The order is kept; a set is sorted by repr.
    A single choice fixes the value.

    Args:
        choices: the values.
        when: see `Float`.

    Raises:
        ArgumentTypeError: `choices` is no collection (a string and a mapping count as none).
        ArgumentError: no choices, or the same one twice.

    Example:
        >>> import bkbopt as bo
        >>> bo.Categorical(["relu", "tanh"]).n_values
        2
    """

    choices: Sequence[Any]
    _: KW_ONLY
    when: Mapping[str, Any] | None = None
    _places: dict[object, int] = field(init=False, repr=False)
    numbering: Numbering | None = field(init=False, repr=False, default=None)
    kind: ClassVar[Kind] = "categorical"
    absent: ClassVar[float] = 0.0  # the first choice

    def __post_init__(self) -> None:
        self._take("choices", self.choices)

    @property
    def listed(self) -> tuple[Any, ...]:
        """The choices."""
        return tuple(self.choices)

    @cached_property
    def scale(self) -> Scale:
        """See `ParameterBase`."""
        return Codes(len(self.choices))

    def column_key(self, name: str) -> str:
        """See `ParameterBase`."""
        return f"{name} of {self._first_listed!r}"


@dataclass(frozen=True, eq=False, repr=False)
class Ordinal(_Listed):
    """One of several values with an order among them: neighbours in the list are taken to be alike.

    Values may be any objects and are the same as choices of `Categorical` are; a number also stands for the one of
    another type that equals it (16.0 for 16). They are encoded as equal steps from 0 to 1. A single value is fixed.

    Args:
        values: the values, in order.
        when: see `Float`.

    Raises:
        ArgumentTypeError: `values` is no sequence: a set has no order, a string and a mapping count as none.
        ArgumentError: no values, or the same one twice.

    Example:
        >>> import bkbopt as bo
        >>> space = bo.Space.parse({"batch": bo.Ordinal([16, 32, 64]), "size": bo.Ordinal(["S", "M", "L"])})
        >>> space.encode([{"batch": 32, "size": "L"}])
        tensor([[0.5000, 1.0000]], dtype=torch.float64)
    """

    values: Sequence[Any]
    _: KW_ONLY
    when: Mapping[str, Any] | None = None
    _places: dict[object, int] = field(init=False, repr=False)
    numbering: Numbering | None = field(init=False, repr=False, default=None)
    kind: ClassVar[Kind] = "ordinal"

    def __post_init__(self) -> None:
        if isinstance(self.values, (set, frozenset)):
            raise ArgumentTypeError(f"values: expected a list, in order, got a set {shown(self.values)}")
        self._take("values", self.values)

    @property
    def listed(self) -> tuple[Any, ...]:
        """The values."""
        return tuple(self.values)

    @cached_property
    def scale(self) -> Scale:
        """See `ParameterBase`."""
        return Grid(len(self.values))

    def locate(self, value: object) -> float | int | None:
        """See `ParameterBase`."""
        value = as_python(value)
        place = super().locate(value)
        if place is not None or not is_real(value):
            return place
        equal = [place for place, own in enumerate(self.values) if is_real(own) and own == value]
        return equal[0] if len(equal) == 1 else None

    def column_key(self, name: str) -> str:
        """See `ParameterBase`."""
        return f"{name} in order {self._first_listed!r}"
