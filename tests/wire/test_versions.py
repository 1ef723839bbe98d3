import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map, schema_name_map

from lamina.wire.versions import (
    UnknownMessage,
    is_flexible,
    nested_schema,
    request_header_version,
    request_schema,
    response_header_version,
    response_schema,
)

EVERY_MESSAGE = [(key, version) for key, name in api_key_map.items() for version in schema_name_map[name]]


def test_flexible_versions_and_header_versions_are_those_of_the_schemas() -> None:
    for key, version in EVERY_MESSAGE:
        request, response = load_request_schema(key, version), load_response_schema(key, version)
        assert is_flexible(key, version) == request.__flexible__, (key, version)
        assert request_header_version(key, version) == request.__header_schema__.__version__
        assert response_header_version(key, version) == response.__header_schema__.__version__


@pytest.mark.parametrize("version", range(5))
def test_api_versions_is_answered_with_header_v0(version: int) -> None:
    assert response_header_version(18, version) == 0


def test_an_unknown_api_is_not_flexible() -> None:
    assert not is_flexible(500, 3)


def test_a_schema_that_does_not_exist_is_named() -> None:
    with pytest.raises(UnknownMessage, match="API key 3 version 99"):
        request_schema(3, 99)
    with pytest.raises(UnknownMessage, match="API key 500 version 0"):
        response_schema(500, 0)


def test_a_nested_schema_is_found_by_its_field() -> None:
    topic = nested_schema(response_schema(3, 12), "topics")
    assert topic.__name__ == "MetadataResponseTopic"
    assert nested_schema(topic, "partitions").__name__ == "MetadataResponsePartition"
    with pytest.raises(UnknownMessage, match="MetadataResponse v12 has no structures in a field cluster_id"):
        nested_schema(response_schema(3, 12), "cluster_id")
