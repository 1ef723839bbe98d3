"""The committed table is what kio says, and nothing that kio says is lost on the way."""

import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from kio.index import load_request_schema, load_response_schema

from lamina.wire import message_table
from lamina.wire.codec import encode_entity, encode_request, parse_entity, parse_response
from lamina.wire.fields import REQUIRED, Entity, Field, fields_of
from lamina.wire.versions import nested_schema, request_schema, response_schema
from schemas.apis import API_KEYS, BEFORE_KAFKA_4, CONTROLLED_SHUTDOWN
from schemas.kio_messages import NO_DEFAULT, KioField, versions_of
from schemas.kio_messages import fields_of as kio_fields
from schemas.table import source

METADATA = 3


def test_the_committed_table_is_current() -> None:
    assert Path(message_table.__file__).read_text() == source(), "make schemas"


@pytest.mark.parametrize("api_key", API_KEYS)
def test_every_field_of_every_version_is_as_in_kio(api_key: int) -> None:
    for version in versions_of(api_key):
        _compare(request_schema(api_key, version), load_request_schema(api_key, version))
        _compare(response_schema(api_key, version), load_response_schema(api_key, version))


def _compare(schema: type[Entity], kio_schema: Any) -> None:
    assert schema.__name__ == kio_schema.__name__
    for name in ("__api_key__", "__version__", "__flexible__"):
        assert getattr(schema, name) == getattr(kio_schema, name), schema
    for field, expected in zip(fields_of(schema), kio_fields(kio_schema), strict=True):
        assert _as_kio_has_it(field) == _comparable(expected), schema
        if field.entity is not None:
            _compare(field.entity, expected.structure)


def _as_kio_has_it(field: Field) -> tuple[Any, ...]:
    wire_type = field.wire_type if field.entity is None else field.entity.__name__
    default = field.default
    if isinstance(default, timedelta):
        default = default // timedelta(milliseconds=1)
    elif isinstance(default, Entity):
        assert default == type(default)()
        default = {}
    return field.name, wire_type, field.is_array, field.nullable, field.tag, default


def _comparable(field: KioField) -> tuple[Any, ...]:
    default = REQUIRED if field.default is NO_DEFAULT else field.default
    return field.name, field.wire_type, field.is_array, field.nullable, field.tag, default


def test_a_message_that_kafka_dropped_is_in_the_table_as_well() -> None:
    assert list(BEFORE_KAFKA_4) == [CONTROLLED_SHUTDOWN]
    request = request_schema(CONTROLLED_SHUTDOWN, 3)(broker_id=1, broker_epoch=2)
    assert bytes(encode_request(request, 7, None)).hex() == "000000180007000300000007ffff0000000001" + (
        "000000000000000200"
    )
    schema = response_schema(CONTROLLED_SHUTDOWN, 3)
    partition = nested_schema(schema, "remaining_partitions")(topic_name="t", partition_index=4)
    answer = schema(error_code=0, remaining_partitions=(partition,))
    assert encode_entity(answer).hex() == "0000020274000000040000"
    assert parse_response(CONTROLLED_SHUTDOWN, 3, bytes.fromhex("0000000700") + encode_entity(answer)) == (7, answer)


def test_an_entity_is_made_of_all_fields_that_have_no_default() -> None:
    topic = nested_schema(request_schema(METADATA, 12), "topics")
    assert topic(topic_id=None, name="t").name == "t"
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'topic_id'"):
        topic(name="t")
    with pytest.raises(TypeError, match="unexpected keyword argument 'nane'"):
        topic(topic_id=None, nane="t")


def test_an_entity_cannot_be_changed() -> None:
    partition = response_schema(12, 0)(error_code=3)
    with pytest.raises(AttributeError, match="HeartbeatResponse cannot be changed"):
        partition.error_code = 0
    with pytest.raises(AttributeError):
        partition.another = 0


def test_entities_are_compared_and_shown_by_their_values() -> None:
    schema = response_schema(12, 0)
    assert schema(error_code=3) == schema(error_code=3)
    assert hash(schema(error_code=3)) == hash(schema(error_code=3))
    assert schema(error_code=3) != schema(error_code=4)
    assert schema(error_code=3) != response_schema(26, 0)(throttle_time=0, error_code=3)
    assert repr(schema(error_code=3)) == "HeartbeatResponse(error_code=3)"


def test_a_structure_that_is_mentioned_twice_is_one_class() -> None:
    request = request_schema(24, 4)
    assert nested_schema(nested_schema(request, "transactions"), "topics").__name__ == "AddPartitionsToTxnTopic"
    described = nested_schema(response_schema(69, 1), "groups")
    member = nested_schema(described, "members")
    assert nested_schema(member, "assignment") is nested_schema(member, "target_assignment")
    assert parse_entity(nested_schema(member, "assignment"), b"\x01\x00").topic_partitions == ()


def test_a_broker_needs_no_kio() -> None:
    script = (
        "import sys, lamina.broker.server, lamina.wire.codec as codec\n"
        "codec.parse_request(12, 0, bytes(8))\n"
        "print([name for name in sys.modules if name.partition('.')[0] in ('kio', 'hypothesis')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")
