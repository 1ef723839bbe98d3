"""How to reach a cluster's ZooKeeper, read from a broker's settings.

Owns the form of ``zookeeper.connect`` and which settings need each other. Must not connect to anything.
"""

import re
from dataclasses import dataclass

from lamina.settings.broker import BROKER_ID, NODE_ID
from lamina.settings.definition import SettingError
from lamina.settings.listeners import PORT_MAX
from lamina.settings.values import BrokerSettings
from lamina.settings.zookeeper import (
    BROKER_ID_GENERATION_ENABLE,
    LAMINA_ZOOKEEPER_DIGEST,
    RESERVED_BROKER_MAX_ID,
    ZOOKEEPER_CONNECT,
    ZOOKEEPER_CONNECTION_TIMEOUT_MS,
    ZOOKEEPER_SESSION_TIMEOUT_MS,
    ZOOKEEPER_SET_ACL,
    ZOOKEEPER_SSL_CLIENT_ENABLE,
    ZOOKEEPER_SSL_ENDPOINT_IDENTIFICATION_ALGORITHM,
    ZOOKEEPER_SSL_KEYSTORE_LOCATION,
    ZOOKEEPER_SSL_KEYSTORE_PASSWORD,
    ZOOKEEPER_SSL_KEYSTORE_TYPE,
    ZOOKEEPER_SSL_TRUSTSTORE_LOCATION,
    ZOOKEEPER_SSL_TRUSTSTORE_TYPE,
)

DEFAULT_PORT = 2181
NO_ID = -1

_SERVER = re.compile(r"(\[[0-9A-Fa-f:.%]{1,64}\]|[A-Za-z0-9._-]{1,253})(?::([0-9]{1,5}))?")
_CHROOT = re.compile(r"(/[A-Za-z0-9._-]+)*")


@dataclass(frozen=True, slots=True)
class Tls:
    """Files in PEM; ``certificate`` holds the private key too."""

    trusted: str | None
    certificate: str | None
    password: str | None
    checks_hostname: bool


@dataclass(frozen=True, slots=True)
class ZooKeeperOptions:
    hosts: tuple[str, ...]
    """Each as host:port."""
    chroot: str = ""
    session_timeout_ms: int = 6000
    connection_timeout_ms: int = 6000
    digest: str | None = None
    sets_acl: bool = False
    tls: Tls | None = None


def zookeeper_options(settings: BrokerSettings) -> ZooKeeperOptions | None:
    """``None`` for a broker that is a cluster by itself."""
    connect = settings.get(ZOOKEEPER_CONNECT)
    if not connect:
        return None
    hosts, chroot = parse_connect(connect)
    digest, sets_acl = settings.get(LAMINA_ZOOKEEPER_DIGEST), settings[ZOOKEEPER_SET_ACL]
    if digest is not None and not re.fullmatch(r"[^:]+:.+", digest):
        raise SettingError(f"{LAMINA_ZOOKEEPER_DIGEST.name}: must have the form user:password")
    if sets_acl and digest is None:
        raise SettingError(f"{ZOOKEEPER_SET_ACL.name} = true: needs credentials, {LAMINA_ZOOKEEPER_DIGEST.name}")
    session_timeout_ms = settings[ZOOKEEPER_SESSION_TIMEOUT_MS]
    return ZooKeeperOptions(
        hosts,
        chroot,
        session_timeout_ms,
        settings.get(ZOOKEEPER_CONNECTION_TIMEOUT_MS) or session_timeout_ms,
        digest,
        sets_acl,
        _tls(settings),
    )


def parse_connect(text: str) -> tuple[tuple[str, ...], str]:
    """The servers, each with its port, and the chroot; empty where there is none."""
    servers, slash, path = text.partition("/")
    chroot = (slash + path).rstrip("/")
    hosts = []
    for server in servers.split(","):
        match = _SERVER.fullmatch(server.strip())
        if match is None or int(match[2] or DEFAULT_PORT) > PORT_MAX:
            raise SettingError(f"{ZOOKEEPER_CONNECT.name} = {text}: must have the form host:port,host:port/chroot")
        hosts.append(f"{match[1]}:{match[2] or DEFAULT_PORT}")
    if not _CHROOT.fullmatch(chroot) or {".", ".."} & set(chroot.split("/")):
        raise SettingError(
            f"{ZOOKEEPER_CONNECT.name} = {text}: {chroot} cannot be a path in ZooKeeper; write it as /lamina or /a/b"
        )
    return tuple(hosts), chroot


def _tls(settings: BrokerSettings) -> Tls | None:
    # Their rules allow one format each, which is asked for here so that another one is never taken for it.
    assert {settings[ZOOKEEPER_SSL_KEYSTORE_TYPE], settings[ZOOKEEPER_SSL_TRUSTSTORE_TYPE]} == {"PEM"}
    if not settings[ZOOKEEPER_SSL_CLIENT_ENABLE]:
        return None
    return Tls(
        settings.get(ZOOKEEPER_SSL_TRUSTSTORE_LOCATION),
        settings.get(ZOOKEEPER_SSL_KEYSTORE_LOCATION),
        settings.get(ZOOKEEPER_SSL_KEYSTORE_PASSWORD),
        settings[ZOOKEEPER_SSL_ENDPOINT_IDENTIFICATION_ALGORITHM] != "",
    )


def given_id(settings: BrokerSettings) -> int | None:
    """The id that the settings give a member of a cluster; ``None`` where ZooKeeper is to give one (R67)."""
    node_id = settings[NODE_ID] if settings.is_given(NODE_ID) or settings.is_given(BROKER_ID) else NO_ID
    generates, reserved = settings[BROKER_ID_GENERATION_ENABLE], settings[RESERVED_BROKER_MAX_ID]
    if node_id == NO_ID and not generates:
        raise SettingError(f"{NODE_ID.name}: a member of a cluster needs an id of its own: give it with --node-id")
    if node_id > reserved and generates:
        raise SettingError(
            f"{NODE_ID.name} = {node_id}: must not be above {RESERVED_BROKER_MAX_ID.name}, which is {reserved}: "
            f"ids from there on are those that ZooKeeper gives, unless {BROKER_ID_GENERATION_ENABLE.name} is false"
        )
    return None if node_id == NO_ID else node_id
