"""Who a directory belongs to, and the mark of a clean stop."""

from fuzz.choices import Choices
from fuzz.files import scratch
from lamina.log.clean_shutdown import CLEAN_SHUTDOWN, read_clean_shutdown, write_clean_shutdown
from lamina.log.files import Disk
from lamina.log.identity import (
    META_PROPERTIES,
    PARTITION_METADATA,
    IdentityError,
    read_meta_properties,
    read_topic_id,
    write_meta_properties,
    write_topic_id,
)

NAMES = (META_PROPERTIES, PARTITION_METADATA, CLEAN_SHUTDOWN)


def one(data: bytes) -> None:
    choices = Choices(data)
    name = choices.one_of(NAMES)
    with scratch({name: choices.rest()}) as root:
        disk, directory = Disk(), str(root)
        try:
            if name == META_PROPERTIES:
                identity = read_meta_properties(disk, directory)
                assert identity is not None
                write_meta_properties(disk, directory, identity)
                assert read_meta_properties(disk, directory) == identity
            elif name == PARTITION_METADATA:
                topic_id = read_topic_id(disk, directory)
                assert topic_id is not None
                assert len(topic_id) == 16
                write_topic_id(disk, directory, topic_id)
                assert read_topic_id(disk, directory) == topic_id
            else:
                broker_epoch = read_clean_shutdown(disk, directory)
                assert broker_epoch is not None
                write_clean_shutdown(disk, directory, broker_epoch)
                assert read_clean_shutdown(disk, directory) == broker_epoch
        except IdentityError:
            pass
