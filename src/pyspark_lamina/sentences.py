"""Errors as one sentence for a person: Spark is told the sentence first, without the stack of its worker.

Owns which errors are meant for people. PySpark shows a worker's exception with its whole stack, unless the environment
of the worker's process says otherwise; a process ends after an exception, so it is said just before.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from lamina.arrow.errors import ReadError
from lamina.errors import KafkaError
from lamina.producing.errors import WriteError
from lamina.schema_registry.errors import RegistryError

_HIDES_STACK = "SPARK_HIDE_TRACEBACK"


@contextmanager
def in_one_sentence() -> Iterator[None]:
    try:
        yield
    except (ReadError, WriteError, RegistryError, KafkaError):
        os.environ[_HIDES_STACK] = "1"
        raise
