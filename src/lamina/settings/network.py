"""Where a broker listens and what it tells clients to connect to.

Owns the definitions; ``listeners.py`` reads them. Must not know which protocols are built.
"""

from lamina.settings.definition import Update, broker_setting
from lamina.settings.kinds import LIST

LISTENERS = broker_setting(
    "listeners",
    LIST,
    ("PLAINTEXT://:9092",),
    "Where the broker listens: `NAME://host:port`; an empty host means every address.",
    update=Update.PER_BROKER,
)
ADVERTISED_LISTENERS = broker_setting(
    "advertised.listeners",
    LIST,
    (),
    "Where clients are told to connect, when that differs from `listeners`.",
    update=Update.PER_BROKER,
)
LISTENER_SECURITY_PROTOCOL_MAP = broker_setting(
    "listener.security.protocol.map",
    LIST,
    ("PLAINTEXT:PLAINTEXT", "SSL:SSL", "SASL_PLAINTEXT:SASL_PLAINTEXT", "SASL_SSL:SASL_SSL"),
    "The protocol that each listener's name stands for: `NAME:PROTOCOL`.",
    update=Update.PER_BROKER,
)
CONTROLLER_LISTENER_NAMES = broker_setting(
    "controller.listener.names",
    LIST,
    (),
    "Listeners meant for a KRaft controller; Lamina has none and opens none of these.",
)
