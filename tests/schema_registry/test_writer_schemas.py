"""Values of many schemas, one after another: each schema is asked for once."""

from dataclasses import dataclass, field

import pytest

from lamina.clocks import Clocks
from lamina.schema_registry import writer_schemas
from lamina.schema_registry.avro_decoding import json_decoder
from lamina.schema_registry.client import RegistryClient
from lamina.schema_registry.errors import NotDecodable, RegistryError
from lamina.schema_registry.frame import is_framed, unframed
from lamina.schema_registry.location import Location
from lamina.schema_registry.writer_schemas import WriterSchemas
from tests.schema_registry.registry import Registry, framed, serving


@dataclass
class Time:
    seconds: int = 0
    clocks: Clocks = field(init=False)

    def __post_init__(self) -> None:
        self.clocks = Clocks(lambda: 0, lambda: self.seconds * 1_000_000_000)


def schemas_of(registry: Registry, time: Time) -> WriterSchemas[str]:
    return WriterSchemas(RegistryClient(Location(registry.url, retries=0)), json_decoder, time.clocks)


def test_a_schema_is_asked_for_once() -> None:
    with serving() as registry:
        schemas = schemas_of(registry, Time())
        number = registry.add("int")
        assert [schemas.decode(framed(number, b"\x02")) for _ in range(3)] == [(1, "1")] * 3
        assert registry.asked == ["/schemas/ids/1"]
        with pytest.raises(NotDecodable, match="schema 1: it does not fit its schema"):
            schemas.decode(framed(1, b""))


def test_an_unknown_schema_is_asked_for_again_after_a_minute() -> None:
    with serving() as registry:
        time = Time()
        schemas = schemas_of(registry, time)
        for _ in range(3):
            with pytest.raises(NotDecodable, match="has no schema 1"):
                schemas.decode(framed(1, b"\x02"))
        assert len(registry.asked) == 1
        registry.add("int")
        time.seconds = 60
        assert schemas.decode(framed(1, b"\x02")) == (1, "1")


def test_only_so_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_schemas, "MAX_SCHEMAS", 2)
    with serving() as registry:
        schemas = schemas_of(registry, Time())
        for name in ("int", "long", "int"):
            registry.add(name)
        for number in (1, 2, 1, 3, 1, 2):
            schemas.decode(framed(number, b"\x02"))
        assert [path[-1] for path in registry.asked] == ["1", "2", "3", "2"]


def test_a_registry_that_is_away_is_no_fault_of_a_value() -> None:
    with serving() as registry:
        registry.always = (503, {}, b"")
        with pytest.raises(RegistryError, match="does not answer"):
            schemas_of(registry, Time()).decode(framed(1, b"\x02"))


def test_frames() -> None:
    assert unframed(b"\0\0\0\1\2rest") == (258, b"rest")
    assert unframed(b"\0\xff\xff\xff\xff") == (2**32 - 1, b"")
    assert not is_framed(b"key")
    for data, sentence in ((b"", "is empty"), (b"\0\0\0", "has 3 bytes"), (b"key", "begins with byte 107, not with")):
        with pytest.raises(NotDecodable, match=sentence):
            unframed(data)
