"""Where the metadata is in ZooKeeper: Kafka's paths (zookeeper.md 6.1), and ``/lamina`` for what Kafka does not keep.

Owns the paths of single things. Must not know what is at them.
"""

from lamina.image.image import ConfigResource, ResourceType
from lamina.security.acls import PatternType, ResourcePattern
from lamina.security.acls import ResourceType as AclResourceType
from lamina.security.quotas import QuotaEntity
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
LITERAL_ACLS = "/kafka-acl"
EXTENDED_ACLS = "/kafka-acl-extended"
USERS = "/config/users"
"""Quotas of users, and beside them their SCRAM credentials."""
CLIENTS = "/config/clients"
IPS = "/config/ips"
CONTAINERS = (
    TOPICS,
    DELETE_TOPICS,
    *CONFIGS.values(),
    MADE_ON,
    DELETIONS,
    LITERAL_ACLS,
    EXTENDED_ACLS,
    USERS,
    CLIENTS,
    IPS,
)
"""What must be there before anything is written."""

DEFAULT = "<default>"
"""What stands for all brokers, or for everybody who has no quotas of their own."""
_ACL_TYPES = {
    AclResourceType.TOPIC: "Topic",
    AclResourceType.GROUP: "Group",
    AclResourceType.CLUSTER: "Cluster",
    AclResourceType.TRANSACTIONAL_ID: "TransactionalId",
    AclResourceType.DELEGATION_TOKEN: "DelegationToken",
    AclResourceType.USER: "User",
}
_TYPES_BY_NAME = {name: type_ for type_, name in _ACL_TYPES.items()}


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
    return f"{CONFIGS[resource.type]}/{DEFAULT if is_for_all else format_name(resource.name)}"


def config_resource(type_: ResourceType, path: str) -> ConfigResource:
    part = path.rpartition("/")[2]
    is_for_all = type_ is ResourceType.BROKER and part == DEFAULT
    return ConfigResource(type_, "" if is_for_all else parse_name(part))


def acl_path(pattern: ResourcePattern) -> str:
    above = LITERAL_ACLS if pattern.pattern is PatternType.LITERAL else f"{EXTENDED_ACLS}/prefixed"
    return f"{above}/{_ACL_TYPES[pattern.type]}/{format_name(pattern.name)}"


def acl_pattern(path: str) -> ResourcePattern | None:
    """``None`` for a path that has others below it and is no pattern itself."""
    parts = path.split("/")[1:]
    if parts[0] == LITERAL_ACLS[1:]:
        kind, rest = PatternType.LITERAL, parts[1:]
    else:
        kind, rest = PatternType.PREFIXED, parts[2:]
    return ResourcePattern(_TYPES_BY_NAME[rest[0]], parse_name(rest[1]), kind) if len(rest) == 2 else None


def user_path(user: str) -> str:
    return f"{USERS}/{format_name(user)}"


def quota_path(entity: QuotaEntity) -> str:
    names = {kind: DEFAULT if name is None else format_name(name) for kind, name in entity}
    if "ip" in names:
        return f"{IPS}/{names['ip']}"
    if "user" not in names:
        return f"{CLIENTS}/{names['client-id']}"
    user = f"{USERS}/{names['user']}"
    return f"{user}/clients/{names['client-id']}" if "client-id" in names else user


def quota_entity(path: str) -> QuotaEntity | None:
    """``None`` for a path that is only above others."""
    kind, *parts = path.split("/")[2:]
    names = [None if part == DEFAULT else parse_name(part) for part in parts[::2]]
    if kind == "ips":
        return (("ip", names[0]),)
    if kind == "clients":
        return (("client-id", names[0]),)
    if len(parts) == 1:
        return (("user", names[0]),)
    return (("client-id", names[1]), ("user", names[0])) if len(parts) == 3 else None


def parents_below_container(path: str) -> list[str]:
    """The paths above a path of access rules or quotas that are no container, from the top down."""
    container = next(one for one in (LITERAL_ACLS, EXTENDED_ACLS, USERS, CLIENTS, IPS) if path.startswith(f"{one}/"))
    parts = path[len(container) + 1 :].split("/")[:-1]
    return [f"{container}/{'/'.join(parts[:depth])}" for depth in range(1, len(parts) + 1)]
