"""SCRAM by the vectors of its RFCs, both sides with each other, what a broker must refuse (S40-S42, S80, S83, S88)."""

import hashlib
import hmac
from base64 import b64decode, b64encode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.security.scram import MOST_ITERATIONS_OF_A_SERVER, ScramClient, ScramError, ScramServer, salt_from
from lamina.security.scram_credential import (
    LEAST_ITERATIONS,
    MECHANISMS,
    ScramCredential,
    ScramMechanism,
    credential_from,
    salted_password,
)

SECRET = b"of this broker alone"
SALT = b"salt of a test"
USERS = st.text(st.characters(min_codepoint=1, max_codepoint=0x7F), min_size=1)
NONCES = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters=","), min_size=1)
BOTH = pytest.mark.parametrize("mechanism", ScramMechanism)

RFC_7677_CLIENT_NONCE = "rOprNGfwEbeRWgbNEkqO"
RFC_7677_SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
RFC_7677_SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
RFC_7677 = (
    b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
)


def kept(mechanism: ScramMechanism, password: str, salt: bytes = SALT) -> ScramCredential:
    digest = mechanism.digest
    return credential_from(digest, salted_password(digest, password, salt, LEAST_ITERATIONS), salt, LEAST_ITERATIONS)


def server(credential: ScramCredential | None, mechanism: ScramMechanism = ScramMechanism.SHA_256) -> ScramServer:
    return ScramServer(mechanism, lambda _: credential, SECRET, "theirs")


def log_in(client: ScramClient, server: ScramServer, mechanism: ScramMechanism, password: str) -> None:
    salt, iterations = client.challenge(server.respond(client.first()))
    client.verify(server.respond(client.final(salted_password(mechanism.digest, password, salt, iterations))))


def test_a_client_says_what_rfc_7677_says() -> None:
    client = ScramClient(ScramMechanism.SHA_256, "user", RFC_7677_CLIENT_NONCE)
    assert client.first() == RFC_7677[0]
    assert client.challenge(RFC_7677[1]) == (RFC_7677_SALT, 4096)
    assert client.final(salted_password("sha256", "pencil", RFC_7677_SALT, 4096)) == RFC_7677[2]
    client.verify(RFC_7677[3])


def test_a_server_says_what_rfc_7677_says() -> None:
    credential = kept(ScramMechanism.SHA_256, "pencil", RFC_7677_SALT)
    answering = ScramServer(ScramMechanism.SHA_256, {"user": credential}.get, SECRET, RFC_7677_SERVER_NONCE)
    assert answering.respond(RFC_7677[0]) == RFC_7677[1]
    assert not answering.is_complete
    assert answering.respond(RFC_7677[2]) == RFC_7677[3]
    assert answering.is_complete
    assert answering.user == "user"


def test_the_keys_are_those_of_rfc_5802() -> None:
    first, final = b"n=user,r=fyko+d2lbbFgONRv9qkxdawL", b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j"
    signed = first + b",r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096," + final
    salt = b64decode("QSXCR+Q6sek8bf92")
    keys = credential_from("sha1", salted_password("sha1", "pencil", salt, 4096), salt, 4096)
    assert b64encode(hmac.digest(keys.server_key, signed, "sha1")) == b"rmF9pqV8S7suAoZWja4dJRkFsKQ="
    proof = b64decode("v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=")
    client_key = bytes(a ^ b for a, b in zip(proof, hmac.digest(keys.stored_key, signed, "sha1"), strict=True))
    assert hashlib.sha1(client_key).digest() == keys.stored_key


