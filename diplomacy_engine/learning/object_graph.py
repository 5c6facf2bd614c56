"""What is reached from an object as plain values and tensors (`Writer`), and back (`Reader`).

A part of a node is a plain value, or `(n,)` for node n, so what is shared stays shared. Nodes name
classes and bring no code: what has no name that `named` allows is taken from an object that the
program has made anew, by its place there. All that the new object has of its kind is filled in
place, for others may hold it.
"""

import copy
import functools
import hashlib
import random
import sys
import types
import warnings
import weakref
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from enum import Enum
from pathlib import PosixPath
from typing import Any

import numpy as np
import torch
from numpy.lib.format import descr_to_dtype, dtype_to_descr
from torch import nn
from torch.optim import Optimizer
from torch.utils.hooks import RemovableHandle

from ..errors import UserError

PLAIN = (type(None), bool, int, float, complex, str, bytes)
OWN = ("diplomacy_engine", "diplomacy_learners", "ppo_selfplay_diplomacy")
PACKAGES = (*OWN, "torch.nn", "torch.optim", "numpy.random", "collections")  # whose classes may be
CALLED = (  # what a file may call, whatever the arguments
    *(
        list,
        set,
        dict,
        tuple,
        frozenset,
        types.MethodType,
        weakref.ref,
        bytearray,
        range,
        slice,
        OrderedDict,
        defaultdict,
        deque,
        Counter,
        np.dtype,
    ),
    *(date, datetime, time, timedelta, PosixPath, types.SimpleNamespace, random.Random),
    *(torch.Size, torch.device, torch.Generator, np.float32(0).__reduce__()[0]),
    *(np.ndarray, np.ndarray.__reduce__(np.zeros(0))[0]),
)
CONSTANTS = (torch.dtype, torch.layout, torch.memory_format)
BY_PLACE = (  # never kept, but taken from the new object
    *(types.FunctionType, types.BuiltinFunctionType, types.MethodWrapperType, types.ModuleType),
    *(type, property, functools._lru_cache_wrapper),
)
MODULE = vars(nn.Module())


def named(module: str, name: str, script: str) -> Any:
    """Return the class or function that nodes may name so, if there is one; "" is the script."""
    value = sys.modules.get("types" if name == "MethodType" else module or script)
    for part in name.split("."):
        value = getattr(value, part, None)
    ours = not module or f"{module}.".startswith(tuple(f"{package}." for package in PACKAGES))
    functions = not module or module == "torch.nn.functional"
    if (isinstance(value, type) and ours) or (isinstance(value, types.FunctionType) and functions):
        return value
    return value if is_callable(value, module) else None


def is_callable(value: Any, module: str) -> bool:
    free = not module or module.startswith("numpy.random.") or (callable(value) and value in CALLED)
    return free or (isinstance(value, type) and issubclass(value, Enum | np.generic | np.dtype))


def reduced(value: Any) -> tuple:
    """Return class, function (None: `__new__`), arguments, state, items and pairs of a value."""
    kind, none = type(value), (None, None, None)
    if kind in (list, set):
        return kind, kind, (), None, value if kind is list else sorted(value, key=repr), None
    if kind is dict:
        return kind, kind, (), None, None, value.items()
    if kind in (tuple, frozenset):
        return kind, kind, (list(value) if kind is tuple else sorted(value, key=repr),), *none
    if kind is types.MethodType:
        return kind, kind, (value.__func__, value.__self__), *none
    if kind is weakref.ref:
        return kind, kind, (value(),), *none
    if isinstance(value, nn.Module | Optimizer) and kind.__reduce__ is object.__reduce__:
        default = MODULE if isinstance(value, nn.Module) else {}  # hooks, of which there are none
        state = {n: p for n, p in vars(value).items() if n not in default or p != default[n]}
        return kind, None, (), state, None, None
    function, args, *rest = value.__reduce_ex__(2)
    if getattr(function, "__name__", "") == "__newobj__":
        function, args = None, args[1:]
    return kind, function, args, *(*rest, *none)[:3]


def parts_of(visit: Callable, name: str, args: Any, state: Any) -> tuple[list, Any]:
    """Return what `visit(part, place)` makes of the arguments and the state of a value or node."""
    args = [visit(part, f"{name}.args[{i}]") for i, part in enumerate(args)]
    if isinstance(state, dict):
        return args, {part: visit(value, f"{name}.{part}") for part, value in state.items()}
    return args, visit(state, f"{name}.state")


