"""The metadata's values in a store: a sentence that names the path, or an image that is stored and read again alike."""

from collections.abc import Iterable, Sequence

from fuzz.choices import Choices
from fuzz.files import unpack_files
from lamina.image.image import Image
from lamina.store.interface import Create, Delete, Entry, Operation, Set, StoreError, Watcher
from lamina.store.metadata import MetadataStore
from lamina.store.producer_ids import NextId, ProducerIds

PATHS = (
    "/format",
    "/cluster/id",
    "/controller",
    "/features",
    "/brokers/1",
    "/topics/orders",
    "/partitions/orders",
    "/configs/topics/orders",
    "/configs/brokers/<default>",
    NextId.path,
)


class DictStore:
    """A store without a disk."""

    def __init__(self, entries: dict[str, bytes]) -> None:
        self._entries = entries

    def get(self, path: str) -> Entry | None:
        value = self._entries.get(path)
        return None if value is None else Entry(value, 0)

    def get_many(self, paths: Iterable[str]) -> dict[str, Entry]:
        return {path: Entry(self._entries[path], 0) for path in paths if path in self._entries}

    def children(self, path: str) -> list[str]:
        return sorted({found[len(path) + 1 :].partition("/")[0] for found in self.below(path)})

    def below(self, path: str) -> dict[str, Entry]:
        return {
            found: Entry(value, 0) for found, value in sorted(self._entries.items()) if found.startswith(f"{path}/")
        }

    def transact(self, operations: Sequence[Operation]) -> None:
        for operation in operations:
            if isinstance(operation, (Create, Set)):
                self._entries[operation.path] = operation.value
            elif isinstance(operation, Delete):
                del self._entries[operation.path]

    def watch(self, path: str, watcher: Watcher) -> None:
        pass

    def close(self) -> None:
        pass


def one(data: bytes) -> None:
    entries = unpack_files(PATHS, Choices(data))
    try:
        block = ProducerIds(DictStore(dict(entries))).next_block()
    except StoreError:
        pass
    else:
        assert 0 <= block.start < block.stop <= 2**63
    try:
        image = MetadataStore(DictStore(dict(entries)), "cluster").image
    except StoreError:
        return
    _check(image)
    empty = DictStore({})
    MetadataStore(empty, image.cluster_id).save(image)
    assert MetadataStore(empty, "another").image == image


def _check(image: Image) -> None:
    for topic in image.topics.values():
        assert len(topic.id) == 16
        for partition in topic.partitions:
            assert partition.replicas
            numbers = (partition.leader, partition.leader_epoch, *partition.replicas, *partition.isr)
            assert all(type(number) is int for number in (*numbers, *partition.made_on))
    for broker in image.brokers.values():
        assert all(endpoint.port in range(65536) for endpoint in broker.endpoints.values())
