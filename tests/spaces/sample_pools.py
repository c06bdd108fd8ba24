"""Pools that tests share: an array, a table, words, and what is refused in their place."""

from typing import Any

import numpy as np
import pandas as pd

from bkbopt.spaces.pool import EncodedPool, as_pool

ARMS = np.random.default_rng(0).random((60, 3)) * [1.0, 100.0, 1e-3]
TABLE = pd.DataFrame(
    {
        "dose": ARMS[:, 0],
        "steps": np.arange(60) % 7,
        "solvent": ["water", "oil", "acid"] * 20,
        "dry": np.arange(60) % 2 == 0,
    }
)
WORDS = ["ant", "bee", "cat", "antelope", "beetle", "catfish", "ape", "bat", "cow"]


def encoded(arms: Any, **options: Any) -> EncodedPool:
    return EncodedPool(as_pool(arms), **{"scale": True, "has_kernel": False, **options})


def read_only(A: np.ndarray) -> np.ndarray:
    A = A.copy()
    A.flags.writeable = False
    return A


NAN_ROW = ARMS.copy()
NAN_ROW[7, 1] = np.nan
NAN_TABLE = TABLE.copy()
NAN_TABLE.loc[4, "dose"] = np.nan
NO_WORD = TABLE.copy()
NO_WORD.loc[4, "solvent"] = None
TWICE = TABLE.copy()
TWICE.columns = ["dose", "dose", "solvent", "dry"]

#: Pools that are refused, with a part of the message.
BAD_POOLS: dict[str, tuple[Any, str]] = {
    "nan": (NAN_ROW, "row 7"),
    "inf": (np.where(np.isnan(NAN_ROW), np.inf, NAN_ROW), "row 7"),
    "inf in a frame": (TABLE.assign(dose=np.inf), "finite values, got inf in column 'dose', row 0"),
    "nan in a frame": (NAN_TABLE, "row 4"),
    "missing category": (NO_WORD, "'solvent', row 4"),
    "nullable integer": (TABLE.assign(steps=pd.array([None, *range(59)], dtype="Int64")), "'steps', row 0"),
    "a series": (TABLE["solvent"], "Series; pass series.to_frame"),
    "columns of one name": (TWICE, "distinct names"),
    "lists in a column": (TABLE.assign(solvent=[[1]] * 60), r"numbers or text in column 'solvent', got \[1\]"),
    "empty array": (ARMS[:0], "at least one arm"),
    "empty frame": (TABLE.iloc[:0], "at least one arm"),
    "empty list": ([], "pool"),
    "no columns": (np.zeros((5, 0)), "at least one column"),
    "frame without columns": (pd.DataFrame(index=range(5)), "at least one column"),
    "one dimension": (ARMS[:, 0], "shape"),
    "a number": (np.array(1.0), "shape"),
    "three dimensions": (ARMS[None], "shape"),
    "complex": (ARMS.astype(complex), "real numbers"),
    "ragged": ([[1.0, 2.0], [3.0]], "pool"),
    "words without a kernel": (WORDS, "kernel"),
    "numbers without a kernel": ([20, 40.5, 60], r"since these are numbers, \[\[v\] for v in numbers\]"),
    "range that overflows": (np.array([[-1e308], [1e308]]), "overflows"),
}

#: What cannot replace `TABLE`.
BAD_REPLACEMENTS: dict[str, Any] = {
    "nan": NAN_TABLE,
    "missing category": NO_WORD,
    "empty": TABLE.iloc[:0],
    "fewer columns": TABLE[["dose", "steps"]],
    "other names": TABLE.rename(columns={"dose": "Dose"}),
    "numbers now words": TABLE.assign(dose="much"),
    "words now numbers": TABLE.assign(solvent=1.0),
    "array": ARMS,
    "list of words": WORDS,
    "none": None,
}
