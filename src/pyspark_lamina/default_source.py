"""What Spark asks for first: the format's name, a row's columns, and who reads and writes.

Owns nothing else: an instance is pickled from process to process, and readers and writers are made anew in each.
"""

from pyspark.sql.datasource import DataSource


class DefaultSource(DataSource):
    """``format("lamina")``"""

    @classmethod
    def name(cls) -> str:
        return "lamina"

    def schema(self) -> str:
        from pyspark_lamina.columns import INCLUDE_HEADERS, row_schema

        return row_schema(with_headers=str(self.options.get(INCLUDE_HEADERS, "false")).strip().lower() == "true")
