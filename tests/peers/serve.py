"""Runs a broker in the foreground: ``python -m tests.peers.serve NAME=VALUE …`` with Kafka's names.

Says ``ready`` once clients can connect.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping

import uvloop

from lamina.broker.server import Server
from lamina.settings.resolve import resolve_broker


def serve(
    settings: Mapping[str, str], new_loop: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
) -> str | None:
    server = Server(resolve_broker(flags=settings))
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(server.run(lambda opened, bound: print("ready", flush=True)))


if __name__ == "__main__":
    sys.exit(serve(dict(argument.split("=", 1) for argument in sys.argv[1:])))
