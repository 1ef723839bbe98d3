"""A small cluster for tests of the controller: brokers by number, one topic, and partitions as they are looked at."""

from collections.abc import Iterable
from dataclasses import replace

from lamina.controller.brokers import Arrival
from lamina.image.changes import create_topic, register_broker, set_partitions
from lamina.image.image import Broker, Image
from lamina.image.topic import Partition
from lamina.topic_partition import TopicPartition
from tests.image import steps

TOPIC = "orders"
TOPIC_ID = steps.topic_id(1)
KEY: TopicPartition = (TOPIC, 0)


def broker(broker_id: int, epoch: int = 10) -> Broker:
    return replace(steps.broker(broker_id), epoch=epoch)


def arrival(broker_id: int, epoch: int = 10, lost: Iterable[TopicPartition] = ()) -> Arrival:
    return Arrival(broker(broker_id, epoch), frozenset(lost))


def cluster(*partitions: Partition, brokers: Iterable[int] = (1, 2, 3)) -> Image:
    """A topic with these partitions, and which brokers are there."""
    image = brokers_alone(brokers)
    image = create_topic(image, TOPIC, TOPIC_ID, [partition.replicas for partition in partitions])
    return set_partitions(image, {(TOPIC, index): partition for index, partition in enumerate(partitions)})


def brokers_alone(brokers: Iterable[int]) -> Image:
    image = Image(steps.CLUSTER_ID)
    for broker_id in brokers:
        image = register_broker(image, broker(broker_id))
    return image


def partition(leader: int, isr: tuple[int, ...], replicas: tuple[int, ...] = (1, 2, 3)) -> Partition:
    """In leader epoch 5, made on all its replicas."""
    return Partition(replicas, leader, 5, isr, made_on=replicas)


def state(image: Image, index: int = 0) -> tuple[int, int, tuple[int, ...]]:
    """Leader, leader epoch, in-sync set."""
    found = image.topics[TOPIC].partitions[index]
    return found.leader, found.leader_epoch, found.isr
