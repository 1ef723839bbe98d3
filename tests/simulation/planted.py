"""Does the simulated cluster find the classic bugs of replication? Each is planted, and worlds lived until one fails.

``python -m tests.simulation.planted`` lives for each bug the world that is known to show it, and prints what was
violated there. If that world is well, or with ``--search``, worlds are lived from the first seed on, ``--seeds`` at
most. Words choose the bugs that have one of them in their name.
"""

import argparse
import os
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from functools import partial
from itertools import chain

from tests.simulation.planted_bugs import PLANTED
from tests.simulation.world import Kind, simulate

_HASH_SEED = "0"
SEEDS = 2000
_AT_A_TIME = 20


def failure(seed: int, name: str) -> str | None:
    """Of a world with this bug."""
    with PLANTED[name].plant():
        return simulate(seed, Kind.CLUSTER).failure


def find(name: str, groups: Iterable[range], pool: ProcessPoolExecutor | None) -> tuple[int, str] | None:
    """The first seed whose world fails, and why. All seeds of a group may be lived at the same time."""
    for seeds in groups:
        failures = (
            map(partial(failure, name=name), seeds) if pool is None else pool.map(partial(failure, name=name), seeds)
        )
        for seed, why in zip(seeds, failures, strict=True):
            if why is not None:
                return seed, why
    return None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.planted", description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many worlds are lived at most for each")
    parser.add_argument("--search", action="store_true", help="look for the first seed, whichever is known")
    parser.add_argument("--processes", type=int, default=1, help="how many live worlds at the same time")
    given = parser.parse_args()
    chosen = [name for name in PLANTED if not given.words or any(word.lower() in name.lower() for word in given.words)]
    missed = 0
    with ProcessPoolExecutor(given.processes) if given.processes > 1 else nullcontext() as pool:
        for name in chosen:
            seed = PLANTED[name].seed
            known = [] if given.search else [range(seed, seed + 1)]
            starts = range(0, given.seeds, _AT_A_TIME)
            groups = (range(first, min(first + _AT_A_TIME, given.seeds)) for first in starts)
            found = find(name, chain(known, groups), pool)
            missed += found is None
            print(f"{name}\n    {'NOT FOUND' if found is None else f'seed {found[0]}: {found[1][:150]}'}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} bugs are found")
    return int(missed > 0)


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != _HASH_SEED:
        again = [sys.executable, "-m", "tests.simulation.planted", *sys.argv[1:]]
        os.execve(sys.executable, again, {**os.environ, "PYTHONHASHSEED": _HASH_SEED})
    sys.exit(main())
