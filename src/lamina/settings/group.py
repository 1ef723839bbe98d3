"""What may be set on one consumer group, with the broker's settings as defaults.

Must not know how they are read.
"""

from lamina.settings import groups
from lamina.settings.definition import group_setting
from lamina.settings.kinds import INT

CONSUMER_SESSION_TIMEOUT_MS = group_setting(
    "consumer.session.timeout.ms",
    INT,
    groups.GROUP_CONSUMER_SESSION_TIMEOUT_MS,
    "How long a member may be silent, between `group.consumer.min.session.timeout.ms` and its max.",
)
CONSUMER_HEARTBEAT_INTERVAL_MS = group_setting(
    "consumer.heartbeat.interval.ms",
    INT,
    groups.GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS,
    "How often members are told to be heard of, between `group.consumer.min.heartbeat.interval.ms` and its max.",
)
