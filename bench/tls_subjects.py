"""A Kafka and a Lamina with TLS: the same certificate and key on a listener beside the plain one.

Owns what they show, made for the run by Lamina's own private authority: P-256, as `lamina security init` makes them.
Everything is prepared on the plain listener; what is measured goes over TLS.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.subjects import KAFKA, KAFKA_SCRIPT_FLAGS, LAMINA, SETTINGS, Subject
from lamina.cluster.ports import free_port
from lamina.tls.issuing import PrivateAuthority
from tests.peers.kafka import Kafka
from tests.peers.lamina import Lamina

HOST = "127.0.0.1"
_DAYS = 7


@dataclass(frozen=True, slots=True)
class TlsFiles:
    authority: Path
    """Its certificate, which clients trust."""
    identity: Path
    """The brokers' key and certificate."""


def new_files(root: Path) -> TlsFiles:
    files = TlsFiles(root / "ca.pem", root / "broker.pem")
    authority = PrivateAuthority("bench", time.time_ns() // 1_000_000, _DAYS)
    files.authority.write_text(authority.own.certificate)
    files.identity.touch(mode=0o600)
    files.identity.write_text(authority.issue("broker", (HOST,), _DAYS).both)
    return files


class TlsKafka(Kafka):
    def __init__(self, root: Path, files: TlsFiles) -> None:
        plain, self.tls_port, controller = free_port(), free_port(), free_port()
        settings = {
            **SETTINGS,
            **_tls_settings(files, plain, self.tls_port, f",CONTROLLER://{HOST}:{controller}"),
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT",
        }
        super().__init__(root, settings, KAFKA_SCRIPT_FLAGS, controller)
        self._port = plain
        self.authority = files.authority


class TlsLamina(Lamina):
    def __init__(self, root: Path, files: TlsFiles) -> None:
        plain, self.tls_port = free_port(), free_port()
        super().__init__(root, {**SETTINGS, **_tls_settings(files, plain, self.tls_port)})
        self._port = plain
        self.authority = files.authority


TlsBroker = TlsKafka | TlsLamina


def _tls_settings(files: TlsFiles, plain: int, tls: int, more_listeners: str = "") -> dict[str, str]:
    """Kafka's names, which are Lamina's."""
    listeners = f"PLAINTEXT://{HOST}:{plain},SSL://{HOST}:{tls}"
    return {
        "listeners": listeners + more_listeners,
        "advertised.listeners": listeners,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(files.identity),
    }


def tls_subjects(root: Path) -> Mapping[str, Subject]:
    files = new_files(root)
    return {KAFKA: TlsKafka(root / KAFKA, files), LAMINA: TlsLamina(root / LAMINA, files)}


def tls_broker(subject: Subject) -> TlsBroker:
    assert isinstance(subject, TlsBroker)
    return subject


def tls_address(subject: Subject) -> tuple[str, int]:
    return HOST, tls_broker(subject).tls_port


def client_properties(subject: Subject) -> dict[str, str]:
    """Of librdkafka, beside where the broker is."""
    return {"security.protocol": "SSL", "ssl.ca.location": str(tls_broker(subject).authority)}
