"""One request over a connection of the command's own: for what librdkafka cannot ask.

Only a listener without TLS and login can be asked so. Must not know any request.
"""

import socket
import struct
from typing import Any

from lamina.client.errors import ClientError
from lamina.wire.codec import encode_request, parse_response
from lamina.wire.primitives import MalformedRequest

_TIMEOUT_SECONDS = 30.0
_MAX_ANSWER_BYTES = 100 * 1024 * 1024


def ask(address: tuple[str, int], request: Any) -> Any:
    """What the broker there answers; raises ClientError when it does not."""
    try:
        with socket.create_connection(address, _TIMEOUT_SECONDS) as connection:
            return ask_over(connection, request, "lamina", _MAX_ANSWER_BYTES)
    except (OSError, MalformedRequest) as error:
        host, port = address
        raise ClientError(f"{host}:{port} gave no answer ({error}); look at the broker's log, or try again") from error


def ask_over(connection: socket.socket, request: Any, client_id: str, max_answer_bytes: int) -> Any:
    """The answer of whoever is connected; raises OSError or MalformedRequest for what is no answer."""
    connection.sendall(encode_request(request, 1, client_id))
    (size_bytes,) = struct.unpack(">i", _receive(connection, 4))
    if not 4 <= size_bytes <= max_answer_bytes:
        raise ConnectionError("it does not speak Kafka's protocol")
    _, response = parse_response(request.__api_key__, request.__version__, _receive(connection, size_bytes))
    return response


def _receive(connection: socket.socket, size_bytes: int) -> bytes:
    parts = bytearray()
    while len(parts) < size_bytes:
        part = connection.recv(min(size_bytes - len(parts), 1 << 20))
        if not part:
            raise ConnectionError("it hung up")
        parts += part
    return bytes(parts)
