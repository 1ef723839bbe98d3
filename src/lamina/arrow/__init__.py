"""Topics as Arrow batches, from Lamina or from Kafka, without Spark and without Java.

    import lamina.arrow

    reader = lamina.arrow.read("orders", ["key", "value", "offset"], bootstrap_servers="localhost:9092")
    table = reader.read_all()

- `properties`: Kafka's client properties that mean something here. `connecting`: the client that they describe.
- `driving`: an event loop on a thread of its own, for callers that do not await.
- `cluster`: which topics and partitions there are, and where partitions begin and end.
- `sampling`, `cutting`: how dense a partition is, from a few small fetches, and ranges of like size. Both pure.
  `surveying` takes the samples.
- `prefetching`: one partition's bytes, fetched ahead within a bound. `counting`: how far records and bytes reach.
- `leasing`: files that a range's leader lends. `segment_files`: their bytes. `sourcing`: these, or Fetch.
- `reading`: one range as Arrow batches. `table_view`: the latest record of each key in a range.
- `topic_reading`: `read`, for people.

Only the last five need the compiled reader, and some of them pyarrow; they are imported when they are first asked for.
Must not know Spark, nor a broker's insides.
"""

from typing import TYPE_CHECKING, Any

from lamina.arrow.errors import DataLoss, ReadError

if TYPE_CHECKING:
    from lamina.arrow.topic_reading import read

__all__ = ["DataLoss", "ReadError", "read"]


def __getattr__(name: str) -> Any:
    if name != "read":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from lamina.arrow.topic_reading import read

    return read
