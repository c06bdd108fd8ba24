"""A device that is none: tensors on it lie in CPU memory, but refuse what tensors on a GPU refuse.

Operations on tensors of two devices, NumPy views of tensors that are not in CPU memory, and indices on the device for a
tensor of the CPU raise errors, so that a machine without a GPU shows where a path would break on one. It is registered
as torch's device for other packages, under the name "far", for the rest of the process.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils import backend_registration
from torch.utils._pytree import tree_leaves, tree_map

__all__ = ["FAR", "is_possible", "register"]

FAR = "far"

_ATEN = torch.ops.aten
#: Indices may lie in CPU memory; copies go from one device to another.
_TAKES_NEAR_INDICES = {
    _ATEN.index.Tensor,
    _ATEN.index_put.default,
    _ATEN.index_put_.default,
    _ATEN._index_put_impl_.default,
}
_COPIES = {_ATEN._to_copy.default, _ATEN.copy_.default}


class FarTensor(Tensor):
    """A tensor of the device, with the tensor in CPU memory that has its numbers."""

    near: Tensor

    @staticmethod
    def __new__(cls, near: Tensor) -> "FarTensor":
        out = Tensor._make_wrapper_subclass(
            cls,
            near.size(),
            strides=near.stride(),
            storage_offset=near.storage_offset(),
            dtype=near.dtype,
            device=torch.device(FAR, 0),
        )
        out.near = near
        return out

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"FarTensor({self.near})"

    def tolist(self) -> Any:
        """The numbers: on a GPU a list is copied too."""
        return self.near.tolist()

    @classmethod
    def __torch_dispatch__(
        cls,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """The operation in CPU memory, with its result on the device."""
        kwargs = dict(kwargs or {})
        _check(func, args, kwargs)
        if func is _ATEN._local_scalar_dense.default:
            return _near(args[0]).item()
        device = kwargs.get("device")
        stays = isinstance(args[0], FarTensor) if func is _ATEN.copy_.default else device is None or _is_far(device)
        if device is not None:
            kwargs["device"] = torch.device("cpu")
        out = func(*tree_map(_near, args), **tree_map(_near, kwargs))
        if func._schema.name.endswith("_"):  # in place
            return args[0]
        return tree_map(lambda one: FarTensor(one) if isinstance(one, Tensor) else one, out) if stays else out


def _near(value: Any) -> Any:
    return value.near if isinstance(value, FarTensor) else value


def _is_far(device: Any) -> bool:
    return torch.device(device).type == FAR


def _check(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Refuse tensors on two devices; numbers, tensors without dimensions, may lie anywhere."""
    tensors = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor) and one.dim()]
    if all(isinstance(one, FarTensor) for one in tensors) or func in _COPIES:
        return
    if func not in _TAKES_NEAR_INDICES or not isinstance(args[0], FarTensor):
        raise RuntimeError(f"{func}: expected all tensors on one device, got some on {FAR} and some on the CPU.")


def is_possible() -> bool:
    """Whether this version of torch can have a device that is written in Python."""
    return hasattr(backend_registration, "_setup_privateuseone_for_python_backend")


@cache
def register() -> torch.library.Library:
    """Make the device known, once a process; the result has to be kept."""
    backend_registration._setup_privateuseone_for_python_backend(FAR)
    library = torch.library.Library("aten", "IMPL")
    implementations: dict[str, Callable[..., Tensor]] = {
        "empty.memory_format": lambda size, dtype=None, **_: FarTensor(torch.empty(size, dtype=dtype)),
        "empty_strided": lambda size, stride, dtype=None, **_: FarTensor(
            torch.empty_strided(size, stride, dtype=dtype)
        ),
        "_copy_from": _copied,
    }
    for name, function in implementations.items():
        library.impl(name, function, "PrivateUse1")
    return library


def _copied(source: Tensor, target: Tensor, non_blocking: bool = False) -> Tensor:
    _near(target).copy_(_near(source))
    return target
