"""What can go wrong between a client and a cluster, as sentences for a person.

Must not know any command.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

ADVICE = {
    "UNKNOWN_TOPIC_OR_PART": "`lamina topics list` shows what is there",
    "_UNKNOWN_TOPIC": "`lamina topics list` shows what is there",
    "_UNKNOWN_PARTITION": "`lamina topics describe` shows its partitions",
    "TOPIC_ALREADY_EXISTS": "choose another name, or delete that topic first",
    "TOPIC_AUTHORIZATION_FAILED": "ask for the right, or name another identity with --command-config",
    "CLUSTER_AUTHORIZATION_FAILED": "ask for the right, or name another identity with --command-config",
    "GROUP_AUTHORIZATION_FAILED": "ask for the right, or name another identity with --command-config",
    "KAFKA_STORAGE_ERROR": "the broker's log says what its disk refused",
    "_MSG_TIMED_OUT": "look at the broker's log, or try again",
    "_TIMED_OUT": "look at the broker's log, or try again",
    "MSG_SIZE_TOO_LARGE": "raise max.message.bytes of the topic, or send less at a time",
}
"""What to do next, by the name that librdkafka gives an error; nothing where the message says it all."""


class ClientError(Exception):
    """The cluster refused, or the request could not be made; the sentence says what to do next."""


class Unreachable(ClientError):
    """No broker answered."""


def sentence(error: "KafkaError") -> str:
    """An error of librdkafka or of a broker, in one line."""
    text = error.str().strip().rstrip(".") or error.name()
    text = text[0].lower() + text[1:] if text[1:2].islower() else text
    advice = ADVICE.get(error.name())
    return f"{text}; {advice}" if advice else text
