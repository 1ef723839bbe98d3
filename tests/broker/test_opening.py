from pathlib import Path

from tests.broker.in_process import InProcessBroker


def test_several_new_log_directories_and_one_that_is_added_belong_to_one_cluster(tmp_path: Path) -> None:
    one, two, three = (str(tmp_path / name) for name in ("one", "two", "three"))
    broker = InProcessBroker(tmp_path / "data", {"log.dirs": f"{one},{two}"})
    cluster_id = broker.node.image.cluster_id
    broker.create("t", partitions=2)
    broker.restart(**{"log.dirs": f"{three},{one},{two}"})
    assert {directory.identity.cluster_id for directory in broker.node.directories} == {cluster_id}
    assert [directory.path for directory in broker.node.directories] == [three, one, two]
    assert broker.produce("t", 1, partition=1) == 0
    broker.close()


def test_a_new_store_takes_the_id_of_the_directories_that_are_there(tmp_path: Path) -> None:
    logs = {"log.dirs": str(tmp_path / "logs")}
    first = InProcessBroker(tmp_path / "first", logs)
    cluster_id = first.node.image.cluster_id
    first.close()
    second = InProcessBroker(tmp_path / "second", logs)
    assert second.node.image.cluster_id == cluster_id
    second.close()
