"""Contexts that speak what settings say (security facts S10, S14, S15, S16)."""

import os
import ssl
from dataclasses import replace

import pytest

from lamina.settings.ssl_stores import KeyStoreSource, SslSettings, TrustStoreSource
from lamina.tls.cipher_suites import openssl_name
from lamina.tls.contexts import client_context, server_context
from lamina.tls.stores import StoreError, read_key_store, read_trust_store
from tests.tls.certificates import Authority

CA = Authority()
KEY_STORE = read_key_store(KeyStoreSource("PEM", key=(own := CA.issue("localhost")).key(), certificate_chain=own.chain))
TRUSTED = read_trust_store(TrustStoreSource("PEM", certificates=CA.certificates))
SETTINGS = SslSettings(
    key_store=None,
    trust_store=None,
    protocols=("TLSv1.2", "TLSv1.3"),
    cipher_suites=(),
    client_auth="none",
    principal_mapping_rules="DEFAULT",
    allows_dn_changes=False,
    allows_san_changes=False,
    checks_host_names=True,
)
RSA_256 = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
EC_128 = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
ALL_OF_1_3 = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")


def server(**changes: object) -> ssl.SSLContext:
    return server_context(replace(SETTINGS, **changes), KEY_STORE, TRUSTED)  # type: ignore[arg-type]


def speak(context: ssl.SSLContext, client: ssl.SSLContext | None = None, host: str = "localhost") -> ssl.SSLObject:
    """A whole handshake in memory; returns the client's side."""
    client = client or client_context(SETTINGS, None, TRUSTED)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = client.wrap_bio(to_client, to_server, server_hostname=host)
    other = context.wrap_bio(to_server, to_client, server_side=True)
    done = set[ssl.SSLObject]()
    for side in (one, other) * 5:
        try:
            side.do_handshake()
            done.add(side)
        except ssl.SSLWantReadError:
            pass
    assert len(done) == 2
    return one


def test_a_handshake_and_its_names() -> None:
    assert speak(server()).version() == "TLSv1.3"
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        speak(server(), host="example.org")
    unchecked = client_context(replace(SETTINGS, checks_host_names=False), None, TRUSTED)
    assert speak(server(), unchecked, host="example.org")


def test_whatever_a_truststore_holds_is_trusted_as_in_java() -> None:
    """Without the authorities above it: one in the middle, or a certificate itself."""
    middle = Authority(CA.ca.create_child_ca())
    server_side = middle.issue("localhost")
    source = KeyStoreSource("PEM", key=server_side.key(), certificate_chain=server_side.chain)
    context = server_context(SETTINGS, read_key_store(source), ())
    for trusted in (middle.certificates, server_side.chain.partition("-----END CERTIFICATE-----\n")[0]):
        text = trusted if trusted.rstrip().endswith("-----") else f"{trusted}-----END CERTIFICATE-----\n"
        found = read_trust_store(TrustStoreSource("PEM", certificates=text))
        assert speak(context, client_context(SETTINGS, None, found))


def test_versions() -> None:
    assert speak(server(protocols=("TLSv1.2",))).version() == "TLSv1.2"
    only_1_3 = server(protocols=("TLSv1.3",))
    assert only_1_3.minimum_version == only_1_3.maximum_version == ssl.TLSVersion.TLSv1_3


@pytest.mark.parametrize(
    ("suites", "version", "chosen"),
    [
        ((EC_128,), "TLSv1.2", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        ((RSA_256, EC_128), "TLSv1.2", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        ((*ALL_OF_1_3, EC_128), "TLSv1.3", "TLS_AES_256_GCM_SHA384"),
        (ALL_OF_1_3, "TLSv1.3", "TLS_AES_256_GCM_SHA384"),
    ],
)
def test_suites_by_their_standard_names(suites: tuple[str, ...], version: str, chosen: str) -> None:
    spoken = speak(server(cipher_suites=suites))
    assert spoken.version() == version
    assert (spoken.cipher() or ("",))[0] == chosen


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"cipher_suites": ("TLS_AES_256_GCM_SHA384",)}, "Python cannot choose among TLS 1.3's: name TLS_AES_128"),
        ({"cipher_suites": ("ECDHE-RSA-AES256-GCM-SHA384",)}, "OpenSSL has no such cipher suite"),
        ({"cipher_suites": ("TLS_RSA_WITH_NULL_SHA",)}, "OpenSSL has no such cipher suite"),
        ({"cipher_suites": ALL_OF_1_3, "protocols": ("TLSv1.2",)}, "none of them is one of ssl.enabled.protocols"),
        ({"cipher_suites": (RSA_256,), "protocols": ("TLSv1.3",)}, "none of them is one of ssl.enabled.protocols"),
    ],
)
def test_suites_that_cannot_be_chosen(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(StoreError, match=sentence):
        server(**changes)


@pytest.mark.parametrize(
    ("name", "translated"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("TLS_DHE_RSA_WITH_AES_128_GCM_SHA256", "DHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", "ECDHE-RSA-AES128-SHA256"),
        ("TLS_RSA_WITH_AES_256_CBC_SHA", "AES256-SHA"),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8", "ECDHE-ECDSA-AES128-CCM8"),
    ],
)
def test_openssl_knows_what_a_name_is_translated_to(name: str, translated: str) -> None:
    assert openssl_name(name) == translated
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers(f"{translated}:@SECLEVEL=0")
    assert translated in [one["name"] for one in context.get_ciphers()]


def test_no_session_is_resumed() -> None:
    """It would pass by a truststore that has changed since."""
    assert server().num_tickets == 0


@pytest.mark.parametrize(
    ("asked", "mode"),
    [("none", ssl.CERT_NONE), ("requested", ssl.CERT_OPTIONAL), ("required", ssl.CERT_REQUIRED)],
)
def test_what_is_asked_of_clients(asked: str, mode: ssl.VerifyMode) -> None:
    """S16."""
    assert server(client_auth=asked).verify_mode is mode


def test_no_descriptor_and_no_file_is_left_of_a_key() -> None:
    before = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
    server()
    assert len(os.listdir("/proc/self/fd") if before else []) == len(before)
