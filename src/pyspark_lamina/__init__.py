"""Topics in Spark's DataFrames: ``spark.read.format("lamina")``, for Lamina and for Kafka, without a jar.

Spark finds `DefaultSource` by itself, because this package's name begins with ``pyspark_`` and it is on the path of the
driver's Python; executors need it too. The words, defaults and errors are those of Spark's own Kafka source.

- `columns`: a row's columns, and which of them are wanted. `options`, with `topic_selection`, `places` and
  `option_values`: what a person may say. `offsets`: their JSON.
- `planning`: which ranges of offsets, and what is lost. `trigger_limits`: how far a micro-batch goes. Both pure.
- `lookup`: what a plan asks a cluster. `group_offsets`: what it tells one.
- `batch_reading`: a query that ends. `stream_reading`, with `stream_progress`: one that goes on. `ranges`: one range
  of a partition as a task.
- `writing`: a write that ends. `stream_writing`: each batch of a stream, once. `sink_options`: what a person may say of
  both. `tasks`: what a task knows of itself and tells the driver.
- `functions`: ``from_registry`` for columns of keys and values, with `registry_decoding`, one Arrow array, and
  `avro_columns`, Avro's types as Spark's.
- `sentences`: errors as Spark shows them. `old_spark`: what a PySpark without limits of streams is told.

Spark imports every such package before it knows which one is asked for: what reads and writes is imported when it is
needed. This package is a wheel of its own, ``pyspark-lamina``. Must not know a broker's insides.
"""

from pyspark_lamina.default_source import DefaultSource

__all__ = ["DefaultSource"]
