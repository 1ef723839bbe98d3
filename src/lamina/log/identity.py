"""Who a directory belongs to: ``meta.properties`` of a log directory, ``partition.metadata`` of a partition.

Owns both formats (formats.md §2.5) and Kafka's ids: 16 bytes as 22 characters of URL-safe base64. Must not
decide whether an identity is the right one.
"""

import binascii
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from uuid import uuid4

from lamina.log.files import Disk, read_file, write_new_file
from lamina.settings.properties import PropertiesError, dump, load

META_PROPERTIES = "meta.properties"
PARTITION_METADATA = "partition.metadata"

_NODE_ID = re.compile(r"-?[0-9]{1,10}")


class IdentityError(ValueError):
    """An identity file that cannot be read; the sentence says why."""


@dataclass(slots=True, frozen=True)
class Identity:
    """What a log directory says of itself; what it does not say is ``None``."""

    cluster_id: str | None
    node_id: int | None
    directory_id: str | None


def new_id() -> str:
    """A random id. Kafka avoids a leading dash, which its tools would take for an option."""
    while True:
        text = format_id(uuid4().bytes)
        if not text.startswith("-"):
            return text


def format_id(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")


def parse_id(text: str) -> bytes:
    try:
        raw = urlsafe_b64decode(text + "==")
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) != 16 or len(text) != 22:
        raise IdentityError(f"{text!r} is not an id of 22 base64 characters")
    return raw


def read_meta_properties(disk: Disk, directory: str) -> Identity | None:
    """The identity of a log directory; ``None`` when it has none yet. Versions 0 and 1 are known."""
    path = f"{directory}/{META_PROPERTIES}"
    try:
        properties = load(read_file(disk, path))
    except FileNotFoundError:
        return None
    except PropertiesError as error:
        raise IdentityError(f"{path}: {error}") from None
    version = properties.get("version", "0")
    if version not in ("0", "1"):
        raise IdentityError(f"{path} has version {version}; 0 and 1 are known")
    node_id = properties.get("node.id" if version == "1" else "broker.id")
    if node_id is not None and not _NODE_ID.fullmatch(node_id):
        raise IdentityError(f"{path} names node {node_id!r}, which is not a number")
    return Identity(
        properties.get("cluster.id"),
        None if node_id is None else int(node_id),
        properties.get("directory.id"),
    )


def write_meta_properties(disk: Disk, directory: str, identity: Identity) -> None:
    properties = {
        "version": "1",
        "cluster.id": identity.cluster_id,
        "node.id": identity.node_id,
        "directory.id": identity.directory_id,
    }
    known = {name: str(value) for name, value in properties.items() if value is not None}
    write_new_file(disk, f"{directory}/{META_PROPERTIES}", dump(known))


def identify(disk: Disk, path: str, node_id: int, cluster_id: str | None) -> Identity:
    """Who a log directory belongs to, which must be this node; a new one is given an identity."""
    identity = read_meta_properties(disk, path)
    if identity is None:
        identity = Identity(cluster_id or new_id(), node_id, new_id())
        write_meta_properties(disk, path, identity)
    if identity.node_id is not None and identity.node_id != node_id:
        raise IdentityError(f"{path} belongs to node {identity.node_id}, this is node {node_id}")
    if cluster_id is not None and identity.cluster_id is not None and identity.cluster_id != cluster_id:
        raise IdentityError(f"{path} belongs to cluster {identity.cluster_id}, this one is {cluster_id}")
    return identity


def format_partition_metadata(topic_id: bytes) -> bytes:
    return f"version: 0\ntopic_id: {format_id(topic_id)}".encode()


def parse_partition_metadata(data: bytes) -> bytes:
    """The topic id; raises :class:`IdentityError` for another version, a bad id or the zero id."""
    fields = {}
    for line in data.decode(errors="replace").splitlines():
        name, _, value = line.partition(":")
        fields[name.strip()] = value.strip()
    if fields.get("version") != "0":
        raise IdentityError(f"a partition.metadata has version {fields.get('version')!r}, not 0")
    topic_id = parse_id(fields.get("topic_id", ""))
    if not any(topic_id):
        raise IdentityError("a partition.metadata names the zero id")
    return topic_id


def read_topic_id(disk: Disk, directory: str) -> bytes | None:
    """The topic id of a partition's directory; ``None`` when the file is not there."""
    try:
        return parse_partition_metadata(read_file(disk, f"{directory}/{PARTITION_METADATA}"))
    except FileNotFoundError:
        return None


def write_topic_id(disk: Disk, directory: str, topic_id: bytes, *, sync: bool = True) -> None:
    write_new_file(disk, f"{directory}/{PARTITION_METADATA}", format_partition_metadata(topic_id), sync=sync)