def items_of(visit: Callable, name: str, items: Any, pairs: Any) -> tuple[Any, Any]:
    """The same of what a collection holds."""
    if items is not None:
        items = [visit(item, f"{name}[{i}]") for i, item in enumerate(items)]
    if pairs is None:
        return items, None
    pairs, out = list(pairs), []
    for i, (key, value) in enumerate(pairs):
        # Hooks have numbers that a process counts.
        place = repr(key) if type(key) in PLAIN and not name.endswith("hooks") else f"#{i}"
        out.append((visit(key, f"{name}.keys[{i}]"), visit(value, f"{name}[{place}]")))
    return items, out


class Writer:
    """`nodes` of what is reached from `root`, with the name that each was reached by first.

    `initial` are the objects, by id, with their places, that a new root has beside its state; None:
    this root is new. `script` is the module whose classes may be.
    """

    def __init__(self, root: Any, name: str, initial: Mapping[int, tuple[str, Any]] | None = None):
        self.script, self.new = type(root).__module__, initial is None
        self.initial = {id(root): (name, root)} if initial is None else initial
        self.nodes: list[tuple] = []
        self.names: list[str] = []
        self.values: list[Any] = []  # which keeps ids theirs
        self.numbers: dict[int, int] = {}
        self.arrays: list[tuple[int, np.ndarray]] = []
        self.tensors: list[torch.Tensor] = []

    def visit(self, value: Any, name: str) -> Any:
        if type(value) in PLAIN:
            return value
        if id(value) not in self.numbers:
            self.numbers[id(value)] = number = self._add(value, name, ())
            self.nodes[number] = self._node(value, name)
        return (self.numbers[id(value)],)

    def _add(self, value: Any, name: str, node: tuple) -> int:
        self.nodes.append(node)
        self.names.append(name)
        self.values.append(value)
        return len(self.nodes) - 1

    def _node(self, value: Any, name: str) -> tuple:
        kind = type(value)
        if id(value) in self.initial and not isinstance(value, type):
            return self._made(value, name)
        if isinstance(value, BY_PLACE):
            return self._by_name(value, name)
        if isinstance(value, CONSTANTS):
            return "constant", str(value).removeprefix("torch.")
        if kind in (torch.Tensor, nn.Parameter):
            about = {"grad": value.grad if value.is_leaf else None} | vars(value)
            about = parts_of(self.visit, name, (), about)[1]
            flags = value.device.type, kind is nn.Parameter, value.requires_grad
            self.tensors.append(value.detach())
            return "tensor", value.detach(), *flags, about
        if kind is np.ndarray and not value.dtype.hasobject:
            self.arrays.append((self.numbers[id(value)], value))
            return ()
        if _is_compiled(value):
            return "compiled", self.visit(value._orig_mod, f"{name}._orig_mod")
        try:
            kind, function, args, state, items, pairs = reduced(value)
        except Exception:
            raise self._refusal(value, name) from None
        rebuilt = {}
        if isinstance(state, dict) and getattr(kind, "REBUILT", ()):
            state = dict(state)
            for part in (part for part in kind.REBUILT if part in state):
                rebuilt[part] = self.rebuilt(state.pop(part), f"{name}.{part}")
        about = self.visit(kind, f"{name}.__class__"), self._call(function, kind, name)
        args, state = parts_of(self.visit, name, args, state)
        state = rebuilt | state if isinstance(state, dict) else state
        return "object", *about, args, state, *items_of(self.visit, name, items, pairs)

    def rebuilt(self, value: Any, name: str) -> tuple[int]:
        """Return the part of a node for what is the new root's at this place, whatever it is."""
        number = self._add(value, name, ("made", name, []))
        if self.new and type(value) not in PLAIN:
            self.initial.setdefault(id(value), (name, value))
        return (number,)

    def _call(self, function: Any, kind: type, name: str) -> Any:
        """Return None for `__new__`, True for the class, or else the function's node."""
        by_name = function is None or is_callable(function, self._module(function))
        if by_name and function in (None, kind):
            return function is kind or None
        name = f"{name}.__reduce__"
        node = self._by_name(function, name) if by_name else self._made(function, name)
        return (self._add(function, name, node),)

    def _module(self, value: Any) -> str:
        module = getattr(value, "__module__", None) or "?"
        return "" if module in (self.script, "__main__", "__mp_main__") else module

    def _by_name(self, value: Any, name: str) -> tuple:
        module, place = self._module(value), getattr(value, "__qualname__", "?")
        place = "MethodType" if value is types.MethodType else place
        if named(module, place, self.script) is value:
            return "named", module, place
        return self._made(value, name)

    def _made(self, value: Any, name: str) -> tuple:
        if self.new:
            self.initial.setdefault(id(value), (name, value))
        place, same = self.initial.get(id(value), (name, None))
        if same is not value:
            raise self._refusal(value, name)
        cells = getattr(value, "__closure__", None) or ()
        if self._module(value).startswith("torch."):
            cells = ()
        cells = [
            self.visit(cell.cell_contents, f"{name}.closure[{i}]") for i, cell in enumerate(cells)
        ]
        return "made", place, cells

    def _refusal(self, value: Any, name: str) -> UserError:
        kind = value if isinstance(value, type) else type(value)
        return UserError(
            f"a checkpoint cannot keep {name}, a {kind.__name__}: if __init__ makes it anew "
            "just as it is, name it in REBUILT of its class"
        )

    def finished(self) -> list[tuple]:
        """Return the nodes; arrays and tensors that share memory do so there, too."""
        blocks, tensors = {number: _block(array) for number, array in self.arrays}, self.tensors
        tensors = [_bytes_of(tensor) for tensor in tensors if tensor.device.type == "cpu"]
        users = Counter(block.data_ptr() for block in (*tensors, *blocks.values()))
        memory = {block.data_ptr(): block for block in (*blocks.values(), *tensors)}
        for number, array in self.arrays:
            block, form = blocks[number], (*array.shape, array.itemsize)
            together = array.size > 0 and users[block.data_ptr()] > 1
            if together or block.nbytes == array.nbytes > 0:
                start = array.__array_interface__["data"][0] - block.data_ptr()
                part = memory[block.data_ptr()].as_strided(form, (*array.strides, 1), start)
            else:
                part = _tensor(np.ascontiguousarray(array).reshape(-1)).view(form)
            self.nodes[number] = "array", part, dtype_to_descr(array.dtype), together
        return self.nodes


