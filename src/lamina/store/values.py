"""The values in a cluster store, as JSON.

Owns how each part of the metadata is written as bytes. A topic is two values: what it is (its id, who keeps its
partitions) and the state of its partitions, which changes far more often; the latter by columns, so that ten
thousand partitions fit one value. What is read is believed only in the types and sizes that are written: anything
else raises ``ValueError``, ``KeyError``, ``TypeError`` or ``AttributeError``. Must not know paths, nor who reads.
"""

import json
from collections.abc import Mapping
from typing import Any

from lamina.image.image import Broker, Features
from lamina.image.topic import Partition, Topic
from lamina.settings.listeners import PORT_MAX, Listener

_TOPIC_ID_BYTES = 16

# Made once: json.dumps makes another encoder for every call that is not plain.
_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def dump(value: Any) -> bytes:
    return _ENCODER.encode(value).encode()


def load(data: bytes) -> Any:
    try:
        value = json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if b"\\u" in data:
        dump(value)  # half of a surrogate pair cannot be written again
    return value


def load_number(data: bytes) -> int:
    return number(load(data))


def load_text(data: bytes) -> str:
    return text(load(data))


def number(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"{value!r} is not a whole number")
    return value


def numbers(value: Any) -> tuple[int, ...]:
    return tuple(map(number, value))


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not text")
    return value


def dump_topic(topic: Topic) -> bytes:
    what: dict[str, Any] = {
        "id": topic.id.hex(),
        "is_being_deleted": topic.is_being_deleted,
        "replicas": [partition.replicas for partition in topic.partitions],
    }
    if any(partition.is_reassigning for partition in topic.partitions):
        what["adding"] = [partition.adding for partition in topic.partitions]
        what["removing"] = [partition.removing for partition in topic.partitions]
    return dump(what)


def dump_partitions(topic: Topic) -> bytes:
    return dump(
        {
            "leader": [partition.leader for partition in topic.partitions],
            "leader_epoch": [partition.leader_epoch for partition in topic.partitions],
            "isr": [partition.isr for partition in topic.partitions],
            "made_on": [partition.made_on for partition in topic.partitions],
            "partition_epoch": [partition.partition_epoch for partition in topic.partitions],
            "is_recovering": [int(partition.is_recovering) for partition in topic.partitions],
        }
    )


def load_topic(name: str, topic: bytes, partitions: bytes) -> Topic:
    what = load(topic)
    state = load(partitions)
    count = len(what["replicas"])
    columns = (
        what["replicas"],
        state["leader"],
        state["leader_epoch"],
        state["isr"],
        state["made_on"],
        # What was written before there were these has neither.
        state.get("partition_epoch", [0] * count),
        state.get("is_recovering", [0] * count),
        # Only where a partition is reassigned.
        what.get("adding", [()] * count),
        what.get("removing", [()] * count),
    )
    topic_id = bytes.fromhex(what["id"])
    if len(topic_id) != _TOPIC_ID_BYTES:
        raise ValueError(f"a topic id has {len(topic_id)} bytes")
    loaded = Topic(
        name,
        topic_id,
        tuple(
            Partition(
                numbers(replicas),
                number(leader),
                number(leader_epoch),
                numbers(isr),
                numbers(made_on),
                number(partition_epoch),
                bool(number(is_recovering)),
                numbers(adding),
                numbers(removing),
            )
            for replicas, leader, leader_epoch, isr, made_on, partition_epoch, is_recovering, adding, removing in zip(
                *columns, strict=True
            )
        ),
        bool(what["is_being_deleted"]),
    )
    if not all(partition.replicas for partition in loaded.partitions):
        raise ValueError("a partition has no replicas")
    return loaded


def dump_broker(broker: Broker) -> bytes:
    endpoints = [
        {"name": endpoint.name, "protocol": endpoint.protocol, "host": endpoint.host, "port": endpoint.port}
        for endpoint in broker.endpoints.values()
    ]
    features = {name: [levels[0], levels[-1]] for name, levels in broker.features.items()}
    return dump({"endpoints": endpoints, "rack": broker.rack, "features": features})


def load_broker(broker_id: str, data: bytes) -> Broker:
    value = load(data)
    endpoints = [_endpoint(**endpoint) for endpoint in value["endpoints"]]
    if not endpoints:
        raise ValueError("a broker has no endpoints")
    rack = value["rack"]
    return Broker(
        int(broker_id),
        {endpoint.name: endpoint for endpoint in endpoints},
        None if rack is None else text(rack),
        # What was written before there were these has none.
        features={
            name: range(number(low), number(high) + 1) for name, (low, high) in value.get("features", {}).items()
        },
    )


def _endpoint(name: Any, protocol: Any, host: Any, port: Any) -> Listener:
    if not 0 <= number(port) <= PORT_MAX:
        raise ValueError(f"{port} is no port")
    return Listener(text(name), text(protocol), text(host), port)


def dump_features(features: Features) -> bytes:
    return dump({"levels": dict(features.levels), "epoch": features.epoch})


def load_features(data: bytes) -> Features:
    value = load(data)
    return Features({name: number(level) for name, level in value["levels"].items()}, number(value["epoch"]))


def dump_configs(configs: Mapping[str, str]) -> bytes:
    return dump(dict(configs))


def load_configs(data: bytes) -> dict[str, str]:
    return {name: text(value) for name, value in load(data).items()}
