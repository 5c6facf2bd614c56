"""Objects as PyTorch saves them and loads them, with what pickle alone would lose or change.

What a program makes anew is not in the bytes: they have a key in its place. What cannot come back
as it is raises. Equal objects have equal bytes, in all processes.
"""

import copyreg
import io
import pickle
from collections.abc import Mapping
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import nn, serialization
from torch.nn.utils.parametrize import is_parametrized
from torch.optim import Optimizer

from . import ranks

_new = copyreg.__newobj__  # type: ignore[attr-defined]  # its stub leaves it out
ATOMS = {type(None), bool, int, float}
PLAIN = (*ATOMS, complex, str, bytes, tuple, frozenset)


def _made_anew(key: str | int) -> Any:
    raise NotImplementedError("`loads` puts its own in place of this")


def _with_gradient(rebuild: Any, args: tuple, grad: torch.Tensor) -> torch.Tensor:
    value = rebuild(*args)
    value.grad = grad
    return value


def _reduced(part: Any) -> Any:
    """Return what pickle shall make of an object; NotImplemented: what it does by itself."""
    kind = type(part)
    if kind in (set, frozenset):
        return kind, (sorted(part, key=repr),)
    if kind is np.ndarray and not part.dtype.hasobject:
        if isinstance(owner := part.base, np.ndarray) and part.size:
            start = part.ctypes.data - owner.ctypes.data
            place = part.shape, part.dtype, owner, start, part.strides
            np.ndarray(*place)  # raises if it cannot be read
            return kind, place
        order = "F" if part.flags.fnc else "C"
        return kind, (part.shape, part.dtype, bytearray(part.tobytes(order)), 0, None, order)
    if kind in (torch.Tensor, nn.Parameter):
        hooks = (part._backward_hooks or {}) | (part._post_accumulate_grad_hooks or {})
        if not part.is_leaf or any(h.__module__ != ranks.__name__ for h in hooks.values()):
            raise pickle.PicklingError("a tensor with a graph or a hook")
        if part.grad is not None:
            return _with_gradient, (*part.__reduce_ex__(2)[:2], part.grad)
    if isinstance(part, Optimizer):
        part.__setstate__({})  # adds the defaults that reading adds
        # Its hooks are kept, too; a schedule has wrapped `step`.
        return _new, (kind,), {n: p for n, p in vars(part).items() if n != "step"}
    if isinstance(part, nn.Module):
        if part._compiled_call_impl:
            raise pickle.PicklingError("a compiled module")
        if is_parametrized(part):
            return _new, (kind,), vars(part)
    return NotImplemented


def dumps(value: object, external: Mapping) -> tuple[bytes, list]:
    """Return the bytes of a value, and the objects in it, in an order that equal ones share.

    `external` is what the program that reads them makes anew, by key.
    """
    keys = {id(part): key for key, part in external.items() if type(part) not in PLAIN}
    values, memory, visited = {}, {}, []

    class Pickler(pickle._Pickler):
        def save(self, part: Any, save_persistent_id: bool = True) -> None:
            if (kind := type(part)) in ATOMS:
                return self.dispatch[kind](self, part)  # type: ignore[arg-type]
            if kind is str or isinstance(part, np.dtype):  # equal ones may be one or two
                part = values.setdefault((type(part), part), part)
            super().save(part, save_persistent_id)  # type: ignore[misc]  # its stub has no methods

        def reducer_override(self, part: Any) -> Any:
            if id(part) in keys:
                return _made_anew, (keys[id(part)],)
            if isinstance(part, nn.Module) and hasattr(part, "dynamo_ctx"):
                context = external[f"compiled {type(part._orig_mod).__qualname__}"]
                return type(part), (part._orig_mod, context)
            is_tensor = isinstance(part, torch.Tensor)
            if is_tensor or (isinstance(part, np.ndarray) and part.size):
                address = part.untyped_storage().data_ptr() if is_tensor else part.ctypes.data
                if memory.setdefault(address, is_tensor) != is_tensor:
                    raise pickle.PicklingError("a tensor and an array share memory")
            if not isinstance(part, (*PLAIN, FunctionType)):
                visited.append(part)
            return _reduced(part)

    content, writer = io.BytesIO(), SimpleNamespace(__name__="", Pickler=Pickler)
    torch.save(value, content, writer, pickle_protocol=5)
    return content.getvalue(), visited


def loads(content: bytes, external: Mapping, before: str, device: str) -> dict | tuple:
    """Return the value of bytes; tensors of a device of the kind `before` come to `device`."""

    class Unpickler(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            made_anew = (module, name) == (__name__, _made_anew.__name__)
            return external.__getitem__ if made_anew else super().find_class(module, name)

    def place(storage: torch.UntypedStorage, tag: str) -> torch.UntypedStorage:
        there = device if tag.startswith(before) else tag
        return serialization.default_restore_location(storage, there)

    reader = SimpleNamespace(__name__="", Unpickler=Unpickler)
    return torch.load(io.BytesIO(content), place, reader, weights_only=False)
