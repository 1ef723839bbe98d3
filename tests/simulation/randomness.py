"""Every source of randomness that a broker uses, drawn from one seed.

Owns the system's random bytes (ids) and the module `random`, for as long as a simulation runs. Must not know who draws.
"""

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    rng = random.Random(f"randomness {seed}")
    state = random.getstate()
    random.seed(rng.getrandbits(64))
    try:
        with mock.patch.object(os, "urandom", rng.randbytes), mock.patch.object(random, "_urandom", rng.randbytes):
            yield
    finally:
        random.setstate(state)
