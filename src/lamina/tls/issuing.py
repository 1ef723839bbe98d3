"""A private certificate authority: making one, and what it signs.

Owns the form of its certificates: P-256 keys, one signature deep; those of brokers are for clients too, because a
broker is both. Time is an argument. Must not know files.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

ORGANIZATION = "Lamina"
"""Of every name here: whose certificates a broker maps to principals of its own."""
_BEFORE = timedelta(hours=1)
"""Clocks of other machines may be behind."""


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate with its key, as PEM."""

    certificate: str
    key: str = field(repr=False)

    @property
    def both(self) -> str:
        return self.key + self.certificate


class PrivateAuthority:
    def __init__(self, name: str, now_ms: int, days: int) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = _name(name)
        self._begins = datetime.fromtimestamp(now_ms / 1000, UTC) - _BEFORE
        self._identifier = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        builder = self._builder(self._subject, self._key.public_key(), days)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
        self._certificate = builder.add_extension(self._identifier, critical=False).sign(self._key, SHA256())

    @property
    def own(self) -> Issued:
        return Issued(_pem(self._certificate), _pem_key(self._key))

    def issue(self, name: str, hosts: Iterable[str], days: int) -> Issued:
        """For a broker on these hosts, or for a client, which has none."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(_name(name), key.public_key(), days)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
        purposes = [ExtendedKeyUsageOID.CLIENT_AUTH]
        if alternatives := [_host(host) for host in hosts]:
            purposes.append(ExtendedKeyUsageOID.SERVER_AUTH)
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(self._identifier), critical=False
        )
        return Issued(_pem(builder.sign(self._key, SHA256())), _pem_key(key))

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey, days: int) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._subject)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._begins)
            .not_valid_after(self._begins + _BEFORE + timedelta(days=days))
        )


def _name(common_name: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, ORGANIZATION),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()


def _pem_key(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
