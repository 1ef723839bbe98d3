"""Any bytes on a port with TLS: what begins no handshake is closed without a word, and nobody stays.

The certificate is made once. The bytes come in one part or in several.
"""

import socket
import time
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any, cast

from fuzz.choices import Choices
from lamina.broker.network.handshakes import HANDSHAKE_SECONDS, Handshakes
from lamina.broker.network.listener_tls import ListenerTls
from lamina.settings.ssl_stores import KeyStoreSource
from lamina.tls.server_identity import load_server_identity
from tests.broker.network.test_handshakes import Loop
from tests.tls.certificates import Authority
from tests.tls.test_contexts import SETTINGS

_BEGINS = b"\x16"
_MOST_PARTS = 4


@cache
def _tls() -> ListenerTls:
    own = Authority().issue("localhost")
    source = KeyStoreSource("PEM", key=own.key(), certificate_chain=own.chain)
    return ListenerTls("SSL", load_server_identity(replace(SETTINGS, key_store=source), int(time.time() * 1000)))


def one(data: bytes) -> None:
    choices = Choices(data)
    parts = [choices.take(choices.number(2)) for _ in range(choices.number() % _MOST_PARTS)]
    parts.append(choices.rest())
    loop, outcomes = Loop(), list[tuple[object, str]]()
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    with ours, theirs:
        handshakes = Handshakes(cast(Any, loop), most_waiting=10)
        handshakes.begin(ours, _tls(), "a stranger", lambda *outcome: outcomes.append(outcome))
        for part in parts:
            with suppress(OSError):
                theirs.send(part)
            loop.run()
        loop.pass_time(HANDSHAKE_SECONDS + 1)
        assert outcomes == [(None, "")]
        assert len(handshakes) == 0
        sent = b"".join(parts)
        with suppress(ConnectionResetError):
            answered = theirs.recv(1 << 16)
            assert sent.startswith(_BEGINS) or not answered
