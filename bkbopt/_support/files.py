"""State files: zip archives in NumPy's npz layout, written atomically and read without pickle.

Members of the archive, all uncompressed:

| member | holds |
| --- | --- |
| `state.json` | the header (`format`, `kind`, `format_version`, `bkbopt_version`), and the tree under `state` |
| `array_<i>.npy` | the i-th array or tensor of the tree, in NumPy's own format |

A value without a JSON type is stored as an object with one key that begins with `$`:

| object | stands for |
| --- | --- |
| `{"$array": i}`, `{"$tensor": i}` | the member `array_<i>.npy`, as a NumPy array or as a torch tensor on the CPU |
| `{"$tuple": [...]}` | a tuple |
| `{"$dict": [[key, value], ...]}` | a dict with a key that itself begins with `$` |
| `{"$float": hex}` | NaN or an infinity, as the eight bytes of the big-endian double |
| `{"$int": hex}` | an integer beyond 64 bits |
| `{"$datetime": iso}` | a `datetime.datetime` |

All other floats are plain JSON numbers: Python writes the shortest decimal that is read back as the same double. Equal
states give equal files, byte for byte.
"""

import io
import json
import math
import os
import struct
import tokenize
import zipfile
from collections.abc import Mapping
from datetime import datetime
from typing import IO, Any, TypeVar

import numpy as np
import torch

from bkbopt import __version__
from bkbopt._support.replacing import as_path, replace_atomically
from bkbopt.errors import ArgumentError, ArgumentTypeError, StateFileError

__all__ = ["load", "save"]

FORMAT_VERSION = 1
"""Version of the layout that is written; files of this version and older ones are read."""

_FORMAT_NAME = "bkbopt"
_STATE_MEMBER = "state.json"
_MAX_DEPTH = 64
_PLAIN_INT_BITS = 64
# Dtypes that NumPy stores without pickle and without a record layout: booleans, numbers, strings and times.
_ARRAY_KINDS = "biufcSUmM"
_WHAT_CAN_BE_SAVED = (
    "None, a bool, int, float, str, datetime, list, tuple, dict with string keys, NumPy array or torch tensor"
)
# Exceptions that zipfile, json, numpy.lib.format and the decoder below raise for damaged bytes. OSError is not among
# them: the file is in memory before it is parsed, so an OSError is a genuine I/O error.
_DAMAGE = (
    zipfile.BadZipFile,
    EOFError,
    KeyError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    ValueError,
    struct.error,
    tokenize.TokenError,
)

_T = TypeVar("_T")
_Path = tuple[str | int, ...]


def save(path: str | os.PathLike[str], state: Mapping[str, object], *, kind: str) -> None:
    """Write `state` to the file `path`, atomically: after a crash the file is the old one or the new one.

    `load` returns NumPy scalars as Python scalars, other mappings as `dict`, tensors on the CPU and without gradient,
    and time zones as fixed offsets; everything else is returned unchanged, floats bit for bit. A symbolic link is
    followed, not replaced. A new file gets the permissions of the umask; an existing file keeps its permissions, and
    its owner where the system allows that.

    Args:
        path: The file to write; its folder must exist.
        state: A tree of dicts (string keys), lists and tuples over None, bool, int, float, str, datetime, NumPy arrays
            of plain dtypes and dense torch tensors.
        kind: Kind of the state, such as `"optimizer"`; `load` has to be given the same.

    Raises:
        ArgumentError: A value cannot be saved (an object or record array, a key that is no string, a tree that contains
            itself), or `path` is not a regular file. The message names the place in the tree; nothing was written.
        ArgumentTypeError: A value has a type that cannot be saved, or `path` is no path; nothing was written.
        OSError: The file system refused; the old file is unchanged.
    """
    if not isinstance(state, Mapping):
        raise ArgumentTypeError(f"state: expected a dict, got {type(state).__name__}; wrap the value in a dict.")
    if not isinstance(kind, str):
        raise ArgumentTypeError(f"kind: expected a str, got {type(kind).__name__}; pass the name of what is saved.")
    arrays: list[np.ndarray[Any, Any]] = []
    document = {
        "format": _FORMAT_NAME,
        "kind": kind,
        "format_version": FORMAT_VERSION,
        "bkbopt_version": __version__,
        "state": _encode(state, (), arrays),
    }
    text = json.dumps(document, allow_nan=False, separators=(",", ":")).encode()
    replace_atomically(path, lambda file: _write_archive(file, text, arrays))


