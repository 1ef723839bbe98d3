"""Errors as sentences for a person."""

import pytest
from confluent_kafka import KafkaError

from lamina.client.errors import Refused, broker_of, sentence, why_no_member, why_silent, why_unreachable


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART),
            "unknown topic or partition; `lamina topics list` shows all topics",
        ),
        (
            KafkaError(KafkaError.TOPIC_EXCEPTION),
            "invalid topic; a name has up to 249 ASCII letters, digits, '.', '_' and '-'",
        ),
        (KafkaError(KafkaError.TOPIC_EXCEPTION, "The name has a blank."), "the name has a blank"),
        (KafkaError(KafkaError.INVALID_CONFIG, "a.b: unknown, did you mean a.c?"), "a.b: unknown, did you mean a.c?"),
        (
            KafkaError(87),
            "broker failed to validate record; most often it has no key, and a compacted topic takes only records with "
            "keys",
        ),
        (
            KafkaError(32),
            "invalid timestamp; message.timestamp.before.max.ms and message.timestamp.after.max.ms of the topic say "
            "how far from now it may be",
        ),
        (KafkaError(KafkaError.UNKNOWN, "It\nfailed\n  twice."), "it failed twice"),
    ],
)
def test_an_error_is_one_line_with_what_to_do_unless_the_broker_said_it(error: KafkaError, text: str) -> None:
    assert sentence(error) == text
    assert str(Refused(error)) == text
    assert Refused(error).name == error.name()


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (None, "no broker answers at a:1; start one"),
        (
            KafkaError(
                KafkaError._TRANSPORT, "a:1/bootstrap: Connect to ipv4#a:1 failed: Connection refused (after 0ms)"
            ),
            "no broker answers at a:1 (Connection refused); start one",
        ),
        (KafkaError(KafkaError._BAD_MSG, "a:1/bootstrap: Receive failed"), "what answers at a:1 does not speak Kafka"),
        (
            KafkaError(KafkaError._AUTHENTICATION, "sasl_ssl://a:1/bootstrap: mechanisms:  (after 0ms in state X)"),
            "a:1 does not accept this login (mechanisms); check security.protocol",
        ),
        (
            KafkaError(KafkaError._SSL, "ssl://a:1/bootstrap: certificate verify failed: expired"),
            "no TLS connection to a:1 (certificate verify failed: expired); check security.protocol",
        ),
    ],
)
def test_a_cluster_that_does_not_answer_is_told_by_its_reason(error: KafkaError | None, text: str) -> None:
    assert why_unreachable("a:1", error).startswith(text)


def test_whoever_may_not_be_a_member_is_told_of_which_group_and_what_it_takes() -> None:
    error = KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED, "FindCoordinator response error: DESCRIBE on the group")
    assert why_no_member("g", error) == (
        "group g: you may not read as a member of it; ask for the permission Read on the group, or use another "
        "identity with --command-config"
    )
    assert why_no_member("g", KafkaError(KafkaError.UNKNOWN)) is None


def test_one_broker_of_several_that_does_not_answer_is_named() -> None:
    error = KafkaError(
        KafkaError._TRANSPORT, "a:2/3: Connect to ipv4#a:2 failed: Connection refused (after 0ms in state CONNECT)"
    )
    assert broker_of(error) == 3
    assert why_silent(error).startswith("broker 3 at a:2 does not answer (Connection refused); start it, or try again")
    assert broker_of(KafkaError(KafkaError._TRANSPORT, "a:1/bootstrap: Disconnected")) is None
    assert why_silent(None).startswith("a broker does not answer; start it, or")