def test_mechanisms_have_the_protocols_numbers_and_the_clients_names() -> None:
    assert MECHANISMS == {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
    assert [mechanism.digest for mechanism in ScramMechanism] == ["sha256", "sha512"]


@BOTH
def test_both_sides_agree_on_the_right_password_only(mechanism: ScramMechanism) -> None:
    credential = kept(mechanism, "päss, wörd=")
    log_in(ScramClient(mechanism, "alice", "ours"), server(credential, mechanism), mechanism, "päss, wörd=")
    with pytest.raises(ScramError, match="proof is wrong"):
        log_in(ScramClient(mechanism, "alice", "ours"), server(credential, mechanism), mechanism, "other")


@settings(deadline=None, max_examples=30)
@given(USERS, NONCES)
def test_any_ascii_name_comes_through(user: str, nonce: str) -> None:
    answering = server(kept(ScramMechanism.SHA_256, "secret"))
    log_in(ScramClient(ScramMechanism.SHA_256, user, nonce), answering, ScramMechanism.SHA_256, "secret")
    assert answering.user == user


def test_extensions_are_signed_along() -> None:
    client = ScramClient(ScramMechanism.SHA_256, "alice", "ours", {"purpose": "test"})
    log_in(client, server(kept(ScramMechanism.SHA_256, "secret")), ScramMechanism.SHA_256, "secret")


def test_a_delegation_token_is_nobodys_password() -> None:
    """S42: its user is a token's id, and there are no delegation tokens."""
    client = ScramClient(ScramMechanism.SHA_256, "alice", "ours", {"tokenauth": "true"})
    with pytest.raises(ScramError, match="proof is wrong"):
        log_in(client, server(kept(ScramMechanism.SHA_256, "secret")), ScramMechanism.SHA_256, "secret")


@BOTH
def test_an_unknown_user_is_told_nothing_until_the_end(mechanism: ScramMechanism) -> None:
    """S83: with the same salt every time, and the refusal that a wrong password gets."""
    first = server(None, mechanism).respond(b"n,,n=nobody,r=ours")
    assert first == server(None, mechanism).respond(b"n,,n=nobody,r=ours")
    assert first != server(None, mechanism).respond(b"n,,n=somebody,r=ours")
    assert first.endswith(b",i=4096")
    with pytest.raises(ScramError, match=r"^the proof is wrong$"):
        log_in(ScramClient(mechanism, "nobody", "ours"), server(None, mechanism), mechanism, "any")


def salt_in(first: bytes) -> bytes:
    return first.split(b",")[1]


@pytest.mark.parametrize("user", ["nobody", "alice"])
def test_no_question_tells_whether_a_user_exists(user: str) -> None:
    """S83: both keep their salt with and without ``tokenauth``, and have another one for the other mechanism."""
    salts = []
    for mechanism in ScramMechanism:
        credential = kept(mechanism, "secret")._replace(salt=mechanism.sasl_name.encode()) if user == "alice" else None
        as_user = server(credential, mechanism).respond(f"n,,n={user},r=ours".encode())
        as_token = server(credential, mechanism).respond(f"n,,n={user},r=ours,tokenauth=true".encode())
        assert salt_in(as_user) == salt_in(as_token)
        salts.append(salt_in(as_user))
    assert len(set(salts)) == len(salts)


def test_a_made_up_salt_has_the_form_of_those_that_kafkas_tools_make() -> None:
    salt = salt_from(bytes(range(32)))
    assert len(salt) == 25
    assert salt.isalnum()
    assert salt != salt_from(bytes(32))


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n",
        b"n,,n=user",
        b"y,,n=user,r=ours",
        b"p=tls-unique,,n=user,r=ours",
        b"n,user,n=user,r=ours",
        b"n,,m=must,n=user,r=ours",
        b"n,,n=user,r=ours,m=must",
        b"n,,n=,r=ours",
        b"n,,n=user,r=",
        b"n,,r=ours,n=user",
        b"n,,n=us=er,r=ours",
        b"n,,n=user,r=our s",
        b"n,,n=user,r=ours,x",
        b"n,,n=user\x00,r=ours",
        "n,,n=üser,r=ours".encode(),
        b"\xff\xfe",
    ],
)
def test_first_messages_that_are_refused(message: bytes) -> None:
    """S41"""
    with pytest.raises(ScramError):
        server(kept(ScramMechanism.SHA_256, "secret")).respond(message)


def test_nobody_logs_in_as_somebody_else() -> None:
    """S80, CVE-2017-12610"""
    credential = kept(ScramMechanism.SHA_256, "secret")
    assert server(credential).respond(b"n,a=al=2Cice,n=al=2Cice,r=ours")
    with pytest.raises(ScramError, match="another user"):
        server(credential).respond(b"n,a=admin,n=alice,r=ours")


@pytest.mark.parametrize("nonce", [b"ours", b"ourstheirsmore", b"theirs", b"ourstheir", b""])
def test_a_nonce_has_to_be_equal(nonce: bytes) -> None:
    """S80, CVE-2024-56128: neither a prefix nor a suffix will do."""
    answering = server(kept(ScramMechanism.SHA_256, "secret"))
    client = ScramClient(ScramMechanism.SHA_256, "alice", "ours")
    salt, iterations = client.challenge(answering.respond(client.first()))
    final = client.final(salted_password("sha256", "secret", salt, iterations))
    with pytest.raises(ScramError, match="belong"):
        answering.respond(final.replace(b"r=ourstheirs", b"r=" + nonce))


