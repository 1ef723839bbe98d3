"""How far a query has come, as a consumer group's offsets: for tools that show lag.

Owns the one request. The query itself goes by its checkpoint and never reads these. Must not know when they are due.
"""

from lamina.errors import error_from_code
from lamina.peer.call import MessageCall
from lamina.peer.cluster import ClusterClient
from lamina.peer.target import Coordinator, CoordinatorType
from lamina.wire.api_keys import OFFSET_COMMIT
from pyspark_lamina.offsets import Offsets

_VERSIONS = range(2, 10)
_NO_GENERATION = -1
_FOR_AS_LONG_AS_THE_BROKER_KEEPS = -1


async def commit_offsets(cluster: ClusterClient, group: str, offsets: Offsets) -> None:
    """As a consumer does that is no member of the group; a group with members refuses."""
    topics: dict[str, list[dict[str, object]]] = {}
    for (topic, partition), offset in offsets.items():
        topics.setdefault(topic, []).append(
            {
                "partition_index": partition,
                "committed_offset": offset,
                "committed_leader_epoch": -1,
                "committed_metadata": "",
            }
        )
    call = MessageCall(
        OFFSET_COMMIT,
        _VERSIONS,
        group_id=group,
        generation_id_or_member_epoch=_NO_GENERATION,
        member_id="",
        group_instance_id=None,
        retention_time_ms=_FOR_AS_LONG_AS_THE_BROKER_KEEPS,
        topics=[{"name": name, "partitions": partitions} for name, partitions in topics.items()],
    )
    response = await cluster.request(Coordinator(CoordinatorType.GROUP, group), call)
    for topic in response.topics:
        for partition in topic.partitions:
            if partition.error_code:
                where = f"{topic.name}-{partition.partition_index}"
                raise error_from_code(
                    partition.error_code, f"commitGroup: offset of {where} cannot be committed to group {group}"
                )
