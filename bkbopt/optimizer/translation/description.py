"""Descriptions of an optimizer's arguments as JSON values for a log file, and their inverse.

Code and large data are not stored, and have to be passed again when a log is opened: constraints on parameters, kernels
and acquisition functions of the user, data frames, large arrays, and pools of objects.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch

from bkbopt import confidence
from bkbopt.confidence import Confidence
from bkbopt.errors import ArgumentError, ArgumentTypeError, BkbError
from bkbopt.kernels.saving import kernel_from_state, kernel_to_state
from bkbopt.optimizer.arguments.named_surrogates import classes_by_name
from bkbopt.optimizer.log.log_rows import Described
from bkbopt.optimizer.log.log_schema import is_plain, to_json
from bkbopt.optimizer.translation.product_description import describe_product, read_product
from bkbopt.spaces.arms import Arms
from bkbopt.spaces.columns import RANKED, Columns, Tails
from bkbopt.spaces.pool import EncodedPool, Pool, as_pool
from bkbopt.spaces.product_pool import ProductPool
from bkbopt.spaces.space import Space
from bkbopt.spaces.stored import StoredPool, encoded_pool
from bkbopt.surrogates import Surrogate

__all__ = [
    "check_text",
    "describe",
    "describe_schedule",
    "describe_surrogate",
    "read_candidates",
    "read_changed",
    "read_schedule",
    "read_surrogate",
    "with_new_options",
]

SCHEDULES: dict[str, Any] = {
    c.__name__: c
    for c in (confidence.Constant, confidence.Practical, confidence.Theorem2, confidence.Srinivas, confidence.Chowdhury)
}
#: Largest absolute logarithm of a kernel's lengthscale or variance, so that squares are finite.
LARGEST_LOG = 300.0
#: Largest depth of nested schedules.
DEEPEST = 8
#: Largest array, in bytes, that is stored in the file.
LARGEST = 64 * 2**20


# -- spaces and pools --------------------------------------------------------------------------------------------------


def describe_pool(pool: Arms) -> Described:
    """A pool for a log: an array with its rows, if they are not too many.

    Raises:
        ArgumentError: choices without a JSON form.
    """
    columns = pool.columns
    if columns is None:
        rows = [int(number) for block in pool.raw_blocks() for number in block[:, 0].tolist()]
        return Described({"objects": len(pool.objects or ()), "rows": rows})
    for j, values in columns.choices.items():
        bad = next((v for v in values if v is not None and not is_plain(v)), None)
        if bad is not None:
            way = (
                f", as by frame[{columns.names[j]!r}].cat.rename_categories(str)" if columns.kinds[j] == RANKED else ""
            )
            raise ArgumentError(
                f"pool: expected columns of numbers and text in a log, got {bad!r}; turn it into text{way}."
            )
    of_columns = {
        "names": list(columns.names),
        "kinds": list(columns.kinds),
        "low": columns.low.tolist(),
        "width": columns.width.tolist(),
        "choices": [[j, list(values)] for j, values in columns.choices.items()],
        "tails": [[j, tails.middle, tails.half] for j, tails in columns.tails.items()],
    }
    if isinstance(pool, ProductPool):
        described = describe_product(pool, of_columns, LARGEST)
        check_text(to_json(described.text))
        return described
    text = {
        **of_columns,
        "id_column": pool.pool.id_column,
        "n_rows": len(pool),
        "fingerprint": pool.fingerprint,
    }
    check_text(to_json(text))
    if isinstance(pool, StoredPool) or hasattr(pool.pool.arms, "iloc") or 8 * len(pool) * pool.dim > LARGEST:
        return Described(text, None)
    return Described(text, b"".join(block.astype("<f8").tobytes() for block in pool.raw_blocks()))


def read_changed(described: Described, scale: bool) -> Space | Arms:
    """The space or pool that another process has set; raises as `read_candidates`."""
    try:
        return read_candidates(described, None, scale)
    except ArgumentError as error:
        raise ArgumentError(f"{error} Another process has called set_pool: here too, open the log again.") from None


def describe(candidates: Space | Arms) -> Described:
    """A space or pool for a log; `ArgumentError` for choices or names without a JSON form."""
    if not isinstance(candidates, Space):
        return describe_pool(candidates)
    described = Described(candidates.to_dict())
    check_text(to_json(described.text))
    return described


def read_candidates(described: Described, given: Any, scale: bool) -> Space | Arms:
    """The space or pool of a log; `given` are the arms of a pool that is not stored, see `read_pool`."""
    if not described.is_space:
        return read_pool(described, given, scale)
    if given is not None:
        raise ArgumentError(
            f"pool: expected none, since the log has a search space, got {type(given).__name__}; leave it out."
        )
    try:
        check_text(to_json(described.text))
        return Space.from_dict(described.text)
    except BkbError as error:
        raise ValueError(f"an invalid description of a space ({error})") from error


def read_pool(described: Described, given: Any, scale: bool) -> Arms:
    """The pool of a log; `given` is what is passed at opening, None or the arms.

    Raises:
        ArgumentError: the arms are not stored, and none or other ones are given.
    """
    text = described.text
    if "objects" in text:
        return _read_objects(text, given, scale)
    if "parts" in text:
        return read_product(described, _columns(Described(text)), given, scale)
    if given is None and described.rows is None:
        raise ArgumentError(
            f"pool: expected the {text['n_rows']} rows with the columns {_first(text['names'])}, since the log "
            "holds no data frames, files and large arrays; pass pool= with them to Optimizer.open or load, in the "
            "shell --pool with a file of them."
        )
    known = _columns(described)
    pool = as_pool(_rows(described) if given is None else given)
    more: dict[str, Any] = {}
    if pool.id_column is None and text["id_column"] is not None:
        more["id_column"] = text["id_column"]
    if pool.columns is None and hasattr(pool.arms, "iloc") and set(known.names) <= set(map(str, pool.arms.columns)):
        more["columns"] = known.names  # of the whole data frame, of which the log has these, in its own order
    pool = replace(pool, **more) if more else pool
    encoded = encoded_pool(pool, scale=scale, has_kernel=True, kept=known.choice_names)
    if encoded.names != known.names:
        raise ArgumentError(f"pool: expected the columns {known.names} of the log, got {encoded.names}.")
    encoded = encoded.with_columns(known)
    if describe_pool(encoded).text["fingerprint"] != text["fingerprint"]:
        raise ArgumentError(
            f"pool: expected the {text['n_rows']} rows of the log, got {len(encoded)} other rows, or another order; "
            "pass the rows of the log, to the last digit (CSV files may round numbers, Parquet and .npy files do not), "
            "and change them later with set_pool, in the shell with bkbopt change."
        )
    return encoded


def _first(names: Sequence[str], most: int = 8) -> str:
    """Names for a message: the first, and the number of the others."""
    others = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + others


def _columns(described: Described) -> Columns:
    """The columns of a pool that is an array or a data frame."""
    text = described.text
    names, kinds, choices = text["names"], text["kinds"], dict(text["choices"])
    low, width = (torch.tensor(text[key], dtype=torch.float64) for key in ("low", "width"))
    of_one_length = len(names) == len(kinds) and (len(names),) == low.shape == width.shape
    if not of_one_length or not bool(torch.isfinite(low).all() and torch.isfinite(width).all() and (width > 0).all()):
        raise ValueError("columns of a pool with missing or invalid ranges")
    if not all(isinstance(word, str) for word in (*names, *kinds)) or len(set(names)) < len(names):
        raise ValueError("columns of a pool without distinct names")
    if not all(j in range(len(names)) and isinstance(values, list) for j, values in choices.items()):
        raise ValueError("choices of columns that do not exist")
    if not all(j in choices for j, kind in enumerate(kinds) if kind == RANKED):
        raise ValueError("ranks of choices that do not exist")
    if described.rows is not None and choices:
        raise ValueError("choices in an array")
    tails = {j: Tails(middle, half) for j, middle, half in text.get("tails", [])}  # older logs have none
    if not all(j in range(len(names)) and j not in choices for j in tails):
        raise ValueError("long tails of columns that do not exist")
    if not all(math.isfinite(each.middle) and 0.0 < each.half < math.inf for each in tails.values()):
        raise ValueError("long tails without a bulk")
    return Columns(tuple(names), tuple(kinds), low, width, {j: tuple(values) for j, values in choices.items()}, tails)


def _rows(described: Described) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The rows of an array that is stored in the file."""
    n, d = int(described.text["n_rows"]), len(described.text["names"])
    rows = np.frombuffer(described.rows or b"", dtype="<f8")
    if n < 1 or d < 1 or rows.size != n * d:
        raise ValueError(f"a pool of {rows.size} numbers instead of {n} times {d}")
    return rows.reshape(n, d).astype(np.float64)


