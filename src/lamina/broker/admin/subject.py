"""What the routes may look at: the broker as it is now.

Must not know HTTP.
"""

from collections.abc import Collection
from dataclasses import dataclass

from lamina.broker.admin.scan_pool import ScanPool
from lamina.broker.admin.token import Token
from lamina.broker.network.connection import Connection
from lamina.broker.node import Node
from lamina.settings.listeners import Listener


@dataclass(frozen=True, slots=True)
class Subject:
    node: Node
    connections: Collection[Connection]
    token: Token | None
    """Without one nothing can be changed."""
    listeners: tuple[Listener, ...]
    """Where the admin listener is, with the ports that it got."""
    advertised: tuple[Listener, ...]
    """Where tools are told to find it."""
    started_ms: int
    scan_pool: ScanPool
