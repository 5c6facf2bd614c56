"""Records of arrays in kernels: a kernel gets the address of a NamedTuple of this package.

numba passes a named tuple by its values, here some 500 pointers, shapes and strides a call; most of
the time that it compiled went into those. A kernel reads the fields of an argument, and can make
and return no such record but numba's own.
"""

import hashlib
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models, register_default
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.typeof import Purpose, typeof_impl
from numba.extending import NativeValue, lower_builtin, lower_getattr_generic, unbox

_typeof_tuple = typeof_impl.dispatch(tuple)


class Record(types.NamedTuple):
    """The type of such an argument. Its name is short: names of machine code contain it."""

    def __init__(self, kinds: tuple[types.Type, ...], record: type):
        super().__init__(kinds, record)
        self.plain = types.NamedTuple(kinds, record)
        digest = hashlib.sha256(f"{self.fields} {self.name}".encode()).hexdigest()
        self.name: str = f"{record.__name__}_{digest[:16]}"


@typeof_impl.register(tuple)
def _typeof(value: tuple, context: Any) -> types.Type | None:
    record = type(value)
    ours = record.__module__.partition(".")[0] == __package__ and hasattr(value, "_fields")
    if not ours or context.purpose is not Purpose.argument:
        return _typeof_tuple(value, context)
    kinds = [typeof_impl(field, context) for field in value]
    return None if None in kinds else Record(tuple(kinds), record)


@register_default(Record)
class _RecordModel(models.PrimitiveModel):
    def __init__(self, models_of: Any, kind: Record):
        fields = [models_of.lookup(field).get_data_type() for field in kind.types]
        super().__init__(models_of, kind, ir.LiteralStructType(fields).as_pointer())


@unbox(Record)
def _unbox(kind: Record, values: Any, c: Any) -> NativeValue:
    plain, builder = c.unbox(kind.plain, values), c.builder
    address = c.context.get_value_type(kind)
    record = cgutils.alloca_once(builder, address.pointee)
    for index, field in enumerate(kind.types):
        value = builder.extract_value(plain.value, index)
        data = c.context.data_model_manager[field].as_data(builder, value)
        builder.store(data, cgutils.gep_inbounds(builder, record, 0, index))
    # It is read as memory that never changes (below): so from where, LLVM is not to know.
    hide = ir.FunctionType(address, [address])
    hidden = builder.asm(hide, "", "=r,0,~{memory}", [record], side_effect=True)
    return NativeValue(hidden, is_error=plain.is_error, cleanup=plain.cleanup)


def _read(context: Any, builder: ir.IRBuilder, kind: Record, address: Any, index: int) -> Any:
    data = builder.load(cgutils.gep_inbounds(builder, address, 0, index))
    module = builder.module
    root = module.add_metadata(["records"])
    node = module.add_metadata(["constant", root])
    zero, one = ir.Constant(ir.IntType(64), 0), ir.Constant(ir.IntType(64), 1)
    data.set_metadata("tbaa", module.add_metadata([node, node, zero, one]))
    field = kind.types[index]
    model = context.data_model_manager[field]
    value = data if data.type == model.get_value_type() else model.from_data(builder, data)
    return impl_ret_borrowed(context, builder, field, value)


@lower_getattr_generic(Record)
def _field(context: Any, builder: ir.IRBuilder, kind: Record, address: Any, name: str) -> Any:
    return _read(context, builder, kind, address, kind.fields.index(name))


@lower_builtin("static_getitem", Record, types.IntegerLiteral)
def _item(context: Any, builder: ir.IRBuilder, signature: Any, arguments: tuple) -> Any:
    return _read(context, builder, signature.args[0], *arguments)
