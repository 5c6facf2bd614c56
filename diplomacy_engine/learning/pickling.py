"""Objects as PyTorch saves them and loads them, weights-only, so that no file brings code.

A file has names of classes, and `named` says which it may name: those of the present script and
packages. What `REBUILT` of a class names, and code without such a name, is `anew` anew by the
program that reads; of it a file has a key. Equal objects have equal bytes.
"""

import copyreg
import functools
import io
import pickle
import pkgutil
import random
import types
from collections import Counter, OrderedDict
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.lib.format import descr_to_dtype, dtype_to_descr
from torch import nn, serialization
from torch._weights_only_unpickler import _get_allowed_globals
from torch.nn.utils.parametrize import is_parametrized
from torch.optim import Optimizer

from . import ranks

PLAIN = (type(None), bool, int, float, complex, str, bytes, tuple, frozenset)
CODE = (type, types.FunctionType, types.BuiltinFunctionType, types.MethodWrapperType)
CODE += (types.ModuleType, functools._lru_cache_wrapper)  # which no file holds
CODE += (type(np.random.SeedSequence(0).__reduce__()[0]),)  # a function of Cython


def _made(key: str | int, cells: Sequence) -> Any:
    raise NotImplementedError("`loads` puts its own in place of this")


def _filled(kind: type, args: tuple, bare: bool, items: list, pairs: list) -> Any:
    value = kind.__new__(kind, *args) if bare else kind(*args)
    for item in items:
        value.append(item)
    for key, part in pairs:
        value[key] = part
    return value


def _array(memory: torch.Tensor, dtype: Any, shape: tuple, order: str) -> np.ndarray:
    array = np.empty(shape, descr_to_dtype(dtype), order)
    array.reshape(-1, order="A").view(np.uint8)[:] = memory.cpu().numpy()
    return array


def _view(owner: np.ndarray, dtype: Any, shape: tuple, *place: Any) -> np.ndarray:
    memory = owner.reshape(-1, order="A").view(np.uint8)
    return np.ndarray(shape, descr_to_dtype(dtype), memory, *place)  # offset, strides


def _tensor(rebuild: Any, args: tuple, grad: torch.Tensor | None, hooks: dict) -> torch.Tensor:
    value = rebuild(*args)
    value.grad, value._backward_hooks = grad, OrderedDict(hooks) or None
    return value


PACKAGES = ("diplomacy_engine", "diplomacy_learners", "ppo_selfplay_diplomacy")
PACKAGES += ("torch.nn", "torch.optim", "numpy.random", "collections", "datetime", "pathlib")
# Modules whose functions may be called, too.
FUNCTIONS = ("torch.nn.functional", "numpy.random._pickle", "numpy.random.bit_generator")
OTHERS = (list, dict, tuple, frozenset, bytes, range, slice, np.ndarray, descr_to_dtype)
OTHERS += (np.float32(0).__reduce__()[0], np.zeros(0).__reduce__()[0], torch.Generator)
OTHERS += (random.Random, types.SimpleNamespace, types.MethodType, functools.partial)
OTHERS += (_made, _filled, _array, _view, _tensor)


def name_of(code: Any, script: str) -> str:
    """Return the name of a class or function in files; that of the script begins with a dot."""
    module = getattr(code, "__module__", None) or "?"
    module = "" if module in (script, "__main__", "__mp_main__") else module
    return f"{module}.{getattr(code, '__qualname__', code.__name__)}"


def named(name: str, script: str) -> Any:
    """Return the class or function that a file may name so; None if there is none."""
    others = {name_of(code, script): code for code in OTHERS}
    if name in others or not name.startswith((".", *(f"{package}." for package in PACKAGES))):
        return others.get(name)
    try:
        code = pkgutil.resolve_name(script + name if name[0] == "." else name)
    except (AttributeError, ImportError, ValueError):
        return None
    module = getattr(code, "__module__", None)
    allowed = isinstance(code, type) or (callable(code) and module in (script, *FUNCTIONS))
    return code if allowed and name_of(code, script) == name else None


