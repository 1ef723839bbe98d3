"""What may follow a certificate while a broker runs, and what is refused for its dates (security facts S6, S25)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from lamina.security.distinguished_names import MalformedName
from lamina.tls.certificates import facts_of, name_in
from lamina.tls.stores import StoreError
from tests.tls.certificates import LONG_AGO, Authority
from tests.tls.test_contexts import SETTINGS

CA = Authority()
NOW_MS = int(datetime.now(UTC).timestamp() * 1000)


def test_a_certificate_is_read() -> None:
    until = datetime(2100, 1, 2, 3, 4, 5, tzinfo=UTC)
    own = CA.issue("a.example", "127.0.0.1", name="broker", until=until)
    facts = facts_of(own.certificate)
    assert facts.name.startswith("CN=broker,OU=Testing cert")
    assert facts.alternative_names == {"a.example", "127.0.0.1"}
    assert facts.not_after_ms == until.timestamp() * 1000
    assert facts.not_before_ms < NOW_MS


def test_one_that_has_expired_or_does_not_hold_yet_is_refused() -> None:
    expired = facts_of(CA.issue("a", until=LONG_AGO).certificate)
    with pytest.raises(StoreError, match=r"the certificate of .* has expired on 2020-01-01"):
        expired.check_time(NOW_MS)
    fresh = facts_of(CA.issue("a", until=datetime.now(UTC) + timedelta(days=9)).certificate)
    fresh.check_time(NOW_MS)
    with pytest.raises(StoreError, match=r"holds from .* on only"):
        fresh.check_time(0)


def test_another_name_or_fewer_addresses_need_to_be_allowed() -> None:
    old = facts_of(CA.issue("a", "b", name="broker").certificate)
    more = facts_of(CA.issue("a", "b", "c", name="broker").certificate)
    more = replace(more, name=old.name)
    more.check_follows(old, SETTINGS)
    with pytest.raises(StoreError, match=r"would lack c: ssl\.allow\.san\.changes=true allows it"):
        old.check_follows(more, SETTINGS)
    old.check_follows(more, replace(SETTINGS, allows_san_changes=True))
    other = replace(old, name="CN=else")
    with pytest.raises(StoreError, match=r"from .* to CN=else: ssl\.allow\.dn\.changes=true allows it"):
        other.check_follows(old, SETTINGS)
    other.check_follows(old, replace(SETTINGS, allows_dn_changes=True))


def test_the_name_of_a_client_is_read_from_its_certificate() -> None:
    der = CA.issue(name="alice").certificate.public_bytes(Encoding.DER)
    assert name_in(der).startswith("CN=alice,")
    with pytest.raises(MalformedName):
        name_in(der[:50])


def test_a_version_that_does_not_exist_is_an_error_like_any_other() -> None:
    der = CA.issue(name="alice").certificate.public_bytes(Encoding.DER)
    version_3 = b"\xa0\x03\x02\x01\x02"
    assert version_3 in der
    with pytest.raises(MalformedName):
        name_in(der.replace(version_3, b"\xa0\x03\x02\x01\x09", 1))