def _block(array: np.ndarray) -> torch.Tensor:
    """Return all bytes of the memory that an array has a part of, or a copy of its own."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if isinstance(owner.base, torch.Tensor):
        return _bytes_of(owner.base)
    if owner.flags.forc and not owner.dtype.hasobject and min(array.strides, default=0) >= 0:
        return _tensor(owner.reshape(-1, order="A"))
    return _tensor(array.flatten())


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage())


def _tensor(array: np.ndarray) -> torch.Tensor:
    with warnings.catch_warnings(action="ignore"):  # of arrays that are only to be read
        return torch.from_numpy(array.view(np.uint8))


def hash_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def node_hash(node: tuple) -> str:
    return hash_of(b"".join(map(_content, node)))


def _content(part: Any) -> bytes:
    if not isinstance(part, torch.Tensor):
        return repr(part).encode()
    array = part.cpu().contiguous().flatten().view(torch.uint8).numpy()
    return repr((part.dtype, part.shape)).encode() + array.tobytes()


class Reader:
    """Values of `nodes`. `new` is the Writer of a new root, whose objects are filled in place.

    Tensors of a device of the kind `before` come to `device`. Of what is filled, `gone` are the
    attributes that no node has.
    """

    def __init__(self, nodes: Sequence, new: Writer, device: torch.device, before: str):
        self.nodes, self.script, self.device, self.before = nodes, new.script, device, before
        self.live = dict(zip(new.names, new.values))
        self.initial = {place: value for place, value in new.initial.values()} | self.live
        self.compiled = [value for value in new.values if _is_compiled(value)]
        self.values: dict[int, Any] = {}
        self.gone: list[str] = []

    def visit(self, part: Any, name: str) -> Any:
        if type(part) is not tuple:
            return part
        if part[0] not in self.values:
            self.values[part[0]] = self._value(part[0], name)
        return self.values[part[0]]

    def _value(self, number: int, name: str) -> Any:
        body = self.live.pop(name, None)
        match self.nodes[number]:
            case "made", place, cells:
                value = self.initial[place]
                contents, _ = items_of(self.visit, f"{name}.closure", cells, None)
                for cell, content in zip(getattr(value, "__closure__", None) or (), contents):
                    cell.cell_contents = content
                return value
            case "named", module, place:
                return named(module, place, self.script)
            case "constant", place:
                return getattr(torch, place)
            case "compiled", part:
                body = body if _is_compiled(body) else copy.copy(self.compiled[0])
                vars(body)["_modules"] = {"_orig_mod": self.visit(part, f"{name}._orig_mod")}
                body._initialize()
                return body
            case "array", memory, dtype, together:
                value = memory.numpy().view(descr_to_dtype(dtype))[..., 0]
                if together or not _is_like(body, value) or not body.flags.writeable:
                    return value
                body[...] = value
                return body
            case "tensor", data, device, parameter, requires_grad, about:
                data = data.to(self.device if device == self.before else device)
                kind = nn.Parameter if parameter else torch.Tensor
                if type(body) is kind and _is_like(body, data) and not body.is_inference():
                    body.data = data.to(body.device)
                else:
                    body = nn.Parameter(data, requires_grad) if parameter else data
                self.values[number] = body.requires_grad_(requires_grad)
                _, about = parts_of(self.visit, name, (), about)
                body.grad = about.pop("grad")
                vars(body).update(about)
                return body
            case "object", *parts:
                return self._object(number, name, body, *parts)

    def _object(
        self, number: int, name: str, body: Any, kind: Any, call: Any, args: Any, *parts: Any
    ) -> Any:
        """Return value `number`, the live `body` if it is of that kind and can be filled."""
        state, items, pairs = parts
        kind, function = self.visit(kind, f"{name}.__class__"), call and self._function(call, kind)
        args, _ = parts_of(self.visit, name, args, None)
        filled = (state, items, pairs) != (None, None, None)
        about = getattr(kind, "__dataclass_params__", None)
        frozen = about is not None and about.frozen  # a record that others may hold
        if type(body) is not kind or frozen or not (filled or same_all(reduced(body)[2], args)):
            body = function(*args) if function else kind.__new__(kind, *args)
        self.values[number] = body
        _, state = parts_of(self.visit, name, (), state)
        items, pairs = items_of(self.visit, name, items, pairs)
        if not isinstance(body, nn.Module | Optimizer) and hasattr(body, "__setstate__"):
            if state is not None:
                body.__setstate__(state)
        elif isinstance(state, dict):
            if function is None:
                default = MODULE.keys() if isinstance(body, nn.Module) else ()
                missing = vars(body).keys() - state.keys() - set(default)
                self.gone += [f"{name}.{part}" for part in missing]
                vars(body).clear()
                if isinstance(body, nn.Module):
                    nn.Module.__init__(body)
            vars(body).update(state)
            if isinstance(body, Optimizer):
                body._patch_step_function()  # so that its class calls hooks
        else:
            for slots in state or ():
                for part, value in (slots or {}).items():
                    object.__setattr__(body, part, value)
        if items is not None or pairs is not None:
            body.clear()
        for item in items or ():
            (body.append if hasattr(body, "append") else body.add)(item)
        for key, value in pairs or ():
            body[key] = value
        if pairs and name.endswith("hooks"):
            RemovableHandle.next_id = max(RemovableHandle.next_id, *(key + 1 for key, _ in pairs))
        return body

    def _function(self, call: Any, kind: tuple) -> Callable:
        match self.nodes[(kind if call is True else call)[0]]:
            case "made", place, _:
                return self.initial[place]
            case "named", module, place:
                function = named(module, place, self.script)
                if is_callable(function, module):
                    return function
        raise ValueError("it calls what no checkpoint may")


def _is_compiled(value: Any) -> bool:
    return isinstance(value, nn.Module) and hasattr(value, "_orig_mod")


def _is_like(body: Any, value: Any) -> bool:
    array = isinstance(body, np.ndarray) or (isinstance(body, torch.Tensor) and body.is_leaf)
    return array and (body.shape, body.dtype) == (value.shape, value.dtype)


def same_all(one: Sequence, two: Sequence) -> bool:
    return len(one) == len(two) and all(a is b for a, b in zip(one, two))
