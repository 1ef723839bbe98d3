"""Who of a group reads which partition: pure functions from subscriptions and what is assigned now."""

from lamina.coordinators.assignors import ranges, uniform
from lamina.coordinators.assignors.subscription import Assignor

ASSIGNORS: dict[str, Assignor] = {"uniform": uniform.assign, "range": ranges.assign}
"""By the names that members and settings use."""
