"""Packing the keys of some slices into one block, side by side.

Must not know where slices come from, nor what a block is for.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from lamina.cleaning.kernels.entries import Numbers, measure_buckets, put_entries
from lamina.cleaning.kernels.memory import Bytes
from lamina.cleaning.key_blocks import Block
from lamina.cleaning.key_scan import SliceKeys
from lamina.cleaning.settling import run_all


def pack_keys(pool: ThreadPoolExecutor, found: Sequence[SliceKeys], bits: int) -> Block:
    """The keys of slices that follow each other, by bucket."""
    sizes = np.zeros((len(found), 1 << bits), np.int64)
    counts = np.zeros((len(found), 1 << bits), np.int64)
    run_all(pool, [partial(_measure, *each, bits) for each in zip(found, sizes, counts, strict=True)])
    starts = np.zeros((1 << bits) + 1, np.int64)
    np.cumsum(sizes.sum(axis=0), out=starts[1:])
    ends = starts[:-1] + np.cumsum(sizes, axis=0) - sizes
    data = np.empty(int(starts[-1]), np.uint8)
    run_all(pool, [partial(_put, *each, bits, data) for each in zip(found, ends, strict=True)])
    return Block(data, starts, counts.sum(axis=0))


def _measure(keys: SliceKeys, sizes: Numbers, counts: Numbers, bits: int) -> None:
    measure_buckets(keys.count, keys.firsts, keys.lengths, bits, sizes, counts)


def _put(keys: SliceKeys, ends: Numbers, bits: int, data: Bytes) -> None:
    put_entries(keys.count, keys.firsts, keys.ordinals, keys.lengths, keys.keys, bits, ends, data)
