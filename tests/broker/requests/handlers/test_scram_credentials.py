"""DescribeUserScramCredentials and AlterUserScramCredentials as clients meet them (S43, S44)."""

from collections.abc import Sequence
from typing import Any

from lamina.image.changes import set_feature
from lamina.image.features import LAMINA_VERSION
from lamina.image.image import Image
from lamina.wire.api_keys import ALTER_USER_SCRAM_CREDENTIALS, DESCRIBE_USER_SCRAM_CREDENTIALS
from tests.broker.in_process import InProcessBroker


def alter(broker: InProcessBroker, upsertions: Sequence[Any] = (), deletions: Sequence[Any] = ()) -> dict[str, int]:
    answer = broker.ask(
        ALTER_USER_SCRAM_CREDENTIALS,
        0,
        upsertions=[
            {"name": name, "mechanism": mechanism, "iterations": 8192, "salt": b"salt", "salted_password": b"x" * 32}
            for name, mechanism in upsertions
        ],
        deletions=[{"name": name, "mechanism": mechanism} for name, mechanism in deletions],
    )
    return {result.user: result.error_code for result in answer.results}


def describe(broker: InProcessBroker, *users: str, all_users: Any = ()) -> dict[str, tuple[int, Any]]:
    asked = [{"name": user} for user in users] or all_users
    answer = broker.ask(DESCRIBE_USER_SCRAM_CREDENTIALS, 0, users=asked)
    assert answer.error_code == 0
    return {
        result.user: (result.error_code, [(info.mechanism, info.iterations) for info in result.credential_infos])
        for result in answer.results
    }


def test_users_are_made_told_and_deleted(broker: InProcessBroker) -> None:
    assert alter(broker, [("alice", 1), ("bob", 2)]) == {"alice": 0, "bob": 0}
    assert alter(broker, [("alice", 2)]) == {"alice": 0}
    everybody = {"alice": (0, [(1, 8192), (2, 8192)]), "bob": (0, [(2, 8192)])}
    assert describe(broker) == describe(broker, all_users=None) == everybody
    assert describe(broker, "bob", "nobody") == {"bob": (0, [(2, 8192)]), "nobody": (91, [])}
    assert describe(broker, "bob", "bob") == {"bob": (92, [])}
    assert alter(broker, deletions=[("alice", 1), ("bob", 2), ("carol", 1)]) == {"alice": 0, "bob": 0, "carol": 91}
    assert describe(broker) == {"alice": (0, [(2, 8192)])}


def test_who_is_fine_is_changed_beside_who_is_not(broker: InProcessBroker) -> None:
    assert alter(broker, [("", 1), ("alice", 1), ("bob", 7), ("carol", 1), ("carol", 2)]) == {
        "": 93,
        "alice": 0,
        "bob": 33,
        "carol": 92,
    }
    assert list(describe(broker)) == ["alice"]


def test_many_users_at_once(broker: InProcessBroker) -> None:
    users = [f"user-{number}" for number in range(500)]
    assert alter(broker, [(user, 1) for user in users]) == dict.fromkeys(users, 0)
    assert len(describe(broker)) == 500


def test_a_cluster_with_older_brokers_keeps_no_users(broker: InProcessBroker) -> None:
    def older(image: Image) -> Image:
        return set_feature(image, LAMINA_VERSION, 1)

    broker.change(older)
    assert alter(broker, [("alice", 1), ("bob", 1)]) == {"alice": 35, "bob": 35}