def load(path: str | os.PathLike[str], *, kind: str) -> dict[str, object]:
    """Read the state that `save` wrote to `path`; memory use is at most a small multiple of the file's size.

    Args:
        path: The file to read.
        kind: The `kind` that was given to `save`.

    Raises:
        StateFileError: The file is damaged, was not written by bkbopt, holds another kind of state, or was written by a
            newer version.
        ArgumentTypeError: `path` is no path.
        FileNotFoundError: There is no such file (`open` may raise other `OSError`s too).
    """
    name = as_path(path)
    with open(name, "rb") as file:
        content = file.read()
    if content.startswith(b"SQLite format 3"):
        raise StateFileError(
            f"{name}: expected a saved state of kind {kind!r}, got an SQLite file; load a log of trials with "
            "bkbopt.Optimizer."
        )
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if _STATE_MEMBER not in archive.namelist():
                raise _foreign(name)
            _check_sizes(archive, len(content))
            document = json.loads(archive.read(_STATE_MEMBER))
            _check_header(name, document, kind)
            state = _decode(document["state"], _ArrayReader(archive))
            return _expect(dict, state)
    except StateFileError:
        raise
    except _DAMAGE as error:
        raise StateFileError(
            f"{name}: expected a complete state file of bkbopt, but it is corrupt or cut short ({error}); "
            "restore it from a copy or start anew."
        ) from error


# --- the tree ---------------------------------------------------------------------------------------------------------


def _encode(value: object, where: _Path, arrays: list[np.ndarray[Any, Any]]) -> object:
    """`value` as JSON data; arrays are appended to `arrays`, and the tree holds their indices there."""
    if isinstance(value, np.bool_ | np.integer | np.float16 | np.float32 | np.float64 | np.str_):
        value = value.item()
    if value is None or type(value) is bool:
        return value
    if type(value) is int:
        return value if value.bit_length() <= _PLAIN_INT_BITS else {"$int": hex(value)}
    if type(value) is float:
        return value if math.isfinite(value) else {"$float": struct.pack(">d", value).hex()}
    if type(value) is str:
        return _checked_text(value, where)
    if type(value) is datetime:
        return {"$datetime": value.isoformat()}
    if isinstance(value, torch.Tensor):
        arrays.append(_checked_array(_array_of_tensor(value, where), where))
        return {"$tensor": len(arrays) - 1}
    if type(value) is np.ndarray:
        arrays.append(_checked_array(value, where))
        return {"$array": len(arrays) - 1}
    return _encode_container(value, where, arrays)


def _encode_container(value: object, where: _Path, arrays: list[np.ndarray[Any, Any]]) -> object:
    if len(where) > _MAX_DEPTH:
        raise ArgumentError(
            f"{_place(where[:3])}...: expected at most {_MAX_DEPTH} levels of nesting, got more; "
            "flatten the value, or look for a container that holds itself."
        )
    if isinstance(value, Mapping):
        items = {_checked_key(key, where): _encode(item, (*where, key), arrays) for key, item in value.items()}
        return {"$dict": list(items.items())} if any(key.startswith("$") for key in items) else items
    if type(value) is list or type(value) is tuple:
        parts = [_encode(item, (*where, i), arrays) for i, item in enumerate(value)]
        return parts if type(value) is list else {"$tuple": parts}
    raise ArgumentTypeError(
        f"{_place(where)}: expected {_WHAT_CAN_BE_SAVED}, got {type(value).__module__}.{type(value).__qualname__}; "
        "convert it to one of these before saving."
    )


def _checked_key(key: object, where: _Path) -> str:
    if type(key) is not str:
        raise ArgumentError(
            f"{_place(where)}: expected a dict with string keys, got the key {key!r} of type {type(key).__name__}; "
            "use strings, or save a list of pairs."
        )
    return _checked_text(key, where)


def _checked_text(text: str, where: _Path) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ArgumentError(
            f"{_place(where)}: expected text that is valid Unicode, got {text!r} with a lone surrogate; replace it."
        ) from None
    return text


def _checked_array(array: np.ndarray[Any, Any], where: _Path) -> np.ndarray[Any, Any]:
    if array.dtype.kind not in _ARRAY_KINDS:
        raise ArgumentError(
            f"{_place(where)}: expected an array of numbers, booleans, fixed-width strings or times, "
            f"got dtype {array.dtype}; convert it with astype, or save it as a list."
        )
    return array


def _array_of_tensor(tensor: torch.Tensor, where: _Path) -> np.ndarray[Any, Any]:
    try:
        return tensor.numpy(force=True)
    except (TypeError, RuntimeError) as error:
        raise ArgumentError(
            f"{_place(where)}: expected a dense tensor of a dtype that NumPy has, got {tensor.dtype} with layout "
            f"{tensor.layout} on {tensor.device}; convert it first, with .to_dense() or .float() say."
        ) from error


