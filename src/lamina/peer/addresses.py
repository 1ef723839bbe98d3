"""Where a broker is.

Owns the form HOST:PORT of one address and of a list of them. Must not resolve names.
"""

import re
from typing import Final, NamedTuple

DEFAULT_PORT: Final = 9092
DEFAULT_BOOTSTRAP_SERVERS: Final = f"127.0.0.1:{DEFAULT_PORT}"

_ADDRESS = re.compile(r"(?:\w+://)?(?:\[([^\[\]\s]+)\]|([^\[\]\s:/,]+))(?::([0-9]{1,5}))?")


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_bootstrap(servers: str) -> tuple[Address, ...]:
    """The addresses of a list like Kafka's ``bootstrap.servers``; raises ValueError for what is none."""
    return tuple(_parse(server.strip()) for server in servers.split(","))


def _parse(server: str) -> Address:
    found = _ADDRESS.fullmatch(server)
    if found is None:
        raise ValueError(f"{server!r} is not of the form HOST:PORT")
    in_brackets, plain, port = found.groups()
    return Address(in_brackets or plain, DEFAULT_PORT if port is None else int(port))
