"""Create topics one after the other and say so after each; runs until it is killed.

Each topic is one transaction of three entries, and its configs name the topic before it: a half change shows.
"""

import sys
from itertools import count

from lamina.image.changes import begin_leader_epochs, create_topic, set_configs
from lamina.image.image import ConfigResource, ResourceType
from lamina.store.metadata import MetadataStore
from lamina.store.sqlite import SqliteStore
from tests.image.steps import CLUSTER_ID, topic_id


def write_until_killed(path: str) -> None:
    metadata = MetadataStore(SqliteStore(path), CLUSTER_ID)
    for number in count(len(metadata.image.topics)):
        image = create_topic(metadata.image, f"t{number}", topic_id(number), [(0,)] * 3)
        image = set_configs(image, ConfigResource(ResourceType.TOPIC, f"t{number}"), {"number": str(number)})
        # All topics are in the same epoch, so that a transaction touches old entries too.
        metadata.save(begin_leader_epochs(image, {(f"t{number}", index): number for index in range(3)}))
        print(number, flush=True)


if __name__ == "__main__":
    write_until_killed(sys.argv[1])
