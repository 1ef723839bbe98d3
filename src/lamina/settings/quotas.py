"""Over which time clients are measured whose quotas limit them.

Owns the definitions. The quotas themselves are no settings: they are set while the broker runs. Must not know rates.
"""

from lamina.settings.definition import broker_setting
from lamina.settings.kinds import INT, at_least

QUOTA_WINDOW_NUM = broker_setting(
    "quota.window.num",
    INT,
    11,
    "Over how many windows of time the bytes and the request time of clients are measured.",
    rule=at_least(1),
)
QUOTA_WINDOW_SIZE_SECONDS = broker_setting(
    "quota.window.size.seconds",
    INT,
    1,
    "How long each of these windows is; also the longest that a client is told to wait for its request time.",
    rule=at_least(1),
)
CONTROLLER_QUOTA_WINDOW_NUM = broker_setting(
    "controller.quota.window.num",
    INT,
    11,
    "For how many windows of time a client's changes to topics may come at once, after a pause.",
    rule=at_least(1),
)
CONTROLLER_QUOTA_WINDOW_SIZE_SECONDS = broker_setting(
    "controller.quota.window.size.seconds",
    INT,
    1,
    "How long each of these windows is.",
    rule=at_least(1),
)
