"""Stepping back behind the broker: cleaning can wait, whoever produces and consumes cannot.

Owns what a process of the cleaner gives up for itself and for those that it will start. Must not know what it does.
"""

import os
from contextlib import suppress

_NICENESS = 10


def step_back() -> None:
    """Take the processor only where the broker leaves it, and be the first to go when memory is short.

    Linux shares the processor among sessions first where autogroups are on; so the session is made as nice as the
    process. A service manager may protect the broker from the want of memory, and this process would have that from it.
    """
    os.nice(_NICENESS)
    for path, value in (("/proc/self/autogroup", str(_NICENESS)), ("/proc/self/oom_score_adj", "500")):
        with suppress(OSError), open(path, "w") as file:
            file.write(value)
