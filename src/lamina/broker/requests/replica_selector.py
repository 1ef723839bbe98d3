"""Which replica a consumer should read from (KIP-392, R36).

Owns the choice of Kafka's ``RackAwareReplicaSelector``: an in-sync follower in the consumer's rack that has the offset
asked for, unless the leader is in that rack too. Must not know sessions or records.
"""

from lamina.broker.partitions.leader import Leader
from lamina.image.image import Image


def follower_in_rack(
    image: Image, leader: Leader, topic: str, index: int, offset: int, rack_id: str, listener_name: str
) -> int | None:
    """The follower to send the consumer to; ``None`` where it should read from the leader.

    Of several, the one with the longest log, then the one that was caught up last, then the one with the highest id.
    """
    own = image.brokers.get(leader.node_id)
    if not rack_id or (own is not None and own.rack == rack_id):
        return None
    candidates = [
        (follower.log_end_offset, follower.last_caught_up_ms, replica_id)
        for replica_id, follower in leader.followers.items()
        if replica_id in leader.in_sync
        and follower.log_start_offset <= offset <= follower.log_end_offset
        and image.is_online(replica_id, topic, index)
        and image.brokers[replica_id].rack == rack_id
        and listener_name in image.brokers[replica_id].endpoints
    ]
    return max(candidates)[2] if candidates else None