def _read_objects(text: Mapping[str, Any], given: Any, scale: bool) -> Arms:
    objects = list(given.arms if isinstance(given, Pool) else given or ())
    if len(objects) != text["objects"]:
        raise ArgumentError(
            f"pool: expected the {text['objects']} distinct objects of the log (all objects that were ever in the "
            f"pool, by first appearance), which holds none of them, got {len(objects)}; pass pool= with them to "
            "Optimizer.open or load."
        )
    every = EncodedPool(as_pool(objects), scale=scale, has_kernel=True)
    if not all(isinstance(row, int) and 0 <= row < len(objects) for row in text["rows"]):
        raise ValueError("indices of objects that do not exist")
    return every.replaced(as_pool([objects[row] for row in text["rows"]]))


def check_text(text: str, argument: str = "space", what: str = "names and choices") -> None:
    """Raise `ArgumentError` if a text has lone surrogates, which a file does not take; messages name `what` it has."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ArgumentError(f"{argument}: expected {what} that are valid Unicode, got {text[:200]!r}.") from None


# -- surrogates and schedules ------------------------------------------------------------------------------------------


def describe_surrogate(surrogate: Surrogate) -> dict[str, Any]:
    """The description of a surrogate without data: its class, options and kernel.

    Raises:
        ArgumentError: a class or an option that cannot be stored.
    """
    name = type(surrogate).__name__
    if name not in classes_by_name():
        raise ArgumentError(f"surrogate: expected one of {', '.join(classes_by_name())} in a log, got {name}.")
    kernel: Any = kernel_to_state(surrogate.kernel if surrogate.has_kernel else None)
    if kernel is not None and kernel["form"] is not None:
        kernel = {**kernel, "theta": kernel["theta"].tolist()}
    return {"class": name, "options": _plain("surrogate", surrogate.options()), "kernel": kernel}


def read_surrogate(own: Mapping[str, Any], given: Surrogate | None) -> Surrogate:
    """The surrogate of a description, without data; `given` is the one passed when the log is opened, or None.

    Raises:
        ArgumentError: the user's kernel is needed and not given, or the given surrogate has another class.
    """
    if given is not None:
        if type(given).__name__ != own["class"]:
            raise ArgumentError(f"surrogate: expected a {own['class']} as in the log, got {type(given).__name__}.")
        return given
    options = dict(own["options"])
    if options.pop("needs_kernel"):
        raise ArgumentError(
            "surrogate: expected one with the kernel that the log was made with, which is not in the file; pass "
            "surrogate= with it."
        )
    kernel = own["kernel"]
    if kernel is not None:
        theta = torch.tensor(kernel["theta"], dtype=torch.float64)
        n, categorical, *_ = kernel["sizes"] if kernel["form"] is not None else (len(theta) - 1, ())
        if theta.shape != (n + len(categorical) + 1,) or not bool((theta.abs() <= LARGEST_LOG).all()):
            raise ValueError("a kernel with invalid hyper-parameters")
        kernel = {**kernel, "theta": theta}
    surrogate: Surrogate = classes_by_name()[own["class"]](kernel_from_state(kernel, None), **options)
    return surrogate


def with_new_options(own: Mapping[str, Any]) -> dict[str, Any]:
    """The description with defaults for options that are newer than the log."""
    return {**own, "options": {**classes_by_name()[own["class"]]().options(), **own["options"]}}


def describe_schedule(schedule: object) -> dict[str, Any]:
    """The description of a schedule of beta; the class of one that is not of `bkbopt.confidence` is None."""
    name = type(schedule).__name__
    if isinstance(schedule, confidence.Batch):
        inner = describe_schedule(schedule.inner)
        if inner["class"] is None:
            return inner
        return {"class": name, "options": {"leverage_budget": schedule.leverage_budget}, "inner": inner}
    if type(schedule) is not SCHEDULES.get(name):
        return {"class": None}
    return {"class": name, "options": _plain("beta", asdict(schedule))}  # type: ignore[call-overload]


def read_schedule(own: Mapping[str, Any], given: Confidence | None = None, depth: int = 0) -> Any:
    """The schedule of a description; `given` is the one passed when the log is opened, or None.

    Raises:
        ArgumentError: the user's schedule is needed and not given.
    """
    if given is not None:
        return given
    if own["class"] is None:
        raise ArgumentError("beta: expected the schedule of yours that the log was made with, got none; pass beta=.")
    if depth > DEEPEST:
        raise ValueError(f"more than {DEEPEST} nested schedules")
    if own["class"] == "Batch":
        return confidence.Batch(read_schedule(own["inner"], None, depth + 1), **own["options"])
    return SCHEDULES[own["class"]](**own["options"])


def _plain(argument: str, value: Any) -> Any:
    """Options as JSON values."""
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _plain(argument, item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(argument, item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    if value is not None and type(value) not in (bool, int, float, str):
        raise ArgumentTypeError(
            f"{argument}: expected options of numbers and text in a log, got a {type(value).__name__}: {value!r}."
        )
    return value
