"""What the data pipeline needs: Java, the packages of ``lamina[spark]``, and a cache for compiled kernels.

A broker serves without any of it, so nothing here is worse than a warning. Nothing is imported: versions are read
from the packages' metadata. Must not start Spark.
"""

import os
import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec

from lamina.cleaning.kernel_cache import cache_directory, is_compiled
from lamina.cli.doctor.finding import Finding, fine, warning
from lamina.cli.doctor.machine import versions_of
from lamina.pipeline.java import INSTALL, Java, all_javas

ENGINE = ("pyspark", "numba", "numpy")
"""What cleaning a log takes; the other packages of the extra are for other work."""

_KERNEL = "kernel.walk-*.nbi"
_OLDEST_PYSPARK = (4, 1)


def judge_java(found: Sequence[Java]) -> Finding:
    """In the order in which they are taken."""
    for java in found:
        if java.is_usable:
            return fine("java", f"Java {java.release} at {java.path}")
    if not found:
        return warning("java", "none found", f"{INSTALL} brings one, or install Java 17 or newer; compaction needs it")
    shown = ", ".join(f"{java.path} ({java.release or 'does not run'})" for java in found)
    return warning("java", f"too old: {shown}", f"install Java 17 or newer, or {INSTALL}, which brings one")


def check_java() -> Finding:
    """What an engine would find, by the same search."""
    return judge_java(all_javas())


def judge_engine(versions: Mapping[str, str | None]) -> Finding:
    missing = [name for name, found in versions.items() if found is None]
    present = ", ".join(f"{name} {found}" for name, found in versions.items() if found is not None)
    if missing:
        what = f"missing: {', '.join(missing)}" + (f"; installed: {present}" if present else "")
        return warning("spark engine", what, f"{INSTALL}: without it compacted topics are not compacted")
    numbers = tuple(int(each) for each in re.findall(r"\d+", versions.get("pyspark") or "")[:2])
    if numbers[:1] != (4,) or numbers < _OLDEST_PYSPARK:
        return warning("spark engine", present, f"Lamina works with pyspark 4.1 or a newer 4: {INSTALL}")
    return fine("spark engine", present)


def check_engine() -> Finding:
    return judge_engine(versions_of(ENGINE))


def judge_kernel_cache(has_numba: bool, directory: str | None, is_present: bool) -> Finding:
    """``directory`` is the first that can be written to; ``None`` when there is none."""
    if not has_numba:
        return fine("kernel cache", "not needed without numba: records are checked in plain Python")
    if directory is None:
        return warning(
            "kernel cache",
            "no directory for compiled kernels can be written to",
            "set NUMBA_CACHE_DIR to one that the broker may write to; until then records are checked more slowly",
        )
    if is_present:
        return fine("kernel cache", f"compiled, in {directory}")
    return fine("kernel cache", f"empty, {directory}: the first large batch compiles the kernel")


def check_kernel_cache() -> Finding:
    spec = find_spec("lamina.records")
    if find_spec("numba") is None or spec is None or spec.origin is None:
        return judge_kernel_cache(False, None, False)
    sources = os.path.dirname(os.path.abspath(spec.origin))
    return judge_kernel_cache(True, cache_directory(sources), is_compiled(sources, _KERNEL))


def judge_cleaning_kernels(has_numba: bool, directory: str | None, is_present: bool) -> Finding:
    """``directory`` is the first that can be written to; ``None`` when there is none."""
    name = "cleaning kernels"
    if not has_numba:
        return fine(name, "not needed without numba: nothing is compacted")
    if directory is None:
        return warning(
            name,
            "no directory for compiled kernels can be written to",
            "set NUMBA_CACHE_DIR to one that the broker may write to; until then every engine compiles them again",
        )
    if is_present:
        return fine(name, f"compiled, in {directory}")
    return fine(name, f"not compiled yet: the first pass compiles them, once, into {directory}")


def check_cleaning_kernels() -> Finding:
    spec = find_spec("lamina.cleaning")
    if find_spec("numba") is None or spec is None or spec.origin is None:
        return judge_cleaning_kernels(False, None, False)
    sources = os.path.join(os.path.dirname(os.path.abspath(spec.origin)), "kernels")
    return judge_cleaning_kernels(True, cache_directory(sources), is_compiled(sources, "*.nbi"))
