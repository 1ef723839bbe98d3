"""Administration at any broker of a cluster, and what only brokers may ask each other (R41)."""

import logging
from datetime import timedelta
from typing import Any

import pytest

from lamina.broker.requests.request import CloseConnection, Request
from lamina.errors import ErrorCode, InvalidRequest
from lamina.image.image import ConfigResource, ResourceType
from lamina.settings.authorization import STANDARD_AUTHORIZER
from lamina.settings.values import BrokerSettings
from lamina.store.interface import StoreAway
from tests.broker.cluster.conftest import NewMembers
from tests.broker.cluster.members import (
    BROKERS,
    CLIENTS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    FETCH,
    INCREMENTAL_ALTER_CONFIGS,
    METADATA,
    MemberProcess,
    Members,
)

FIND_COORDINATOR, API_VERSIONS, WRITE_TXN_MARKERS, CREATE_PARTITIONS = 10, 18, 27, 37
ALTER_CONFIGS, ALTER_PARTITION, UPDATE_FEATURES, ENVELOPE, FOLLOW_METADATA = 33, 56, 57, 58, 10_000
FOR_BROKERS = {WRITE_TXN_MARKERS, ALTER_PARTITION, ENVELOPE, FOLLOW_METADATA}
TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8


@pytest.fixture
def members(new_members: NewMembers) -> Members:
    """Brokers 1, 2 and 3; broker 1 is the controller."""
    members = new_members()
    for node_id in (1, 2, 3):
        members.start(node_id)
    assert members.controller().id == 1
    return members


def new_topic(name: str, replication_factor: int = 1, partitions: int = 1) -> dict[str, Any]:
    return {"name": name, "num_partitions": partitions, "replication_factor": replication_factor}


def create(members: Members, node_id: int, *topics: dict[str, Any], timeout_ms: int = 5000) -> list[int]:
    timeout = timedelta(milliseconds=timeout_ms)
    response = members.ask(node_id, CREATE_TOPICS, 7, topics=topics, timeout=timeout)
    return [int(topic.error_code) for topic in response.topics]


def alter(members: Members, node_id: int, resource: int, name: str, **configs: str) -> int:
    given = [{"name": key.replace("_", "."), "config_operation": 0, "value": value} for key, value in configs.items()]
    resources = [{"resource_type": resource, "resource_name": name, "configs": given}]
    response = members.ask(node_id, INCREMENTAL_ALTER_CONFIGS, 1, resources=resources)
    return int(response.responses[0].error_code)


# Any broker answers


def test_any_broker_creates_grows_and_deletes_topics(members: Members) -> None:
    assert create(members, 2, new_topic("a", 3), new_topic("b", 2)) == [0, 0]
    members.run_until(lambda: all({"a", "b"} <= one.image.topics.keys() for one in members.up.values()))
    grown = members.ask(3, CREATE_PARTITIONS, 3, topics=[{"name": "a", "count": 4, "assignments": None}])
    assert grown.results[0].error_code == ErrorCode.NONE
    members.run_until(lambda: all(len(one.image.topics["a"].partitions) == 4 for one in members.up.values()))
    members.delete(2, "a")
    assert set(members.up[3].image.topics) == {"b"}


def test_a_forwarded_request_is_served_as_its_own_principals(members: Members, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str]] = []
    router = members.up[1].parts.router
    api, handle = router._apis[CREATE_TOPICS]

    def noted(request: Request, message: Any) -> Any:
        seen.append((request.principal, request.client.host))
        return handle(request, message)

    for (api_key, version), (_, _, counters) in list(router._offered.items()):
        if api_key == CREATE_TOPICS:
            monkeypatch.setitem(router._offered, (api_key, version), (api, noted, counters))
    members.principal = "User:alice"
    assert create(members, 2, new_topic("a")) == [0]
    assert seen == [("User:alice", "127.0.0.1")]


