"""What only a member of a cluster needs.

Owns Lamina's own settings for it. Must not know how they are used.
"""

from lamina.settings.definition import broker_setting
from lamina.settings.kinds import INT, LONG, at_least

LAMINA_UNCLEAN_RECOVERY_WAIT_MS = broker_setting(
    "lamina.unclean.recovery.wait.ms",
    LONG,
    10_000,
    "When every in-sync replica of a partition stopped uncleanly, as after a power cut, the controller waits this long "
    "for all of them and elects the one whose log reaches furthest.",
    rule=at_least(0),
    difference="Kafka elects the first that comes back",
)
LAMINA_CONTROLLED_SHUTDOWN_WAIT_MS = broker_setting(
    "lamina.controlled.shutdown.wait.ms",
    INT,
    10_000,
    "How long a broker that stops waits until others lead its partitions.",
    rule=at_least(0),
    difference="Kafka asks `controlled.shutdown.max.retries` times instead",
)
