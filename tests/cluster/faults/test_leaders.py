"""F1 to F5: leaders and controllers that are killed, paused or cut off."""

import pytest

from tests.cluster.faults.conftest import NewTrial
from tests.cluster.faults.trial import ELECTED_SECONDS

pytestmark = [pytest.mark.faults_cluster, pytest.mark.timeout(600)]

BOUNCES = 5


def test_f1_a_leader_is_killed_five_times(new_trial: NewTrial) -> None:
    trial = new_trial()
    trial.create_topic("t", 3)
    with trial.load("t", 3) as load:
        for _ in range(BOUNCES):
            load.producer.await_acked(1000)
            killed = trial.watch.leader(("t", 0))
            at_ms = trial.kill(killed)
            trial.await_new_leader(("t", 0), killed)
            trial.await_resumed(load, 0, at_ms, ELECTED_SECONDS)
            trial.restart(killed)
            trial.await_in_sync("t", 3)