def test_errors_are_those_of_the_controller(members: Members) -> None:
    assert create(members, 3, new_topic("a")) == [0]
    assert create(members, 2, new_topic("a"), new_topic("c", 4), new_topic("d", 1, 0), new_topic("b a d")) == [
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.INVALID_REPLICATION_FACTOR,
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ]
    unknown = members.ask(2, DELETE_TOPICS, 6, topics=[{"name": "nobody", "topic_id": None}])
    assert unknown.responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    shrunk = members.ask(2, CREATE_PARTITIONS, 3, topics=[{"name": "a", "count": 1, "assignments": None}])
    assert shrunk.results[0].error_code == ErrorCode.INVALID_PARTITIONS
    assert alter(members, 2, TOPIC, "a", retention_ms="soon") == ErrorCode.INVALID_CONFIG


def test_any_broker_sets_the_configs_of_topics_of_all_brokers_and_of_any_other(members: Members) -> None:
    assert create(members, 3, new_topic("a", 3)) == [0]
    assert alter(members, 2, TOPIC, "a", retention_ms="60000") == ErrorCode.NONE
    assert alter(members, 2, BROKER, "", log_cleaner_threads="2") == ErrorCode.NONE
    assert alter(members, 2, BROKER, "3", message_max_bytes="5000000") == ErrorCode.NONE
    assert alter(members, 2, BROKER, "9", message_max_bytes="5000000") == ErrorCode.INVALID_REQUEST

    def has_all(process: MemberProcess) -> bool:
        configs = process.image.configs
        named = {ConfigResource(ResourceType.TOPIC, "a"), ConfigResource(ResourceType.BROKER, "")}
        return named | {ConfigResource(ResourceType.BROKER, "3")} <= configs.keys()

    members.run_until(lambda: all(map(has_all, members.up.values())))
    values = {one.id: one.parts.metadata.settings.layers for one in members.up.values()}
    given = {node_id: any("message.max.bytes" in texts for _, texts in layers) for node_id, layers in values.items()}
    assert given == {1: False, 2: False, 3: True}, "a setting of broker 3 holds there alone"
    replaced = members.ask(
        3,
        ALTER_CONFIGS,
        2,
        resources=[
            {"resource_type": TOPIC, "resource_name": "a", "configs": [{"name": "segment.ms", "value": "90000"}]}
        ],
    )
    assert replaced.responses[0].error_code == ErrorCode.NONE
    expected = {"segment.ms": "90000"}
    members.run_until(
        lambda: all(
            one.image.configs_of(ConfigResource(ResourceType.TOPIC, "a")) == expected for one in members.up.values()
        )
    )


def test_levels_of_loggers_are_those_of_the_broker_that_is_asked(members: Members) -> None:
    assert alter(members, 2, BROKER_LOGGER, "2", **{"lamina.broker.metadata.member": "DEBUG"}) == ErrorCode.NONE
    assert (
        alter(members, 2, BROKER_LOGGER, "1", **{"lamina.broker.metadata.member": "DEBUG"}) == ErrorCode.INVALID_REQUEST
    )
    logging.getLogger("lamina.broker.metadata.member").setLevel(logging.NOTSET)


def test_any_broker_updates_features(members: Members) -> None:
    update = {"feature": "transaction.version", "max_version_level": 1, "upgrade_type": 2}
    response = members.ask(3, UPDATE_FEATURES, 1, feature_updates=[update], validate_only=False)
    assert response.error_code == ErrorCode.NONE
    members.run_until(lambda: all(one.image.features.levels["transaction.version"] == 1 for one in members.up.values()))


# Controllers change


def test_a_request_that_comes_between_two_controllers_is_answered_by_the_next(members: Members) -> None:
    members.kill(1, session_ends=False)
    begun = members.loop.create_task(
        members.begin(2, CREATE_TOPICS, 7, topics=[new_topic("a", 2)], timeout=timedelta(seconds=10))
    )
    members.run_for(0.3)
    assert not begun.done()
    members.zookeeper.leave(members.ended[1].session)
    members.run_until(begun.done)
    assert begun.result().topics[0].error_code == ErrorCode.NONE


def test_without_a_controller_a_request_is_timed_out_in_its_time(members: Members) -> None:
    members.set_zookeeper_away(is_away=True)
    members.run_until(lambda: not members.up[1].member.is_controller)
    for node_id in (1, 2):
        began = members.loop.time()
        assert create(members, node_id, new_topic("a"), timeout_ms=300) == [ErrorCode.REQUEST_TIMED_OUT]
        assert members.loop.time() - began < 3
    wanted = members.ask(2, METADATA, 12, topics=[{"name": "b"}], allow_auto_topic_creation=True).topics[0]
    assert wanted.error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert alter(members, 3, BROKER_LOGGER, "3", **{"lamina.broker.metadata.member": "INFO"}) == ErrorCode.NONE
    logging.getLogger("lamina.broker.metadata.member").setLevel(logging.NOTSET)


