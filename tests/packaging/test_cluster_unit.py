"""packaging/lamina@.service: that of one broker, but for what a member of a cluster needs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.broker.process import COMMAND, SOURCES
from tests.packaging.test_systemd_unit import UNIT, read_unit

MEMBER = UNIT.with_name("lamina@.service")
DIFFERENT = {
    "Unit": {"Description", "After", "StartLimitIntervalSec", "StartLimitBurst"},
    "Service": {"ExecStart", "StateDirectory", "WorkingDirectory", "RestartSec"},
    "Install": set(),
}


def test_it_differs_from_the_unit_of_one_broker_in_what_is_listed() -> None:
    alone, member = read_unit(UNIT.read_text()), read_unit(MEMBER.read_text())
    assert alone.keys() == member.keys()
    for section, values in member.items():
        names = alone[section].keys() | values.keys()
        assert {name for name in names if alone[section].get(name) != values.get(name)} == DIFFERENT[section]


def test_every_broker_has_settings_and_a_directory_of_its_own() -> None:
    service = read_unit(MEMBER.read_text())["Service"]
    (command,) = service["ExecStart"]
    assert command.endswith("serve --config /etc/lamina/%i.properties --node-id %i --data-dir /var/lib/lamina/%i")
    assert service["StateDirectory"] == ["lamina lamina/%i"]


def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze here")
    copy = tmp_path / "lamina@1.service"
    copy.write_text(MEMBER.read_text().replace("/opt/lamina/bin/lamina", sys.executable))
    done = subprocess.run(["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_broker_that_does_not_find_zookeeper_is_started_again_for_as_long_as_it_takes(tmp_path: Path) -> None:
    unit = read_unit(MEMBER.read_text())
    assert unit["Unit"]["StartLimitIntervalSec"] == ["0"]
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/7.properties").write_text(
        "zookeeper.connect=127.0.0.1:1/lamina\nzookeeper.connection.timeout.ms=100\nzookeeper.session.timeout.ms=100\n"
        "listeners=PLAINTEXT://127.0.0.1:0,BROKERS://127.0.0.1:0\ninter.broker.listener.name=BROKERS\n"
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,BROKERS:PLAINTEXT\nlamina.admin.listeners=\n"
    )
    _, *words = unit["Service"]["ExecStart"][0].replace("%i", "7").split()
    places = {"/etc/lamina": str(tmp_path / "etc"), "/var/lib/lamina": str(tmp_path / "data")}
    for place, here in places.items():
        words = [word.replace(place, here) for word in words]
    done = subprocess.run(
        [*COMMAND, *words], env={**os.environ, "PYTHONPATH": str(SOURCES)}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert str(done.returncode) not in unit["Service"]["RestartPreventExitStatus"]
    assert "ZooKeeper does not answer" in done.stderr
