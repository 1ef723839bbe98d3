"""kazoo's client, with the one thing that it does not tell: the timeout that was negotiated for the session.

Owns how a client is built: threads, retries without end in short steps, authentication, TLS. Must not know paths.
"""

import logging
from typing import Any

from kazoo.client import KazooClient
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.serialization import Connect
from kazoo.retry import KazooRetry
from kazoo.security import ACL, CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from lamina.settings.zookeeper_options import ZooKeeperOptions

log = logging.getLogger("lamina.store.kazoo")
# It tells of every attempt to connect, twice a second in an outage, which session.py tells of once.
log.setLevel(logging.ERROR)


def new_client(options: ZooKeeperOptions) -> KazooClient:
    """A client that is not started. It knows no chroot: the store puts that before its paths itself."""
    handler = SequentialThreadingHandler()
    retry = KazooRetry(max_tries=-1, delay=0.05, backoff=2, max_delay=0.5, sleep_func=handler.sleep_func)
    client = KazooClient(
        hosts=",".join(options.hosts),
        timeout=options.session_timeout_ms / 1000,
        handler=handler,
        connection_retry=retry,
        logger=log,
        auth_data=None if options.digest is None else [("digest", options.digest)],
        use_ssl=options.tls is not None,
        **({} if options.tls is None else _tls(options)),
    )
    client._connection = _Connection(client, client._conn_retry.copy(), logger=client.logger)
    return client


def negotiated_timeout_ms(client: KazooClient) -> int:
    """What the server granted to the session that is or was last; what was asked for before there was one."""
    return int(client._connection.negotiated_timeout_ms or client._session_timeout)


def acls(options: ZooKeeperOptions) -> tuple[ACL, ...]:
    """As Kafka's: with ``zookeeper.set.acl`` all may read and only who authenticates alike may write."""
    return (*CREATOR_ALL_ACL, *READ_ACL_UNSAFE) if options.sets_acl else tuple(OPEN_ACL_UNSAFE)


def _tls(options: ZooKeeperOptions) -> dict[str, Any]:
    assert options.tls is not None
    return {
        "ca": options.tls.trusted,
        "certfile": options.tls.certificate,
        "keyfile": options.tls.certificate,
        "keyfile_password": options.tls.password,
        "check_hostname": options.tls.checks_hostname,
    }


class _Connection(ConnectionHandler):  # type: ignore[misc]
    """Notes the answer to the request that begins a session, before anybody hears that there is one."""

    negotiated_timeout_ms = 0

    def _invoke(self, timeout: float, request: Any, xid: Any = None) -> Any:
        result = super()._invoke(timeout, request, xid)
        if isinstance(request, Connect):
            answer, _ = result
            self.negotiated_timeout_ms = answer.time_out or self.negotiated_timeout_ms
        return result
