"""Kinds of damage to a state file: bits, ends and members of the archive, leaves of the tree, arrays."""

import contextlib
import copy
import io
import json
import warnings
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

__all__ = ["DAMAGES", "damaged"]

Rng = np.random.Generator
Arrays = dict[str, np.ndarray]
#: A document, its arrays by member, and the same of another file: changed in place.
Edit = Callable[[Any, Arrays, Any, Arrays, Rng], None]

WRONG: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 7, 10**6, 10**9, 10**12, 2**62, 2**63, 2**64 - 1, -(2**63)),
    *(0.0, -0.0, 0.5, 1.0, -1.0, 1e-300, 5e-324, 1e300, 1.5, 1e10, {"$float": "7ff8000000000000"}),
    *({"$float": "7ff0000000000000"}, {"$int": hex(2**200)}, {"$int": hex(2**40000)}, "", "squared", "x" * 50, "π"),
    *([], [[]], {}, [1, 2], {"a": 1}, {"$tuple": []}, {"$array": 0}, {"$tensor": 0}, {"$array": 999}, {"$new": 1}),
    *({"$datetime": "2026-01-01"}, {"$dict": [["$a", 1]]}, {"$dict": 3}, ["a", 1], {"form": None}),
)
NUMBERS = (np.nan, np.inf, -np.inf, 0.0, -1.0, 1e300, -1e300, 1e-300, 1e20, 2.0)
WHOLE = (-1, 10**12, 2**62, -(2**63), 0, 3)
DTYPES = ("f4", ">f8", "i8", "f2", "c16", "?", "U3", "i4", "u8", "M8[s]", "f8")


# -- the tree ---------------------------------------------------------------------------------------------------------


def _places(node: Any, inside: bool = True) -> Iterator[tuple[Any, Any]]:
    """All `(container, key)` of a document, but for what is inside of tags."""
    if isinstance(node, dict | list):
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            yield node, key
            child = node[key]
            if not (isinstance(child, dict) and any(name in child for name in ("$array", "$tensor"))):
                yield from _places(child)


def _place(document: Any, rng: Rng) -> tuple[Any, Any]:
    places = list(_places(document["state"]))
    return places[int(rng.integers(len(places)))]


def _pick(values: Any, rng: Rng) -> Any:
    return values[int(rng.integers(len(values)))]


def leaf(document: Any, _: Arrays, __: Any, ___: Arrays, rng: Rng) -> None:
    """Another value in the place of one."""
    container, key = _place(document, rng)
    container[key] = copy.deepcopy(_pick(WRONG, rng))


def number(document: Any, _: Arrays, __: Any, ___: Arrays, rng: Rng) -> None:
    """A number that is a little or far off."""
    places = [(c, k) for c, k in _places(document["state"]) if type(c[k]) in (int, float)]
    container, key = _pick(places, rng)
    value = container[key]
    far: tuple[Any, ...] = (value + 1, value - 1, 2 * value, -value, 10 * value)
    huge = (10**6, 10**9, 10**12, 2**53, 2**62) if type(value) is int else (1e-200, 1e200, 1e-12, 1e12, 1e308)
    container[key] = _pick((*far, *huge), rng)


def keys(document: Any, _: Arrays, __: Any, ___: Arrays, rng: Rng) -> None:
    """A key that is missing, new or renamed."""
    dicts = [c[k] for c, k in _places(document["state"]) if isinstance(c[k], dict) and c[k]]
    chosen = _pick([*dicts, document["state"], document], rng)
    key = _pick(list(chosen), rng)
    what = int(rng.integers(3))
    if what < 2:
        value = chosen.pop(key)
    if what > 0:
        chosen[f"{key}_"] = value if what == 1 else 0


def graft(document: Any, arrays: Arrays, other: Any, others: Arrays, rng: Rng) -> None:
    """A part of another file, with its arrays, in the place of one; of the same name where there is one."""
    container, key = _place(document, rng)
    theirs = [(c, k) for c, k in _places(other["state"]) if k == key] or list(_places(other["state"]))
    container[key] = _moved(_pick([c[k] for c, k in theirs], rng), arrays, others)


def _moved(node: Any, arrays: Arrays, others: Arrays) -> Any:
    """A copy of a part of the other tree, whose arrays are added to those of this one."""
    if isinstance(node, list):
        return [_moved(item, arrays, others) for item in node]
    if not isinstance(node, dict):
        return node
    for tag in ("$array", "$tensor"):
        member = f"array_{node.get(tag)}.npy"
        if member in others:
            arrays[f"array_{len(arrays)}.npy"] = others[member]
            return {tag: len(arrays) - 1}
    return {key: _moved(item, arrays, others) for key, item in node.items()}


# -- arrays -----------------------------------------------------------------------------------------------------------


def entries(_: Any, arrays: Arrays, __: Any, ___: Arrays, rng: Rng) -> None:
    """A few entries, or all, have another value."""
    name = _pick(list(arrays), rng)
    array = arrays[name] = arrays[name].copy()
    if not array.size or array.dtype.kind not in "fi":
        return
    value = _pick(NUMBERS if array.dtype.kind == "f" else WHOLE, rng)
    places = slice(None) if rng.random() < 0.3 else rng.integers(array.size, size=int(rng.integers(1, 4)))
    array.reshape(-1)[places] = np.asarray(value).astype(array.dtype)


