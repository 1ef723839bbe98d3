"""A broker that counts where its time goes: ``python -m bench.profiled PROFILE serve …``.

Writes the file PROFILE when it stops. The profiler slows every call, so its shares tell more than its times.
"""

from __future__ import annotations

import cProfile
import io
import pstats
import sys
import tempfile
from pathlib import Path

from bench.rounds import Trial, new_topic
from bench.subjects import new_lamina
from lamina.cli import main

SHOWN = 10


def profile_of(trial: Trial) -> str:
    """The functions that took most of the broker's time in one run of the trial."""
    with tempfile.TemporaryDirectory() as root:
        file = f"{root}/profile.pstats"
        with new_lamina(Path(root), [sys.executable, "-m", "bench.profiled", file]) as lamina:
            trial.run(lamina, new_topic(trial))
            lamina.stop()
        text = io.StringIO()
        pstats.Stats(file, stream=text).sort_stats("tottime").print_stats(SHOWN)
    lines = text.getvalue().splitlines()
    start = next(number for number, line in enumerate(lines) if line.lstrip().startswith("ncalls"))
    source = f"{Path(__file__).parent.parent}/"
    return "\n".join(line.replace(source, "") for line in lines[start:] if line)


if __name__ == "__main__":
    profile = cProfile.Profile()
    target = sys.argv.pop(1)
    try:
        profile.runcall(main)
    finally:
        profile.dump_stats(target)
