"""Connections, their bytes, their TLS, and the memory of requests that arrive."""

from lamina.broker.metrics.metric import counter, gauge

_SOCKETS = "kafka.server:type=socket-server-metrics,listener=*,networkProcessor=*, {}"

CONNECTIONS = gauge("lamina_connections", "Open connections.", "listener", kafka=_SOCKETS.format("connection-count"))
CONNECTIONS_MUTED = gauge(
    "lamina_connections_muted", "Connections whose clients wait because they have exceeded a quota."
)
CONNECTIONS_CREATED = counter(
    "lamina_connections_created_total",
    "Connections that were accepted.",
    "listener",
    kafka=_SOCKETS.format("connection-creation-total"),
)
CONNECTIONS_CLOSED = counter(
    "lamina_connections_closed_total",
    "Connections that ended. `client`: it closed; `error`: the socket failed; `idle`: `connections.max.idle.ms`; "
    "`refused`: what it sent is no request; `arrival`: its request did not arrive and others waited for memory; "
    "`excess`: `max.connections`; `failure`: the broker's own fault; `stop`: the broker stopped.",
    "reason",
    kafka=_SOCKETS.format("connection-close-total"),
)
CONNECTIONS_REFUSED = counter(
    "lamina_connections_refused_total",
    "Connections that were turned away. `descriptors`: no open file was left, or the system refused; `per_ip`: "
    "`max.connections.per.ip`; `per_ip_rate`: the quota `connection_creation_rate` of an address.",
    "reason",
)
CONNECTIONS_HELD_BACK = counter(
    "lamina_connections_held_back_total",
    "How often a listener stopped accepting for a while. `room`: `max.connections`; `rate`: "
    "`max.connection.creation.rate`.",
    "reason",
    kafka="kafka.network:type=Acceptor,name=AcceptorBlockedPercent,listener=* (nearly)",
)
LOGINS = counter(
    "lamina_logins_total",
    "Logins on listeners with SASL. `success` and `failure`: of new connections; `reauthentication_success` and "
    "`reauthentication_failure`: of those that have logged in before (KIP-368); `expired`: the client did not log in "
    "again in time. The mechanism is `none` where the client named none of those there are.",
    "listener",
    "mechanism",
    "outcome",
    kafka=_SOCKETS.format("successful-authentication-total") + ", and alike",
)
NETWORK_IN_BYTES = counter(
    "lamina_network_in_bytes_total", "Bytes received from clients.", kafka=_SOCKETS.format("incoming-byte-total")
)
NETWORK_OUT_BYTES = counter(
    "lamina_network_out_bytes_total", "Bytes of answers to clients.", kafka=_SOCKETS.format("outgoing-byte-total")
)
REQUEST_MEMORY_HELD = gauge(
    "lamina_request_memory_held_bytes",
    "Memory of large requests that arrive or are served.",
    kafka="kafka.network:type=SocketServer,name=MemoryPoolUsed",
)
REQUEST_MEMORY_LIMIT = gauge("lamina_request_memory_limit_bytes", "`queued.max.request.bytes`.")
REQUEST_MEMORY_WAITING = gauge(
    "lamina_request_memory_waiting", "Connections whose request waits for memory before it is read."
)
TLS_CERTIFICATE_EXPIRES = gauge(
    "lamina_tls_certificate_expires_timestamp_seconds",
    "When the certificate ends that a listener shows now.",
    "listener",
)
TLS_CERTIFICATE_RELOADS = counter(
    "lamina_tls_certificate_reloads_total",
    "How often listeners took another certificate while the broker ran. `refused`: it could not be used, and the last "
    "one is still shown.",
    "outcome",
)
TLS_HANDSHAKES = counter(
    "lamina_tls_handshakes_total",
    "Handshakes with clients that are over. `failed`: no trusted certificate, nothing in common, too slow, or no TLS.",
    "listener",
    "outcome",
    kafka="kafka.server:type=socket-server-metrics,listener=*,networkProcessor=*, failed-authentication-total (nearly)",
)
TLS_HANDSHAKES_OPEN = gauge("lamina_tls_handshakes_open", "Connections whose handshake is not over.")
