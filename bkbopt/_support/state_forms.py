"""What the state of a learner in a file has to be: each class declares a `Form`, and `checked` holds states to it.

A state file may hold anything that JSON and arrays can say. Compiled loops trust shapes and indices, and loops that
count to a number of the file may never come back, so a state is checked before anything is made of it:

| part                    | what stands in its place                                                        |
| ----------------------- | ------------------------------------------------------------------------------- |
| `Floats`                | a float64 array (or tensor) of a shape, finite and within bounds                |
| `Ints`                  | an int64 array of a shape, within bounds                                        |
| `Count`, `Number`       | a whole number, a finite number, within bounds                                  |
| `Size`                  | the whole number that a symbol stands for                                       |
| `Form`, `Maybe`         | a dict of exactly these names; or None                                          |
| `None`                  | None                                                                            |
| `Kept`                  | anything: it is checked elsewhere                                               |

Shapes name sizes by symbols, as the docstrings do: the first array of a state that has the symbol says how large it is,
all others have to agree. Arrays are copied, so that two learners made of one state go their own ways; tensors are not,
since nothing changes them in place.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from bkbopt._support.checks import LARGEST_SIZE
from bkbopt.errors import StateFileError

__all__ = [
    "Count",
    "Floats",
    "Form",
    "Ints",
    "Kept",
    "Maybe",
    "Number",
    "Part",
    "Size",
    "checked",
    "generator_state",
    "refused",
]

#: The length of an axis: a number, or the symbol of one.
_Axis = int | str


class Part:
    """What a state may have under a name; see the module's table."""


@dataclasses.dataclass(frozen=True)
class Floats(Part):
    """A finite float64 array of a `shape`, entries from `low` to `high`, those of its diagonal above `diagonal`.

    It becomes C-contiguous, since loops are compiled for that, but for a `tensor` or where `any_order` will do.
    """

    shape: tuple[_Axis, ...]
    low: float = -math.inf
    high: float = math.inf
    diagonal: float = -math.inf
    tensor: bool = False
    any_order: bool = False


@dataclasses.dataclass(frozen=True)
class Ints(Part):
    """An int64 array of a `shape`, entries from 0 to below the size `below`."""

    shape: tuple[_Axis, ...]
    below: _Axis


@dataclasses.dataclass(frozen=True)
class Count(Part):
    """A whole number from `low` to `high`, which may be a symbol."""

    low: int = 0
    high: _Axis = LARGEST_SIZE


@dataclasses.dataclass(frozen=True)
class Size(Part):
    """A whole number that is the size which `symbol` has."""

    symbol: str


@dataclasses.dataclass(frozen=True)
class Number(Part):
    """A finite number from `low` to `high`."""

    low: float = -math.inf
    high: float = math.inf


@dataclasses.dataclass(frozen=True)
class Kept(Part):
    """Anything, left as it is."""


@dataclasses.dataclass(frozen=True)
class Form(Part):
    """A dict with exactly the names of `parts`; `most` and `least` bound the sizes that its symbols may have."""

    parts: "Mapping[str, Part | None]"
    most: Mapping[str, int] = dataclasses.field(default_factory=dict)
    least: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def extended(
        self,
        parts: "Mapping[str, Part | None]",
        most: Mapping[str, int] | None = None,
        least: Mapping[str, int] | None = None,
    ) -> "Form":
        """A form with further parts and bounds."""
        return Form({**self.parts, **parts}, {**self.most, **(most or {})}, {**self.least, **(least or {})})


@dataclasses.dataclass(frozen=True)
class Maybe(Part):
    """A dict of `form`, or None."""

    form: Form


def refused(where: str, expected: str, got: object) -> StateFileError:
    """The error for a part of a state that is not what it has to be."""
    return StateFileError(
        f"path: expected {where} to be {expected}, got {got}; the file is damaged, restore it from a copy."
    )


def checked(state: object, form: Form, sizes: Mapping[str, int] | None = None, where: str = "the state") -> Any:
    """`state` as a dict of `form`, with copies of its arrays.

    Args:
        state: as `bkbopt._support.files.load` gives it.
        form: what it has to be.
        sizes: symbols whose sizes are known.
        where: what it is, for messages.

    Raises:
        StateFileError: it is not; nothing larger than the state was allocated.
    """
    return _form(state, form, dict(sizes or {}), where)


def _form(state: object, form: Form, sizes: dict[str, int], where: str) -> dict[str, Any]:
    if not isinstance(state, dict) or set(state) != set(form.parts):
        names = list(state)[:20] if isinstance(state, dict) else type(state).__name__
        raise refused(where, f"a dict of {', '.join(form.parts)}", names)
    out = {name: _part(state[name], part, sizes, f"{where}'s {name!r}") for name, part in form.parts.items()}
    for symbol, most in form.most.items():
        if sizes.get(symbol, 0) > most:
            raise refused(where, f"one with {symbol} up to {most}", f"{symbol} = {sizes[symbol]}")
    for symbol, least in form.least.items():
        if sizes[symbol] < least:
            raise refused(where, f"one with {symbol} from {least}", f"{symbol} = {sizes[symbol]}")
    return out


