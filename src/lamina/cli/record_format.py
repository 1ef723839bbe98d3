"""How ``consume`` writes records: values, JSON, bare bytes, or a template.

A null key or value is written as nothing, except in JSON. Must not know where records come from or go to.
"""

import json
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lamina.cli.escapes import unescape
from lamina.cli.listing import time_text
from lamina.cli.record_lines import headers_of, record_row

if TYPE_CHECKING:
    from confluent_kafka import Message

Writer = Callable[[Sequence["Message"]], bytes]
"""The bytes to print for some records."""

_PIECE = re.compile(r"%(.?)", re.DOTALL)


def writer_of(text: str) -> Writer:
    """``value``, ``json``, ``raw`` or a template with %; raises ValueError with one sentence."""
    if text in _WRITERS:
        return _WRITERS[text]
    if "%" not in text:
        raise ValueError(f"{text!r} is no format; there are {', '.join(_WRITERS)}, and templates such as '%k\\t%v'")
    return _template(text)


def _values(messages: Sequence["Message"]) -> bytes:
    return b"".join([(message.value() or b"") + b"\n" for message in messages])


def _raw(messages: Sequence["Message"]) -> bytes:
    return b"".join([message.value() or b"" for message in messages])


def _json(messages: Sequence["Message"]) -> bytes:
    encode = json.JSONEncoder(separators=(",", ":")).encode
    return "".join([encode(record_row(message)) + "\n" for message in messages]).encode()


_WRITERS: dict[str, Writer] = {"value": _values, "json": _json, "raw": _raw}


def _template(text: str) -> Writer:
    constants: list[bytes] = []
    fields: list[Callable[[Message], bytes]] = []
    end = 0
    for match in _PIECE.finditer(text):
        if match[1] not in _FIELDS:
            raise ValueError(
                f"{match[0]} is no part of a template; there are {', '.join(f'%{name}' for name in _FIELDS)}"
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
                parts.append(field(message))
            parts.append(last)
        return b"".join(parts)

    return write


def _data(data: str | bytes | None) -> bytes:
    if data is None:
        return b""
    return data.encode() if isinstance(data, str) else data


def _headers(message: "Message") -> bytes:
    return b",".join(name.encode() + b"=" + _data(value) for name, value in headers_of(message))


_FIELDS: dict[str, Callable[["Message"], bytes]] = {
    "k": lambda message: _data(message.key()),
    "v": lambda message: _data(message.value()),
    "o": lambda message: b"%d" % (message.offset() or 0),
    "p": lambda message: b"%d" % (message.partition() or 0),
    "t": lambda message: b"%d" % message.timestamp()[1],
    "T": lambda message: (time_text(message.timestamp()[1]) or "").encode(),
    "h": _headers,
    "%": lambda _: b"%",
}
