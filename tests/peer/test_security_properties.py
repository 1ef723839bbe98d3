"""Kafka's security properties in both spellings; what is not understood is refused (S70, S71)."""

import pickle

import pytest

from lamina.peer.security_properties import Login, SecurityPropertyError, SecurityProtocol, parse_security

KAFKA = "org.apache.kafka.common.security."
SECRET = "s3cret"
PLAIN_LOGIN = f'{KAFKA}plain.PlainLoginModule required username="ann" password="{SECRET}";'
SCRAM_LOGIN = f'{KAFKA}scram.ScramLoginModule required username="ann" password="{SECRET}";'
TOKEN_LOGIN = f"{KAFKA}oauthbearer.OAuthBearerLoginModule required;"


def login(mechanism: str = "PLAIN", **given: str) -> dict[str, str]:
    named = {name.replace("_", "."): value for name, value in given.items()}
    return {"security.protocol": "SASL_SSL", "sasl.mechanism": mechanism, **named}


def test_nothing_said_is_a_plain_connection() -> None:
    parsed = parse_security({"client.id": "me"})
    assert (parsed.protocol, parsed.tls, parsed.login) == (SecurityProtocol.PLAINTEXT, None, None)


@pytest.mark.parametrize(
    ("protocol", "has_tls", "has_login"),
    [("ssl", True, False), ("SASL_PLAINTEXT", False, True), ("sasl_ssl", True, True)],
)
def test_protocols_in_any_case(protocol: str, has_tls: bool, has_login: bool) -> None:
    mechanism = {"sasl.mechanism": "PLAIN", "sasl.jaas.config": PLAIN_LOGIN} if has_login else {}
    parsed = parse_security({"security.protocol": protocol, **mechanism})
    assert (parsed.tls is not None, parsed.login is not None) == (has_tls, has_login)


@pytest.mark.parametrize(
    "given",
    [
        login("PLAIN", sasl_jaas_config=PLAIN_LOGIN),
        login("PLAIN", sasl_username="ann", sasl_password=SECRET),
        {"security.protocol": "SASL_SSL", "sasl.mechanisms": "PLAIN", "sasl.username": "ann", "sasl.password": SECRET},
    ],
)
def test_a_login_in_each_spelling(given: dict[str, str]) -> None:
    assert parse_security(given).login == Login("PLAIN", "ann", SECRET)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram_of_both_kinds(mechanism: str) -> None:
    assert parse_security(login(mechanism, sasl_jaas_config=SCRAM_LOGIN)).login == Login(mechanism, "ann", SECRET)


def test_a_token_in_a_file() -> None:
    given = login("OAUTHBEARER", sasl_jaas_config=TOKEN_LOGIN, sasl_oauthbearer_token_endpoint_url="file:///run/token")
    given["sasl.login.callback.handler.class"] = f"{KAFKA}oauthbearer.OAuthBearerLoginCallbackHandler"
    assert parse_security(given).login == Login("OAUTHBEARER", token_file="/run/token")


