"""Which names a request may call the listener by.

A page in a browser can have its own name resolve to 127.0.0.1 and then read what is meant for this machine; the name
in its requests gives it away. So on an address of this machine alone, only names of this machine are answered. Must
not know what is asked.
"""

from collections.abc import Collection, Iterable
from ipaddress import ip_address

from starlette.requests import Request

from lamina.broker.admin.answers import Refused
from lamina.settings.listeners import Listener

Address = tuple[str, int]


class HostCheck:
    def __init__(self, guarded: Collection[Address], listeners: Iterable[Listener]) -> None:
        """``guarded`` are addresses of this machine alone; what the settings call a listener may be said as well."""
        self._guarded = frozenset(guarded)
        self._names = {"localhost", *(listener.host.lower() for listener in listeners)}

    def __call__(self, request: Request) -> None:
        host = request.headers.get("host")
        if host is not None and request.scope["server"] in self._guarded and not self._is_ours(_name_in(host)):
            raise Refused(403, "wrong_host", "this listener answers for localhost and for addresses of this machine")

    def _is_ours(self, name: str) -> bool:
        return name in self._names or is_loopback(name)


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _name_in(host: str) -> str:
    """``localhost:9644`` → ``localhost``, ``[::1]:9644`` → ``::1``."""
    host = host.strip().lower()
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0].rstrip(".")
