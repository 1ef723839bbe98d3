"""How ``consume`` writes records: values, JSON, bare bytes, or a template.

A pipe or file gets the bytes of keys and values as they are, and nothing for null. A terminal is shown null and escapes
instead, except in JSON, which tells them anyway, and ``raw``, which asks for bare bytes. Must not know where records
come from.
"""

import json
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lamina.cli.escapes import printable, unescape
from lamina.cli.printing.text import time_text
from lamina.cli.record_json import headers_of, record_row

if TYPE_CHECKING:
    from confluent_kafka import Message

Writer = Callable[[Sequence["Message"]], bytes]
"""The bytes to print for some records."""

Shown = Callable[[str | bytes | None, str], bytes]
"""The bytes to print for a key or a value, and for null."""

_PIECE = re.compile(r"%(.?)", re.DOTALL)


def writer_of(text: str, terminal_encoding: str | None = None) -> Writer:
    """``value``, ``json``, ``raw`` or a template with %; raises ValueError with one sentence.

    ``terminal_encoding`` is that of a terminal to which the records go.
    """
    shown = _as_is if terminal_encoding is None else _shown_in(terminal_encoding)
    if text == "value":
        return _values if terminal_encoding is None else _template("%v", shown)
    if text in _WRITERS:
        return _WRITERS[text]
    if "%" not in text:
        names = ", ".join(_WRITERS)
        raise ValueError(f"{text!r} is not a format; the formats are {names}, and templates such as '%k\\t%v'")
    return _template(text, shown)


def _values(messages: Sequence["Message"]) -> bytes:
    return b"".join([(message.value() or b"") + b"\n" for message in messages])


def _raw(messages: Sequence["Message"]) -> bytes:
    return b"".join([message.value() or b"" for message in messages])


def _json(messages: Sequence["Message"]) -> bytes:
    encode = json.JSONEncoder(separators=(",", ":")).encode
    return "".join([encode(record_row(message)) + "\n" for message in messages]).encode()


_WRITERS: dict[str, Writer] = {"value": _values, "json": _json, "raw": _raw}


def _as_is(data: str | bytes | None, _null: str) -> bytes:
    if data is None:
        return b""
    return data.encode() if isinstance(data, str) else data


def _shown_in(encoding: str) -> Shown:
    def shown(data: str | bytes | None, null: str) -> bytes:
        text = null if data is None else printable(data.encode() if isinstance(data, str) else data)
        return text.encode(encoding, "backslashreplace")

    return shown


def _template(text: str, shown: Shown) -> Writer:
    constants: list[bytes] = []
    fields: list[Callable[[Message, Shown], bytes]] = []
    end = 0
    for match in _PIECE.finditer(text):
        if match[1] not in _FIELDS:
            raise ValueError(
                f"{match[0]} means nothing in a template; it may hold {', '.join(f'%{name}' for name in _FIELDS)}"
            )
        constants.append(unescape(text[end : match.start()]))
        fields.append(_FIELDS[match[1]])
        end = match.end()
    last = unescape(text[end:]) + b"\n"

    def write(messages: Sequence["Message"]) -> bytes:
        parts: list[bytes] = []
        for message in messages:
            for constant, field in zip(constants, fields, strict=True):
                parts.append(constant)
                parts.append(field(message, shown))
            parts.append(last)
        return b"".join(parts)

    return write


def _value(message: "Message", shown: Shown) -> bytes:
    return shown(message.value(), "(null)" if message.key() is None else "(tombstone)")


def _headers(message: "Message", shown: Shown) -> bytes:
    return b",".join(shown(name, "") + b"=" + shown(value, "(null)") for name, value in headers_of(message))


_FIELDS: dict[str, Callable[["Message", Shown], bytes]] = {
    "k": lambda message, shown: shown(message.key(), "(null)"),
    "v": _value,
    "o": lambda message, _: b"%d" % (message.offset() or 0),
    "p": lambda message, _: b"%d" % (message.partition() or 0),
    "t": lambda message, _: b"%d" % message.timestamp()[1],
    "T": lambda message, _: (time_text(message.timestamp()[1]) or "").encode(),
    "h": _headers,
    "%": lambda _message, _shown: b"%",
}