def _part(value: object, part: Part | None, sizes: dict[str, int], where: str) -> object:
    match part:
        case Form():
            return _form(value, part, sizes, where)
        case Floats():
            return _floats(value, part, sizes, where)
        case Ints():
            return _ints(value, part, sizes, where)
        case Maybe():
            return None if value is None else _form(value, part.form, sizes, where)
        case Count():
            return _count(value, part.low, _size(part.high, sizes), where)
        case Size():
            size = sizes[part.symbol]
            return _count(value, size, size, where)
        case Number():
            return _number(value, part, where)
        case Kept():
            return value
    if value is not None:
        raise refused(where, "None", type(value).__name__)
    return None


def _floats(value: object, part: Floats, sizes: dict[str, int], where: str) -> object:
    array = value.numpy() if part.tensor and isinstance(value, torch.Tensor) else value
    if part.tensor and not isinstance(value, torch.Tensor):
        raise refused(where, "a tensor", type(value).__name__)
    array = _shaped(array, "float64", part.shape, sizes, where)
    good = np.isfinite(array) & (array >= part.low) & (array <= part.high)
    if not good.all():
        worst = array[~good].flat[0]
        raise refused(where, f"finite numbers from {part.low:g} to {part.high:g}", worst)
    if part.diagonal > -math.inf and not (np.diag(array) > part.diagonal).all():
        raise refused(where, f"a matrix with a diagonal above {part.diagonal:g}", np.diag(array).min())
    return value if part.tensor else np.array(array, order="K" if part.any_order else "C")


def _ints(value: object, part: Ints, sizes: dict[str, int], where: str) -> npt.NDArray[np.int64]:
    array = _shaped(value, "int64", part.shape, sizes, where)
    below = _size(part.below, sizes)
    if array.size and not (array.min() >= 0 and array.max() < below):
        raise refused(where, f"whole numbers from 0 to below {below}", f"{array.min()} to {array.max()}")
    return array.copy()


def _shaped(value: object, dtype: str, shape: tuple[_Axis, ...], sizes: dict[str, int], where: str) -> npt.NDArray[Any]:
    """`value`, an array of that `dtype` and `shape`; symbols that are new get their size from it."""
    if not isinstance(value, np.ndarray) or value.dtype != np.dtype(dtype) or value.ndim != len(shape):
        got = f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
        raise refused(where, f"a {dtype} array of shape {_written(shape, sizes)}", got)
    for size, n in zip(shape, value.shape, strict=True):
        expected = sizes.setdefault(size, n) if isinstance(size, str) else size
        if n != expected:
            raise refused(where, f"an array of shape {_written(shape, sizes)}", value.shape)
    return value


def _size(size: _Axis, sizes: Mapping[str, int]) -> int:
    return sizes[size] if isinstance(size, str) else size


def _written(shape: tuple[_Axis, ...], sizes: Mapping[str, int]) -> str:
    parts = [f"{s} = {sizes[s]}" if isinstance(s, str) and s in sizes else str(s) for s in shape]
    return f"({', '.join(parts)})"


def _count(value: object, low: int, high: int, where: str) -> int:
    """`value`, a whole number from `low` to `high`; `StateFileError` otherwise."""
    if type(value) is not int or not low <= value <= high:
        got = "a number out of range" if type(value) is int else type(value).__name__
        raise refused(where, f"a whole number from {low} to {high}", got)
    return value


def _number(value: object, part: Number, where: str) -> float:
    if type(value) is not float or not math.isfinite(value) or not part.low <= value <= part.high:
        raise refused(where, f"a finite number from {part.low:g} to {part.high:g}", repr(value)[:40])
    return value


def generator_state(state: object) -> dict[str, Any]:
    """`state`, that of a PCG64 generator, which numpy itself takes in other shapes as well.

    Raises:
        StateFileError: it is none.
    """
    kind = Form({"bit_generator": Kept(), "state": Kept(), "has_uint32": Count(0, 1), "uinteger": Count(0, 2**32 - 1)})
    out = checked(state, kind, where="the generator")
    words = Form({"state": Count(0, 2**128 - 1), "inc": Count(0, 2**128 - 1)})
    checked(out["state"], words, where="the generator's words")
    if out["bit_generator"] != "PCG64" or not out["state"]["inc"] % 2:
        raise refused("the generator", "a PCG64 with an odd increment", repr(out["bit_generator"])[:40])
    return dict(out)
