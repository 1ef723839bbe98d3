"""Records of TLS 1.3 as a client may encrypt them by itself: such as no library sends."""

import hashlib
import hmac
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_HANDSHAKE, _DATA = 22, 23
_KEY_UPDATE = bytes([24, 0, 0, 1, 0])
"""New keys from now on, and none are asked for."""


class RawRecords:
    """What follows the handshake, with the cipher that OpenSSL prefers: AES-256 with SHA-384."""

    def __init__(self, key_log: Path) -> None:
        """``key_log`` is of one connection, that has sent nothing since its handshake."""
        lines = [line.split() for line in key_log.read_text().splitlines()]
        (secret,) = (line[2] for line in lines if line[0] == "CLIENT_TRAFFIC_SECRET_0")
        self._take(bytes.fromhex(secret))

    def _take(self, secret: bytes) -> None:
        assert len(secret) == hashlib.sha384().digest_size
        self._secret, self._sent = secret, 0
        self._cipher = AESGCM(_derived(secret, b"key", 32))
        self._iv = int.from_bytes(_derived(secret, b"iv", 12))

    def data(self, data: bytes, padding_bytes: int = 0) -> bytes:
        return self._record(data, _DATA, padding_bytes)

    def key_update(self) -> bytes:
        record = self._record(_KEY_UPDATE, _HANDSHAKE)
        self._take(_derived(self._secret, b"traffic upd", len(self._secret)))
        return record

    def _record(self, content: bytes, kind: int, padding_bytes: int = 0) -> bytes:
        inner = content + bytes([kind]) + bytes(padding_bytes)
        header = b"\x17\x03\x03" + (len(inner) + 16).to_bytes(2)
        nonce = (self._iv ^ self._sent).to_bytes(12)
        self._sent += 1
        return header + self._cipher.encrypt(nonce, inner, header)


def _derived(secret: bytes, label: bytes, size_bytes: int) -> bytes:
    """HKDF-Expand-Label of RFC 8446, without a context; one block of the hash is enough."""
    label = b"tls13 " + label
    told = size_bytes.to_bytes(2) + bytes([len(label)]) + label + b"\0"
    return hmac.new(secret, told + b"\1", hashlib.sha384).digest()[:size_bytes]
