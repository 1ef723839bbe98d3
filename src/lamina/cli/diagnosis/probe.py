"""Asking whoever listens at an address whether it is a Kafka broker, and which.

Three requests that every broker since Kafka 1.0 knows, over a plain socket; nothing is made or changed. Must not
trust the answers: anything may listen there.
"""

import socket
from dataclasses import dataclass
from typing import Any

from lamina.client.own_connection import ask_over
from lamina.wire.primitives import MalformedRequest
from lamina.wire.versions import nested_schema, request_schema

API_VERSIONS, METADATA, DESCRIBE_CONFIGS = 18, 3, 32
DATA_DIR = "lamina.data.dir"

_BROKER = 4
_LARGEST_ANSWER_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Answering:
    """A broker that answered; it is Lamina's if it has Lamina's settings."""

    is_lamina: bool = False
    node_id: int | None = None
    cluster_id: str | None = None

    def __str__(self) -> str:
        node = "" if self.node_id is None else f", node {self.node_id}"
        cluster = "" if self.cluster_id is None else f", cluster {self.cluster_id}"
        return f"{'Lamina' if self.is_lamina else 'a Kafka broker'}{node}{cluster}"


def probe(host: str, port: int, seconds: float = 3.0) -> Answering | None:
    """``None`` if it does not speak Kafka, or not in time. Raises OSError when nobody can be connected to."""
    with socket.create_connection((host, port), timeout=seconds) as connection:
        try:
            if _ask(connection, request_schema(API_VERSIONS, 0)()).error_code:
                return None
        except (OSError, ValueError, MalformedRequest):
            return None
        try:
            return _identify(connection)
        except (OSError, ValueError, MalformedRequest, LookupError):
            # It spoke Kafka, and no more: with authentication it says nothing else to strangers.
            return Answering()


def _identify(connection: socket.socket) -> Answering:
    metadata = _ask(connection, request_schema(METADATA, 4)(topics=(), allow_auto_topic_creation=False))
    node_id = int(metadata.controller_id)
    schema = request_schema(DESCRIBE_CONFIGS, 1)
    resources = nested_schema(schema, "resources")
    asked = resources(resource_type=_BROKER, resource_name=str(node_id), configuration_keys=(DATA_DIR,))
    described = _ask(connection, schema(resources=(asked,), include_synonyms=False))
    is_lamina = any(config.name == DATA_DIR for config in described.results[0].configs)
    return Answering(is_lamina, node_id, metadata.cluster_id)


def _ask(connection: socket.socket, request: Any) -> Any:
    return ask_over(connection, request, "lamina-doctor", _LARGEST_ANSWER_BYTES)
