"""packaging/lamina.service: what systemd would say of it, or, without systemd, a strict reading of our own."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.broker.process import COMMAND, NO_SPARK, SOURCES

UNIT = Path(__file__).parents[2] / "packaging/lamina.service"

KNOWN = {
    "Unit": "Description Documentation After Wants StartLimitIntervalSec StartLimitBurst",
    "Service": """
        Type NotifyAccess ExecStart User Group StateDirectory StateDirectoryMode CacheDirectory Environment
        WorkingDirectory TimeoutStartSec TimeoutStopSec KillSignal KillMode Restart RestartSec RestartPreventExitStatus
        WatchdogSec LimitNOFILE OOMScoreAdjust UMask NoNewPrivileges CapabilityBoundingSet AmbientCapabilities
        ProtectSystem ProtectHome PrivateTmp PrivateDevices ProtectClock ProtectControlGroups ProtectHostname
        ProtectKernelLogs ProtectKernelModules ProtectKernelTunables ProtectProc RestrictAddressFamilies
        RestrictNamespaces RestrictRealtime RestrictSUIDSGID LockPersonality RemoveIPC SystemCallArchitectures
        SystemCallFilter
    """,
    "Install": "WantedBy",
}
REPEATED = {"Environment", "SystemCallFilter"}


def read_unit(text: str) -> dict[str, dict[str, list[str]]]:
    """Sections, keys and their values; raises for what systemd would ignore or complain of."""
    sections: dict[str, dict[str, list[str]]] = {}
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line[0] in "#;":
            continue
        if line.startswith("["):
            section = line.removeprefix("[").removesuffix("]")
            assert section in KNOWN, f"line {number}: no such section"
            assert section not in sections, f"line {number}: a section twice"
            sections[section] = {}
            continue
        key, separator, value = line.partition("=")
        assert separator, f"line {number}: no ="
        assert section, f"line {number}: outside of any section"
        assert key in KNOWN[section].split(), f"line {number}: {key} is not known in {section}"
        assert value == value.strip(), f"line {number}: blanks around a value"
        assert key in REPEATED or key not in sections[section], f"line {number}: {key} twice"
        sections[section].setdefault(key, []).append(value)
    return sections


def test_every_section_and_key_is_known() -> None:
    assert set(read_unit(UNIT.read_text())) == set(KNOWN)


@pytest.mark.parametrize(
    "text", ["[Service]\nTyp=notify", "[Servce]\n", "Type=notify", "[Unit]\nAfter = x", "[Unit]\nAfter=x\nAfter=y"]
)
def test_our_reading_finds_mistakes(text: str) -> None:
    with pytest.raises(AssertionError):
        read_unit(text)


def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze here")
    # It wants the program to be there, which it is only once it is installed.
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace("/opt/lamina/bin/lamina", sys.executable))
    done = subprocess.run(["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """What the unit starts, with the program and the paths of this machine."""
    program, *arguments = read_unit(UNIT.read_text())["Service"]["ExecStart"][0].split()
    assert program.endswith("/lamina")
    (tmp_path / "etc").mkdir()
    places = {"/etc/lamina": str(tmp_path / "etc"), "/var/lib/lamina": str(tmp_path / "data")}
    for place, here in places.items():
        assert any(place in argument for argument in arguments), f"nothing is said of {place}"
        arguments = [argument.replace(place, here) for argument in arguments]
    return [*COMMAND, *arguments]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has names without a file")
def test_the_broker_that_it_starts_says_when_it_is_ready_gives_signs_of_life_and_ends_by_its_signal(
    tmp_path: Path, command: list[str]
) -> None:
    service = read_unit(UNIT.read_text())["Service"]
    assert service["Type"] == ["notify"]
    (tmp_path / "etc/server.properties").write_text(f"listeners=PLAINTEXT://127.0.0.1:0\n{NO_SPARK[1]}\n")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices:
        notices.bind(f"\0lamina-unit-{os.getpid()}")
        notices.settimeout(60)
        environment = {"NOTIFY_SOCKET": f"@lamina-unit-{os.getpid()}", "WATCHDOG_USEC": "200000"}
        process = subprocess.Popen(
            command, env={**os.environ, "PYTHONPATH": str(SOURCES), **environment}, stdout=subprocess.DEVNULL
        )
        try:
            for expected in (b"READY=1", b"WATCHDOG=1"):
                while expected not in notices.recv(4096):
                    pass
            process.send_signal(signal.Signals[service["KillSignal"][0]])
            assert process.wait(60) == 0
        finally:
            process.kill()
            process.wait()


def test_a_broker_with_bad_settings_is_not_started_again_and_again(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "etc/server.properties").write_text("num.partitions=many\n")
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(SOURCES)}, capture_output=True, timeout=60)
    assert [str(done.returncode)] == read_unit(UNIT.read_text())["Service"]["RestartPreventExitStatus"]
