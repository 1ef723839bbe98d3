"""Live simulated worlds: ``python -m tests.simulation --seed N`` tells one, ``--seeds A-B`` tries many.

``--cluster`` for worlds with a cluster of several brokers.
"""

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.simulation.world import Kind, simulate

_HASH_SEED = "0"
"""The order of a set of names depends on it, and a story on that order."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--seed", type=int, help="live this world, and print its story")
    chosen.add_argument("--seeds", metavar="A-B", help="live these worlds, and print the story of the first that fails")
    parser.add_argument("--processes", type=int, default=1, help="how many live worlds at the same time")
    parser.add_argument("--cluster", action="store_true", help="worlds with a cluster of several brokers")
    given = parser.parse_args()
    kind = Kind.CLUSTER if given.cluster else Kind.SINGLE
    if given.seed is not None:
        return _tell(given.seed, kind)
    first, _, last = given.seeds.partition("-")
    seeds = range(int(first), int(last) + 1)
    failed = _first_failed(seeds, kind, given.processes)
    if failed is None:
        print(f"{len(seeds)} worlds, seeds {given.seeds}: all is well")
        return 0
    _tell(failed, kind)
    print(f"To see it again: python -m tests.simulation{' --cluster' * given.cluster} --seed {failed}")
    return 1


def _tell(seed: int, kind: Kind) -> int:
    result = simulate(seed, kind)
    print("\n".join(result.story.lines))
    print(f"seed {seed}: {result.failure or 'all is well'}; digest {result.story.digest}")
    return int(result.failure is not None)


def _first_failed(seeds: range, kind: Kind, processes: int) -> int | None:
    if processes == 1:
        return next((seed for seed in seeds if not _is_well(seed, kind)), None)
    with ProcessPoolExecutor(processes) as pool:
        lived = pool.map(partial(_is_well, kind=kind), seeds, chunksize=10)
        for seed, is_well in zip(seeds, lived, strict=True):
            if not is_well:
                pool.shutdown(cancel_futures=True)
                return seed
    return None


def _is_well(seed: int, kind: Kind) -> bool:
    return simulate(seed, kind).failure is None


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != _HASH_SEED:
        again = [sys.executable, "-m", "tests.simulation", *sys.argv[1:]]
        os.execve(sys.executable, again, {**os.environ, "PYTHONHASHSEED": _HASH_SEED})
    sys.exit(main())
