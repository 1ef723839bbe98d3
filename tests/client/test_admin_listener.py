"""An admin listener that is none, or goes away: whoever asks is told in one sentence."""

import socket
import threading

import pytest

from lamina.client.admin_listener import AdminListener
from lamina.client.errors import Unreachable


@pytest.mark.parametrize(
    "answer",
    [b"\x00\x00\x00\x04\x00\x00\x00\x01\n", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", b""],
    ids=["another protocol", "half an answer", "nothing"],
)
def test_whatever_else_answers_there_is_told_in_a_sentence(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(answer)

        serving = threading.Thread(target=serve)
        serving.start()
        with pytest.raises(Unreachable, match="does not answer"):
            AdminListener(f"127.0.0.1:{server.getsockname()[1]}").get("health")
        serving.join()
