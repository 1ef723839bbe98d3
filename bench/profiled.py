"""A broker that counts where its time goes: ``python -m bench.profiled NAME=VALUE …``.

Writes `profile.pstats` beside the data directory when it stops. The profiler slows every call, so its shares
tell more than its times.
"""

from __future__ import annotations

import cProfile
import io
import pstats
import sys
import tempfile
from pathlib import Path

from bench.duel import new_topic
from bench.subjects import new_lamina
from bench.trials import Trial
from tests.peers.serve import serve

SHOWN = 10
_FILE = "profile.pstats"


def profile_of(trial: Trial) -> str:
    """The functions that took most of the broker's time in one run of the trial."""
    with tempfile.TemporaryDirectory() as root, new_lamina(Path(root), "bench.profiled") as lamina:
        trial.run(lamina, new_topic(trial))
        lamina.stop()
        text = io.StringIO()
        pstats.Stats(str(lamina.root / _FILE), stream=text).sort_stats("tottime").print_stats(SHOWN)
    lines = text.getvalue().splitlines()
    start = next(number for number, line in enumerate(lines) if line.lstrip().startswith("ncalls"))
    source = f"{Path(__file__).parent.parent}/"
    return "\n".join(line.replace(source, "") for line in lines[start:] if line)


if __name__ == "__main__":
    settings = dict(argument.split("=", 1) for argument in sys.argv[1:])
    profile = cProfile.Profile()
    ended = profile.runcall(serve, settings)
    profile.dump_stats(Path(settings["lamina.data.dir"]).parent / _FILE)
    sys.exit(ended)