@pytest.mark.parametrize("asked", [1, 2])
def test_a_controller_that_cannot_write_hands_the_request_to_the_next(
    members: Members, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it came from its own client or in an envelope."""
    controller, store = members.up[1], members.up[1].session

    def fails_once(_: Any) -> None:
        monkeypatch.undo()
        raise StoreAway("ZooKeeper does not answer")

    monkeypatch.setattr(store, "transact", fails_once)
    epoch = controller.image.controller_epoch
    assert create(members, asked, new_topic("a", 3)) == [0]
    assert members.controller().image.controller_epoch > epoch


# What only brokers may ask


def test_what_is_for_brokers_is_offered_on_their_listener_alone(members: Members) -> None:
    def offered(listener: str) -> set[int]:
        response = members.ask(2, API_VERSIONS, 2, listener=listener)
        return {int(api.api_key) for api in response.api_keys}

    assert offered(BROKERS) - offered(CLIENTS) == FOR_BROKERS
    assert offered(CLIENTS) <= offered(BROKERS)


def test_a_client_that_asks_it_loses_its_connection(members: Members) -> None:
    for api_key, version in ((WRITE_TXN_MARKERS, 1), (ALTER_PARTITION, 3), (ENVELOPE, 0), (FOLLOW_METADATA, 0)):
        with pytest.raises(CloseConnection, match=r"which only brokers may ask, on PLAINTEXT$"):
            members.ask(1, api_key, version, max_wait=timedelta(0))


def test_a_client_that_poses_as_a_replica_is_refused(members: Members) -> None:
    assert create(members, 1, new_topic("a", 3)) == [0]
    partition = {"partition": 0, "current_leader_epoch": -1, "fetch_offset": 0, "log_start_offset": 0}
    topics = [{"topic": "a", "partitions": [partition | {"partition_max_bytes": 100}]}]
    facts: dict[str, Any] = {
        "replica_id": 2,
        "max_wait": timedelta(0),
        "min_bytes": 0,
        "max_bytes": 100,
        "session_epoch": -1,
    }
    response = members.ask(1, FETCH, 12, topics=topics, isolation_level=0, session_id=0, **facts)
    assert response.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    leader = members.up[1].parts.partitions.find("a", 0)
    assert leader is not None


def test_a_broker_that_lies_about_itself_is_refused(members: Members) -> None:
    def follow(node_id: int, **facts: Any) -> int:
        defaults = {"controller_epoch": -1, "version": -1, "max_wait": timedelta(0), "report": b"{}"}
        response = members.ask(node_id, FOLLOW_METADATA, 0, listener=BROKERS, **(defaults | facts))
        return int(response.error_code)

    epoch = members.up[2].member.broker_epoch
    assert follow(1, broker_id=2, broker_epoch=epoch) == ErrorCode.NONE
    assert follow(1, broker_id=2, broker_epoch=epoch - 1) == ErrorCode.STALE_BROKER_EPOCH
    assert follow(1, broker_id=3, broker_epoch=epoch) == ErrorCode.STALE_BROKER_EPOCH
    assert follow(1, broker_id=9, broker_epoch=epoch) == ErrorCode.STALE_BROKER_EPOCH
    assert follow(2, broker_id=2, broker_epoch=epoch) == ErrorCode.NOT_CONTROLLER


NO_REPORTS = (
    b"",
    b"[]",
    b"null",
    b"\xff",
    b'{"made": 7}',
    b'{"offline": [["t", -1]]}',
    b'{"lost": [["t"]]}',
    b'{"deleted": ["xyz"]}',
    b'{"deleted": ["00"]}',
    b'{"ends": [["t", 0, 1e400, 1]]}',
    b'{"ends": {"t": 1}}',
    b"[" * 100_000,
)


def test_a_report_that_is_none_is_refused(members: Members) -> None:
    image = members.up[1].member.decided
    facts = {"broker_id": 2, "broker_epoch": members.up[2].member.broker_epoch, "max_wait": timedelta(0)}
    for report in NO_REPORTS:
        response = members.ask(
            1, FOLLOW_METADATA, 0, listener=BROKERS, controller_epoch=-1, version=-1, report=report, **facts
        )
        assert response.error_code == ErrorCode.INVALID_REQUEST, report
    assert members.up[1].member.decided is image


def test_an_envelope_with_what_is_not_for_the_controller_is_refused(members: Members) -> None:
    for data in (b"", b"\0\0\0", bytes([0, FIND_COORDINATOR, 0, 4, 0, 0, 0, 1, 0, 1, 97, 0])):
        response = members.ask(
            1, ENVELOPE, 0, listener=BROKERS, request_data=data, request_principal=b"", client_host_address=b""
        )
        assert response.error_code == ErrorCode.INVALID_REQUEST


def test_while_a_broker_starts_only_other_brokers_are_served(members: Members) -> None:
    """It may be the controller by then, and its one listener may be for clients too."""
    members.up[1].parts.readiness.is_for_brokers_alone = True
    with pytest.raises(CloseConnection, match=r"^asked for Metadata while this broker starts$"):
        members.ask(1, METADATA, 12, topics=None)
    assert members.ask(1, API_VERSIONS, 3, client_software_name="a", client_software_version="1").error_code == 0
    assert create(members, 2, new_topic("a")) == [0]


# What only one broker sees


LOCATION = "listener.name.plaintext.ssl.keystore.location"


class Files:
    """The certificates of one broker: those in "/good" can be used."""

    def __init__(self, process: MemberProcess) -> None:
        self.looked_at: list[str | None] = []
        process.parts.metadata.key_material.add_reader(self)

    async def check(self, settings: BrokerSettings) -> None:
        location = next((given[LOCATION] for _, given in settings.layers if LOCATION in given), None)
        self.looked_at.append(location)
        if location != "/good":
            raise InvalidRequest(f"{location} cannot be read")

    async def refresh(self, settings: BrokerSettings) -> None:
        pass


def alter_certificate(members: Members, node_id: int, location: str, *others: dict[str, Any]) -> list[tuple[int, Any]]:
    configs = [{"name": LOCATION, "config_operation": 0, "value": location}]
    own = {"resource_type": BROKER, "resource_name": str(node_id), "configs": configs}
    response = members.ask(node_id, INCREMENTAL_ALTER_CONFIGS, 1, resources=[own, *others])
    return [(int(one.error_code), one.error_message) for one in response.responses]


def test_a_broker_that_cannot_use_its_certificate_says_so_though_another_decides(members: Members) -> None:
    files = {node_id: Files(process) for node_id, process in members.up.items()}
    refusal = (ErrorCode.INVALID_REQUEST, "/bad cannot be read")
    assert alter_certificate(members, 2, "/bad") == [refusal]
    assert create(members, 3, new_topic("a")) == [0]
    topic = {"resource_type": TOPIC, "resource_name": "a", "configs": []}
    mixed = alter_certificate(members, 2, "/bad", topic)
    assert mixed == [
        refusal,
        (ErrorCode.OPERATION_NOT_ATTEMPTED, "another resource of the request cannot be changed"),
    ]
    own = ConfigResource(ResourceType.BROKER, "2")
    assert own not in members.up[1].image.configs
    assert alter_certificate(members, 2, "/good") == [(ErrorCode.NONE, None)]
    assert members.up[1].image.configs[own] == {LOCATION: "/good"}
    assert {node_id: one.looked_at for node_id, one in files.items()} == {1: [], 2: ["/bad", "/bad", "/good"], 3: []}
    assert alter(members, 2, BROKER, "2", log_cleaner_threads="2") == ErrorCode.NONE
    assert len(files[2].looked_at) == 3, "what has nothing to do with certificates looks at no file"


def test_files_are_not_looked_at_for_who_may_change_nothing(new_members: NewMembers) -> None:
    members = new_members(authorizer_class_name=STANDARD_AUTHORIZER, super_users="User:ANONYMOUS")
    for node_id in (1, 2):
        members.start(node_id)
    files = Files(members.up[2])
    members.principal = "User:mallory"
    ((code, _),) = alter_certificate(members, 2, "/bad")
    assert code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert files.looked_at == []