def _place(where: _Path) -> str:
    return "state" + "".join(f"[{part!r}]" for part in where)


class _ArrayReader:
    """Reads the array members of an archive, each only once: repeated references would multiply the memory used."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._taken: set[int] = set()

    def __call__(self, index: object) -> np.ndarray[Any, Any]:
        number = _expect(int, index)
        if number in self._taken:
            raise ValueError(f"array {number} is named twice")
        self._taken.add(number)
        return _parse_array(self._archive.read(_array_member(number)))


def _decode(node: object, read_array: _ArrayReader) -> object:
    if isinstance(node, list):
        return [_decode(item, read_array) for item in node]
    if not isinstance(node, dict):
        return node
    tag = next(iter(node)) if len(node) == 1 else ""
    if tag.startswith("$"):
        return _decode_tagged(tag, node[tag], read_array)
    return {key: _decode(item, read_array) for key, item in node.items()}


def _decode_tagged(tag: str, body: object, read_array: _ArrayReader) -> object:
    match tag:
        case "$array":
            return read_array(body)
        case "$tensor":
            array = read_array(body)
            if array.dtype.kind not in "biufc":
                raise ValueError(f"a tensor of dtype {array.dtype}")
            # A copy allocated by torch has torch's memory alignment, on which the order of vectorised sums depends.
            return torch.from_numpy(array).clone()
        case "$tuple":
            return tuple(_decode(item, read_array) for item in _expect(list, body))
        case "$dict":
            pairs = [_expect(list, pair) for pair in _expect(list, body)]
            return {_expect(str, key): _decode(item, read_array) for key, item in pairs}
        case "$float":
            return struct.unpack(">d", bytes.fromhex(_expect(str, body)))[0]
        case "$int":
            return int(_expect(str, body), 16)
        case "$datetime":
            return datetime.fromisoformat(_expect(str, body))
    raise ValueError(f"the tag {tag!r} is unknown")


def _expect(kind: type[_T], value: object) -> _T:
    if not isinstance(value, kind):
        raise ValueError(f"a {type(value).__name__} where a {kind.__name__} belongs")
    return value


def _parse_array(content: bytes) -> np.ndarray[Any, Any]:
    """The array in the bytes of an npy member; the size in its header is checked first, since NumPy allocates by it."""
    stream = io.BytesIO(content)
    major = np.lib.format.read_magic(stream)[0]
    read_header = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(stream)
    if math.prod(shape) * dtype.itemsize != len(content) - stream.tell() or dtype.kind not in _ARRAY_KINDS:
        raise ValueError(f"an array of shape {shape} and dtype {dtype} does not fit its {len(content)} bytes")
    stream.seek(0)
    array: np.ndarray[Any, Any] = np.lib.format.read_array(stream, allow_pickle=False)
    return array


# --- the header -------------------------------------------------------------------------------------------------------


def _check_sizes(archive: zipfile.ZipFile, file_size: int) -> None:
    """Refuse archives that could expand beyond the file's size; members are uncompressed in all formats."""
    members = archive.infolist()
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise ValueError("a member is compressed")
    if sum(member.file_size for member in members) > file_size:
        raise ValueError("the members claim more bytes than the file has")


def _check_header(name: str, document: object, kind: str) -> None:
    if not isinstance(document, dict) or document.get("format") != _FORMAT_NAME:
        raise _foreign(name)
    version = _expect(int, document["format_version"])
    if version > FORMAT_VERSION:
        raise StateFileError(
            f"{name}: expected a file of format {FORMAT_VERSION} or older (bkbopt {__version__}), got format "
            f"{version} (bkbopt {document.get('bkbopt_version')}); upgrade bkbopt to read it."
        )
    if document["kind"] != kind:
        raise StateFileError(
            f"{name}: expected a saved state of kind {kind!r}, got one of kind {document['kind']!r}; "
            "load it with the class that saved it."
        )


def _foreign(name: str) -> StateFileError:
    return StateFileError(
        f"{name}: expected a state file of bkbopt, but it was not written by bkbopt; check that the path is right."
    )


# --- the file ---------------------------------------------------------------------------------------------------------


def _array_member(index: int) -> str:
    return f"array_{index}.npy"


def _write_archive(file: IO[bytes], text: bytes, arrays: list[np.ndarray[Any, Any]]) -> None:
    # A ZipInfo made directly has a constant date, so that equal states give equal files.
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(_STATE_MEMBER), text)
        for i, array in enumerate(arrays):
            with archive.open(zipfile.ZipInfo(_array_member(i)), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
