import pytest

from lamina.store.interface import Create, StoreError
from lamina.store.login_secret import LOGIN_SECRET, login_secret
from tests.store.memory_zookeeper import MemoryZooKeeper
from tests.store.processes import temporary_store


def test_the_first_broker_makes_it_and_all_have_the_same_s83() -> None:
    zookeeper = MemoryZooKeeper(lambda: None)
    first, second = zookeeper.connect(), zookeeper.connect()
    assert [login_secret(first, b"one"), login_secret(second, b"two"), login_secret(first, b"three")] == [b"one"] * 3


def test_a_broker_alone_keeps_it_in_its_metadata() -> None:
    with temporary_store() as store:
        assert [login_secret(store, b"one"), login_secret(store, b"two")] == [b"one", b"one"]


def test_an_empty_one_is_no_secret() -> None:
    with temporary_store() as store:
        store.transact([Create("/lamina", b""), Create(LOGIN_SECRET, b"")])
        with pytest.raises(StoreError, match="login_secret in the metadata store is empty"):
            login_secret(store, b"one")
