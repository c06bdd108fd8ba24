"""Reading of a search space and options of an optimizer from a TOML file.

A search space in TOML:

    direction = "minimize"               # options of Optimizer, all of them optional; or directions = [...],
                                         # or of named objectives directions = { loss = "minimize", ... }
    # constraints = ["heat <= 70"]       # limits of quantities that are measured with the value
    # feasible = ["rate * width <= 1"]   # rules that are known beforehand, see bkbopt.spaces.rules
    seed = 0

    [space]
    rate = { type = "float", low = 1e-5, high = 1e-1, log = true }
    width = { type = "int", low = 16, high = 256, step = 16 }
    kind = ["fast", "slow"]              # choices
    size = { type = "ordinal", values = ["S", "M", "L"] }
    depth = { type = "int", low = 1, high = 9, when = { kind = "slow" } }
    threads = 4                          # a fixed value
"""

import math
import os
import warnings
from typing import Any

from bkbopt.errors import ArgumentError

__all__ = ["read_space"]

#: Keys of parameters that may be left out, and arguments of `Optimizer` that are no options of a file.
OPTIONAL, OF_PROGRAMS = {"log", "step", "when"}, ("fit", "storage")
#: Endings of files with the rows of a pool.
TABLES = (".csv", ".parquet", ".npy")
_OF_POOL = "a search over the rows of a file begins with: bkbopt init --pool ROWS STATE"


def read_space(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A search space and options of `Optimizer` from a TOML file; the module's text has an example.

    Raises:
        ArgumentError: not TOML, no `[space]`, unknown keys, an invalid parameter, or none that varies.
        ArgumentTypeError: an entry has the wrong type.
        OSError: the file cannot be read.
    """
    import tomllib  # here, since most commands do not need it

    from bkbopt.optimizer.arguments.option_types import Options

    with open(path, "rb") as file:
        try:
            document = tomllib.loads(file.read().decode("utf-8-sig"))  # some editors begin it with a byte order mark
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            rows = f"; {_OF_POOL}" if os.fspath(path).lower().endswith(TABLES) else ""
            raise ArgumentError(f"space: expected a TOML file, got {os.fspath(path)}: {error}{rows}.") from None
    if "pool" in document:
        raise ArgumentError(f"pool: expected no such option in {os.fspath(path)}; {_OF_POOL}.")
    entries = document.pop("space", None)
    if not isinstance(entries, dict) or not entries:
        raise ArgumentError(f"space: expected a table [space] with parameters in {os.fspath(path)}, got {entries!r}.")
    known = tuple(name for name in Options.__annotations__ if name not in OF_PROGRAMS)
    unknown = set(document) - set(known)
    if unknown:
        raise ArgumentError(f"space: expected options among {known}, got {sorted(unknown)}.")
    space = {name: _parameter(name, entry) for name, entry in entries.items()}
    if not any(map(_varies, space.values())):
        raise ArgumentError(
            f"space: expected a parameter that varies, got fixed values of {list(space)} only; give one a range, as "
            f'{{ type = "float", low = 0.0, high = 1.0 }}, or several choices; {_OF_POOL}.'
        )
    return space, document


def _varies(parameter: Any) -> bool:
    """Whether a parameter has several values; a list is one of choices, and other plain values are fixed."""
    if isinstance(parameter, list):
        return len(parameter) > 1
    return getattr(parameter, "n_values", 1) != 1


def _parameter(name: str, entry: Any) -> Any:
    from bkbopt import Categorical
    from bkbopt.spaces.parsing import FIELDS, looks_like_bounds, made

    values = entry if isinstance(entry, list) else [entry]
    if any(isinstance(v, float) and not math.isfinite(v) for v in values):
        raise ArgumentError(f"parameter {name!r}: expected finite numbers, got {entry!r}.")
    if looks_like_bounds(entry):
        low, high = entry
        warnings.warn(
            f"parameter {name!r}: [{low}, {high}] is a set of two choices; write "
            f'{{ type = "float", low = {low}, high = {high} }} for the range between them, or '
            f'{{ type = "categorical", choices = [{low}, {high}] }}.',
            UserWarning,
            stacklevel=2,
        )
        return Categorical(entry)
    if not isinstance(entry, dict):
        return entry
    fields = dict(entry)
    kind = fields.pop("type", None)
    if not isinstance(kind, str) or kind not in FIELDS:
        got = repr(kind) if "type" in entry else f"no key 'type' but {sorted(fields)}"
        raise ArgumentError(f"parameter {name!r}: expected a type among {tuple(FIELDS)}, got {got}.")
    every = {*FIELDS[kind], "when"}
    needed, besides = every - OPTIONAL, every & OPTIONAL
    if not needed <= set(fields) <= needed | besides:
        raise ArgumentError(
            f"parameter {name!r}: expected the keys {sorted(needed)} and optionally {sorted(besides)}, "
            f"got {sorted(fields)}."
        )
    return made(name, kind, fields)