def _reduced(part: Any) -> Any:
    """Return what pickle makes of an object: a function, its arguments, the state and contents."""
    kind, new = type(part), copyreg.__newobj__
    if kind in (set, frozenset):
        return kind, (sorted(part, key=repr),)
    if kind is types.MethodType:
        return kind, (part.__func__, part.__self__)
    if isinstance(part, np.dtype):
        return descr_to_dtype, (dtype_to_descr(part),)
    if kind is np.ndarray and not part.dtype.hasobject:
        owner = part
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        if owner is not part and part.size and owner.flags.forc and not owner.dtype.hasobject:
            start = part.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
            return _view, (owner, dtype_to_descr(part.dtype), part.shape, start, part.strides)
        memory = part.reshape(-1, order="A").view(np.uint8)
        memory = torch.from_numpy(memory if memory.flags.writeable else memory.copy())
        order = "F" if part.flags.fnc else "C"
        return _array, (memory, dtype_to_descr(part.dtype), part.shape, order)
    if kind in (torch.Tensor, nn.Parameter) and part.is_leaf:
        hooks = (part._backward_hooks or {}).items()
        hooks = {n: hook for n, hook in hooks if hook.__module__ != ranks.__name__}
        if part.grad is not None or hooks:
            return _tensor, (*part.__reduce_ex__(2)[:2], part.grad, hooks)
    if isinstance(part, nn.Module) and is_parametrized(part):
        return new, (kind,), vars(part)
    if isinstance(part, Optimizer):
        part.__setstate__({})  # adds the defaults that reading adds
        # Its hooks are kept, too; a schedule has wrapped `step`.
        return new, (kind,), {name: value for name, value in vars(part).items() if name != "step"}
    return NotImplemented if kind in pickle._Pickler.dispatch else part.__reduce_ex__(2)


def dumps(
    value: Any, script: str, anew: MutableMapping[Any, Any], new: bool = False
) -> tuple[bytes, list]:
    """Return the bytes of a value, and the objects in it, in an order that equal ones share.

    `anew` is what the program makes anew, by key; that of a `new` value is added. What pickle
    raises says why a value cannot be kept.
    """
    keys = {id(part): key for key, part in anew.items() if type(part) not in PLAIN}
    texts, visited = {}, []

    def add(part: Any, name: str) -> None:
        if new and id(part) not in keys and type(part) not in PLAIN:
            number = sum(str(key).startswith(f"{name} ") for key in anew)
            keys[id(part)] = key = f"{name} {number}"
            anew[key] = part

    class Pickler(pickle._Pickler):
        def save(self, part: Any, save_persistent_id: bool = True) -> None:
            # Equal texts are one, whatever Python interns.
            part = texts.setdefault(part, part) if type(part) is str else part
            super().save(part, save_persistent_id)

        def save_global(self, code: Any, name: str | None = None) -> None:
            if not isinstance(code, CODE):  # a constant of torch
                return super().save_global(code, name)
            self.write(pickle.GLOBAL + "{0}\n{2}\n".format(*name.rpartition(".")).encode())
            self.memoize(code)

        def reducer_override(self, part: Any) -> Any:
            kind = type(part)
            if isinstance(part, CODE):
                name = name_of(part, script)
                if name in _get_allowed_globals() or named(name, script) is part:
                    return name
                add(part, name)
                if id(part) not in keys:
                    raise pickle.PicklingError(f"{name} was not there at first")
                if isinstance(part, type):
                    return keys[id(part)]
            if id(part) in keys:
                cells = (getattr(part, "__closure__", None) or ()) if isinstance(part, CODE) else ()
                return _made, (keys[id(part)], [cell.cell_contents for cell in cells])
            if kind not in PLAIN:
                visited.append(part)
            for name in getattr(kind, "REBUILT", ()):
                add(getattr(part, name), f"{kind.__qualname__}.{name}")
            if isinstance(part, nn.Module) and hasattr(part, "dynamo_ctx"):  # it is compiled
                name = f"compiled {type(part._orig_mod).__qualname__}"
                add(part.dynamo_ctx, name)
                return kind, (part._orig_mod, anew[f"{name} 0"])
            reduced = _reduced(part)
            if not isinstance(reduced, tuple):
                return reduced
            function, args, state, items, pairs, *_ = *reduced, None, None, None
            if (items is None and pairs is None) or kind in (OrderedDict, Counter):
                return reduced
            bare = function is copyreg.__newobj__
            return _filled, (kind, args[bare:], bare, list(items or ()), list(pairs or ())), state

    content = io.BytesIO()
    torch.save(value, content, type("pickle", (), {"Pickler": Pickler}))
    return content.getvalue(), visited


def loads(content: bytes, script: str, anew: Mapping[Any, Any], devices: tuple[str, str]) -> Any:
    """Return the value of bytes; `anew` is what the program has made anew.

    Tensors of the first of the `devices`, whatever its number, come to the second.
    """

    def lookup(key: str | int, contents: Sequence) -> Any:
        for cell, value in zip(getattr(anew[key], "__closure__", None) or (), contents):
            cell.cell_contents = value
        return anew[key]

    def place(storage: torch.UntypedStorage, tag: str) -> torch.UntypedStorage:
        tag = devices[1] if tag.startswith(devices[0]) else tag
        return serialization.default_restore_location(storage, tag)

    classes = {key: code for key, code in anew.items() if isinstance(code, type)}
    safe = [np.random.RandomState]  # which is named by its constructor alone
    for name in serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(content)):
        code = lookup if name == name_of(_made, script) else classes.get(name)
        code = code or named(name, script)
        if code is None:
            raise ValueError(f"it names {name}, which the script does not define")
        safe.append((code, name))
    with serialization.safe_globals(safe):
        return torch.load(io.BytesIO(content), place, weights_only=True)
