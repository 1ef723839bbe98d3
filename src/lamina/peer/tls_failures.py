"""Why a TLS connection was not made, or ended, as one sentence for a person.

Owns the reading of OpenSSL's reasons. A failure that cannot pass by itself is `SslAuthenticationFailed`; one of the
network, or of a broker that goes away, is `NetworkError`. Must not know how connections are made.
"""

import ssl
from typing import Final

from lamina.errors import KafkaError, NetworkError, SslAuthenticationFailed
from lamina.peer.addresses import Address

_EXPIRED, _NOT_YET_VALID = 10, 9
_OTHER_NAME: Final = (62, 64)
"""Of a host, of an IP address."""
_NOT_TLS: Final = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG")
_REFUSES_NONE: Final = ("CERTIFICATE_REQUIRED",)
_REFUSES_OURS: Final = (
    "BAD_CERTIFICATE",
    "UNKNOWN_CA",
    "CERTIFICATE_UNKNOWN",
    "UNSUPPORTED_CERTIFICATE",
    "ACCESS_DENIED",
)
_REFUSES_EXPIRED: Final = ("CERTIFICATE_EXPIRED", "CERTIFICATE_REVOKED")
_NOTHING_IN_COMMON: Final = ("PROTOCOL_VERSION", "HANDSHAKE_FAILURE", "NO_PROTOCOLS", "NO_SHARED_CIPHER")


def why_tls_failed(address: Address, error: ssl.SSLError | ConnectionError) -> KafkaError:
    if isinstance(error, ssl.SSLCertVerificationError):
        return SslAuthenticationFailed(_why_not_trusted(address, error))
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError) or not isinstance(error, ssl.SSLError):
        return NetworkError(
            f"{address} ended the TLS handshake; if its listener is one without TLS, change security.protocol "
            "or the port"
        )
    reason = error.reason or "unknown reason"
    if any(word in reason for word in _NOT_TLS):
        return SslAuthenticationFailed(f"{address} does not speak TLS; change security.protocol or the port")
    if any(word in reason for word in _NOTHING_IN_COMMON):
        return SslAuthenticationFailed(
            f"{address} and this client have no TLS version and cipher in common ({_plain(reason)}); "
            "check ssl.enabled.protocols and ssl.cipher.suites"
        )
    if any(word in reason for word in _REFUSES_EXPIRED):
        return SslAuthenticationFailed(f"{address} refuses this client's certificate: it has expired, or was revoked")
    if any(word in reason for word in _REFUSES_NONE):
        return SslAuthenticationFailed(
            f"{address} wants a certificate that it trusts; set ssl.keystore.location "
            "(librdkafka: ssl.certificate.location)"
        )
    if any(word in reason for word in _REFUSES_OURS):
        return SslAuthenticationFailed(
            f"{address} refuses this client's certificate, or the lack of one ({_plain(reason)}); "
            "check ssl.keystore.location (librdkafka: ssl.certificate.location)"
        )
    return SslAuthenticationFailed(f"no TLS connection to {address} ({_plain(reason)})")


def _why_not_trusted(address: Address, error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code == _EXPIRED:
        return f"the certificate of {address} has expired; its broker needs a new one"
    if error.verify_code == _NOT_YET_VALID:
        return f"the certificate of {address} is not valid yet; compare the clocks of this machine and the broker's"
    if error.verify_code in _OTHER_NAME:
        return (
            f"the certificate of {address} is for another host; connect by a name that it has, or give the broker a "
            f"certificate for {address.host}"
        )
    return (
        f"the certificate of {address} is not signed by a CA that is trusted here ({error.verify_message}); "
        "check ssl.truststore.location (librdkafka: ssl.ca.location)"
    )


def _plain(reason: str) -> str:
    """``TLSV1_ALERT_UNKNOWN_CA`` in words."""
    return reason.rpartition("ALERT_")[2].replace("_", " ").lower()
