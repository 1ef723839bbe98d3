"""Keys and values by the schemas of a registry, before a writer of ``consume`` prints them.

Owns what is printed of a value that cannot be decoded, and what is said of it: each reason once, where it came first.
Must not know formats beside JSON, nor how a registry is asked.
"""

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from lamina.cli.consume.record_format import Writer
from lamina.cli.escapes import printable
from lamina.cli.outcome import warn
from lamina.cli.record_json import record_row
from lamina.client.errors import ClientError
from lamina.schema_registry.avro_decoding import json_decoder
from lamina.schema_registry.client import RegistryClient
from lamina.schema_registry.errors import NotDecodable, RegistryError
from lamina.schema_registry.frame import is_framed
from lamina.schema_registry.location import Location
from lamina.schema_registry.writer_schemas import WriterSchemas

if TYPE_CHECKING:
    from confluent_kafka import Message

_MAX_REASONS = 10
KEY, VALUE = "key", "value"


class Decoding:
    """What a registry knows of the records that are printed."""

    def __init__(self, location: Location) -> None:
        self._schemas = WriterSchemas(RegistryClient(location), json_decoder)
        self._reasons: set[str] = set()
        self._not_decoded = 0

    def writer(self, name: str, write: Writer) -> Writer:
        """One that is given decoded keys and values."""
        return self._json if name == "json" else lambda messages: write(cast(Any, self._decoded(messages)))

    def tell(self) -> None:
        """At the end: of what could not be decoded, only the first was told."""
        if self._not_decoded:
            what = "1 key or value" if self._not_decoded == 1 else f"{self._not_decoded:,} keys and values"
            warn(f"{what} could not be decoded")

    def of(self, message: "Message", part: str) -> tuple[int, str] | None:
        """The schema's id and the text of a JSON value; ``None`` where there is none, and the bytes are to be shown."""
        content = message.key() if part == KEY else message.value()
        data = content.encode() if isinstance(content, str) else content
        if data is None or (part == KEY and not is_framed(data)):
            return None  # Most keys are plain texts, also where values have schemas.
        try:
            return self._schemas.decode(data)
        except NotDecodable as error:
            self._note(message, part, str(error))
            return None
        except RegistryError as error:
            raise ClientError(str(error)) from error

    def _note(self, message: "Message", part: str, reason: str) -> None:
        self._not_decoded += 1
        if reason not in self._reasons and len(self._reasons) < _MAX_REASONS:
            self._reasons.add(reason)
            where = f"partition {message.partition()} at offset {message.offset()}"
            warn(f"{where}: the {part} cannot be decoded: {reason}")

    def _decoded(self, messages: Sequence["Message"]) -> "list[_DecodedMessage]":
        return [_DecodedMessage(message, self) for message in messages]

    def _json(self, messages: Sequence["Message"]) -> bytes:
        encode = json.JSONEncoder(separators=(",", ":")).encode
        return "".join([encode(self._row(message)) + "\n" for message in messages]).encode()

    def _row(self, message: "Message") -> dict[str, Any]:
        row: dict[str, Any] = dict(record_row(message))
        for part in (KEY, VALUE):
            found = self.of(message, part)
            row[f"{part}_schema_id"] = None if found is None else found[0]
            if found is not None:
                row[part], row[f"{part}_encoding"] = json.loads(found[1]), "json"
        return row


class _DecodedMessage:
    """A message whose key and value are decoded when a writer asks for them; all else is the message's."""

    def __init__(self, message: "Message", decoding: Decoding) -> None:
        self._message = message
        self._decoding = decoding

    def __getattr__(self, name: str) -> Any:
        return getattr(self._message, name)

    def key(self) -> bytes | None:
        return self._shown(KEY, self._message.key)

    def value(self) -> bytes | None:
        return self._shown(VALUE, self._message.value)

    def _shown(self, part: str, content: Callable[[], str | bytes | None]) -> bytes | None:
        found = self._decoding.of(self._message, part)
        if found is not None:
            return found[1].encode()
        data = content()
        return None if data is None else printable(data.encode() if isinstance(data, str) else data).encode()
