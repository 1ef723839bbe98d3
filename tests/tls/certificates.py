"""Certificates for tests: a CA of a moment and what it signs, in files as brokers and clients are given them."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, serialize_java_truststore
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates as serialize_pkcs12

PASSWORD = "store secret"
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Identity:
    """A certificate and its key, as a client or a broker has them."""

    cert: trustme.LeafCert

    @property
    def chain(self) -> str:
        return "".join(blob.bytes().decode() for blob in self.cert.cert_chain_pems)

    @property
    def certificate(self) -> x509.Certificate:
        return x509.load_pem_x509_certificate(self.cert.cert_chain_pems[0].bytes())

    def key(self, password: str | None = None) -> str:
        """PKCS#8, as Kafka wants it."""
        encryption: KeySerializationEncryption = NoEncryption()
        if password is not None:
            encryption = BestAvailableEncryption(password.encode())
        return self._key().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()

    def _key(self) -> EllipticCurvePrivateKey:
        key = load_pem_private_key(self.cert.private_key_pem.bytes(), None)
        assert isinstance(key, EllipticCurvePrivateKey)
        return key

    def pem(self, path: Path, password: str | None = None) -> Path:
        """One file with key and chain, its owner's alone."""
        path.touch(mode=0o600)
        path.write_text(self.key(password) + self.chain)
        return path

    def pkcs12(self, path: Path, password: str = PASSWORD) -> Path:
        encryption = BestAvailableEncryption(password.encode())
        path.write_bytes(serialize_pkcs12(b"own", self._key(), self.certificate, None, encryption))
        return path


class Authority:
    """A CA."""

    def __init__(self, ca: trustme.CA | None = None) -> None:
        self.ca = ca or trustme.CA()

    @property
    def certificates(self) -> str:
        return self.ca.cert_pem.bytes().decode()

    def issue(self, *hosts: str, name: str | None = None, until: datetime | None = None) -> Identity:
        """For hosts or e-mail addresses; ``until`` in the past for one that has expired."""
        begin = None if until is None else min(until, datetime.now(UTC)) - timedelta(days=1)
        return Identity(
            self.ca.issue_cert(
                *hosts, common_name=name, not_before=begin, not_after=until, key_type=trustme.KeyType.ECDSA
            )
        )

    def pem(self, path: Path) -> Path:
        path.write_text(self.certificates)
        return path

    def pkcs12(self, path: Path, password: str = PASSWORD) -> Path:
        certificate = x509.load_pem_x509_certificate(self.ca.cert_pem.bytes())
        encryption = BestAvailableEncryption(password.encode())
        path.write_bytes(serialize_java_truststore([PKCS12Certificate(certificate, b"ca")], encryption))
        return path
