"""Topics in Spark's DataFrames: ``spark.read.format("lamina")``, for Lamina and for Kafka, without a jar.

Spark finds `DefaultSource` by itself, because this package's name begins with ``pyspark_`` and it is on the path of the
driver's Python; executors need it too. The words, defaults and errors are those of Spark's own Kafka source.

- `columns`: a row's columns, and which of them are wanted.

Spark imports every such package before it knows which one is asked for: what reads and writes is imported when it is
needed. This package is a wheel of its own, ``pyspark-lamina``. Must not know a broker's insides.
"""

from pyspark_lamina.default_source import DefaultSource

__all__ = ["DefaultSource"]
