"""What only a member of a cluster needs: who leads, and who leads when brokers come and go.

Owns the settings for it. Must not know how they are used.
"""

from lamina.settings.definition import broker_setting
from lamina.settings.kinds import BOOLEAN, INT, LONG, at_least

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
AUTO_LEADER_REBALANCE_ENABLE = broker_setting(
    "auto.leader.rebalance.enable",
    BOOLEAN,
    True,
    "The controller brings leaders back to the first replicas of their partitions, such as after the restart of a "
    "broker.",
)
LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS = broker_setting(
    "leader.imbalance.check.interval.seconds",
    LONG,
    300,
    "How often the controller looks whether leaders are to be brought back.",
    rule=at_least(1),
)
LEADER_IMBALANCE_PER_BROKER_PERCENTAGE = broker_setting(
    "leader.imbalance.per.broker.percentage",
    INT,
    10,
    "Of the partitions that a broker should lead, so many may be led by others before they are brought back to it.",
    rule=at_least(0),
)
