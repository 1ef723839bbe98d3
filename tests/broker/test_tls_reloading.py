"""Certificates that are changed while a broker runs (security facts S5, S6, S7)."""

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509

from lamina.errors import ErrorCode
from lamina.wire.versions import nested_schema, request_schema
from tests.broker.raw import RawClient
from tests.broker.test_tls import ask
from tests.broker.tls import Over, TlsBroker
from tests.tls.certificates import LONG_AGO, PASSWORD, Authority, Identity

INCREMENTAL_ALTER_CONFIGS, VERSION, DESCRIBE_CONFIGS, BROKER, SET = 44, 1, 32, 4, 0
LOCATION = "listener.name.ssl.ssl.keystore.location"
AUTHORITY, STRANGER = Authority(), Authority()
OWN = AUTHORITY.issue("127.0.0.1", name="broker")
ANYTHING = {"ssl.allow.dn.changes": "true", "ssl.allow.san.changes": "true"}
"""trustme gives every certificate another name."""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[TlsBroker]:
    running = TlsBroker(tmp_path / "broker", AUTHORITY, OWN, **ANYTHING).start()
    yield running
    running.stop()


def shown(broker: TlsBroker, listener: str = "SSL") -> x509.Certificate:
    with broker.connect_to(listener, OWN) as client:
        der = client.getpeercert(binary_form=True)
    assert der is not None
    return x509.load_der_x509_certificate(der)


def alter(broker: TlsBroker, name: str, value: str, *, broker_id: str = "1") -> tuple[int, str]:
    return alter_together(broker, {name: value}, broker_id=broker_id)


def alter_together(broker: TlsBroker, given: dict[str, str], *, broker_id: str = "1") -> tuple[int, str]:
    schema = request_schema(INCREMENTAL_ALTER_CONFIGS, VERSION)
    resources = nested_schema(schema, "resources")
    configs = nested_schema(resources, "configs")
    resource = resources(
        resource_type=BROKER,
        resource_name=broker_id,
        configs=tuple(configs(name=name, config_operation=SET, value=value) for name, value in given.items()),
    )
    with RawClient(broker) as client:
        answer = client.ask(schema(resources=(resource,), validate_only=False)).responses[0]
    return answer.error_code, answer.error_message or ""


def other() -> Identity:
    return AUTHORITY.issue("127.0.0.1", name="broker")


def test_a_file_that_is_named_again_is_read_again_by_those_who_come_now(broker: TlsBroker) -> None:
    """S6: who is connected stays as he is."""
    location = str(broker.key_store)
    with RawClient(Over(broker)) as client:
        ask(client)
        new = other()
        new.pem(broker.key_store)
        assert alter(broker, LOCATION, location) == (ErrorCode.NONE, "")
        assert shown(broker) == new.certificate
        ask(client)


def test_a_file_in_another_place_is_taken_for_one_listener_alone(broker: TlsBroker, tmp_path: Path) -> None:
    new = other()
    assert alter(broker, LOCATION, str(new.pem(tmp_path / "new.pem")))[0] == ErrorCode.NONE
    assert shown(broker, "SSL") == new.certificate
    assert shown(broker, "MUTUAL") == OWN.certificate


def test_whom_the_broker_trusts_can_change(broker: TlsBroker, tmp_path: Path) -> None:
    mallory = STRANGER.issue(name="mallory")
    both = tmp_path / "both.pem"
    both.write_text(AUTHORITY.certificates + STRANGER.certificates)
    with pytest.raises(ssl.SSLError), RawClient(Over(broker, "MUTUAL", mallory)) as client:
        client.receive_frame()
    assert alter(broker, "listener.name.mutual.ssl.truststore.location", str(both))[0] == ErrorCode.NONE
    with RawClient(Over(broker, "MUTUAL", mallory)) as client:
        ask(client)


