"""What is told of the comparison with Kafka beside its figures."""

import struct

import pytest

from bench.kafka import BENCH, request_versions
from bench.small_requests import fetch_request, metadata_request, produce_request
from bench.subjects import SETTINGS


def test_the_foot_tells_every_setting_that_differs_from_a_default() -> None:
    told = " ".join(BENCH.notes)
    assert [name for name, value in SETTINGS.items() if f"{name}={value}" not in told] == []
    assert request_versions() in told


@pytest.mark.parametrize(
    ("name", "request_of"), [("Produce", produce_request), ("Fetch", fetch_request), ("Metadata", metadata_request)]
)
def test_versions_that_are_told_are_those_that_are_sent(name: str, request_of: object) -> None:
    assert callable(request_of)
    _, version = struct.unpack_from(">hh", request_of("topic").frame, 4)
    assert f"{name} {version}," in request_versions()
