"""The clock: whether its time is plausible, steady, and synchronised.

Records are stamped with it and retention goes by it. Must not set it.
"""

import os
import shutil
import subprocess
from datetime import UTC, datetime

from lamina.cli.doctor.finding import Finding, fine, problem, warning
from lamina.clocks import SYSTEM_CLOCKS, Clocks

EARLIEST = datetime(2025, 1, 1, tzinfo=UTC).timestamp()
LATEST = datetime(2100, 1, 1, tzinfo=UTC).timestamp()
JUMP_SECONDS = 0.5

_SYNCHRONISED = "/run/systemd/timesync/synchronized"


def judge_clock(now: float, drift_seconds: float, is_synchronised: bool | None) -> Finding:
    """``drift_seconds`` is how far wall time and monotonic time went apart while the doctor looked."""
    if not 0 <= now < 10 * LATEST:
        return problem("clock", f"{now:.0f} seconds since 1970", "set the clock: records would get a wrong time")
    what = f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d %H:%M:%S} UTC"
    if not EARLIEST <= now < LATEST:
        return problem("clock", what, "set the clock: records would get a wrong time, and retention would go by it")
    if abs(drift_seconds) > JUMP_SECONDS:
        return warning("clock", f"{what}; it jumped by {drift_seconds:+.1f} s just now", "let NTP slew it, not step it")
    if is_synchronised is False:
        return warning("clock", f"{what}, not synchronised", "run chrony or systemd-timesyncd")
    return fine("clock", what + (", synchronised by NTP" if is_synchronised else ""))


def began(clocks: Clocks = SYSTEM_CLOCKS) -> tuple[float, float]:
    """Wall and monotonic time, to be compared later."""
    return clocks.wall_ns() / 1e9, clocks.monotonic_seconds()


def check_clock(since: tuple[float, float], clocks: Clocks = SYSTEM_CLOCKS) -> Finding:
    wall, steady = began(clocks)
    return judge_clock(wall, (wall - since[0]) - (steady - since[1]), _is_synchronised())


def _is_synchronised() -> bool | None:
    """``None`` where that is not known: in a container, or without systemd."""
    if os.path.exists(_SYNCHRONISED):
        return True
    command = shutil.which("timedatectl")
    if command is None:
        return None
    try:
        asked = [command, "show", "--property=NTPSynchronized", "--value"]
        done = subprocess.run(asked, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return {"yes": True, "no": False}.get(done.stdout.strip())