def test_what_is_of_javas_or_kerberos_insides_is_passed_over() -> None:
    java = {"ssl_trustmanager_algorithm": "PKIX", "ssl_provider": "SunJSSE", "sasl_login_refresh_buffer_seconds": "9"}
    assert parse_security(login(sasl_jaas_config=PLAIN_LOGIN, **java)).login is not None


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"security.protocol": "TLS"}, "security.protocol: TLS is not one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ({"ssl.truststore.location": "/a"}, "ssl.truststore.location has no meaning with security.protocol=PLAINTEXT"),
        (
            {"security.protocol": "SSL", "sasl.mechanism": "PLAIN"},
            "set security.protocol to SASL_PLAINTEXT or SASL_SSL",
        ),
        ({"security.protocol": "SSL", "ssl.keystore.pasword": SECRET}, "ssl.keystore.pasword is not understood here"),
        ({"security.protocol": "SSL", "ssl.engine.factory.class": "x.Y"}, "ssl.engine.factory.class is not understood"),
        ({"security.protocol": "SSL", "enable.ssl.certificate.verification": "false"}, "would trust anybody"),
        ({"security.protocol": "SSL", "ssl.enabled.protocols": "TLSv1.1"}, "ssl.enabled.protocols = TLSv1.1"),
        ({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "ldaps"}, "identification.algorithm"),
        ({"security.protocol": "SSL", "ssl.key.location": "/k"}, "ssl.key.location needs ssl.certificate.location"),
        (
            {"security.protocol": "SSL", "ssl.ca.location": "/a", "ssl.truststore.location": "/b"},
            "ssl.ca.location cannot be given together with ssl.truststore.location",
        ),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism is missing: it must be one of PLAIN, SCRAM-SHA-256"),
        (login("GSSAPI"), "sasl.mechanism: GSSAPI is not one of"),
        (login("PLAIN"), "PLAIN needs username and password"),
        (login("PLAIN", sasl_username="ann"), "PLAIN needs username and password"),
        (login("PLAIN", sasl_jaas_config=SCRAM_LOGIN), "ScramLoginModule is not for sasl.mechanism=PLAIN"),
        (login("PLAIN", sasl_jaas_config=PLAIN_LOGIN[:-1]), "sasl.jaas.config: must end with a semicolon"),
        (login("PLAIN", sasl_jaas_config="x.Own required a=b;"), "sasl.jaas.config: x.Own is not one of"),
        (login("OAUTHBEARER", sasl_jaas_config=TOKEN_LOGIN), "OAUTHBEARER needs a file that holds the token"),
        (login("PLAIN", sasl_client_callback_handler_class="x.Y"), "callback.handler.class is not understood"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_its_name(given: dict[str, str], reason: str) -> None:
    with pytest.raises(SecurityPropertyError, match=reason) as raised:
        parse_security(given)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("securty.protocol", "is unknown; did you mean security.protocol?"),
        ("Security.Protocol", "is unknown; did you mean security.protocol?"),
        ("security_protocol", "is unknown; did you mean security.protocol?"),
        ("sals.mechanism", "is unknown; did you mean sasl.mechanism?"),
        ("ssl_cafile", "is unknown."),
        ("producer.security.protocol", "is unknown."),
        ("security.protcol", "is not understood here; did you mean security.protocol?"),
        ("sasl.mechansim", "is not understood here; did you mean sasl.mechanism?"),
        ("ssl.truststore.locaton", "is not understood here; did you mean ssl.truststore.location?"),
        ("ssl.crl.location", "is not understood here."),
    ],
)
@pytest.mark.parametrize("protocol", [{}, {"security.protocol": "SSL"}])
def test_a_misspelled_property_is_refused_with_what_was_meant(name: str, reason: str, protocol: dict[str, str]) -> None:
    with pytest.raises(SecurityPropertyError) as raised:
        parse_security({"client.id": "me", **protocol, name: SECRET})
    assert str(raised.value) == f"{name} {reason} Ignoring it could open the connection."


@pytest.mark.parametrize(
    "name",
    [
        *("bootstrap.servers", "metadata.max.age.ms", "max.partition.fetch.bytes", "isolation.level", "acks"),
        *("key.serializer", "partitioner.class", "group.protocol", "enable.idempotence", "interceptor.classes"),
        *("schema.registry.ssl.truststore.location", "basic.auth.credentials.source", "exclude.internal.topics"),
    ],
)
def test_what_has_nothing_to_do_with_security_is_passed_over(name: str) -> None:
    assert parse_security({name: "x"}).protocol is SecurityProtocol.PLAINTEXT


def test_no_secret_is_shown_and_all_of_it_reaches_another_process() -> None:
    given = login(
        sasl_jaas_config=PLAIN_LOGIN,
        ssl_keystore_location="/a.p12",
        ssl_keystore_password=SECRET,
        ssl_key_password=SECRET,
        ssl_truststore_location="/b.p12",
        ssl_truststore_password=SECRET,
    )
    parsed = parse_security(given)
    assert SECRET not in repr(parsed)
    assert pickle.loads(pickle.dumps(parsed)) == parsed
