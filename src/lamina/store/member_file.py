"""What a member of a cluster remembers of it beside its logs: ``cluster.properties`` in its data directory.

Owns the file: the cluster's id, and the highest controller epoch that this broker has followed. An ensemble that is
behind it was wiped or restored, and must not be believed. Written whole, synced, under another name first.
"""

import os
from dataclasses import dataclass

from lamina.settings.properties import PropertiesError, dump, load
from lamina.store.interface import StoreError

FILE_NAME = "cluster.properties"
_VERSION = "1"


@dataclass(frozen=True, slots=True)
class MemberRecord:
    cluster_id: str
    controller_epoch: int = 0


def read_member_file(directory: str) -> MemberRecord | None:
    """``None`` for a broker that was never in a cluster. Raises :class:`StoreError`."""
    path = os.path.join(directory, FILE_NAME)
    try:
        with open(path, "rb") as file:
            properties = load(file.read())
    except FileNotFoundError:
        return None
    except (OSError, PropertiesError) as error:
        raise StoreError(f"{path} cannot be read: {error}") from error
    if properties.get("version") != _VERSION:
        raise StoreError(f"{path} was written by a newer Lamina: it has version {properties.get('version')}")
    try:
        return MemberRecord(properties["cluster.id"], int(properties["controller.epoch"]))
    except (KeyError, ValueError) as error:
        raise StoreError(f"{path} cannot be read: {error!r}") from None


def write_member_file(directory: str, record: MemberRecord) -> None:
    """Raises OSError."""
    path = os.path.join(directory, FILE_NAME)
    properties = {
        "version": _VERSION,
        "cluster.id": record.cluster_id,
        "controller.epoch": str(record.controller_epoch),
    }
    with open(path + ".tmp", "wb") as file:
        file.write(dump(properties))
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".tmp", path)
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
