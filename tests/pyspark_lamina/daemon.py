"""Spark's Python daemon with all that reads and writes topics loaded before it forks: a worker costs a fork.

Each stream, and each kind of planning, is given a worker of its own, which would import the same for most of a second.
Only for a test of what the workers do; the others have Spark's own daemon.
"""

import gc
from importlib import import_module

_LOADED = (
    "pyspark.worker",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.write_into_data_source",
    "pyspark_lamina.batch_reading",
    "pyspark_lamina.stream_reading",
    "pyspark_lamina.stream_writing",
    "lamina.records.columns.filling",
)


def main() -> None:
    from pyspark.daemon import manager

    for module in _LOADED:
        import_module(module)
    gc.collect()
    gc.freeze()
    manager()


if __name__ == "__main__":
    main()
