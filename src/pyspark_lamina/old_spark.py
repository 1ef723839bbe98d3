"""What a PySpark before 4.2 is told of streams: there a source learns neither where a batch starts nor its limit.

Owns the one sentence. It comes with the first question, for PySpark loses what is raised while a reader is made.
"""

from collections.abc import Iterator
from typing import Any, NoReturn

import pyspark
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from lamina.arrow.errors import ReadError
from pyspark_lamina.sentences import in_one_sentence


class NoStreams(DataSourceStreamReader):
    def initialOffset(self) -> NoReturn:
        self._refuse()

    def latestOffset(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse()

    def read(self, partition: InputPartition) -> Iterator[Any]:
        self._refuse()

    def _refuse(self) -> NoReturn:
        with in_one_sentence():
            raise ReadError(f"streams of topics need PySpark 4.2 or newer, and this is {pyspark.__version__}")
