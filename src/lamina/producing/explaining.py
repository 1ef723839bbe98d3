"""What brokers refused when a batch was to be written once, in words that say what to do next.

Owns which rights such a write needs. Must not know how rights are given.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from lamina.errors import ErrorCode, InvalidTransactionTimeout, KafkaError, UnsupportedVersion
from lamina.producing.decisions import attempts_prefix
from lamina.producing.errors import WriteError
from lamina.producing.sink_settings import SinkSettings

_NOT_ALLOWED: Final = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
_OTHERWISE: Final = "or write at least once, with exactlyOnce=false"


@contextmanager
def explained(settings: SinkSettings, query: str) -> Iterator[None]:
    """`KafkaError` of rights, timeouts and versions becomes `WriteError`."""
    try:
        yield
    except InvalidTransactionTimeout:
        raise WriteError(
            f"the brokers do not allow transactions of {settings.producer.transaction_timeout_ms} ms: set "
            "kafka.transaction.timeout.ms to no more than their transaction.max.timeout.ms, or raise that"
        ) from None
    except UnsupportedVersion as error:
        raise WriteError(f"the brokers are too old for writing exactly once ({error}); {_OTHERWISE}") from None
    except KafkaError as error:
        if error.code not in _NOT_ALLOWED:
            raise
        ids = attempts_prefix(settings.prefix, query).removesuffix("task-")
        raise WriteError(
            f"writing exactly once is not allowed: {error}. Allow Write and Describe on the transactional ids that "
            f"begin with {ids}, and Read, Write and Describe on topic {settings.decision_topic}, which holds what was "
            f"decided (Create, too, where it does not exist); {_OTHERWISE}"
        ) from None
