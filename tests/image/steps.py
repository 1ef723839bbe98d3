"""Random walks over images: small steps, each one a legal change, drawn by Hypothesis."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256

from hypothesis import strategies as st

from lamina.image import changes
from lamina.image.image import NO_CONTROLLER, Broker, ConfigResource, Image, ResourceType
from lamina.image.topic import Topic
from lamina.security.acls import AccessRule, Operation, PatternType, Permission, ResourcePattern
from lamina.security.acls import ResourceType as AclResourceType
from lamina.security.quotas import QuotaEntity
from lamina.security.scram_credential import ScramCredential, ScramMechanism
from lamina.settings.listeners import Listener

CLUSTER_ID = "sVIXKbHTQ5-L0XrbMqFPDg"
NAMES = ("a", "orders", "x.y-z_0", "__consumer_offsets")

Step = tuple[str, int, int]
"""What to do, and two numbers that say to what and how."""


def topic_id(seed: int, name: str = "") -> bytes:
    return sha256(f"{name}{seed}".encode()).digest()[:16]


def broker(broker_id: int, port: int = 9092, rack: str | None = None) -> Broker:
    return Broker(broker_id, {"PLAINTEXT": Listener("PLAINTEXT", "PLAINTEXT", "localhost", port)}, rack)


def _create(image: Image, a: int, b: int) -> Image:
    name = NAMES[a % len(NAMES)]
    replicas = [(0,), (0, 1), (2, 1, 0)][b % 3]
    if name in image.topics:
        return image
    return changes.create_topic(image, name, topic_id(b, name), [replicas] * (1 + b % 4))


def _adopt(image: Image, a: int, b: int) -> Image:
    name = NAMES[a % len(NAMES)]
    if name in image.topics:
        return image
    return changes.adopt_topic(image, name, topic_id(b, name), 1 + b % 4, broker_id=0)


def _recreate(image: Image, topic: Topic, b: int) -> Image:
    removed = changes.remove_topic(image, topic.name)
    return changes.create_topic(removed, topic.name, topic_id(b, topic.name), [(0,)] * (1 + b % 4))


def _add_partitions(image: Image, topic: Topic, b: int) -> Image:
    return image if topic.is_being_deleted else changes.add_partitions(image, topic.name, [(b % 3,)] * (1 + b % 2))


def _mark_deleted(image: Image, topic: Topic, _: int) -> Image:
    return image if topic.is_being_deleted else changes.mark_deleted(image, topic.name)


def _mark_made(image: Image, topic: Topic, b: int) -> Image:
    return changes.mark_made(image, b % 3, [(topic.name, b % len(topic.partitions))])


def _move_leader(image: Image, topic: Topic, b: int) -> Image:
    index = b % len(topic.partitions)
    partition = replace(topic.partitions[index], replicas=(b % 3, 3), leader=b % 3, isr=(b % 3,))
    return changes.set_partitions(image, {(topic.name, index): partition})


def _reassign(image: Image, topic: Topic, b: int) -> Image:
    """Also one after the other, and to an end."""
    index = b % len(topic.partitions)
    partition = topic.partitions[index]
    adding = ((), (4,), (5, 6))[b % 3]
    kept = partition.target
    reassigned = replace(partition, replicas=(*adding, *kept), adding=adding, removing=kept[b % 2 : 1])
    return changes.set_partitions(image, {(topic.name, index): reassigned})


def _change_isr(image: Image, topic: Topic, b: int) -> Image:
    index = b % len(topic.partitions)
    partition = topic.partitions[index]
    changed = replace(partition, isr=partition.replicas[: 1 + b % 3], is_recovering=b % 2 == 1)
    return changes.set_partitions(image, {(topic.name, index): changed})


def _drain(image: Image, a: int, b: int) -> Image:
    known = image.brokers.get(a % 3)
    if known is None:
        return image
    offline = frozenset((name, b % 4) for name in image.topics)
    return changes.register_broker(image, replace(known, epoch=b, is_draining=b % 2 == 1, offline=offline))


def _note_deletion(image: Image, a: int, b: int) -> Image:
    """Two numbers name the same topic, so that entries change and go."""
    away = tuple(range(b % 3))
    every = {**image.deletions, topic_id(a % 2): away}
    return replace(image, deletions={key: brokers for key, brokers in every.items() if brokers})


def _set_configs(image: Image, a: int, b: int) -> Image:
    resources = [
        *(ConfigResource(ResourceType.TOPIC, name) for name in image.topics),
        ConfigResource(ResourceType.BROKER, ""),
        ConfigResource(ResourceType.BROKER, "1"),
    ]
    configs = [{}, {"retention.ms": str(b)}, {"retention.ms": "ü", "cleanup.policy": ""}][b % 3]
    return changes.set_configs(image, resources[a % len(resources)], configs)


def _set_acls(image: Image, a: int, b: int) -> Image:
    type_, kind = list(AclResourceType)[1 + a % 6], list(PatternType)[2 + b % 2]
    rules = [
        AccessRule(
            ("User:alice", "User:CN=a/b,OU=ü")[n % 2], "*", list(Operation)[1 + (a + n) % 14], Permission(2 + n % 2)
        )
        for n in range(b % 4)
    ]
    return changes.set_acls(image, {ResourcePattern(type_, ("*", "a/b", ".", "ü%")[a % 4], kind): frozenset(rules)})


def _set_credentials(image: Image, a: int, b: int) -> Image:
    credential = ScramCredential(b"salt", bytes([b % 256]), b"\xff\x00", 4096 + b)
    credentials = {mechanism: credential for mechanism in ScramMechanism if b % 3 >= mechanism}
    return changes.set_scram_credentials(image, {("alice", "a/b", "<default>")[a % 3]: credentials})


def _set_quotas(image: Image, a: int, b: int) -> Image:
    entities: list[QuotaEntity] = [
        (("user", "alice"),),
        (("user", None),),
        (("client-id", "a/b"), ("user", "alice")),
        (("client-id", None), ("user", "<default>")),
        (("client-id", None),),
        (("ip", "127.0.0.1"),),
    ]
    quotas: dict[str, float] = [{}, {"producer_byte_rate": float(b)}, {"request_percentage": 0.5 + b}][b % 3]
    return changes.set_quotas(image, {entities[a % len(entities)]: quotas})


STEPS: dict[str, Callable[[Image, int, int], Image]] = {
    "create": _create,
    "adopt": _adopt,
    "set configs": _set_configs,
    "set acls": _set_acls,
    "set credentials": _set_credentials,
    "set quotas": _set_quotas,
    "begin epochs": lambda image, a, b: changes.begin_leader_epochs(image, {(NAMES[a % len(NAMES)], 0): b}),
    "set feature": lambda image, a, b: changes.set_feature(image, f"feature{a % 2}", b % 3),
    "register": lambda image, a, b: changes.register_broker(image, broker(a % 3, b, [None, "r1"][b % 2])),
    "leave": lambda image, a, _: changes.remove_broker(image, a % 3),
    "elect": lambda image, a, _: changes.set_controller(image, (a % 3) or NO_CONTROLLER),
}
CLUSTER_STEPS: dict[str, Callable[[Image, int, int], Image]] = {
    "begin controller epoch": lambda image, _, b: replace(image, controller_epoch=b),
    "drain": _drain,
    "note deletion": _note_deletion,
}
"""What a broker that is alone never does, and its store does not keep."""
TOPIC_STEPS: dict[str, Callable[[Image, Topic, int], Image]] = {
    "recreate": _recreate,
    "add partitions": _add_partitions,
    "mark deleted": _mark_deleted,
    "remove": lambda image, topic, _: changes.remove_topic(image, topic.name),
    "mark made": _mark_made,
    "move leader": _move_leader,
    "reassign": _reassign,
    "change isr": _change_isr,
}


def _walks(*names: str) -> st.SearchStrategy[list[Step]]:
    """No number comes twice in a walk, for topic ids are made of them and none is ever used again."""
    step = st.tuples(st.sampled_from(names), st.integers(0, 100), st.integers(0, 10_000))
    return st.lists(step, max_size=25, unique_by=lambda step: step[2])


walks = _walks(*STEPS, *TOPIC_STEPS)
cluster_walks = _walks(*STEPS, *TOPIC_STEPS, *CLUSTER_STEPS)


def take(image: Image, step: Step) -> Image:
    """The next image; the same one where the step fits nothing."""
    name, a, b = step
    if name in STEPS:
        return STEPS[name](image, a, b)
    if name in CLUSTER_STEPS:
        return CLUSTER_STEPS[name](image, a, b)
    if not image.topics:
        return image
    return TOPIC_STEPS[name](image, list(image.topics.values())[a % len(image.topics)], b)


def walk(steps: list[Step]) -> Iterator[Image]:
    image = Image(CLUSTER_ID)
    for step in steps:
        image = take(image, step)
        yield image
