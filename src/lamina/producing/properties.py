"""Kafka's producer properties, as far as they mean something to a writer here.

Owns their names, defaults and ranges, and which go together. What has no meaning here is accepted, as Java's client
accepts what it does not know. Must not know who writes what.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from lamina.peer.producing import ACKS_ALL
from lamina.peer.properties import one_of, whole_number
from lamina.producing.errors import WriteError
from lamina.producing.producer import DeliveryLimits
from lamina.records.batch import Codec

TRANSACTION_TIMEOUT: Final = "transaction.timeout.ms"
DEFAULT_TRANSACTION_TIMEOUT_MS: Final = 15 * 60 * 1000
"""What brokers allow unless they are told otherwise: a batch has to be written and committed within it."""

_ACKS: Final = {"all": ACKS_ALL, "-1": ACKS_ALL, "1": 1}
_LEVELS: Final = {
    Codec.GZIP: ("compression.gzip.level", -1, 9),
    Codec.LZ4: ("compression.lz4.level", 1, 17),
    Codec.ZSTD: ("compression.zstd.level", -131072, 22),
}
_DEFAULT_BATCH_BYTES: Final = 512 * 1024
_MAX_BATCH_BYTES: Final = 64 * 1024 * 1024
"""A batch takes this memory from its first row on."""

_number = partial(whole_number, WriteError, least=1)
_word = partial(one_of, WriteError)


@dataclass(frozen=True, slots=True)
class BatchFormat:
    """How batches are made."""

    batch_bytes: int = _DEFAULT_BATCH_BYTES
    """``batch.size``: of the records of one batch before they are compressed; a larger record has one to itself."""
    codec: Codec = Codec.NONE
    level: int | None = None


@dataclass(frozen=True, slots=True)
class ProducerProperties:
    batch_format: BatchFormat
    limits: DeliveryLimits
    transaction_timeout_ms: int
    is_idempotent: bool


def parse_producer_properties(given: Mapping[str, str], *, is_transactional: bool) -> ProducerProperties:
    """Raises `WriteError`, with the property's name, for what cannot be honoured."""
    acks = _word(given, "acks", "all", _ACKS)
    is_idempotent = _word(given, "enable.idempotence", "true", {"true": True, "false": False})
    if is_transactional and acks != ACKS_ALL:
        raise WriteError("acks: writing exactly once needs acks=all")
    if is_transactional and not is_idempotent:
        raise WriteError("enable.idempotence: writing exactly once needs it")
    if acks != ACKS_ALL and "enable.idempotence" not in given:
        is_idempotent = False
    if is_idempotent and acks != ACKS_ALL:
        raise WriteError("acks: enable.idempotence=true needs acks=all")
    if "transactional.id" in given:
        raise WriteError("transactional.id cannot be set: each attempt at a task has one of its own")
    default = DeliveryLimits()
    return ProducerProperties(
        batch_format=_batch_format(given),
        limits=DeliveryLimits(
            delivery_timeout_ms=_number(given, "delivery.timeout.ms", default.delivery_timeout_ms),
            request_timeout_ms=_number(given, "request.timeout.ms", default.request_timeout_ms),
            max_request_bytes=_number(given, "max.request.size", default.max_request_bytes),
            buffer_bytes=_number(given, "buffer.memory", default.buffer_bytes),
            acks=acks,
        ),
        transaction_timeout_ms=_number(given, TRANSACTION_TIMEOUT, DEFAULT_TRANSACTION_TIMEOUT_MS),
        is_idempotent=is_idempotent,
    )


def _batch_format(given: Mapping[str, str]) -> BatchFormat:
    codec = _word(given, "compression.type", "none", {one.name.lower(): one for one in Codec})
    level = None
    if codec in _LEVELS:
        name, least, most = _LEVELS[codec]
        level = _number(given, name, 0, least=least, most=most) if name in given else None
    return BatchFormat(_number(given, "batch.size", _DEFAULT_BATCH_BYTES, most=_MAX_BATCH_BYTES), codec, level)
