"""What can go wrong between a client and a cluster, as sentences for a person.

Must not know any command.
"""

import re
from typing import TYPE_CHECKING

from lamina.errors import ErrorCode, error_from_code

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

ADVICE = {
    "UNKNOWN_TOPIC_OR_PART": "`lamina topics list` shows all topics",
    "_UNKNOWN_TOPIC": "`lamina topics list` shows all topics",
    "_UNKNOWN_PARTITION": "`lamina topics describe` shows its partitions",
    "OFFSET_OUT_OF_RANGE": "`lamina topics offsets` shows where the partition begins and ends",
    "LEADER_NOT_AVAILABLE": "try again in a moment; `lamina brokers` shows all brokers",
    "INVALID_CONFIG": "`lamina configs get --all` shows every name and value",
    "TOPIC_DELETION_DISABLED": "set delete.topic.enable=true on the broker",
    "UNSUPPORTED_VERSION": "the broker is too old for this, or does not offer it",
    "TOPIC_ALREADY_EXISTS": "choose another name, or delete that topic first",
    "TOPIC_AUTHORIZATION_FAILED": "ask for the permission, or use another identity with --command-config",
    "CLUSTER_AUTHORIZATION_FAILED": "ask for the permission, or use another identity with --command-config",
    "GROUP_AUTHORIZATION_FAILED": "ask for the permission, or use another identity with --command-config",
    "SECURITY_DISABLED": "set authorizer.class.name on every broker",
    "GROUP_ID_NOT_FOUND": "`lamina groups list` shows all groups",
    "NON_EMPTY_GROUP": "stop its members first; `lamina groups describe` shows who they are",
    "GROUP_SUBSCRIBED_TO_TOPIC": "stop the members that read it first; `lamina groups describe` shows who they are",
    "COORDINATOR_LOAD_IN_PROGRESS": "try again in a moment",
    "COORDINATOR_NOT_AVAILABLE": "try again in a moment; the broker's log says what is wrong",
    "KAFKA_STORAGE_ERROR": "the broker's log says which disk operation failed",
    "_MSG_TIMED_OUT": "look at the broker's log, or try again",
    "_TIMED_OUT": "look at the broker's log, or try again",
    "INVALID_RECORD": "most often it has no key, and a compacted topic takes only records with keys",
    "INVALID_TIMESTAMP": (
        "message.timestamp.before.max.ms and message.timestamp.after.max.ms of the topic say how far from now it may be"
    ),
    "MSG_SIZE_TOO_LARGE": "raise max.message.bytes of the topic, or send less at a time",
}
"""What to do next, by the name that librdkafka gives an error; nothing where the message says it all."""

ADVICE_FOR_SILENCE = {
    "TOPIC_EXCEPTION": "a name has up to 249 ASCII letters, digits, '.', '_' and '-'",
    "INVALID_REPLICATION_FACTOR": "`lamina brokers` shows how many there are",
    "INVALID_PARTITIONS": "`lamina topics describe` shows how many there are",
    "POLICY_VIOLATION": "records of a topic that is only compacted cannot be deleted; a broker may forbid other things",
}
"""The same, only where the broker gave no reason of its own."""

_BROKER = re.compile(r"(?P<address>\S+)/(?P<id>\d+): ")
"""How librdkafka's text for an error of one broker begins."""
_SILENT = ("Broker: ", "Local: ")
"""How librdkafka's own text for a code begins."""


class ClientError(Exception):
    """The cluster refused, or the request could not be made; the sentence says what to do next."""


class Unreachable(ClientError):
    """No broker answered."""


class Refused(ClientError):
    """librdkafka or a broker answered with an error."""

    def __init__(self, error: "KafkaError") -> None:
        super().__init__(sentence(error))
        self.name = error.name()
        """As librdkafka has it, e.g. ``TOPIC_ALREADY_EXISTS``."""


def refusal(code: int, message: str | None) -> ClientError:
    """An error in the answer to a request of our own, in one line."""
    said = (message or str(error_from_code(code, "the broker refused"))).rstrip(".")
    advice = next((ADVICE.get(one.name) for one in ErrorCode if one == code), None)
    return ClientError(f"{said}; {advice}" if advice else said)


def no_topic(name: str, advice: str = ADVICE["UNKNOWN_TOPIC_OR_PART"]) -> ClientError:
    """The one sentence for a topic that does not exist, whoever found out."""
    return ClientError(f"there is no topic {name!r}; {advice}")


def sentence(error: "KafkaError") -> str:
    """An error of librdkafka or of a broker, in one line."""
    said = " ".join(error.str().split())
    text = said.removeprefix("Broker: ").removeprefix("Local: ").rstrip(".") or error.name()
    text = text[0].lower() + text[1:] if text[1:2].islower() else text
    advice = ADVICE.get(error.name()) or (ADVICE_FOR_SILENCE.get(error.name()) if said.startswith(_SILENT) else None)
    return f"{text}; {advice}" if advice and not text.endswith("?") else text


def why_no_member(group: str, error: "KafkaError") -> str | None:
    """Where access rules keep somebody out of a group: a broker names neither it nor what a member needs."""
    if error.name() != "GROUP_AUTHORIZATION_FAILED":
        return None
    return (
        f"group {group}: you may not read as a member of it; ask for the permission Read on the group, or use another "
        "identity with --command-config"
    )


def why_unreachable(servers: str, error: "KafkaError | None") -> str:
    """A sentence about a cluster that did not answer; ``error`` is what librdkafka said last."""
    name, text = ("", "") if error is None else (error.name(), error.str().partition(" (after")[0])
    whole = text.partition("/bootstrap: ")[2].strip().rstrip(":") or text
    if name == "_BAD_MSG":
        return f"what answers at {servers} does not speak Kafka's protocol; check the port"
    if name == "_AUTHENTICATION":
        return f"{servers} does not accept this login ({whole}); check security.protocol and sasl.* in --command-config"
    if name == "_SSL" or "SSL" in text:
        return f"no TLS connection to {servers} ({whole}); check security.protocol and ssl.* in --command-config"
    reason = f" ({text.rpartition(': ')[2]})" if text else ""
    advice = "start one with `lamina serve`, or name another with --bootstrap-server"
    return f"no broker answers at {servers}{reason}; {advice}"


def broker_of(error: "KafkaError") -> int | None:
    """The id of the broker that an error of librdkafka is about, where it tells."""
    broker = _BROKER.match(error.str())
    return None if broker is None else int(broker["id"])


def why_silent(error: "KafkaError | None") -> str:
    """A sentence about one broker of a cluster whose others answer; ``error`` is what librdkafka said last."""
    text = "" if error is None else error.str().partition(" (after")[0]
    broker = _BROKER.match(text)
    who = "a broker" if broker is None else f"broker {broker['id']} at {broker['address']}"
    reason = f" ({text.rpartition(': ')[2]})" if broker is not None else ""
    return f"{who} does not answer{reason}; start it, or try again in a moment: others take its place"
