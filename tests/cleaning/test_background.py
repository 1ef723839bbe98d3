"""The cleaner's processes step back behind the broker."""

import os
import subprocess
import sys

_CODE = """
import os
from pathlib import Path
from lamina.cleaning.background import step_back
before = os.nice(0)
step_back()
group = Path("/proc/self/autogroup")
said = group.read_text().split() if group.exists() else []
print(os.nice(0) - before, said[-1] if said else "none")
"""


def test_a_process_of_the_cleaner_is_as_nice_as_its_session() -> None:
    run = subprocess.run([sys.executable, "-c", _CODE], capture_output=True, text=True, start_new_session=True)
    assert run.returncode == 0, run.stderr
    nicer, session = run.stdout.split()
    assert int(nicer) == min(10, 19 - os.nice(0))
    assert session in ("none", "10")


def test_it_is_the_first_to_go_when_memory_is_short() -> None:
    code = (
        "from lamina.cleaning.background import step_back; step_back(); print(open('/proc/self/oom_score_adj').read())"
    )
    if not os.path.exists("/proc/self/oom_score_adj"):
        return
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(run.stdout) == 500
