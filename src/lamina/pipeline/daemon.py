"""What Spark starts its Python workers from: a process that has the kernels loaded before it forks.

So a worker costs a fork, not an import of numba. Spark names the module of the worker in the first argument. Must not
start a thread: whatever runs here when a worker is forked is gone in it.
"""

import gc
import importlib
import importlib.util
import sys


def _prefer_installed() -> None:
    """Spark puts its own archive of pyspark before everything; imports from it are slow, nothing is compiled ahead."""
    shortened = [entry for entry in sys.path if not entry.endswith((".zip", ".jar"))]
    whole, sys.path[:] = sys.path[:], shortened
    if importlib.util.find_spec("pyspark") is None or importlib.util.find_spec("py4j") is None:
        sys.path[:] = whole


def main() -> None:
    _prefer_installed()
    from pyspark.daemon import manager

    for module in ("pyspark.worker", "lamina.pipeline.tasks"):
        importlib.import_module(module)
    gc.collect()
    gc.freeze()
    manager()


if __name__ == "__main__":
    main()
