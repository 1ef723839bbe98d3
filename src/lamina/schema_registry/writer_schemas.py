"""The schemas that values were written with, by their ids: asked for once, and kept, the most recently used ones.

What a registry does not know, it may know a minute later. One instance serves one thread. Must not know what becomes
of a value.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.schema_registry.client import RegisteredSchema, RegistryClient
from lamina.schema_registry.errors import NotDecodable
from lamina.schema_registry.frame import unframed

T = TypeVar("T")
Decode = Callable[[bytes], T]

MAX_SCHEMAS = 1000
_REFUSED_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class _Refused:
    sentence: str
    until: float


class WriterSchemas(Generic[T]):
    def __init__(
        self, client: RegistryClient, decoder: Callable[[RegisteredSchema], Decode[T]], clocks: Clocks = SYSTEM_CLOCKS
    ) -> None:
        self._client = client
        self._decoder = decoder
        self._clocks = clocks
        self._kept: OrderedDict[int, Decode[T] | _Refused] = OrderedDict()

    def decode(self, data: bytes) -> tuple[int, T]:
        """The schema's id, and the value; raises NotDecodable, and RegistryError where nothing can be decoded."""
        schema_id, payload = unframed(data)
        decode = self._of(schema_id)
        try:
            return schema_id, decode(payload)
        except NotDecodable as error:
            raise NotDecodable(f"schema {schema_id}: {error}") from error

    def _of(self, schema_id: int) -> Decode[T]:
        kept = self._kept.get(schema_id)
        if kept is None or (isinstance(kept, _Refused) and self._clocks.monotonic_seconds() >= kept.until):
            kept = self._asked(schema_id)
            self._kept[schema_id] = kept
            if len(self._kept) > MAX_SCHEMAS:
                self._kept.popitem(last=False)
        self._kept.move_to_end(schema_id)
        if isinstance(kept, _Refused):
            raise NotDecodable(kept.sentence)
        return kept

    def _asked(self, schema_id: int) -> Decode[T] | _Refused:
        try:
            registered = self._client.by_id(schema_id)
        except NotDecodable as error:
            return self._refused(str(error))
        try:
            return self._decoder(registered)
        except NotDecodable as error:
            return self._refused(f"schema {schema_id}: {error}")

    def _refused(self, sentence: str) -> _Refused:
        return _Refused(sentence, self._clocks.monotonic_seconds() + _REFUSED_SECONDS)
