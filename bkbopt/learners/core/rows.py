"""Conversion and checks of the users' rows and targets, to float64 arrays.

| symbol | shape  | meaning                                            |
| ------ | ------ | -------------------------------------------------- |
| X      | (n, d) | rows of features, n >= 1, d >= 1, finite           |
| y      | (n,)   | targets: finite numbers, or labels                 |
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from bkbopt._support.arrays import without_mask
from bkbopt._support.settings import usual_settings
from bkbopt.errors import ArgumentError, ArgumentTypeError, BkbError
from bkbopt.learners.core.scikit_learn import warn_of_column
from bkbopt.learners.numerics.losses import Array
from bkbopt.spaces.values import is_missing

__all__ = [
    "as_announced",
    "as_labels",
    "as_numbers",
    "as_row",
    "as_rows",
    "as_weights",
    "merged_classes",
    "names_of",
    "within_floats",
]

Names = tuple[str, ...]
#: Largest number of classes; each costs as much as a learner of its own.
MOST_CLASSES = 1000
#: Number of columns that are no numbers in a row and are named.
_COLUMNS = 3


@contextlib.contextmanager
def within_floats(runs_user_code: Callable[[], bool]) -> Iterator[None]:
    """A context for computations with rows and with the learner's state.

    Args:
        runs_user_code: whether user code runs in it, whose errors are not translated.

    Raises:
        ArgumentError: floating point overflowed: a division by zero, or a matrix that is not finite.
    """
    try:
        with usual_settings():
            yield
    except (ArithmeticError, np.linalg.LinAlgError, torch.linalg.LinAlgError) as error:  # type: ignore[attr-defined]
        if runs_user_code():
            raise
        raise ArgumentError(
            f"X, y: expected rows, targets and parameters of sizes that floating point can hold together ({error}); "
            "scale them, or begin anew."
        ) from error


def names_of(X: object) -> Names | None:
    """The names of the features of a dict, a data frame or one of its rows; None where the features have no names.

    Raises:
        ArgumentError: two features have the same name.
    """
    if isinstance(X, Mapping) and not hasattr(X, "tocsr"):  # a sparse array by keys is a mapping for SciPy
        names = list(X)
    else:
        # A row of a frame is a series, whose index has the columns' names; lists have a method `index`.
        columns = getattr(X, "columns", getattr(X, "index", None))
        names = [] if columns is None or callable(columns) else list(columns)
    if not names or not all(isinstance(name, str) for name in names):
        return None
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ArgumentError(
            f"X: expected columns of different names, got {twice!r} twice; rename one, or pass an array."
        )
    return tuple(names)


def as_rows(X: Any, names: Names | None, d: int | None, owner: str) -> Array:
    """`X` as `(n, d)`, C-contiguous float64; not copied if it is that already.

    Args:
        X: array, tensor, nested list or data frame.
        names: the features' names in order, if they have any.
        d: the number of features, if it is known.
        owner: the learner's name, for messages.

    Raises:
        ArgumentError: not two-dimensional, no rows, another number of features, other names, or not finite.
        ArgumentTypeError: not real numbers.
    """
    given = names_of(X)
    if given is not None and names is not None and given != names:
        _check_names(given, names)
        X = X[list(names)]
    A = _as_float(X)
    if A.ndim != 2:
        raise ArgumentError(
            f"X: expected 2D array of shape (n, d), got {A.ndim}D array of shape {A.shape}. Reshape your data with "
            "X.reshape(1, -1) if it is one row, or X.reshape(-1, 1) if it is one feature."
        )
    if not A.shape[1]:
        raise ArgumentError(f"X: found array with 0 feature(s) (shape={A.shape}) while a minimum of 1 is required.")
    if d is not None and A.shape[1] != d:
        raise ArgumentError(f"X has {A.shape[1]} features, but {owner} is expecting {d} features as input.")
    if not len(A):
        raise ArgumentError(f"X: found array with 0 sample(s) (shape={A.shape}) while a minimum of 1 is required.")
    return _finite(A, names or given)


def as_row(x: Any, names: Names | None, d: int | None, owner: str) -> Array:
    """One row, an array `(d,)`, a dict or a row of a data frame, as `(1, d)`; the errors are those of `as_rows`."""
    given, features = names_of(x), x
    if isinstance(x, Mapping):
        if given is None:
            raise ArgumentTypeError(f"x: expected a dict from names of features to numbers, got {x!r}.")
        if names is None and d is not None:
            raise ArgumentError(f"x: expected an array, as {owner} has learnt from arrays so far, got a dict.")
        if names is not None:
            _check_names(given, names)
        x = [x[name] for name in names or given]
    elif given is not None and names is not None:
        _check_names(given, names)
        x = x[list(names)]
    A = _as_float(x, features)
    if A.ndim != 1:
        raise ArgumentError(f"x: expected one row of shape (d,), got shape {A.shape}; use partial_fit for many rows.")
    return as_rows(A[None], names or given, d, owner)


def as_numbers(y: Any, n: int, what: str) -> Array:
    """Targets of a regression `(n,)`; `what` names the loss, for messages.

    Raises:
        ArgumentError: not one for each row, or not finite.
        ArgumentTypeError: labels, not numbers.
    """
    y = _one_a_row(y, n)
    try:
        kind = y.dtype.kind
        A = y.astype(np.float64) if kind in "iufO" else None
    except OverflowError as error:
        raise ArgumentError(f"y: expected numbers within the range of float64; {error}.") from error
    except (TypeError, ValueError):
        A = None
    if A is None:
        raise ArgumentTypeError(
            f"y: expected real numbers for the {what} loss, got values of dtype {y.dtype}; for labels use a learner "
            "with a loss for classification (hinge, squared_hinge, logistic)."
        )
    bad = ~np.isfinite(A)
    if bad.any():
        i = int(np.argmax(bad))
        raise ArgumentError(f"y: expected finite values, got {A[i]} (NaN or infinity) at position {i}; drop such rows.")
    return A


def as_weights(weights: Any, n: int) -> Array:
    """Weights of rows in a score `(n,)`; None for equal ones.

    Raises:
        ArgumentError: not one for each row, or not finite numbers >= 0 of which one is positive.
        ArgumentTypeError: not real numbers.
    """
    if weights is None:
        return np.ones(n)
    try:
        w = np.asarray(_from_tensor(weights), dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentTypeError(f"sample_weight: expected a real number for each row, or None; {error}.") from error
    if w.shape != (n,):
        raise ArgumentError(f"sample_weight: expected shape ({n},), a weight for each row, got shape {w.shape}.")
    if not (np.isfinite(w).all() and w.min() >= 0.0 < w.max()):
        raise ArgumentError("sample_weight: expected finite weights >= 0, of which at least one is positive.")
    return w


def as_labels(y: Any, n: int) -> npt.NDArray[Any]:
    """Labels `(n,)`, of any type that can be sorted.

    Raises:
        ArgumentError: not one for each row, missing values, or numbers that are not labels (not whole).
    """
    return _checked_labels(_one_a_row(_unmixed(y), n), "y")


def _unmixed(labels: Any) -> Any:
    """`labels`; a list of strings and others, or of long numbers, as objects, which NumPy would convert to one type."""
    if not isinstance(labels, list | tuple):
        return labels
    text = [isinstance(label, str) for label in labels]
    long = any(type(label) is int and label.bit_length() > 63 for label in labels)
    return np.array(labels, dtype=object) if long or (any(text) and not all(text)) else labels


def as_announced(classes: Any) -> npt.NDArray[Any]:
    """Labels `(k,)` that are announced before they appear.

    Raises:
        ArgumentError: not a sequence of at least one label, or what `as_labels` refuses.
    """
    try:
        A = np.asarray(_from_tensor(_unmixed(classes)))
    except ValueError:
        A = np.empty(0)
    if A.ndim != 1 or not len(A):
        raise ArgumentError(f"classes: expected a sequence of labels, such as [0, 1], or None, got {classes!r}.")
    return _checked_labels(A, "classes")


def _checked_labels(A: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """`A`, if it can be labels; `name` is the argument that gave them."""
    if A.dtype == np.uint64:  # beside signed numbers NumPy would round both to floats
        A = A.astype(object if int(A.max(initial=0)) >= 2**63 else np.int64)
    if A.dtype.kind not in "biufUO":
        raise ArgumentTypeError(f"{name}: expected labels (strings, whole numbers, booleans), got dtype {A.dtype}.")
    if A.dtype.kind == "O" and any(is_missing(v) and not isinstance(v, float) for v in A):
        raise ArgumentError(f"{name}: expected labels, got None or NaN among them; drop such rows.")
    numbers = np.array([v for v in A if isinstance(v, float)]) if A.dtype.kind == "O" else A
    if numbers.dtype.kind == "f":
        if not np.isfinite(numbers).all():
            raise ArgumentError(f"{name}: expected labels, got NaN or infinity among them; drop such rows.")
        if (np.floor(numbers) != numbers).any():
            other = 'for targets that are numbers pass loss="squared" to the learner, if it has this loss'
            raise ArgumentError(
                f"{name}: Unknown label type: expected labels of classes, got continuous numbers; {other}."
            )
    return A


def merged_classes(known: npt.NDArray[Any], labels: npt.NDArray[Any], name: str = "y") -> npt.NDArray[Any]:
    """The sorted classes: the `known` ones, if any, and those of new `labels`, which came as the argument `name`.

    Raises:
        ArgumentError: labels that have no order, as strings among numbers, or more classes than `MOST_CLASSES`.
    """
    parts = [part for part in (known, labels) if len(part)]
    text = [part.dtype.kind == "U" for part in parts if part.dtype.kind != "O"]
    try:
        merged = np.unique(np.concatenate(parts)) if all(text) or not any(text) else None
    except TypeError:
        merged = None
    if merged is None:
        kinds = sorted({type(label).__name__ for part in parts for label in part.tolist()})
        raise ArgumentError(
            f"{name}: expected labels that can be compared with one another and with earlier ones, not numbers and "
            f"strings together, got labels of type {' and '.join(kinds)}; make strings of all of them."
        )
    if len(merged) > MOST_CLASSES:
        raise ArgumentError(
            f"{name}: expected at most {MOST_CLASSES} classes, got {len(merged)} labels; for numbers (Unknown label "
            "type) use a loss for regression."
        )
    return merged


def _one_a_row(y: Any, n: int) -> npt.NDArray[Any]:
    if y is None:
        raise ArgumentError("y: requires y to be passed, but the target y is None.")
    try:
        A = np.asarray(without_mask(_from_tensor(y)))
    except ValueError:
        raise ArgumentError("y should be a 1d array, got rows of different lengths.") from None
    if A.ndim == 2 and A.shape[1] == 1:
        warn_of_column()
        A = A[:, 0]
    if A.shape != (n,):
        raise ArgumentError(f"y should be a 1d array of shape ({n},), one target a row, got shape {A.shape}.")
    if A.dtype.kind == "c":
        raise ArgumentError("y: expected real numbers or labels. Complex data not supported.")
    return A


def _check_names(given: Names, names: Names) -> None:
    if set(given) != set(names):
        missing, new = sorted(set(names) - set(given)), sorted(set(given) - set(names))
        differ = [f"{some} are {what}" for some, what in ((missing, "missing"), (new, "new")) if some]
        raise ArgumentError(f"x: expected the features of the first row, but {' and '.join(differ)}.")


def _from_tensor(values: Any) -> Any:
    """A tensor as an array; other objects unchanged."""
    if not hasattr(values, "detach"):
        return values
    if values.layout != torch.strided:
        raise ArgumentTypeError(
            f"X, y: expected dense tensors, got one of layout {values.layout}; pass its to_dense()."
        )
    values = values.detach().cpu()
    return (values.double() if values.is_floating_point() else values).numpy()


def _as_float(X: Any, features: Any = None) -> Array:
    """`X` as float64; `features` is what it was made of, for messages."""
    X, where = _from_tensor(X), X if features is None else features
    if not isinstance(X, np.ndarray | Sequence) and hasattr(X, "tocsr"):
        raise ArgumentTypeError(
            "X: expected a dense array, got a sparse matrix; pass X.toarray(), or in a pipeline encode with "
            "sparse_output=False, and sparse_threshold=0 of a ColumnTransformer."
        )
    try:
        A = np.asarray(without_mask(X))
        if A.dtype.kind == "c":
            raise ArgumentError("X: expected real numbers. Complex data not supported.")
        if A.dtype.kind not in "biufOUS":
            raise ArgumentTypeError(f"X: expected real numbers, got dtype {A.dtype}.")
        if A.dtype.kind == "O":  # pandas' marker of what is missing is no number
            A = np.array([math.nan if is_missing(v) else v for v in A.flat], dtype=object).reshape(A.shape)
        # Tensors cannot share read-only memory; such arrays are copied.
        return np.require(A, np.float64, ["C", "W"])
    except BkbError:  # of the two checks
        raise
    except OverflowError as error:  # a whole number beyond the largest double
        raise ArgumentError(f"X: expected numbers within the range of float64; {error}.") from error
    except TypeError as error:
        raise ArgumentTypeError(f"X: expected real numbers; {error}{_of_text(where)}.") from error
    except ValueError as error:
        raise ArgumentError(f"X: expected numbers in rows of equal length; {error}{_of_text(where)}.") from error


def _of_text(X: Any) -> str:
    """The columns of a data frame or a dict that are no numbers, and what to do with them; empty for other tables."""
    kinds = zip(getattr(X, "columns", ()), getattr(X, "dtypes", ()), strict=False)
    columns = [str(name) for name, dtype in kinds if getattr(dtype, "kind", "f") not in "biuf"]
    if isinstance(X, Mapping):
        columns = [name for name, value in X.items() if isinstance(value, str)]
    return f", in {columns}: encode these, as by scikit-learn's OneHotEncoder, or leave them out" if columns else ""


def _finite(A: Array, names: Names | None) -> Array:
    # A sum is finite only if all terms are, and is the cheaper test.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(A.sum()):
            return A
    bad = ~np.isfinite(A).all(1)
    if bad.any():
        row = int(np.argmax(bad))
        columns = np.flatnonzero(~np.isfinite(A[row])).tolist()
        where = [f"{A[row, j]} in column {repr(names[j]) if names else j}" for j in columns[:_COLUMNS]]
        if len(columns) > _COLUMNS:
            where.append(f"{len(columns) - _COLUMNS} more")
        raise ArgumentError(
            f"X: expected finite values, got NaN or infinity in row {row}: {', '.join(where)}; drop or impute such "
            "rows."
        )
    return A