def test_a_nonce_with_the_clients_part_twice_is_refused_with_what_to_do() -> None:
    """As by Kafka 4; librdkafka sent it until 2.6.1, and its users are told no more than that a password is wrong."""
    answering = server(kept(ScramMechanism.SHA_256, "secret"))
    answering.respond(b"n,,n=alice,r=ours")
    with pytest.raises(ScramError, match="librdkafka") as refused:
        answering.respond(b"c=biws,r=oursourstheirs,p=AAAA")
    assert "2.6.1" in str(refused.value.told)


def test_the_header_is_bound() -> None:
    """S41: Kafka does not look at it."""
    answering = server(kept(ScramMechanism.SHA_256, "secret"))
    answering.respond(b"n,a=alice,n=alice,r=ours")
    with pytest.raises(ScramError, match="belong"):
        answering.respond(b"c=biws,r=ourstheirs,p=AAAA")


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"c=biws,r=ourstheirs",
        b"c=biws,p=AAAA",
        b"r=ourstheirs,c=biws,p=AAAA",
        b"c=biws,r=ourstheirs,p=AAAA",
        b"c=biws,r=ourstheirs,p=",
        b"c=biws,r=ourstheirs,p=%%",
        b"c=%,r=ourstheirs,p=AAAA",
        b"c=biws,r=ourstheirs,x,p=AAAA",
        b"\xff",
    ],
)
def test_final_messages_that_are_refused(message: bytes) -> None:
    answering = server(kept(ScramMechanism.SHA_256, "secret"))
    answering.respond(b"n,,n=alice,r=ours")
    with pytest.raises(ScramError):
        answering.respond(message)
    with pytest.raises(ScramError, match="over"):
        answering.respond(b"n,,n=alice,r=ours")
    assert not answering.is_complete


@given(st.lists(st.binary(), max_size=3))
def test_any_bytes_are_refused_in_words(messages: list[bytes]) -> None:
    answering = server(kept(ScramMechanism.SHA_256, "secret"))
    client = ScramClient(ScramMechanism.SHA_256, "alice", "ours")
    for message in messages:
        for side in (answering.respond, client.challenge, client.verify):
            with pytest.raises(ScramError):
                side(message)


@pytest.mark.parametrize("iterations", ["0", "1", "4095", str(MOST_ITERATIONS_OF_A_SERVER + 1), "9" * 40, "-1", "x"])
def test_a_client_computes_no_more_than_it_wants_to(iterations: str) -> None:
    """S88, CVE-2026-10143; nor so little that the password is found."""
    client = ScramClient(ScramMechanism.SHA_256, "alice", "ours")
    with pytest.raises(ScramError, match="iterations"):
        client.challenge(f"r=ourstheirs,s=AAAA,i={iterations}".encode())


@pytest.mark.parametrize(
    "message",
    [
        b"e=other-error",
        b"r=ours,s=AAAA,i=4096",
        b"r=theirs,s=AAAA,i=4096",
        b"r=ourstheirs,s=%,i=4096",
        b"s=AAAA,i=4096",
    ],
)
def test_a_client_refuses_servers_that_answer_wrongly(message: bytes) -> None:
    with pytest.raises(ScramError):
        ScramClient(ScramMechanism.SHA_256, "alice", "ours").challenge(message)


@pytest.mark.parametrize("final", [b"", b"v=", b"v=AAAA", b"e=invalid-proof", b"x=AAAA"])
def test_a_server_has_to_show_that_it_knows_the_user(final: bytes) -> None:
    credential = kept(ScramMechanism.SHA_256, "secret")
    answering, client = server(credential), ScramClient(ScramMechanism.SHA_256, "alice", "ours")
    salt, iterations = client.challenge(answering.respond(client.first()))
    client.final(salted_password("sha256", "secret", salt, iterations))
    with pytest.raises(ScramError):
        client.verify(final)


def test_a_client_that_has_proved_nothing_verifies_nothing() -> None:
    with pytest.raises(ScramError):
        ScramClient(ScramMechanism.SHA_256, "alice", "ours").verify(b"v=")


def test_a_credential_shows_no_key() -> None:
    credential = kept(ScramMechanism.SHA_256, "secret", b"visible?")
    assert repr(credential) == str(credential) == "ScramCredential(hidden, iterations=4096)"
    assert f"{credential}" == "ScramCredential(hidden, iterations=4096)"
