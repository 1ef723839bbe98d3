"""A broker with two log directories and a topic, and a move between them that stands still where a test wants it."""

from pathlib import Path

from lamina.broker.partitions.partition import Partition
from lamina.log.directory import LogDirectory
from lamina.records.batch import read_header
from lamina.settings.resolve import resolve_broker
from tests.broker.in_process import InProcessBroker

ALTER_REPLICA_LOG_DIRS, DESCRIBE_LOG_DIRS = (34, 2), (35, 4)
FETCH = (1, 12)
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
NAMES = ("one", "two")
ONE_BATCH = {"replica.fetch.max.bytes": "1"}
"""Is copied at a time."""
KEY = ("t", 0)


class TwoDirectories:
    def __init__(self, tmp_path: Path, **settings: str) -> None:
        self.paths = [tmp_path / name for name in NAMES]
        given = {name.replace("_", "."): value for name, value in settings.items()}
        own = {"log.dirs": ",".join(map(str, self.paths)), **ONE_BATCH, "log.segment.delete.delay.ms": "0"}
        self.broker = InProcessBroker(tmp_path / "data", {**own, **given})

    # What there is

    @property
    def partition(self) -> Partition:
        return self.broker.parts.partitions.get(*KEY)

    @property
    def directories(self) -> list[LogDirectory]:
        return list(self.broker.parts.directories)

    @property
    def here(self) -> LogDirectory:
        return self.broker.parts.directories.of[KEY]

    @property
    def elsewhere(self) -> LogDirectory:
        return next(directory for directory in self.directories if directory is not self.here)

    def names(self) -> list[list[str]]:
        """The partitions' directories in each of the two; those that wait for their removal are left out."""
        every = [[entry.name for entry in path.iterdir() if entry.is_dir()] for path in self.paths]
        return [sorted(name for name in names if not name.endswith("-delete")) for names in every]

    def values(self) -> list[tuple[int, bytes]]:
        """Offset and bytes of each batch that a consumer is given."""
        data: list[tuple[int, bytes]] = []
        offset = self.partition.log.log_start_offset
        while offset < self.partition.high_watermark:
            lease = self.partition.log.read(offset, 1, self.partition.high_watermark)
            if lease is None:
                break
            with lease:
                batch = lease.read()
            header = read_header(batch)
            data.append((header.base_offset, batch))
            offset = header.next_offset
        return data

    # What is done

    def begin(self, path: str | None = None, topic: str = "t", partition: int = 0) -> int:
        """Ask for the move to the other directory; returns the error code."""
        wanted = {"name": topic, "partitions": [partition]}
        directory = {"path": path or self.elsewhere.path, "topics": [wanted]}
        response = self.broker.ask(*ALTER_REPLICA_LOG_DIRS, dirs=[directory])
        ((result,),) = [topic.partitions for topic in response.results]
        return int(result.error_code)

    def described(self) -> dict[str, list[tuple[bool, int]]]:
        """By the name of the directory: whether each log of the partition there is a future one, and its lag."""
        response = self.broker.ask(*DESCRIBE_LOG_DIRS, topics=None)
        return {
            Path(result.log_dir).name: [
                (one.is_future_key, one.offset_lag)
                for topic in result.topics
                if topic.name == "t"
                for one in topic.partitions
            ]
            for result in response.results
        }

    def finish(self) -> None:
        """Until no move is under way."""
        moves = self.broker.parts.moves
        moves.settings_changed(resolve_broker(sets=ONE_BATCH))
        self.broker.run_until(lambda: not moves.under_way)

    def hold(self) -> None:
        """Have moves copy one batch and wait then."""
        self.broker.parts.moves.settings_changed(resolve_broker(sets={**ONE_BATCH, RATE: "1"}))

    def begin_and_hold(self) -> int:
        """A move that has copied at least one batch, and waits. Returns how many offsets it lacks."""
        self.hold()
        assert self.begin() == 0
        moves = self.broker.parts.moves
        end = self.partition.log.log_end_offset
        self.broker.run_until(lambda: 0 < moves.max_lag < end)
        return moves.max_lag

    def produce(self, batches: int = 1) -> None:
        for _ in range(batches):
            self.broker.produce("t", 1)

    def close(self) -> None:
        self.broker.close()
