"""Keystores and truststores: PEM and PKCS12, from files or values, as certificates and a key in memory.

Owns which form a store has (S12, S13), and one sentence for each way in which one cannot be used. Java's own form is
refused with the line that converts it. A file whose key is not encrypted must be its owner's alone (S89). Must not
know TLS.
"""

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_der_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

from lamina.settings.definition import Setting
from lamina.settings.ssl import (
    PEM,
    SSL_KEY_PASSWORD,
    SSL_KEYSTORE_CERTIFICATE_CHAIN,
    SSL_KEYSTORE_KEY,
    SSL_KEYSTORE_LOCATION,
    SSL_KEYSTORE_PASSWORD,
    SSL_KEYSTORE_TYPE,
    SSL_TRUSTSTORE_CERTIFICATES,
    SSL_TRUSTSTORE_LOCATION,
    SSL_TRUSTSTORE_PASSWORD,
    SSL_TRUSTSTORE_TYPE,
)
from lamina.settings.ssl_stores import KeyStoreSource, TrustStoreSource
from lamina.tls import pem

_JKS_BEGINS, _DER_BEGINS = b"\xfe\xed\xfe\xed", b"\x30"
_STORE_MAX_BYTES = 16 * 1024 * 1024


class StoreError(ValueError):
    """A keystore or truststore that cannot be used; the message is one sentence that names the setting."""


@dataclass(frozen=True, slots=True)
class KeyStore:
    """A private key and its certificate chain, the key's own certificate first."""

    key: str = field(repr=False)
    """In PEM (PKCS#8), not encrypted."""
    chain: tuple[x509.Certificate, ...]

    @property
    def certificate(self) -> x509.Certificate:
        return self.chain[0]


def read_key_store(source: KeyStoreSource) -> KeyStore:
    """Raises :class:`StoreError`."""
    if source.location is None:
        where = SSL_KEYSTORE_KEY.name
        key = _key_of(SSL_KEYSTORE_KEY.name, _blocks(where, source.key or ""), source.key_password)
        chain = _certificates_of(where, _blocks(SSL_KEYSTORE_CERTIFICATE_CHAIN.name, source.certificate_chain or ""))
    else:
        where = f"{SSL_KEYSTORE_LOCATION.name} = {source.location}"
        content = _read(where, source.location)
        if _is_pem(where, content, source.type, SSL_KEYSTORE_TYPE, source.location):
            found = _blocks(where, content.decode("latin-1"))
            key = _key_of(where, found, source.key_password)
            if not any(block.label == pem.ENCRYPTED_PRIVATE_KEY for block in found):
                _check_private(where, source.location)
            chain = _certificates_of(where, found)
        else:
            key, chain = _key_in_pkcs12(where, content, source)
    if not chain:
        raise StoreError(f"{where}: has no certificate of the private key")
    public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if chain[0].public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) != public:
        raise StoreError(f"{where}: its first certificate is not that of the private key")
    encoded = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return KeyStore(encoded, tuple(chain))


def read_trust_store(source: TrustStoreSource) -> tuple[x509.Certificate, ...]:
    """Raises :class:`StoreError`."""
    if source.location is None:
        where = SSL_TRUSTSTORE_CERTIFICATES.name
        found = _certificates_of(where, _blocks(where, source.certificates or ""))
    else:
        where = f"{SSL_TRUSTSTORE_LOCATION.name} = {source.location}"
        content = _read(where, source.location)
        if _is_pem(where, content, source.type, SSL_TRUSTSTORE_TYPE, source.location):
            found = _certificates_of(where, _blocks(where, content.decode("latin-1")))
        else:
            _, certificate, others = _open_pkcs12(where, content, source.password, SSL_TRUSTSTORE_PASSWORD)
            found = [*others, *([] if certificate is None else [certificate])]
    if not found:
        raise StoreError(f"{where}: has no certificates")
    return tuple(found)


def encode_certificates(certificates: Iterable[x509.Certificate]) -> str:
    return "".join(pem.encode(pem.CERTIFICATE, one.public_bytes(Encoding.DER)) for one in certificates)


# Files


