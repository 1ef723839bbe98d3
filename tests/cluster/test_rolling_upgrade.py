"""Three real brokers of an older version are upgraded one by one while clients work, and cannot go back afterwards."""

import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from lamina.cluster.broker_command import lamina_program
from lamina.cluster.errors import ClusterError
from lamina.image.features import LAMINA_VERSION, SUPPORTED, TRANSACTION_VERSION
from tests.cli.running import Outcome, run_process
from tests.cluster import older_lamina
from tests.cluster.exactly_once_copy import copied_value
from tests.cluster.faults.copies import Copies
from tests.cluster.faults.story import Story
from tests.cluster.older_lamina import OLDER_LEVELS
from tests.cluster.three_brokers import ALL, WAIT_SECONDS, ThreeBrokers
from tests.cluster.verifiable_consumer import VerifiableConsumer, read_all
from tests.cluster.verifiable_producer import VerifiableProducer
from tests.cluster.verifying import verify

pytestmark = [pytest.mark.timeout(300), pytest.mark.long]

OLDER = (sys.executable, older_lamina.__file__)
A_TRANSACTION = 50
NEWEST = {name: levels[-1] for name, levels in SUPPORTED.items()}
REFUSED = (
    f"this cluster has finalized lamina.version at level {NEWEST[LAMINA_VERSION]}, and this version of Lamina does not "
    "know that feature: use the version that the brokers run"
)


def levels(brokers: ThreeBrokers) -> dict[str, int]:
    told = run_process("features", "describe", "--json", "--bootstrap-server", brokers.bootstrap).objects
    return {one["feature"]: one["level"] for one in told if one["level"]}


def finalize(brokers: ThreeBrokers, *levels: str) -> Outcome:
    return run_process("features", "upgrade", *levels, "--bootstrap-server", brokers.bootstrap)


def test_a_cluster_is_upgraded_under_load_and_an_older_broker_is_refused_afterwards(tmp_path: Path) -> None:
    programs: dict[int, Sequence[str]] = dict.fromkeys(ALL, OLDER)
    newest = [f"{name}={level}" for name, level in NEWEST.items()]
    with ThreeBrokers(tmp_path / "cluster", program_of=programs.__getitem__).running() as brokers, ExitStack() as load:
        brokers.create_topic("source", 2)
        brokers.create_topic("target", 2)
        assert levels(brokers) == OLDER_LEVELS
        consumer = load.enter_context(VerifiableConsumer(brokers.bootstrap, "source", 2))
        story = load.enter_context(closing(Story(tmp_path / "story")))
        copies = load.enter_context(Copies(brokers.bootstrap, "source", "target", A_TRANSACTION, story))
        producer = load.enter_context(VerifiableProducer(brokers.bootstrap, "source", 2))
        copies.start()
        copies.await_copied(200, WAIT_SECONDS)
        for upgraded in ALL:
            assert finalize(brokers, f"{TRANSACTION_VERSION}=2").status != 0
            programs[upgraded] = lamina_program(upgraded)
            brokers.restart(upgraded)
            brokers.await_in_sync("source")
            brokers.await_in_sync("target")
            assert levels(brokers) == OLDER_LEVELS
            producer.await_acked(100)
            copies.await_copied(100, WAIT_SECONDS)
        # As long as nothing is finalized, each may go back.
        programs[3] = OLDER
        brokers.restart(3)
        refused = finalize(brokers, *newest)
        assert "broker 3 supports level 0; start every broker with the newer version first" in refused.err
        programs[3] = lamina_program(3)
        brokers.restart(3)
        brokers.await_in_sync("source")
        assert finalize(brokers, *newest).status == 0
        assert levels(brokers) == NEWEST
        producer.await_acked(100)
        producer.stop()
        copies.await_copied(producer.sent - copies.copied, 2 * WAIT_SECONDS)
        load.close()
        given, copied = read_all(brokers.bootstrap, "source", 2), read_all(brokers.bootstrap, "target", 2)
        verify(producer, given, consumer)
        for partition in range(2):
            written = [copied_value(value) for value in copied["target", partition].values()]
            assert written == list(given["source", partition].values())
        programs[3] = OLDER
        with pytest.raises(ClusterError):
            brokers.restart(3)
        assert any(REFUSED in line for line in brokers.log_lines(3))
        assert REFUSED in older_backup(brokers, tmp_path / "backup")
        programs[3] = lamina_program(3)
        brokers.restart(3)
        brokers.await_in_sync("source")


def older_backup(brokers: ThreeBrokers, target: Path) -> str:
    """What the tool of the older version says."""
    where = ("--zookeeper", brokers.cluster.zookeeper_address(), "--bootstrap-server", brokers.bootstrap)
    done = subprocess.run([*OLDER, "cluster", "backup", *where, str(target)], capture_output=True, text=True)
    assert done.returncode != 0
    assert not target.exists()
    return done.stderr
