"""Cipher suites by their standard names, as Kafka has them, and by OpenSSL's.

Owns the translation of those of TLS 1.2 (S15) and which ones TLS 1.3 has. Must not know contexts.
"""

import re

OF_TLS_1_3 = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})

_SUITE = re.compile(
    r"TLS_(?:(ECDHE|DHE)_)?(RSA|ECDSA)_WITH_(?:(AES)_(128|256)_(GCM|CBC|CCM|CCM_8)|(CHACHA20_POLY1305))(?:_(SHA\d*))?"
)


def openssl_name(name: str) -> str | None:
    """OpenSSL's name of a suite of TLS 1.2; ``None`` for what is no such name."""
    match = _SUITE.fullmatch(name)
    if match is None:
        return None
    exchange, signature, aes, bits, mode, chacha, digest = match.groups()
    parts = [] if exchange is None and signature == "RSA" else [exchange or "", signature]
    if chacha:
        parts.append("CHACHA20-POLY1305")
    else:
        parts.append(f"{aes}{bits}")
        if mode != "CBC":
            parts.append(mode.replace("_", ""))
        if digest is not None:
            parts.append(digest)
    return "-".join(parts)