def _read(where: str, location: str) -> bytes:
    try:
        with open(location, "rb") as file:
            content = file.read(_STORE_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no path"
        raise StoreError(f"{where}: cannot be read: {reason}") from None
    if len(content) > _STORE_MAX_BYTES:
        raise StoreError(f"{where}: is larger than {_STORE_MAX_BYTES} bytes, and no store")
    return content


def _check_private(where: str, location: str) -> None:
    """Its group may read a file that is root's: so services are given keys."""
    found = os.stat(location)
    allowed = stat.S_IRWXU | (stat.S_IRGRP if found.st_uid == 0 else 0)
    if stat.S_IMODE(found.st_mode) & ~allowed:
        raise StoreError(f"{where}: others may read the private key in it: chmod 600 {location}")


def _is_pem(where: str, content: bytes, kind: str, type_setting: Setting[str], location: str) -> bool:
    """Whether it is PEM, by the type that was named; what it holds decides between the binary forms."""
    if content.startswith(_JKS_BEGINS):
        raise StoreError(
            f"{where}: is in Java's own format, JKS. Convert it: keytool -importkeystore -srckeystore {location} "
            f"-destkeystore {location}.p12 -deststoretype PKCS12"
        )
    has_pem = pem.BEGIN in content
    if kind == PEM and not has_pem:
        raise StoreError(f"{where}: has no PEM in it")
    if kind != PEM and has_pem and not content.startswith(_DER_BEGINS):
        raise StoreError(f"{where}: is PEM: set {type_setting.name}=PEM")
    return kind == PEM


# PEM


def _blocks(where: str, text: str) -> list[pem.Block]:
    try:
        return pem.blocks(text)
    except ValueError as error:
        raise StoreError(f"{where}: {error}") from None


def _certificates_of(where: str, found: list[pem.Block]) -> list[x509.Certificate]:
    try:
        return [x509.load_der_x509_certificate(block.der) for block in found if block.label == pem.CERTIFICATE]
    except (ValueError, UnsupportedAlgorithm, x509.InvalidVersion):
        raise StoreError(f"{where}: a certificate in it cannot be read") from None


def _key_of(where: str, found: list[pem.Block], password: str | None) -> PrivateKeyTypes:
    keys = [block for block in found if block.label.endswith(pem.PRIVATE_KEY)]
    if len(keys) != 1:
        raise StoreError(f"{where}: must have exactly one private key, not {len(keys)}")
    is_encrypted = keys[0].label == pem.ENCRYPTED_PRIVATE_KEY
    if is_encrypted and password is None:
        raise StoreError(f"{where}: the private key is encrypted: it needs {SSL_KEY_PASSWORD.name}")
    if not is_encrypted and password is not None:
        raise StoreError(f"{SSL_KEY_PASSWORD.name}: the private key is not encrypted")
    try:
        return load_der_private_key(keys[0].der, None if password is None else password.encode())
    except (ValueError, TypeError, UnsupportedAlgorithm):
        wrong = f", or {SSL_KEY_PASSWORD.name} is wrong" if is_encrypted else ""
        raise StoreError(f"{where}: the private key cannot be read{wrong}") from None


# PKCS12


def _key_in_pkcs12(
    where: str, content: bytes, source: KeyStoreSource
) -> tuple[PrivateKeyTypes, list[x509.Certificate]]:
    key, certificate, others = _open_pkcs12(where, content, source.password, SSL_KEYSTORE_PASSWORD)
    if key is None or certificate is None:
        raise StoreError(f"{where}: must have a private key and its certificate")
    return key, [certificate, *_path(certificate, others)]


def _path(leaf: x509.Certificate, others: list[x509.Certificate]) -> list[x509.Certificate]:
    """Those of the others that sign the leaf, in order."""
    left, path = list(others), [leaf]
    while path[-1].issuer != path[-1].subject:
        signer = next((one for one in left if one.subject == path[-1].issuer), None)
        if signer is None:
            break
        left.remove(signer)
        path.append(signer)
    return path[1:]


def _open_pkcs12(
    where: str, content: bytes, password: str | None, password_setting: Setting[str]
) -> tuple[PrivateKeyTypes | None, x509.Certificate | None, list[x509.Certificate]]:
    if not content.startswith(_DER_BEGINS):
        raise StoreError(f"{where}: is no PKCS12 store")
    try:
        store = load_pkcs12(content, None if password is None else password.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise StoreError(f"{where}: cannot be opened: {password_setting.name} is wrong, or it is damaged") from None
    others = [one.certificate for one in store.additional_certs]
    return store.key, None if store.cert is None else store.cert.certificate, others