def scaled(_: Any, arrays: Arrays, __: Any, ___: Arrays, rng: Rng) -> None:
    """An array in other units, or other numbers of the same size."""
    name = _pick(list(arrays), rng)
    if arrays[name].dtype.kind != "f":
        return
    with np.errstate(all="ignore"):
        noise = rng.standard_normal(arrays[name].shape) if rng.random() < 0.5 else 1.0
        arrays[name] = arrays[name] * _pick((1e-200, 1e-8, -1.0, 3.0, 1e8, 1e100, 1e154, 1e200, 1e300), rng) * noise


def dtype(_: Any, arrays: Arrays, __: Any, ___: Arrays, rng: Rng) -> None:
    """The same numbers in another type."""
    name = _pick(list(arrays), rng)
    with contextlib.suppress(ValueError, TypeError), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        arrays[name] = arrays[name].astype(_pick(DTYPES, rng))


def shape(_: Any, arrays: Arrays, __: Any, ___: Arrays, rng: Rng) -> None:
    """An array of another shape, or in the other order."""
    name = _pick(list(arrays), rng)
    array = arrays[name]
    changed = [array[None], array.reshape(-1), array[..., None], array.T, array[:0], array[:-1], array[..., :-1]]
    changed += [np.concatenate([array, array]), array[..., :0], np.asfortranarray(array), np.resize(array, (2000, 3))]
    changed += [np.resize(array, 50_000), np.resize(array, (200, 200)), np.zeros(()), np.zeros((0, 10**12))]
    arrays[name] = _pick(changed, rng)


def size(_: Any, arrays: Arrays, __: Any, ___: Arrays, rng: Rng) -> None:
    """All arrays agree on another length: where there was one size, there is another."""
    lengths = sorted({n for array in arrays.values() for n in array.shape if 0 < n < 10_000}) or [1]
    old = _pick(lengths, rng)
    new = int(_pick((0, 1, max(old - 1, 0), old + 1, 2 * old, 400), rng))
    for name, array in arrays.items():
        for axis, n in enumerate(array.shape):
            if n == old:
                arrays[name] = np.take(arrays[name], np.arange(new) % old, axis=axis)


def swapped(_: Any, arrays: Arrays, __: Any, ___: Arrays, rng: Rng) -> None:
    """Two arrays in each other's place."""
    a, b = (_pick(list(arrays), rng) for _ in range(2))
    arrays[a], arrays[b] = arrays[b], arrays[a]


def both(document: Any, arrays: Arrays, other: Any, others: Arrays, rng: Rng) -> None:
    """The tree of one file with the arrays of another."""
    del document, other, rng
    arrays.update(others)


EDITS: dict[str, Edit] = {
    edit.__name__: edit for edit in (leaf, number, keys, graft, entries, scaled, dtype, shape, size, swapped, both)
}


# -- the file ---------------------------------------------------------------------------------------------------------


def bits(content: bytes, _: bytes, rng: Rng) -> bytes:
    """One to eight bits are flipped."""
    out = bytearray(content)
    for _i in range(int(rng.integers(1, 9))):
        out[int(rng.integers(len(out)))] ^= 1 << int(rng.integers(8))
    return bytes(out)


def cut(content: bytes, _: bytes, rng: Rng) -> bytes:
    """The end, or the beginning, is missing."""
    n = int(rng.integers(len(content)))
    return content[:n] if rng.random() < 0.8 else content[n:]


def splice(content: bytes, other: bytes, rng: Rng) -> bytes:
    """The beginning of one file and the end of another."""
    return content[: int(rng.integers(len(content)))] + other[int(rng.integers(len(other))) :]


def header(content: bytes, _: bytes, rng: Rng) -> bytes:
    """A member whose header claims what it does not hold."""
    names, members = _members(content)
    arrays = [name for name in names if name.endswith(".npy")]
    if not arrays:
        return cut(content, b"", rng)
    name = _pick(arrays, rng)
    claims = ((b"'shape': (", b"'shape': (9999999999, "), (b"'<f8'", b"'|O8'"), (b"'<f8'", b"'<f4'"), (b"{", b"["))
    old, new = _pick(claims, rng)
    members[name] = members[name].replace(old, new, 1)
    return _archive(members)


RAW: dict[str, Callable[[bytes, bytes, Rng], bytes]] = {f.__name__: f for f in (bits, cut, splice, header)}
DAMAGES = (*RAW, *EDITS, "two")


def damaged(content: bytes, other: bytes, damage: str, rng: Rng) -> bytes:
    """The file `content` after a damage of that name; "two" are two edits."""
    if damage in RAW:
        return RAW[damage](content, other, rng)
    document, arrays = _parsed(content)
    theirs, others = _parsed(other)
    for name in [damage] if damage != "two" else rng.choice(list(EDITS), 2):
        whole = isinstance(document.get("state"), dict)
        if whole and (arrays or name in ("leaf", "number", "keys", "graft")):
            EDITS[str(name)](document, arrays, theirs, others, rng)
    members = {"state.json": json.dumps(document).encode()}
    for name, array in arrays.items():
        stream = io.BytesIO()
        np.save(stream, array)
        members[name] = stream.getvalue()
    return _archive(members)


def _members(content: bytes) -> tuple[list[str], dict[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.namelist(), {name: archive.read(name) for name in archive.namelist()}


def _parsed(content: bytes) -> tuple[Any, Arrays]:
    _, members = _members(content)
    document = json.loads(members.pop("state.json"))
    return document, {name: np.load(io.BytesIO(data)) for name, data in members.items()}


def _archive(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return stream.getvalue()