def test_what_cannot_be_used_is_refused_and_changes_nothing(broker: TlsBroker, tmp_path: Path) -> None:
    expired = AUTHORITY.issue("127.0.0.1", until=LONG_AGO)
    for value, sentence in (
        (str(tmp_path / "missing"), "cannot be read: No such file"),
        (str(broker.trust_store), "must have exactly one private key, not 0"),
        (str(expired.pem(tmp_path / "expired.pem")), "has expired on 2020-01-01"),
        ("", "SSL needs a certificate and its private key"),
    ):
        code, message = alter(broker, LOCATION, value)
        assert code == ErrorCode.INVALID_REQUEST
        assert sentence in message
    assert shown(broker) == OWN.certificate
    for name, value in (("ssl.keystore.location", "/x"), ("listener.name.ssl.ssl.client.auth", "required")):
        assert alter(broker, name, value)[0] == ErrorCode.INVALID_REQUEST
    assert alter(broker, LOCATION, str(broker.key_store), broker_id="")[0] == ErrorCode.INVALID_REQUEST


def test_a_file_in_trouble_holds_up_no_other_change(broker: TlsBroker) -> None:
    broker.key_store.write_text("half of")
    assert alter(broker, "log.cleaner.threads", "2") == (ErrorCode.NONE, "")
    assert alter(broker, LOCATION, str(broker.key_store))[0] == ErrorCode.INVALID_REQUEST


def test_another_name_or_fewer_addresses_are_refused_unless_allowed(tmp_path: Path) -> None:
    """S6; Kafka answers NONE to another name in the same file, and goes on with the last certificate."""
    broker = TlsBroker(tmp_path / "broker", AUTHORITY, OWN, **{"ssl.allow.dn.changes": "true"}).start()
    try:
        AUTHORITY.issue("127.0.0.2", name="broker").pem(broker.key_store)
        code, message = alter(broker, LOCATION, str(broker.key_store))
        assert code == ErrorCode.INVALID_REQUEST
        assert "would lack 127.0.0.1: ssl.allow.san.changes=true allows it" in message
        assert shown(broker) == OWN.certificate
    finally:
        broker.stop()


def test_a_broker_takes_by_itself_what_its_files_hold_now(broker: TlsBroker, caplog: pytest.LogCaptureFixture) -> None:
    """As its timer has it do."""
    metadata = broker.parts.metadata

    def refresh() -> None:
        broker.run(metadata.key_material.refresh(metadata.settings))

    broker.key_store.write_text("half of")
    refresh()
    refresh()
    assert shown(broker) == OWN.certificate
    said = [record.message for record in caplog.records if "the last certificate is still shown" in record.message]
    assert len(said) == 2  # Once for each listener.
    new = other()
    new.pem(broker.key_store)
    refresh()
    assert shown(broker) == new.certificate == shown(broker, "MUTUAL")
    assert broker.started.listening.tls.reloads == 2


def test_a_password_that_was_set_is_not_told(broker: TlsBroker, tmp_path: Path) -> None:
    """S86."""
    new, prefix = other(), "listener.name.ssl.ssl.keystore."
    path = str(new.pkcs12(tmp_path / "new.p12"))
    given = {f"{prefix}type": "PKCS12", f"{prefix}location": path, f"{prefix}password": PASSWORD}
    assert alter_together(broker, given) == (ErrorCode.NONE, "")
    assert shown(broker) == new.certificate
    schema = request_schema(DESCRIBE_CONFIGS, 4)
    resource = nested_schema(schema, "resources")(resource_type=BROKER, resource_name="1", configuration_keys=None)
    with RawClient(broker) as client:
        answer = client.ask(schema(resources=(resource,), include_synonyms=True, include_documentation=False))
    entries = {config.name: config for config in answer.results[0].configs}
    assert entries[f"{prefix}location"].value == path
    assert entries[f"{prefix}password"].value is None
    assert entries[f"{prefix}password"].is_sensitive
    assert PASSWORD not in repr(answer)


def test_who_is_trusted_no_more_resumes_no_session(broker: TlsBroker) -> None:
    context = ssl.create_default_context(cadata=AUTHORITY.certificates)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    OWN.cert.configure_cert(context)

    def connect(session: ssl.SSLSession | None = None) -> ssl.SSLSession | None:
        plain = broker.connect_plainly("MUTUAL")
        with context.wrap_socket(plain, server_hostname="127.0.0.1", session=session) as client:
            return client.session

    session = connect(connect())
    broker.trust_store.write_text(STRANGER.certificates)
    metadata = broker.parts.metadata
    broker.run(metadata.key_material.refresh(metadata.settings))
    for resumed in (session, None):
        with pytest.raises(OSError):  # noqa: PT011
            connect(resumed)
