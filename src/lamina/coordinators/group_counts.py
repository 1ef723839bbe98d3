"""What groups did since the broker started, as plain numbers.

Must not know who shows them.
"""

from collections import Counter


class GroupCounts:
    def __init__(self) -> None:
        self.committed_offsets = 0
        self.rebalances: Counter[str] = Counter()
        """By the group's type: generations of classic groups, epochs of consumer groups."""
