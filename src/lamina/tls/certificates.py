"""What a broker's own certificate says: whose it is, where it holds, and until when.

Owns the sentence for one that cannot be used now, and what may not change from one to the next while a broker runs
(S6, S25). Must not know files, nor the clock: time is an argument.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography import x509

from lamina.security.distinguished_names import MalformedName, distinguished_name
from lamina.settings.ssl import SSL_ALLOW_DN_CHANGES, SSL_ALLOW_SAN_CHANGES
from lamina.settings.ssl_stores import SslSettings
from lamina.tls.stores import StoreError


@dataclass(frozen=True, slots=True)
class CertificateFacts:
    """Of one certificate; times as the wall clock has them."""

    name: str
    """The distinguished name of its subject, as Java writes it."""
    alternative_names: frozenset[str]
    not_before_ms: int
    not_after_ms: int

    def check_time(self, now_ms: int) -> None:
        """Raises :class:`StoreError` for one that nobody would accept."""
        if now_ms > self.not_after_ms:
            raise StoreError(f"the certificate of {self.name} has expired on {_day(self.not_after_ms)}")
        if now_ms < self.not_before_ms:
            raise StoreError(f"the certificate of {self.name} holds from {_day(self.not_before_ms)} on only")

    def check_follows(self, last: "CertificateFacts", settings: SslSettings) -> None:
        """Raises :class:`StoreError` where it may not take the place of the last one."""
        if self.name != last.name and not settings.allows_dn_changes:
            raise StoreError(
                f"the certificate's name would change from {last.name} to {self.name}: "
                f"{SSL_ALLOW_DN_CHANGES.name}=true allows it"
            )
        missing = last.alternative_names - self.alternative_names
        if missing and not settings.allows_san_changes:
            raise StoreError(
                f"the certificate would lack {', '.join(sorted(missing))}: {SSL_ALLOW_SAN_CHANGES.name}=true allows it"
            )


def facts_of(certificate: x509.Certificate) -> CertificateFacts:
    return CertificateFacts(
        distinguished_name(certificate.subject.public_bytes()),
        _alternative_names(certificate),
        _ms(certificate.not_valid_before_utc),
        _ms(certificate.not_valid_after_utc),
    )


def name_in(der: bytes) -> str:
    """The name in a client's certificate. Raises :class:`MalformedName`."""
    try:
        subject = x509.load_der_x509_certificate(der).subject.public_bytes()
    except (ValueError, x509.InvalidVersion):
        raise MalformedName("a certificate cannot be read") from None
    return distinguished_name(subject)


def _alternative_names(certificate: x509.Certificate) -> frozenset[str]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return frozenset()
    return frozenset(str(getattr(name, "value", name)) for name in found.value)


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def _day(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d")
