"""Memory by address, prefetching and the processor's CRC-32C, for compiled code.

Helpers of the kernels are given the address of an array's first byte, not the array: numba counts references to every
array that is passed on, which costs more than reading a record. Nothing here checks a bound: every caller has compared
with the array's length before, and holds the array.
"""

from collections.abc import Callable
from typing import Any

import llvmlite.binding
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

Bytes = npt.NDArray[np.uint8]
Number = Any
"""An integer of some width. numba tells widths apart, mypy would take them for other types than ``int``."""

i64: Any = np.int64
u8: Any = np.uint8
u32: Any = np.uint32
u64: Any = np.uint64

_INT8, _INT32, _INT64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)


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


def _named(function: Any, name: str) -> Any:
    function.__name__ = function.__qualname__ = name
    return intrinsic(function)


def _loader(word: Any, result: Any) -> Any:
    def load(_typing: Any, _address: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            value = builder.load(builder.inttoptr(args[0], word.as_pointer()))
            value.align = 1
            return value

        return result(types.int64), generate

    return load


def _storer(word: Any, kind: Any) -> Any:
    def store(_typing: Any, _address: Any, _value: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            done = builder.store(args[1], builder.inttoptr(args[0], word.as_pointer()))
            done.align = 1
            return context.get_dummy_value()

        return types.void(types.int64, kind), generate

    return store


def _copy(_typing: Any, _target: Any, _source: Any, _size: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        target, source = (builder.inttoptr(arg, _INT8.as_pointer()) for arg in args[:2])
        cgutils.raw_memcpy(builder, target, source, args[2], 1)  # type: ignore[no-untyped-call]
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def _prefetch(_typing: Any, _address: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [_INT8.as_pointer(), _INT32, _INT32, _INT32])
        function = builder.module.declare_intrinsic("llvm.prefetch.p0", (), kind)
        builder.call(function, [builder.inttoptr(args[0], _INT8.as_pointer()), _INT32(0), _INT32(3), _INT32(1)])
        return context.get_dummy_value()

    return types.void(types.int64), generate


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


load8: Callable[[Number], Number] = _named(_loader(_INT8, types.uint8), "load8")
load32: Callable[[Number], Number] = _named(_loader(_INT32, types.uint32), "load32")
"""Four bytes at an address, in the machine's order."""
load64: Callable[[Number], Number] = _named(_loader(_INT64, types.uint64), "load64")
store8: Callable[[Number, Number], None] = _named(_storer(_INT8, types.uint8), "store8")
store32: Callable[[Number, Number], None] = _named(_storer(_INT32, types.uint32), "store32")
store64: Callable[[Number, Number], None] = _named(_storer(_INT64, types.uint64), "store64")
copy_memory: Callable[[Number, Number, Number], None] = _named(_copy, "copy_memory")
prefetch: Callable[[Number], None] = _named(_prefetch, "prefetch")
"""Ask for the cache line of what will be needed soon; any address is safe."""
crc_word: Callable[[Number, Number], Number] = _named(_crc_word, "crc_word")
"""The CRC register after eight more bytes; only where there is a CRC_INSTRUCTION."""


@njit(forceinline=True)
def address_of(array: Any) -> Number:
    return i64(array.ctypes.data)


@njit(forceinline=True)
def copy_bytes(target: Number, source: Number, size: Number) -> None:
    """Copy ``size`` bytes; the ranges do not overlap."""
    if size > 128:
        copy_memory(target, source, size)
        return
    if size >= 8:
        last = size - 8  # The last word may overlap the one before it: cheaper than single bytes.
        done = 0
        while done < last:
            store64(target + done, load64(source + done))
            done += 8
        store64(target + last, load64(source + last))
        return
    for at in range(size):
        store8(target + at, load8(source + at))


@njit(forceinline=True)
def equal_bytes(a: Number, b: Number, size: Number) -> bool:
    if size >= 8:
        last = size - 8
        done = 0
        while done < last:
            if load64(a + done) != load64(b + done):
                return False
            done += 8
        return bool(load64(a + last) == load64(b + last))
    at = 0
    while at < size and load8(a + at) == load8(b + at):
        at += 1
    return bool(at == size)
