"""Keystores and truststores, read or refused with a sentence (security facts S11-S14, S89)."""

from dataclasses import replace
from pathlib import Path

import pytest

from lamina.settings.ssl_stores import KeyStoreSource, TrustStoreSource
from lamina.tls.stores import StoreError, read_key_store, read_trust_store
from tests.tls.certificates import PASSWORD, Authority

CA = Authority()
OWN = CA.issue("localhost", name="own")
OTHER = CA.issue("localhost", name="other")


def test_pem_from_a_file_in_any_order(tmp_path: Path) -> None:
    path = OWN.pem(tmp_path / "own.pem")
    store = read_key_store(KeyStoreSource("PEM", str(path)))
    assert store.certificate == OWN.certificate
    path.write_text(OWN.chain + OWN.key())
    assert read_key_store(KeyStoreSource("PEM", str(path))) == store


def test_pem_from_values_even_in_one_line() -> None:
    source = KeyStoreSource("PEM", key=OWN.key().replace("\n", " "), certificate_chain=OWN.chain.replace("\n", " "))
    assert read_key_store(source).certificate == OWN.certificate


def test_an_encrypted_key_needs_its_password_and_another_one_must_have_none(tmp_path: Path) -> None:
    path = OWN.pem(tmp_path / "own.pem", password="key secret")
    source = KeyStoreSource("PEM", str(path), key_password="key secret")
    assert read_key_store(source).certificate == OWN.certificate
    path.chmod(0o644)  # The password protects it.
    assert read_key_store(source).certificate == OWN.certificate
    with pytest.raises(StoreError, match=r"the private key is encrypted: it needs ssl\.key\.password"):
        read_key_store(replace(source, key_password=None))
    with pytest.raises(StoreError, match=r"the private key cannot be read, or ssl\.key\.password is wrong") as caught:
        read_key_store(replace(source, key_password="hunter2"))
    assert "hunter2" not in str(caught.value)
    plain = KeyStoreSource("PEM", str(OWN.pem(tmp_path / "plain.pem")), key_password="key secret")
    with pytest.raises(StoreError, match=r"ssl\.key\.password: the private key is not encrypted"):
        read_key_store(plain)


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = OWN.pem(tmp_path / "own.pem")
    path.chmod(0o644)
    with pytest.raises(StoreError, match=rf"others may read the private key in it: chmod 600 {path}"):
        read_key_store(KeyStoreSource("PEM", str(path)))


@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
def test_pkcs12_under_either_name(tmp_path: Path, kind: str) -> None:
    """S13: Java opens PKCS12 under type JKS too."""
    path = OWN.pkcs12(tmp_path / "own.p12")
    assert read_key_store(KeyStoreSource(kind, str(path), PASSWORD)).certificate == OWN.certificate
    ca = CA.pkcs12(tmp_path / "ca.p12")
    assert len(read_trust_store(TrustStoreSource(kind, str(ca), PASSWORD))) == 1


def test_a_wrong_password_is_said_and_not_shown(tmp_path: Path) -> None:
    path = OWN.pkcs12(tmp_path / "own.p12")
    with pytest.raises(StoreError, match=r"cannot be opened: ssl\.keystore\.password is wrong") as caught:
        read_key_store(KeyStoreSource("PKCS12", str(path), "hunter2"))
    assert "hunter2" not in str(caught.value)
    ca = CA.pkcs12(tmp_path / "ca.p12")
    with pytest.raises(StoreError, match=r"cannot be opened: ssl\.truststore\.password is wrong"):
        read_trust_store(TrustStoreSource("PKCS12", str(ca), "hunter2"))


@pytest.mark.parametrize("kind", ["PKCS12", "JKS", "PEM"])
def test_javas_own_form_is_refused_with_the_line_that_converts_it(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "own.jks"
    path.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    line = f"keytool -importkeystore -srckeystore {path} -destkeystore {path}.p12 -deststoretype PKCS12"
    with pytest.raises(StoreError) as caught:
        read_key_store(KeyStoreSource(kind, str(path), "x"))
    assert line in str(caught.value)
    with pytest.raises(StoreError, match=r"^ssl\.truststore\.location"):
        read_trust_store(TrustStoreSource(kind, str(path)))


def test_a_file_of_another_form_says_what_to_set(tmp_path: Path) -> None:
    own, ca = OWN.pem(tmp_path / "own.pem"), CA.pem(tmp_path / "ca.pem")
    with pytest.raises(StoreError, match=r"is PEM: set ssl\.keystore\.type=PEM"):
        read_key_store(KeyStoreSource("JKS", str(own), "x"))
    with pytest.raises(StoreError, match=r"is PEM: set ssl\.truststore\.type=PEM"):
        read_trust_store(TrustStoreSource("PKCS12", str(ca)))
    p12 = OWN.pkcs12(tmp_path / "own.p12")
    with pytest.raises(StoreError, match="has no PEM in it"):
        read_key_store(KeyStoreSource("PEM", str(p12)))


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    missing = tmp_path / "missing.pem"
    with pytest.raises(StoreError) as caught:
        read_key_store(KeyStoreSource("PEM", str(missing)))
    assert str(caught.value) == f"ssl.keystore.location = {missing}: cannot be read: No such file or directory"


def test_what_does_not_belong_together_is_refused() -> None:
    def inline(key: str, chain: str) -> KeyStoreSource:
        return KeyStoreSource("PEM", key=key, certificate_chain=chain)

    for source, sentence in (
        (inline(OWN.key(), OTHER.chain), "its first certificate is not that of the private key"),
        (inline(OWN.key() * 2, OWN.chain), "must have exactly one private key, not 2"),
        (inline("", OWN.chain), "must have exactly one private key, not 0"),
        (inline(OWN.key(), ""), "has no certificate of the private key"),
        (inline(OWN.key()[:200], OWN.chain), "a block in it is damaged"),
        (inline(OWN.key(), OWN.chain.replace("MII", "MI!")), "a block in it is damaged"),
    ):
        with pytest.raises(StoreError, match=sentence):
            read_key_store(source)
    with pytest.raises(StoreError, match=r"ssl\.truststore\.certificates: has no certificates"):
        read_trust_store(TrustStoreSource("PEM", certificates="x"))


def test_a_store_shows_no_key(tmp_path: Path) -> None:
    store = read_key_store(KeyStoreSource("PEM", str(OWN.pem(tmp_path / "own.pem"))))
    assert "PRIVATE" not in repr(store)
