"""What a member of a cluster has beside the parts of every broker.

Owns which of them gets which others: the member that follows the controller and may be it, the links to other brokers,
the fetchers of followed partitions, the in-sync changes of led ones. Loaded for members only: a broker alone starts
sooner without all this. Must not listen.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from lamina import __version__
from lamina.broker.ground import Ground, Logs
from lamina.broker.metadata.controller_election import ControllerElection
from lamina.broker.metadata.controller_link import ControllerLink
from lamina.broker.metadata.follow_messages import FollowRequest, FollowResponse
from lamina.broker.metadata.following import Following
from lamina.broker.metadata.member import Member
from lamina.broker.metadata.replication_throttles import ReplicationThrottles
from lamina.broker.metadata.reports import OwnFacts
from lamina.broker.metadata.silent_brokers import IsRefused
from lamina.broker.metadata.topic_creation import CreateTopics
from lamina.broker.metadata.topic_requests import TopicRequests
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.readiness import Readiness
from lamina.broker.replication.broker_links import BrokerLinks, link_limits
from lamina.broker.replication.in_sync_changes import InSyncChanges
from lamina.broker.replication.replica_fetchers import ReplicaFetchers
from lamina.broker.requests.api import Api
from lamina.broker.requests.api_table import FORWARDABLE, HandlerParts, checks, table
from lamina.broker.requests.cluster_apis import apis_on, cluster_table
from lamina.broker.requests.forwarding import Forwarding
from lamina.broker.requests.handlers.envelope import Envelope
from lamina.broker.requests.handlers.follow_metadata import answer_in, follow_call
from lamina.broker.requests.request_watch import RequestWatch
from lamina.broker.requests.router import Router
from lamina.broker.threads import Threads
from lamina.clocks import Clocks
from lamina.controller.election import ElectionFacts
from lamina.image.image import Broker, Image
from lamina.log.partition_log import PartitionLog
from lamina.peer.addresses import Address
from lamina.peer.connector import Connector, PlainConnector, is_refused
from lamina.peer.limits import Limits
from lamina.settings.cluster import LAMINA_UNCLEAN_RECOVERY_WAIT_MS
from lamina.settings.listeners import broker_listener_name, listeners
from lamina.settings.topic import UNCLEAN_LEADER_ELECTION_ENABLE
from lamina.storage import MemberStorage, StartError
from lamina.store.interface import ClusterStore
from lamina.store.membership import Membership
from lamina.store.registration import Registration
from lamina.store.session import Session, SessionProber
from lamina.store.znodes import ZnodeMetadata
from lamina.topic_partition import TopicPartition

_FOLLOW, _REPORT, _FORWARD, _IN_SYNC, _CREATE = "follow", "report", "forward", "in-sync", "create"
"""Lanes to the controller."""

logger = logging.getLogger(__name__)


class SessionLease:
    """This broker's session with the store, as its partitions ask for it."""

    def __init__(self, store: ClusterStore, clocks: Clocks) -> None:
        self.session = Session(store, clocks)
        self._clocks = clocks

    def is_proven(self) -> bool:
        return self.session.is_proven(self._clocks.boottime_ms())

    def was_proven(self) -> bool:
        return self.session.was_proven


@dataclass(slots=True, kw_only=True)
class MemberParts:
    lease: SessionLease
    member: Member
    following: Following
    links: BrokerLinks
    controller_link: ControllerLink
    in_sync_changes: InSyncChanges
    forwarding: Forwarding
    listener_name: str
    """The listener between brokers."""
    ground: Ground
    logs: Logs

    def prober(self) -> SessionProber:
        return SessionProber(self.lease.session)

    def apis_on(self, listener_name: str) -> Sequence[Api]:
        return apis_on(self.listener_name, listener_name)

    def router(self, handlers: HandlerParts, request_watch: RequestWatch, readiness: Readiness) -> Router:
        """Also serves other brokers, and has the controller decide what only that one may."""
        envelope = Envelope(
            lambda: self.member.is_controller,
            FORWARDABLE,
            lambda client, frame: router.serve(client, frame, is_free=True),
        )
        router = Router(
            [
                *table(handlers),
                *cluster_table(
                    self.member,
                    envelope,
                    handlers.message_thread,
                    self.ground.clocks,
                    handlers.authorizer,
                    handlers.broker_principals,
                ),
            ],
            self.ground.counters,
            request_watch,
            handlers.message_thread,
            readiness,
            handlers.client_quotas,
            self.forwarding,
            self.listener_name,
            is_broker_listener_apart=len(listeners(handlers.metadata.settings)) > 1,
            checks=checks(handlers),
        )
        return router

    def fetchers(self, throttles: ReplicationThrottles) -> ReplicaFetchers:
        cluster, ground = self.logs.cluster, self.ground
        return ReplicaFetchers(
            cluster.node_id,
            lambda: cluster.broker_epoch,
            lambda: cluster.image,
            ground.settings,
            self.links,
            self.logs.truncations,
            self.logs.partitions,
            throttles,
            ground.counters,
            ground.clocks,
            ground.loop,
        )

    def topic_requests(self, create_here: CreateTopics) -> TopicRequests:
        return TopicRequests(
            lambda: self.member.is_controller,
            create_here,
            lambda call: self.controller_link.ask(call, _CREATE),
            self.following.wait_until,
            lambda: self.following.decided,
        )

    @staticmethod
    def check_leader_epoch(image: Image, log: PartitionLog) -> None:
        """Raise :class:`StartError` if a log is ahead of the metadata: a leader's epoch is stored before it leads.

        From an ensemble that was restored, epochs would be given a second time, and records cut that were committed.
        """
        known = image.partition(log.topic, log.partition).leader_epoch
        if log.epochs.latest > known:
            raise StartError(
                f"{log.name} has records of leader epoch {log.epochs.latest} and ZooKeeper knows no later one than "
                f"{known}: the ensemble was restored from an old copy, or is another one"
            )

    async def leave(self) -> None:
        """Be no member any more: others may lead what this broker led."""
        await self.in_sync_changes.stop()
        await self.member.stop()
        await self.links.close()
        await self.controller_link.close()


