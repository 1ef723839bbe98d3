"""Unaligned words, prefetching and the processor's CRC-32C, for compiled code.

Nothing here checks a bound: every caller has compared with the array's length before.
"""

from collections.abc import Callable
from typing import Any

import llvmlite.binding
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

Bytes = npt.NDArray[np.uint8]
Number = Any
"""An integer of some width. numba tells widths apart, mypy would take them for other types than ``int``."""

i64: Any = np.int64
u32: Any = np.uint32
u64: Any = np.uint64

_INT32, _INT64 = ir.IntType(32), ir.IntType(64)


def _find_crc_instruction() -> str:
    features = llvmlite.binding.get_host_cpu_features()
    machine = llvmlite.binding.get_process_triple().split("-")[0]
    if machine == "x86_64" and features.get("sse4.2"):
        return "llvm.x86.sse42.crc32.64.64"
    if machine in ("aarch64", "arm64") and features.get("crc"):
        return "llvm.aarch64.crc32cx"
    return ""


CRC_INSTRUCTION = _find_crc_instruction()
"""LLVM's name of it; empty on a machine that has none."""


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any, word: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), word.as_pointer())


def _loader(word: Any, result: Any) -> Any:
    def load(_typing: Any, array: Any, _index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            value = builder.load(_pointer(context, builder, signature.args[0], args[0], args[1], word))
            value.align = 1
            return value

        return result(array, types.intp), generate

    return load


def _storer(word: Any, kind: Any) -> Any:
    def store(_typing: Any, array: Any, _index: Any, _value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            done = builder.store(args[2], _pointer(context, builder, signature.args[0], args[0], args[1], word))
            done.align = 1
            return context.get_dummy_value()

        return types.void(array, types.intp, kind), generate

    return store


def _named(function: Any, name: str) -> Any:
    function.__name__ = function.__qualname__ = name
    return intrinsic(function)


load32: Callable[[Bytes, Number], Number] = _named(_loader(_INT32, types.uint32), "load32")
"""Four bytes at an index, in the machine's order."""
load64: Callable[[Bytes, Number], Number] = _named(_loader(_INT64, types.uint64), "load64")
store32: Callable[[Bytes, Number, Number], None] = _named(_storer(_INT32, types.uint32), "store32")
store64: Callable[[Bytes, Number, Number], None] = _named(_storer(_INT64, types.uint64), "store64")


def _prefetch(_typing: Any, array: Any, _index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        pointer = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), _INT32, _INT32, _INT32])
        function = builder.module.declare_intrinsic("llvm.prefetch.p0", (), kind)
        builder.call(function, [pointer, _INT32(0), _INT32(3), _INT32(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


def _crc_word(_typing: Any, _crc: Any, _word: Any) -> Any:
    is_wide = CRC_INSTRUCTION.startswith("llvm.x86")

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        register = _INT64 if is_wide else _INT32
        kind = ir.FunctionType(register, [register, _INT64])
        function = builder.module.declare_intrinsic(CRC_INSTRUCTION, (), kind)
        crc = args[0] if is_wide else builder.trunc(args[0], _INT32)
        found = builder.call(function, [crc, args[1]])
        return found if is_wide else builder.zext(found, _INT64)

    return types.uint64(types.uint64, types.uint64), generate


prefetch: Callable[[npt.NDArray[Any], Number], None] = _named(_prefetch, "prefetch")
"""Ask for the cache line of an element that will be needed soon; any index is safe."""
crc_word: Callable[[Number, Number], Number] = _named(_crc_word, "crc_word")
"""The CRC register after eight more bytes; only where there is a CRC_INSTRUCTION."""


@njit(forceinline=True)
def copy_bytes(target: Bytes, at: Number, source: Bytes, start: Number, end: Number) -> Number:
    """Copy ``source[start:end]`` to ``target[at:]``; where it ends there. Both ranges lie inside their arrays."""
    size = end - start
    if size > 256:
        target[at : at + size] = source[start:end]
        return at + size
    done = 0
    while done + 8 <= size:
        store64(target, at + done, load64(source, start + done))
        done += 8
    while done < size:
        target[at + done] = source[start + done]
        done += 1
    return at + size


@njit(forceinline=True)
def equal_bytes(a: Bytes, a_start: Number, b: Bytes, b_start: Number, size: Number) -> bool:
    """Whether two ranges that lie inside their arrays hold the same bytes."""
    done = 0
    while done + 8 <= size:
        if load64(a, a_start + done) != load64(b, b_start + done):
            return False
        done += 8
    while done < size:
        if a[a_start + done] != b[b_start + done]:
            return False
        done += 1
    return True
