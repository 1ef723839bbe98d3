"""Where the metadata is in ZooKeeper: Kafka's paths (zookeeper.md 6.1), and ``/lamina`` for what Kafka does not keep.

Owns the paths of single things. Must not know what is at them.
"""

from lamina.image.image import ConfigResource, ResourceType
from lamina.store.znode_values import format_id, format_name, parse_name

TOPICS = "/brokers/topics"
DELETE_TOPICS = "/admin/delete_topics"
CONFIGS = {
    ResourceType.TOPIC: "/config/topics",
    ResourceType.BROKER: "/config/brokers",
    ResourceType.GROUP: "/config/groups",
}
MADE_ON = "/lamina/topics"
DELETIONS = "/lamina/deletions"
FEATURES = "/lamina/features"
CONTAINERS = (TOPICS, DELETE_TOPICS, *CONFIGS.values(), MADE_ON, DELETIONS)
"""What must be there before anything is written."""

_ALL_BROKERS = "<default>"


def topic_path(name: str) -> str:
    return f"{TOPICS}/{name}"


def partitions_path(name: str) -> str:
    return f"{TOPICS}/{name}/partitions"


def partition_path(name: str, index: int) -> str:
    return f"{TOPICS}/{name}/partitions/{index}"


def state_path(name: str, index: int) -> str:
    return f"{TOPICS}/{name}/partitions/{index}/state"


def delete_topic_path(name: str) -> str:
    return f"{DELETE_TOPICS}/{name}"


def made_on_path(name: str) -> str:
    return f"{MADE_ON}/{name}"


def deletion_path(topic_id: bytes) -> str:
    return f"{DELETIONS}/{format_id(topic_id)}"


def config_path(resource: ConfigResource) -> str:
    is_for_all = resource.type is ResourceType.BROKER and not resource.name
    return f"{CONFIGS[resource.type]}/{_ALL_BROKERS if is_for_all else format_name(resource.name)}"


def config_resource(type_: ResourceType, path: str) -> ConfigResource:
    part = path.rpartition("/")[2]
    is_for_all = type_ is ResourceType.BROKER and part == _ALL_BROKERS
    return ConfigResource(type_, "" if is_for_all else parse_name(part))
