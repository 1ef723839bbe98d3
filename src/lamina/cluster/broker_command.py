"""The command line of one broker of a cluster on this machine.

Must not start it.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lamina.cluster.broker_settings import own_settings

ProgramOf = Callable[[int], Sequence[str]]
"""The words that run `lamina` for a broker, before its command."""


def lamina_program(_broker_id: int) -> Sequence[str]:
    return (sys.executable, "-m", "lamina")


def broker_command(
    program: Sequence[str],
    broker_id: int,
    port: int,
    data_directory: Path,
    zookeeper: str,
    settings: Mapping[str, str],
) -> list[str]:
    all_settings = {**settings, **own_settings(broker_id, port)}
    return [
        *(*program, "serve", "--data-dir", str(data_directory), "--zookeeper", zookeeper),
        *(word for name, value in all_settings.items() for word in ("--set", f"{name}={value}")),
    ]