def build_member_parts(
    ground: Ground,
    logs: Logs,
    storage: MemberStorage,
    connector_for: Callable[[str], Connector] | None,
    on_fatal: Callable[[str], None],
    on_unregistered: Callable[[], None],
) -> MemberParts:
    """The cluster of ``logs`` has a :class:`SessionLease`."""
    cluster, connector_for = logs.cluster, connector_for or PlainConnector
    lease, node_id, limits = cluster.lease, storage.node_id, link_limits(ground.settings)
    assert isinstance(lease, SessionLease), "a member goes by its session"
    listener_name = broker_listener_name(ground.settings)
    assert listener_name is not None, "the settings make this broker a member"

    async def ask_controller(broker_epoch: int, asked: FollowRequest) -> FollowResponse:
        call = follow_call(node_id, broker_epoch, asked)
        return answer_in(await controller_link.ask(call, _FOLLOW if asked.max_wait_ms else _REPORT))

    following = Following(
        OwnFacts(cluster),
        logs.publisher,
        ground.threads,
        lambda: _offline(logs.partitions),
        lambda asked: member.ask(asked),
        storage.remembered.cluster_id,
        on_fatal,
    )
    store_thread = ground.threads.separate("store")
    membership = Membership(storage.database, node_id, ground.clocks)
    election = _election(
        ground,
        storage,
        store_thread,
        membership,
        following,
        _is_refused_by(connector_for(f"broker-{node_id}-looks"), listener_name, limits),
        lambda broker: controller_link.is_connected(broker),
        lambda: member.look_again(),
    )
    member = Member(
        cluster,
        ground.loop,
        store_thread,
        membership,
        lease.session,
        election,
        following,
        ask_controller,
        partial(_registration, storage, ground.clocks),
        on_fatal,
        on_unregistered,
    )
    controller_link = ControllerLink(
        node_id,
        lambda: election.controller_broker,
        lambda: election.moved,
        listener_name,
        limits,
        connector_for,
    )
    in_sync_changes = InSyncChanges(
        node_id, lambda: cluster.broker_epoch, lambda call: controller_link.ask(call, _IN_SYNC), ground.counters
    )
    cluster.change_in_sync = in_sync_changes.want
    return MemberParts(
        lease=lease,
        member=member,
        following=following,
        links=BrokerLinks(node_id, lambda: cluster.image, listener_name, limits, connector_for),
        controller_link=controller_link,
        in_sync_changes=in_sync_changes,
        forwarding=Forwarding(
            lambda: member.is_controller, lease.is_proven, lambda call: controller_link.ask(call, _FORWARD)
        ),
        listener_name=listener_name,
        ground=ground,
        logs=logs,
    )


def _election(
    ground: Ground,
    storage: MemberStorage,
    store_thread: Threads,
    membership: Membership,
    following: Following,
    is_refused: IsRefused,
    is_connected: Callable[[Broker], bool],
    look_again: Callable[[], None],
) -> ControllerElection:
    return ControllerElection(
        storage.node_id,
        ground.loop,
        store_thread,
        membership,
        ZnodeMetadata(storage.database),
        following,
        ElectionFacts(is_unclean_enabled=ground.settings[UNCLEAN_LEADER_ELECTION_ENABLE]),
        ground.settings[LAMINA_UNCLEAN_RECOVERY_WAIT_MS],
        storage.remembered,
        storage.remember,
        ground.counters.replication,
        is_refused,
        is_connected,
        look_again,
    )


def _is_refused_by(connector: Connector, listener_name: str, limits: Limits) -> IsRefused:
    async def refuses(broker: Broker) -> bool:
        endpoint = broker.endpoints.get(listener_name)
        return endpoint is not None and await is_refused(connector, Address(endpoint.host, endpoint.port), limits)

    return refuses


def _registration(storage: MemberStorage, clocks: Clocks, broker: Broker, last_epoch: int | None) -> Registration:
    is_clean = storage.was_clean_after(last_epoch)
    if storage.was_clean and not is_clean:
        logger.warning(
            "the log directories are not those of the last run of this broker, which had epoch %s: "
            "they count as left by an unclean stop",
            last_epoch,
        )
    ids = (directory.identity.directory_id for directory in storage.directories)
    return Registration(
        tuple(broker.endpoints.values()),
        broker.rack,
        __version__,
        is_clean,
        tuple(directory_id for directory_id in ids if directory_id is not None),
        clocks.now_ms(),
        broker.features,
    )


def _offline(partitions: Partitions) -> frozenset[TopicPartition]:
    return frozenset(partitions.all_offline())
