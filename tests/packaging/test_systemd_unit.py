"""packaging/lamina.service: what systemd would say of it, or, without systemd, a strict reading of our own."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lamina.cli.options.settings import settings_from

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


def test_the_broker_is_started_with_a_command_line_that_it_takes(tmp_path: Path) -> None:
    service = read_unit(UNIT.read_text())["Service"]
    program, *arguments = service["ExecStart"][0].split()
    assert program.endswith("/lamina")
    assert arguments == ["serve", "--config", "/etc/lamina/server.properties", "--data-dir", "/var/lib/lamina"]
    file = tmp_path / "server.properties"
    file.write_text("")
    settings_from(str(file), "/var/lib/lamina", None, ())
    assert service["Type"] == ["notify"]
    assert service["Restart"] == ["on-failure"]
