"""Loading what a pass is made with, by name: numba and numpy, which only a job's process has to have.

Must not know how a pass runs.
"""

import importlib
from typing import Any

from lamina.cleaning.contract import Manifest, Plan
from lamina.cleaning.failures import EngineMissing

_CLEAN_LOG = "lamina.cleaning.clean_log"


def run_plan(plan: Plan, attempt: str, **options: Any) -> Manifest:
    """As :func:`lamina.cleaning.clean_log.clean_log`; raises :class:`EngineMissing` with what to install."""
    try:
        clean_log = importlib.import_module(_CLEAN_LOG).clean_log
    except ModuleNotFoundError as error:
        raise EngineMissing(
            f'logs cannot be compacted here, {error.name} is missing: pip install "lamina[spark]" brings it'
        ) from None
    manifest: Manifest = clean_log(plan, attempt, **options)
    return manifest
