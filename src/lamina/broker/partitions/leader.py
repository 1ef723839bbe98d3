"""The role of a partition's leader on this broker, under one leader epoch.

Owns the epoch, the assigned replicas and the in-sync set, and what follows from them for acks=all. On one node the
in-sync set is this broker alone. Must not know the log.
"""

from dataclasses import dataclass

from lamina.errors import NotEnoughReplicas


@dataclass(frozen=True, slots=True)
class Leader:
    epoch: int
    replicas: tuple[int, ...]
    in_sync: frozenset[int]

    def check_in_sync(self, name: str, min_insync_replicas: int) -> None:
        """acks=all promises ``min.insync.replicas`` copies; refuse before anything is written.

        A topic with fewer replicas than that needs all of them, as in Kafka.
        """
        needed = min(min_insync_replicas, len(self.replicas))
        if len(self.in_sync) < needed:
            raise NotEnoughReplicas(
                f"{name} has {len(self.in_sync)} in-sync replicas, min.insync.replicas asks for {needed}"
            )
