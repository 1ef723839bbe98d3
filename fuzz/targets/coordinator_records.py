"""The records of coordinators: any bytes decoded, written again alike, and replayed into a shard that then works."""

from collections.abc import Callable
from typing import TypeVar

from fuzz.choices import Choices
from lamina.coordinators.assignors import ASSIGNORS
from lamina.coordinators.decision import Now, Producer
from lamina.coordinators.group_context import GroupContext, GroupSettings
from lamina.coordinators.group_shard import GroupCounts, GroupShard
from lamina.coordinators.records import group_codec, transaction_codec
from lamina.coordinators.records.group_records import GroupRecord, PartitionMetadataValue
from lamina.coordinators.records.transaction_records import TransactionRecord
from lamina.coordinators.replaying import Decode, End, Machine, Put, replay
from lamina.coordinators.transaction_requests import TransactionSettings
from lamina.coordinators.transactions import TransactionShard
from lamina.errors import CorruptMessage
from lamina.image.image import Image
from lamina.image.topic import Topic, new_partition

R = TypeVar("R")

_MOST_RECORDS = 16
_NOW = Now(1_700_000_000_000, 5_000)
_TOPIC = Topic("orders", bytes(range(16)), (new_partition((1,)),) * 4)
_IMAGE = Image("fuzz", topics={_TOPIC.name: _TOPIC}, topic_names={_TOPIC.id: _TOPIC.name})


def one(data: bytes) -> None:
    choices = Choices(data)
    if choices.flag():
        _load(TransactionShard(TransactionSettings, 1), choices, _transaction)
    else:
        shard = GroupShard(lambda _: GroupContext(GroupSettings(), _IMAGE, 1, ASSIGNORS), GroupCounts())
        _load(shard, choices, _group)


def _load(machine: Machine[R], choices: Choices, decode: Decode[R]) -> None:
    try:
        replay(machine, iter(_steps(choices)), decode, _MOST_RECORDS + 1)
    except CorruptMessage:
        return
    decision = machine.loaded(_NOW)
    for record in decision.records:
        machine.replay(record, decision.producer)


def _group(key: bytes | None, value: bytes | None) -> GroupRecord | None:
    record = group_codec.decode_record(key, value)
    if record is None or isinstance(record.value, PartitionMetadataValue):  # which is only ever read
        return record
    return _stable(record, group_codec.encode_record, group_codec.decode_record)


def _transaction(key: bytes | None, value: bytes | None) -> TransactionRecord | None:
    record = transaction_codec.decode_record(key, value)
    return record and _stable(record, transaction_codec.encode_record, transaction_codec.decode_record)


def _stable(record: R, encode: Callable[[R], tuple[bytes, bytes | None]], decode: Decode[R]) -> R:
    """What is written today is read again as it was; older versions may say more than today's."""
    again = decode(*encode(record))
    assert again is not None
    assert decode(*encode(again)) == again
    return record


def _steps(choices: Choices) -> list[Put | End]:
    """Records and markers, as the log of a shard may hold them."""
    steps: list[Put | End] = []
    while not choices.is_over and len(steps) < _MOST_RECORDS:
        kind = choices.number() % 4
        if kind == 3:
            steps.append(End(choices.number(), choices.flag()))
            continue
        key = choices.take(choices.number())
        value = choices.take(choices.number(2)) if kind else None
        steps.append(Put(key, value, Producer(choices.number(), 0) if kind == 2 else None))
    return steps
