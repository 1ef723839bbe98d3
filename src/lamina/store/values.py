"""The values in a cluster store, as JSON.

Owns how each part of the metadata is written as bytes. A topic is two values: what it is (its id, who keeps its
partitions) and the state of its partitions, which changes far more often; the latter by columns, so that ten
thousand partitions fit one value. Must not know paths, nor who reads.
"""

import json
from collections.abc import Mapping
from typing import Any

from lamina.image.image import Broker, Features
from lamina.image.topic import Partition, Topic
from lamina.settings.listeners import Listener

# Made once: json.dumps makes another encoder for every call that is not plain.
_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def dump(value: Any) -> bytes:
    return _ENCODER.encode(value).encode()


def load(data: bytes) -> Any:
    return json.loads(data)


def load_number(data: bytes) -> int:
    return int(load(data))


def load_text(data: bytes) -> str:
    return str(load(data))


def dump_topic(topic: Topic) -> bytes:
    return dump(
        {
            "id": topic.id.hex(),
            "is_being_deleted": topic.is_being_deleted,
            "replicas": [partition.replicas for partition in topic.partitions],
        }
    )


def dump_partitions(topic: Topic) -> bytes:
    return dump(
        {
            "leader": [partition.leader for partition in topic.partitions],
            "leader_epoch": [partition.leader_epoch for partition in topic.partitions],
            "isr": [partition.isr for partition in topic.partitions],
            "made_on": [partition.made_on for partition in topic.partitions],
        }
    )


def load_topic(name: str, topic: bytes, partitions: bytes) -> Topic:
    what = load(topic)
    state = load(partitions)
    columns = (what["replicas"], state["leader"], state["leader_epoch"], state["isr"], state["made_on"])
    return Topic(
        name,
        bytes.fromhex(what["id"]),
        tuple(
            Partition(tuple(replicas), int(leader), int(leader_epoch), tuple(isr), tuple(made_on))
            for replicas, leader, leader_epoch, isr, made_on in zip(*columns, strict=True)
        ),
        bool(what["is_being_deleted"]),
    )


def dump_broker(broker: Broker) -> bytes:
    endpoints = [
        {"name": endpoint.name, "protocol": endpoint.protocol, "host": endpoint.host, "port": endpoint.port}
        for endpoint in broker.endpoints.values()
    ]
    return dump({"endpoints": endpoints, "rack": broker.rack})


def load_broker(broker_id: str, data: bytes) -> Broker:
    value = load(data)
    endpoints = (Listener(**endpoint) for endpoint in value["endpoints"])
    return Broker(int(broker_id), {endpoint.name: endpoint for endpoint in endpoints}, value["rack"])


def dump_features(features: Features) -> bytes:
    return dump({"levels": dict(features.levels), "epoch": features.epoch})


def load_features(data: bytes) -> Features:
    value = load(data)
    return Features({str(name): int(level) for name, level in value["levels"].items()}, int(value["epoch"]))


def dump_configs(configs: Mapping[str, str]) -> bytes:
    return dump(dict(configs))


def load_configs(data: bytes) -> dict[str, str]:
    return {str(name): str(value) for name, value in load(data).items()}
